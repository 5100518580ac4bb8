"""Database servers and workers of the service that tests kill and restart."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import importlib
import os
from pathlib import Path
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from types import ModuleType
from typing import IO
import unittest

import sqlalchemy as sa

from placement.tests import servers
from placement.tests.functional import forked, programs
from placement.tests.waiting import LONGEST, wait_until

# In place of the path of Python, this word starts a program with `programs`.
FORK = 'fork'

# A killed server of the test run may lose committed transactions. These options make a server
# durable as long as the machine does not crash.
_DURABLE = {
    'mariadb': ('--innodb-flush-log-at-trx-commit=2', '--innodb-doublewrite=1'),
    'mysql': ('--innodb-flush-log-at-trx-commit=2', '--innodb-doublewrite=ON'),
    'postgresql': ('-c', 'synchronous_commit=on', '-c', 'full_page_writes=on'),
}


def engine_of_run() -> str:
    """Return `mariadb`, `mysql` or `postgresql`; skip the test if the run has no server."""
    if servers.ADMIN_URL not in os.environ:
        raise unittest.SkipTest('the test needs a database server')
    return servers.engine()


def tool(name: str) -> ModuleType:
    """Return a module of `tools`; skip the test if the tree has no tools."""
    try:
        return importlib.import_module(f'tools.{name}')
    except ModuleNotFoundError as error:
        raise unittest.SkipTest(str(error)) from error


def free_port() -> int:
    """Return a free TCP port of the loopback interface."""
    return int(tool('with_database').free_port())


class DatabaseServer:
    """A private server of one test, of the same engine as the server of the run.

    :param options: further arguments of the server
    """

    def __init__(self, *options: str):
        self._tool = tool('with_database')
        self._engine = engine_of_run()
        prepare, account = self._tool.ENGINES[self._engine]
        self._folder = Path(tempfile.mkdtemp(prefix='placement-fault-'))
        self._setting = self._tool.Setting.create(
            self._folder, account, self._tool.free_port(), 'secret'
        )
        self._command, admin = prepare(self._setting, (*_DURABLE[self._engine], *options))
        # The service uses the same driver as in the rest of the run.
        driver = servers.admin_url().drivername
        url = sa.make_url(admin).set(drivername=driver)
        if url.get_driver_name() == 'mysqldb':
            # mysqlclient has other parameters for TLS.
            url = url.difference_update_query(['ssl_disabled'])
        self._admin = url.render_as_string(False)
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start or restart the server and wait until it accepts connections."""
        self._process = self._setting.start(self._command)
        self._tool.wait_until_ready(self._process, self._admin, self._setting)

    def kill(self) -> None:
        """Kill the server with SIGKILL, so that it cannot write anything before it ends."""
        assert self._process is not None
        killed = self._signal(signal.SIGKILL)
        self._process.wait()
        # A process of PostgreSQL serves its connection until it ends.
        wait_until(lambda: all(map(_is_stopped, killed)))
        if self._engine == 'postgresql':
            (self._folder / 'data' / 'postmaster.pid').unlink(missing_ok=True)

    def hang(self) -> None:
        """Stop the processes of the server; it keeps its connections but does not respond."""
        stopped = self._signal(signal.SIGSTOP)
        # A thread that runs on another processor continues for a moment.
        wait_until(lambda: all(map(_is_stopped, stopped)))

    def resume(self) -> None:
        """Let a server continue that hangs."""
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> list[int]:
        """Send a signal to all processes of the server, and return their ids."""
        assert self._process is not None
        if self._process.poll() is not None:
            return []
        pid = self._process.pid
        # PostgreSQL has a process for each connection.
        children = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
        processes = [pid, *map(int, children)]
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, number)
        return processes

    def create_database(self, name: str) -> str:
        """Create an empty database and return its URL."""
        return servers.create_database(sa.make_url(self._admin), name)

    def remove(self) -> None:
        """Stop the server and delete its data."""
        if self._process is not None and self._process.poll() is None:
            self.resume()
            self._tool.stop(self._process, self._engine)
        shutil.rmtree(self._folder, ignore_errors=True)


def _is_stopped(pid: int) -> bool:
    """Whether no thread of a process can run, because the process is stopped or has ended."""
    with contextlib.suppress(FileNotFoundError):
        return {_state(thread) for thread in Path(f'/proc/{pid}/task').iterdir()} <= set('TZX')
    return True


def _state(thread: Path) -> str:
    """Return the state of a thread, for example `R` (running), `T` (stopped) or `X` (ended)."""
    try:
        # The state follows the name of the program, which is in parentheses.
        return (thread / 'stat').read_text().rpartition(')')[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return 'X'


def _waitress(port: int) -> list[str]:
    return [FORK, '-m', 'placement.tests.functional.faults.worker', str(port)]


class Worker:
    """A process that serves Placement on a free port.

    :param url: the URL of its database
    :param command: returns the command that serves on a port
    :param settings: additional environment variables
    :param log: the file for its output
    :param port: the port to serve on; by default, a free port
    """

    def __init__(
        self,
        url: str,
        command: Callable[[int], Sequence[str]] = _waitress,
        settings: Mapping[str, str] | None = None,
        log: Path | None = None,
        port: int | None = None,
    ):
        self.port = port or free_port()
        self._command = command(self.port)
        self._log = log or Path(os.devnull)
        self._environment = {
            **os.environ,
            'OS_PLACEMENT_DATABASE__CONNECTION': url,
            'OS_API__AUTH_STRATEGY': 'noauth2',
            'PYTHONPATH': os.pathsep.join(path for path in sys.path if path),
            # A killed process cannot write its coverage data, and measuring it needs memory.
            'COVERAGE_PROCESS_START': '',
            **(settings or {}),
        }
        self._process: subprocess.Popen[bytes] | forked.Process | None = None
        self.start()

    def start(self) -> None:
        """Start or restart the process and wait until it listens."""
        with self._log.open('ab') as log:
            self._process = self._started(log)
        deadline = time.monotonic() + LONGEST
        while self._process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError('a worker did not start')

    def _started(self, log: IO[bytes]) -> subprocess.Popen[bytes] | forked.Process:
        if self._command[0] == FORK:
            return programs.shared().start(
                self._command[1:], self._environment, None, log, log, new_session=True
            )
        return subprocess.Popen(
            self._command,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The id of the started process, which may have started further processes."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the process and its child processes with SIGKILL."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Terminate the process; kill it if it does not end in time."""
        assert self._process is not None
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(LONGEST)
        self.remove()

    def wait(self) -> int:
        """Wait until the process ends and return its exit status.

        :raises subprocess.TimeoutExpired: the process does not end
        """
        assert self._process is not None
        return self._process.wait(LONGEST)

    def remove(self) -> None:
        """Kill the process if it runs."""
        if self._process is not None and self._process.poll() is None:
            self.kill()


@contextlib.contextmanager
def other_connection(url: str) -> Iterator[sa.Connection]:
    """Open a connection that is not one of the service; its transaction is rolled back."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        yield conn
        conn.rollback()


def close_all(url: str) -> None:
    """Let the server close all connections to a database.

    :param url: the URL of the database
    """
    with other_connection(url) as conn:
        if conn.dialect.name == 'postgresql':
            conn.exec_driver_sql(
                'SELECT pg_terminate_backend(pid) FROM pg_stat_activity '
                'WHERE datname = current_database() AND pid <> pg_backend_pid()'
            )
            return
        ids = conn.exec_driver_sql(
            'SELECT id FROM information_schema.processlist '
            'WHERE db = DATABASE() AND id <> connection_id()'
        )
        for own in ids.scalars().all():
            # The service may have closed the connection meanwhile.
            with contextlib.suppress(sa.exc.OperationalError):
                conn.exec_driver_sql(f'KILL {own}')


def limit_idle_time(url: str, seconds: int) -> None:
    """Let the server close each connection that is idle for so many seconds.

    The limit is valid for new connections, on MySQL and MariaDB for those to other databases too.
    """
    with other_connection(url) as conn:
        if conn.dialect.name == 'postgresql':
            database = sa.make_url(url).database
            conn.exec_driver_sql(
                f"ALTER DATABASE {database} SET idle_session_timeout = '{seconds}s'"
            )
            conn.commit()
        else:
            conn.exec_driver_sql(f'SET GLOBAL wait_timeout = {seconds}')
