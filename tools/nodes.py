"""The nodes of a private cluster of MariaDB or MySQL servers; tests stop, kill and suspend them."""

from collections.abc import Callable, Iterator, Sequence
import contextlib
import os
from pathlib import Path
import random
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from typing import Any, TypeVar

import pymysql

from tools import with_database

# The kernel chooses source ports of connections from 32768 upwards. A stopped node would lose such
# a port to a connection of a client.
_PORTS = range(20000, 32768)


class Node:
    """A server of a cluster.

    :param prepare: a function of an engine in `tools/with_database.py`
    :ivar url: the URL of an administrative database of this node
    """

    def __init__(
        self, setting: with_database.Setting, prepare: with_database.Prepare, options: Sequence[str]
    ) -> None:
        self._setting = setting
        command, self.url = prepare(setting, options)
        self._command = [str(part) for part in command]
        self._process: subprocess.Popen[bytes] | None = None
        # The connections of `rows` that no thread uses.
        self._idle: list[Any] = []

    @property
    def port(self) -> int:
        """The port for clients."""
        return self._setting.port

    @property
    def log(self) -> str:
        """What the node has logged since the cluster exists."""
        return self._setting.log

    def _launch(self, *options: str, has_accounts: bool) -> None:
        """Start the process.

        :param has_accounts: the node has stored its accounts, and must not create them again
        """
        command = self._command
        if has_accounts:
            command = [part for part in command if not part.startswith('--init-file=')]
        self._process = self._setting.start([*command, *options])

    def wait_until_listening(self) -> None:
        """Wait until the node accepts connections, also if it is not part of the cluster.

        :raises ServerStartError: the node does not start in time; the message contains its log
        """
        self._wait_until(lambda: bool(self.rows("SHOW GLOBAL STATUS LIKE 'Uptime'")))

    def wait_until_synced(self) -> None:
        """Wait until the node has received all data and accepts statements.

        :raises ServerStartError: the node is not ready in time; the message contains its log
        """
        self.wait_until_listening()
        self._wait_until(self.is_synced)

    def _wait_until(self, condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + with_database.TIMEOUT
        while not condition():
            if not self.running or time.monotonic() > deadline:
                raise with_database.ServerStartError(f'the node is not ready:\n{self.log}')
            time.sleep(0.1)

    def start(self) -> None:
        """Start the node, and let it join the cluster."""
        raise NotImplementedError

    def is_synced(self) -> bool:
        """Whether the node is part of the cluster and has all data."""
        raise NotImplementedError

    def set_global(self, name: str, value: str | int) -> None:
        """Set a global variable of the node, which may be outside of the cluster."""
        self.execute(f'SET GLOBAL {name} = %s', value)

    def execute(self, statement: str, *values: str | int) -> Any:
        """Execute a statement on a new connection and return the first row, or None."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchone()

    def rows(self, query: str) -> set[tuple[Any, ...]]:
        """Return the rows of a query about the state of the node; none if it does not respond."""
        # A new connection for each check takes more than 2 seconds on a busy machine. HAProxy would
        # then use no node at all.
        try:
            connection = self._idle.pop() if self._idle else self.connect()
            with connection.cursor() as cursor:
                cursor.execute(query)
                rows = set(cursor.fetchall())
        except pymysql.err.Error:
            self._idle.clear()
            return set()
        self._idle.append(connection)
        return rows

    def connect(self) -> Any:
        """Open a connection; each of its statements is a transaction of its own."""
        # A node outside of the cluster rejects some statements that SQLAlchemy sends for each
        # connection.
        return pymysql.connect(
            host='127.0.0.1',
            port=self.port,
            user=with_database.USER,
            password=self._setting.password,
            autocommit=True,
            connect_timeout=5,
            read_timeout=20,
            ssl_disabled=True,
        )

    def suspend(self) -> None:
        """Stop the execution of the process, which keeps its connections."""
        os.kill(self._running().pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the execution of a suspended process."""
        os.kill(self._running().pid, signal.SIGCONT)

    def stop(self) -> None:
        """Shut the node down cleanly; kill it if it does not stop in time."""
        with_database.stop(self._running(), 'mariadb')

    def kill(self) -> None:
        """Kill the node with SIGKILL, and with it the programs of a state transfer."""
        if self._process is None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    @property
    def running(self) -> bool:
        """Whether the process of the node exists."""
        return self._process is not None and self._process.poll() is None

    def _running(self) -> subprocess.Popen[bytes]:
        assert self._process is not None
        return self._process


AnyNode = TypeVar('AnyNode', bound=Node)


@contextlib.contextmanager
def started(
    name: str, prepare: Callable[[Path], list[AnyNode]], start_first: Callable[[AnyNode], None]
) -> Iterator[list[AnyNode]]:
    """Run the nodes of a cluster while the context is active.

    :param name: the beginning of the name of their directory
    :param prepare: creates the nodes in a directory
    :param start_first: starts the first node, which creates the cluster
    :raises ServerStartError: a program is not installed, or a node does not start
    """
    folder = Path(tempfile.mkdtemp(prefix=name))
    folder.chmod(0o755)
    nodes: list[AnyNode] = []
    try:
        nodes += prepare(folder)
        start_first(nodes[0])
        for node in nodes[1:]:
            node.start()
        yield nodes
    finally:
        for node in nodes:
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)


def settings(folder: Path, ports: Sequence[int], account: str) -> list[with_database.Setting]:
    """Return the settings of nodes, each with a directory of its own and the same password.

    :param ports: the port of each node
    :param account: the user that runs the servers if root runs this process
    """
    password = secrets.token_hex(8)
    result = []
    for number, port in enumerate(ports, 1):
        home = folder / f'node{number}'
        home.mkdir()
        result.append(with_database.Setting.create(home, account, port, password))
    return result


def free_ports(count: int) -> list[int]:
    """Return different free TCP ports of the loopback interface that no client receives."""
    ports: list[int] = []
    for port in random.sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind(('127.0.0.1', port))
                ports.append(port)
        if len(ports) == count:
            break
    return ports
