"""Run a command with a private Galera cluster: ``python -m tools.galera -- COMMAND ...``.

The tool starts a cluster of three MariaDB nodes on the loopback interface, with empty data
directories. The command receives the URLs of an administrative database, one for each node, in the
environment variable PLACEMENT_GALERA_URLS, separated by spaces. The first URL is also in
PLACEMENT_TEST_DATABASE_URL. When the command ends, the tool stops the nodes, deletes their data,
and exits with the exit status of the command.

Tests use `cluster()` directly, because they stop, kill, suspend and isolate nodes.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import os
from pathlib import Path
import random
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any

import pymysql

from tools import with_database

VARIABLE = 'PLACEMENT_GALERA_URLS'
PROVIDERS = (
    '/usr/lib/galera/libgalera_smm.so',
    '/usr/lib/galera-4/libgalera_smm.so',
    '/usr/lib64/galera-4/libgalera_smm.so',
)
# Settings of every node; doc/source/admin/galera.rst explains them. A later argument replaces an
# earlier one, so these replace the settings of `with_database.mariadb`, with which a killed server
# loses transactions.
OPTIONS = (
    '--binlog-format=ROW',
    '--innodb-autoinc-lock-mode=2',
    '--innodb-flush-log-at-trx-commit=2',
    '--innodb-doublewrite=1',
    '--wsrep-on=ON',
    '--wsrep-cluster-name=placement',
    '--wsrep-slave-threads=4',
    '--wsrep-certify-nonPK=OFF',
    '--wsrep-mode=STRICT_REPLICATION,REQUIRED_PRIMARY_KEY',
    '--wsrep-sst-method=rsync',
)
# The number of nodes of a cluster.
_NODES = 3
# The kernel chooses source ports of connections from 32768 upwards. A stopped node would lose such
# a port to a connection of a client.
_PORTS = range(20000, 32768)
# A node outside of the primary component executes this statement, too.
_STATE = 'SHOW GLOBAL STATUS WHERE Variable_name IN ("wsrep_local_state_comment", "wsrep_ready")'
_SYNCED = {('wsrep_local_state_comment', 'Synced'), ('wsrep_ready', 'ON')}
_RECOVERED = re.compile(r'WSREP: Recovered position: *(\S+)')


class Node:
    """A server of the cluster.

    :ivar url: the URL of an administrative database of this node
    """

    def __init__(self, setting: with_database.Setting, options: Sequence[str]) -> None:
        self._setting = setting
        command, self.url = with_database.mariadb(setting, options)
        self._command = [str(part) for part in command]
        self._process: subprocess.Popen[bytes] | None = None
        # The connections of `is_synced` that no thread uses.
        self._idle: list[Any] = []

    @property
    def port(self) -> int:
        """The port for clients."""
        return self._setting.port

    @property
    def state_file(self) -> Path:
        """The file in which the node stores its position and `safe_to_bootstrap`."""
        return self._setting.folder / 'data' / 'grastate.dat'

    @property
    def log(self) -> str:
        """What the node has logged since the cluster exists."""
        return (self._setting.folder / 'log').read_text(errors='replace')

    def start(self, *options: str, wait: bool = True) -> None:
        """Start the node.

        :param options: further options, for example ``--wsrep-new-cluster``
        :param wait: wait until the node has the data of the cluster
        :raises ServerStartError: the node does not join the cluster in time
        """
        command = self._command
        if self.state_file.exists():
            # The node has the accounts already.
            command = [part for part in command if not part.startswith('--init-file=')]
            if 'seqno:   -1' in self.state_file.read_text():
                # The node was killed. Like the systemd unit of MariaDB, start from the position
                # that InnoDB has stored, so that the node needs the missing changes only.
                command = [*command, f'--wsrep-start-position={self.recovered_position()}']
        with (self._setting.folder / 'log').open('ab') as log:
            self._process = subprocess.Popen(
                [*command, *options],
                cwd=self._setting.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._setting.identity(),
            )
        if wait:
            self.wait_until_synced()

    def recovered_position(self) -> str:
        """Return the position in the history of the cluster that the stopped node has reached."""
        output = subprocess.run(
            [*self._command, '--wsrep-recover', '--disable-log-error'],
            cwd=self._setting.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self._setting.identity(),
        ).stdout
        if (position := _RECOVERED.search(output)) is None:
            raise with_database.ServerStartError(f'no position in the output:\n{output}')
        return position[1]

    def wait_until_listening(self) -> None:
        """Wait until the node accepts connections, also outside of the primary component.

        :raises ServerStartError: the node does not start in time; the message contains its log
        """
        deadline = time.monotonic() + with_database.TIMEOUT
        while self.running and time.monotonic() < deadline:
            with contextlib.suppress(pymysql.err.OperationalError):
                self.status('wsrep_ready')
                return
            time.sleep(0.1)
        raise with_database.ServerStartError(f'the node does not start:\n{self.log}')

    def wait_until_synced(self) -> None:
        """Wait until the node has received all data and accepts statements.

        :raises ServerStartError: the node is not ready in time; the message contains its log
        """
        self.wait_until_listening()
        deadline = time.monotonic() + with_database.TIMEOUT
        while not self.is_synced():
            if time.monotonic() > deadline:
                raise with_database.ServerStartError(f'the node is not synced:\n{self.log}')
            time.sleep(0.1)

    def is_synced(self) -> bool:
        """Whether the node is part of the primary component and has all data."""
        try:
            connection = self._connection()
            with connection.cursor() as cursor:
                cursor.execute(_STATE)
                rows = cursor.fetchall()
        except pymysql.err.Error:
            self._idle.clear()
            return False
        self._idle.append(connection)
        return {tuple(row) for row in rows} == _SYNCED

    def _connection(self) -> Any:
        """Return a connection that no thread uses.

        A new connection for each check takes more than 2 seconds on a busy machine. HAProxy would
        then use no node at all.
        """
        with contextlib.suppress(IndexError):
            return self._idle.pop()
        return self.connect()

    def status(self, name: str) -> str:
        """Return a status variable of the node, which may be outside of the primary component.

        :raises pymysql.err.OperationalError: the node does not respond
        """
        row = self.execute('SHOW GLOBAL STATUS LIKE %s', name)
        return str(row[1]) if row else ''

    def set_global(self, name: str, value: str | int) -> None:
        """Set a global variable of the node, which may be outside of the primary component."""
        self.execute(f'SET GLOBAL {name} = %s', value)

    def execute(self, statement: str, *values: str | int) -> Any:
        """Execute a statement on a new connection and return the first row, or None."""
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchone()

    def connect(self) -> Any:
        """Open a connection; each of its statements is a transaction of its own."""
        # A node outside of the primary component rejects some statements that SQLAlchemy sends for
        # each connection.
        return pymysql.connect(
            host='127.0.0.1',
            port=self.port,
            user=with_database.USER,
            password=self._setting.password,
            autocommit=True,
            connect_timeout=5,
            read_timeout=20,
        )

    def isolate(self, isolated: bool = True) -> None:
        """Make the node ignore all messages of the other nodes, as if its network had failed."""
        self.set_global('wsrep_provider_options', f'gmcast.isolate={int(isolated)}')

    def suspend(self) -> None:
        """Stop the execution of the process, which keeps its connections."""
        self._send(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue the execution of a suspended process."""
        self._send(signal.SIGCONT)

    def stop(self) -> None:
        """Shut the node down cleanly; kill it if it does not stop in time."""
        assert self._process is not None
        with_database.stop(self._process, 'mariadb')

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

    def _send(self, number: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(number)


@contextlib.contextmanager
def cluster() -> Iterator[list[Node]]:
    """Run a cluster of `_NODES` nodes while the context is active.

    :returns: the nodes, all of them synced
    :raises ServerStartError: a program is not installed, or a node does not start
    """
    folder = Path(tempfile.mkdtemp(prefix='placement-galera-'))
    folder.chmod(0o755)
    nodes: list[Node] = []
    try:
        nodes += _prepare(folder)
        nodes[0].start('--wsrep-new-cluster')
        for node in nodes[1:]:
            node.start()
        yield nodes
    finally:
        for node in nodes:
            node.kill()
        shutil.rmtree(folder, ignore_errors=True)


def _prepare(folder: Path) -> list[Node]:
    """Create the data directories of the nodes."""
    ports = free_ports(4 * _NODES)
    groups = [ports.pop() for _ in range(_NODES)]
    members = ','.join(f'127.0.0.1:{port}' for port in groups)
    password = secrets.token_hex(8)
    account = 'mysql' if os.getuid() == 0 else None
    nodes = []
    for number, group in enumerate(groups, 1):
        home = folder / f'node{number}'
        home.mkdir()
        if account is not None:
            shutil.chown(home, account)
        setting = with_database.Setting(home, ports.pop(), password, account)
        provider = (
            f'gmcast.listen_addr=tcp://127.0.0.1:{group};base_port={group}',
            f'ist.recv_addr=127.0.0.1:{ports.pop()};gcache.size=64M',
        )
        own = (
            f'--wsrep-provider={provider_library()}',
            f'--wsrep-node-name=node{number}',
            f'--wsrep-cluster-address=gcomm://{members}',
            f'--wsrep-node-address=127.0.0.1:{group}',
            f'--wsrep-sst-receive-address=127.0.0.1:{ports.pop()}',
            f'--wsrep-provider-options={";".join(provider)}',
        )
        nodes.append(Node(setting, (*OPTIONS, *own)))
    return nodes


def provider_library() -> Path:
    """Return the path of the Galera library.

    :raises ServerStartError: it is not installed
    """
    for path in map(Path, PROVIDERS):
        if path.exists():
            return path
    raise with_database.ServerStartError('Galera is not installed (Debian package galera-4)')


def missing_packages() -> list[str]:
    """Return the packages that are not installed, but that the cluster or its tests need."""
    found = {
        'mariadb-server': shutil.which('mariadbd', path='/usr/sbin:/usr/bin:/usr/local/sbin'),
        'galera-4': any(Path(path).exists() for path in PROVIDERS),
        'rsync': shutil.which('rsync'),
        'haproxy': shutil.which('haproxy', path=f'{os.environ.get("PATH", "")}:/usr/sbin'),
    }
    return [name for name, present in found.items() if not present]


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


def main() -> int:
    """Run the command with a private cluster; return the exit status of the command."""
    parser = argparse.ArgumentParser(
        description='Run a command with a private Galera cluster.',
        usage='python -m tools.galera -- COMMAND ...',
    )
    parser.add_argument('command', nargs='+', help='command to run, with its arguments')
    arguments = parser.parse_args()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, with_database.exit_on_signal)
    try:
        with cluster() as nodes:
            urls = [node.url for node in nodes]
            variables = {VARIABLE: ' '.join(urls), with_database.VARIABLE: urls[0]}
            return with_database.run(arguments.command, os.environ | variables)
    except with_database.ServerStartError as error:
        print(f'tools.galera: {error}', file=sys.stderr)
        return 1


if __name__ == '__main__':
    sys.exit(main())
