"""What a fault hits: database servers and workers of the service, which tests kill and restart."""

from collections.abc import Callable, Iterator, Mapping, Sequence
import contextlib
import importlib.util
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
from typing import Any
import unittest

import sqlalchemy as sa
from sqlalchemy import event

import placement
from placement.tests import servers

_TOOL = Path(placement.__file__).parents[1] / 'tools' / 'with_database.py'

# The servers of the test run may forget what they have acknowledged when they are killed;
# those here may not, as long as the machine itself stays up.
_DURABLE = {
    'mariadb': ('--innodb-flush-log-at-trx-commit=2', '--innodb-doublewrite=1'),
    'postgresql': ('-c', 'synchronous_commit=on', '-c', 'full_page_writes=on'),
}


def engine_of_run() -> str:
    """`mariadb` or `postgresql`; skips the test where the run has no server."""
    if servers.ADMIN_URL not in os.environ:
        raise unittest.SkipTest('this needs a database server')
    return 'mariadb' if servers.admin_url().get_dialect().name == 'mysql' else 'postgresql'


def _tool() -> ModuleType:
    if not _TOOL.exists():
        raise unittest.SkipTest(f'{_TOOL} is missing')
    name = 'placement_tests_with_database'
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, _TOOL)
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return sys.modules[name]


class DatabaseServer:
    """A server of this test's own, of the kind that the run uses.

    :param options: further arguments for the server
    """

    def __init__(self, *options: str):
        self._tool = _tool()
        self._engine = engine_of_run()
        prepare, account = self._tool.ENGINES[self._engine]
        self._folder = Path(tempfile.mkdtemp(prefix='placement-fault-'))
        runs_as = account if os.getuid() == 0 else None
        if runs_as is not None:
            shutil.chown(self._folder, runs_as)
        self._setting = self._tool.Setting(self._folder, self._tool.free_port(), 'secret', runs_as)
        self._command, self._admin = prepare(self._setting, (*_DURABLE[self._engine], *options))
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the server, for the first time or again, and wait until it answers."""
        with (self._folder / 'log').open('ab') as log:
            self._process = subprocess.Popen(
                [str(part) for part in self._command],
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self._setting.identity(),
            )
        self._tool.wait_until_ready(self._process, self._admin, self._folder / 'log')

    def kill(self) -> None:
        """Kill the server at once: it has no time to put anything away."""
        assert self._process is not None
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()
        if self._engine == 'postgresql':
            # The processes of its clients are told by the death of their parent.
            (self._folder / 'data' / 'postmaster.pid').unlink(missing_ok=True)

    def create_database(self, name: str) -> str:
        """Make an empty database and give its URL."""
        admin = sa.make_url(self._admin)
        engine = sa.create_engine(admin, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
        with engine.connect() as conn:
            conn.exec_driver_sql(f'CREATE DATABASE {name}')
        return admin.set(database=name).render_as_string(hide_password=False)

    def remove(self) -> None:
        """Stop the server and delete its data."""
        if self._process is not None and self._process.poll() is None:
            self._tool.stop(self._process, self._engine)
        shutil.rmtree(self._folder, ignore_errors=True)


def _waitress(port: int) -> list[str]:
    return [sys.executable, '-m', 'placement.tests.functional.faults.worker', str(port)]


class Worker:
    """A server of the service, on a port of its own.

    :param url: the URL of its database
    :param command: returns the command that serves on a port
    :param settings: environment variables beside the usual ones
    :param log: the file for its output
    """

    def __init__(
        self,
        url: str,
        command: Callable[[int], Sequence[str]] = _waitress,
        settings: Mapping[str, str] | None = None,
        log: Path | None = None,
    ):
        self.port = _tool().free_port()
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
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        """Start the process, for the first time or again, and wait until it listens."""
        with self._log.open('ab') as log:
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        deadline = time.monotonic() + 60
        while self._process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(('127.0.0.1', self.port)) == 0:
                    return
            time.sleep(0.05)
        raise AssertionError('a worker did not start')

    @property
    def pid(self) -> int:
        """The id of the process that was started; it may have started others."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """Kill the process and those it started at once, whatever they are doing."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def stop(self) -> None:
        """Ask the process to end; kill it if it does not."""
        assert self._process is not None
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(10)
        self.remove()

    def remove(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self.kill()


@contextlib.contextmanager
def stranger(url: str) -> Any:
    """A connection of somebody else to a database, in a transaction that is rolled back."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    with engine.connect() as conn:
        yield conn
        conn.rollback()


@contextlib.contextmanager
def broken_once(engine: sa.Engine, url: str, moment: str, text: str) -> Iterator[list[int]]:
    """Break a connection of the service from the server's side, once.

    :param moment: the event of the engine upon which that happens
    :param text: how the statement begins upon which it happens, where the event has one
    :returns: the connections that were broken
    """
    broken: list[int] = []
    mysql = engine.dialect.name == 'mysql'

    def break_it(conn: sa.Connection, *arguments: Any) -> None:
        if broken or not (text == '' or arguments[1].startswith(text)):
            return
        cursor = conn.connection.cursor()
        cursor.execute('SELECT connection_id()' if mysql else 'SELECT pg_backend_pid()')
        broken.append(cursor.fetchone()[0])
        cursor.close()
        with stranger(url) as other:
            kill = f'KILL {broken[0]}' if mysql else f'SELECT pg_terminate_backend({broken[0]})'
            other.exec_driver_sql(kill)

    event.listen(engine, moment, break_it)
    try:
        yield broken
    finally:
        event.remove(engine, moment, break_it)
