"""Run a command with a private database server: ``with_database.py ENGINE -- COMMAND ...``.

ENGINE is ``mariadb``, ``mariadb-mysqlclient``, ``mysql``, or ``postgresql``. The tool starts the
database server that is installed on this machine, or that ``mysql.py`` has unpacked, with an empty
data directory, on a free port of the loopback interface. The command receives the URL of an
administrative database in the environment variable PLACEMENT_TEST_DATABASE_URL. The driver of this
URL is PyMySQL for ``mariadb`` and ``mysql``, mysqlclient for ``mariadb-mysqlclient``, and psycopg
for ``postgresql``. When the command ends, the tool stops the server, deletes the data, and exits
with the exit status of the command. If the server or the driver is not installed, the tool fails.

The server does not wait until data is written to the disk, because no data is needed after the
command. Any user can run the tool. If root runs the tool, the server runs as the system user that
the package of the server created.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
import contextlib
from dataclasses import dataclass
import importlib.util
import os
from pathlib import Path
import pwd
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from typing import Any, NoReturn

import sqlalchemy as sa

VARIABLE = 'PLACEMENT_TEST_DATABASE_URL'
TIMEOUT = 300  # seconds in which a server must start, or stop, also on a busy machine
USER = 'placement'
_WITHOUT_TLS = '&ssl_disabled=true'


class ServerStartError(Exception):
    """The server cannot be started; the message contains the reason."""


@dataclass(frozen=True, slots=True)
class Setting:
    """The properties of a private server: its directory, port, password and system user."""

    folder: Path
    port: int
    password: str
    account: str | None  # the user that runs the server; None for the current user

    @classmethod
    def create(cls, folder: Path, account: str, port: int, password: str) -> 'Setting':
        """Return the setting of a server with a directory, which its user can write.

        :param account: the user that runs the server if root runs this process
        :raises ServerStartError: the user does not exist
        """
        if os.getuid() != 0:
            return cls(folder, port, password, None)
        try:
            shutil.chown(folder, account)
        except LookupError:
            raise ServerStartError(f'the user {account} of the server does not exist') from None
        return cls(folder, port, password, account)

    @property
    def log(self) -> str:
        """What the server has logged since its directory exists."""
        return (self.folder / 'log').read_text(errors='replace')

    def start(self, command: Sequence[str | Path]) -> subprocess.Popen[bytes]:
        """Start the server in a session of its own, so that it receives no SIGINT of Ctrl-C."""
        with (self.folder / 'log').open('ab') as log:
            return subprocess.Popen(
                command,
                cwd=self.folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                **self.identity(),
            )

    def run(self, *command: str | Path) -> None:
        """Run a command that prepares the server.

        :raises ServerStartError: the command fails; the message contains the output of the command
        """
        completed = subprocess.run(
            command,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self.identity(),
        )
        if completed.returncode:
            raise ServerStartError(
                f'{command[0]} failed with {completed.returncode}:\n{completed.stdout}'
            )

    def identity(self) -> dict[str, Any]:
        """Return the arguments for `subprocess` that select the system user."""
        if self.account is None:
            return {}
        group = pwd.getpwnam(self.account).pw_gid
        return {'user': self.account, 'group': group, 'extra_groups': []}

    def private_file(self, name: str, text: str) -> Path:
        """Write a file that only the system user of the server can read."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text)
        if self.account is not None:
            shutil.chown(path, self.account)
        return path


def mariadb(setting: Setting, options: Sequence[str]) -> tuple[list[str | Path], str]:
    """Prepare a MariaDB server; return the command that starts it and its administrative URL."""
    data = setting.folder / 'data'
    setting.run(
        program('mariadb-install-db'),
        '--no-defaults',
        f'--datadir={data}',
        f'--tmpdir={setting.folder}',
        '--auth-root-authentication-method=normal',
        '--skip-test-db',
    )
    command: list[str | Path] = [
        program('mariadbd'),
        *_common_options(setting),
        '--innodb-doublewrite=0',
        '--performance-schema=OFF',
        *options,
    ]
    return command, _pymysql_url(setting, options)


def _common_options(setting: Setting) -> list[str]:
    """Return options of MariaDB and MySQL; the server creates the account when it starts."""
    account = f"'{USER}'@'127.0.0.1'"
    first = setting.private_file(
        'first.sql',
        f"CREATE USER {account} IDENTIFIED BY '{setting.password}';\n"
        f'GRANT ALL ON *.* TO {account} WITH GRANT OPTION;\n',
    )
    return [
        '--no-defaults',
        f'--datadir={setting.folder / "data"}',
        # When a server starts, it deletes temporary tables of other servers in the same directory.
        f'--tmpdir={setting.folder}',
        f'--socket={setting.folder / "socket"}',
        f'--pid-file={setting.folder / "pid"}',
        f'--init-file={first}',
        '--bind-address=127.0.0.1',
        f'--port={setting.port}',
        '--skip-name-resolve',
        '--character-set-server=utf8mb4',
        '--max-connections=500',
        '--innodb-flush-log-at-trx-commit=0',
    ]


def _pymysql_url(setting: Setting, options: Sequence[str]) -> str:
    authority = f'{USER}:{setting.password}@127.0.0.1:{setting.port}'
    url = f'mysql+pymysql://{authority}/mysql?charset=utf8mb4'
    if not any(option.startswith('--ssl') for option in options):
        # PyMySQL would load the certificates of the system for each connection: 30 ms of CPU.
        url += _WITHOUT_TLS
    return url


def mariadb_with_mysqlclient(
    setting: Setting, options: Sequence[str]
) -> tuple[list[str | Path], str]:
    """Prepare a MariaDB server like `mariadb`, but return a URL with the driver mysqlclient.

    :raises ServerStartError: mysqlclient is not installed
    """
    if importlib.util.find_spec('MySQLdb') is None:
        raise ServerStartError('The Python package mysqlclient is not installed.')
    command, url = mariadb(setting, options)
    return command, url.replace('mysql+pymysql:', 'mysql+mysqldb:').replace(_WITHOUT_TLS, '')


def mysql(setting: Setting, options: Sequence[str]) -> tuple[list[str | Path], str]:
    """Prepare a MySQL server; return the command that starts it and its administrative URL.

    :raises ServerStartError: MySQL cannot be had
    """
    sys.path.append(str(Path(__file__).resolve().parents[1]))
    from tools import mysql as packages

    try:
        server = packages.command('mysqld')
    except packages.UnavailableError as error:
        raise ServerStartError(f'MySQL cannot be had: {error}') from error
    redo_log = '--innodb-redo-log-capacity=64M'
    data = f'--datadir={setting.folder / "data"}'
    setting.run(*server, '--no-defaults', '--initialize-insecure', data, redo_log)
    command = [
        *server,
        *_common_options(setting),
        redo_log,
        '--innodb-flush-method=nosync',
        '--innodb-doublewrite=OFF',
        '--disable-log-bin',
        '--mysqlx=OFF',
        '--secure-file-priv=NULL',
        *options,
    ]
    return command, _pymysql_url(setting, options)


def postgresql(setting: Setting, options: Sequence[str]) -> tuple[list[str | Path], str]:
    """Prepare a PostgreSQL server; return the command that starts it and its administrative URL."""
    data = setting.folder / 'data'
    setting.run(
        program('initdb'),
        *('-D', data, '-U', USER, '-E', 'UTF8', '--locale=C', '--no-sync'),
        *('--auth=scram-sha-256', '--pwfile', setting.private_file('pw', setting.password)),
    )
    settings = {
        'listen_addresses': '127.0.0.1',
        'port': setting.port,
        'unix_socket_directories': setting.folder,
        'max_connections': 300,
        'fsync': 'off',
        'synchronous_commit': 'off',
        'full_page_writes': 'off',
    }
    command: list[str | Path] = [program('postgres'), '-D', data]
    command += [part for name, value in settings.items() for part in ('-c', f'{name}={value}')]
    authority = f'{USER}:{setting.password}@127.0.0.1:{setting.port}'
    return [*command, *options], f'postgresql+psycopg://{authority}/postgres'


Prepare = Callable[[Setting, Sequence[str]], tuple[list[str | Path], str]]
ENGINES: dict[str, tuple[Prepare, str]] = {
    'mariadb': (mariadb, 'mysql'),
    'mariadb-mysqlclient': (mariadb_with_mysqlclient, 'mysql'),
    # The package of the server, which creates a user, is not installed.
    'mysql': (mysql, 'nobody'),
    'postgresql': (postgresql, 'postgres'),
}


def program(name: str) -> Path:
    """Return the path of a server program, which need not be in PATH.

    :raises ServerStartError: the program is not installed
    """
    in_path = shutil.which(name, path=f'{os.environ.get("PATH", "")}:/usr/sbin:/usr/local/sbin')
    if in_path:
        return Path(in_path)
    versions = Path('/usr/lib/postgresql').glob(f'*/bin/{name}')
    newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
    if newest is None:
        raise ServerStartError(
            f'{name} is not installed. On Debian and Ubuntu, install the packages mariadb-server '
            'and postgresql.'
        )
    return newest


@contextlib.contextmanager
def server(engine: str, options: Sequence[str] = ()) -> Iterator[str]:
    """Run a database server while the context is active.

    :param engine: a key of `ENGINES`
    :param options: additional command-line arguments for the server
    :returns: the URL of an administrative database of the server
    :raises ServerStartError: the server is not installed or does not start
    """
    prepare, account = ENGINES[engine]
    folder = Path(tempfile.mkdtemp(prefix=f'placement-{engine}-'))
    try:
        setting = Setting.create(folder, account, free_port(), secrets.token_hex(8))
        command, url = prepare(setting, options)
        process = setting.start(command)
        try:
            wait_until_ready(process, url, setting)
            yield url
        finally:
            stop(process, engine)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def databases(engine: str, options: Sequence[str] = ()) -> Iterator[Callable[[str], str]]:
    """Run a database system while the context is active.

    :param engine: a key of `ENGINES`, or `sqlite`
    :returns: a function that creates an empty database with a name, and returns its URL
    """
    if engine == 'sqlite':
        with tempfile.TemporaryDirectory(prefix='placement-databases-') as folder:
            yield lambda name: f'sqlite:///{Path(folder, name)}.db'
        return
    with server(engine, options) as url:
        admin = sa.make_url(url)

        def create(name: str) -> str:
            with sa.create_engine(admin, isolation_level='AUTOCOMMIT').connect() as conn:
                conn.exec_driver_sql(f'CREATE DATABASE created_{name}')
            return admin.set(database=f'created_{name}').render_as_string(hide_password=False)

        yield create


def free_port() -> int:
    """Return a free TCP port of the loopback interface."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return int(probe.getsockname()[1])


def wait_until_ready(process: subprocess.Popen[bytes], url: str, setting: Setting) -> None:
    """Wait until the server accepts a connection.

    :raises ServerStartError: the server does not accept one in time; the message contains its log
    """
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    deadline = time.monotonic() + TIMEOUT
    while process.poll() is None and time.monotonic() < deadline:
        with contextlib.suppress(sa.exc.OperationalError):
            engine.connect().close()
            return
        time.sleep(0.1)
    raise ServerStartError(f'The server does not accept connections:\n{setting.log}')


def stop(process: subprocess.Popen[bytes], engine: str) -> None:
    """Stop a server; kill the process if the server does not stop in time."""
    # After SIGTERM, PostgreSQL waits until all clients have disconnected. After SIGINT, PostgreSQL
    # closes their connections.
    process.send_signal(signal.SIGINT if engine == 'postgresql' else signal.SIGTERM)
    try:
        process.wait(TIMEOUT)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> int:
    """Run the command with a private server; return the exit status of the command."""
    parser = argparse.ArgumentParser(
        description='Run a command with a private database server.',
        usage='%(prog)s ENGINE -- COMMAND ...',
    )
    parser.add_argument('engine', choices=sorted(ENGINES), help='database server to start')
    parser.add_argument('command', nargs='+', help='command to run, with its arguments')
    arguments = parser.parse_args()
    # Convert these signals to exceptions, so that the context manager stops the server.
    signal.signal(signal.SIGTERM, exit_on_signal)
    signal.signal(signal.SIGHUP, exit_on_signal)
    try:
        with server(arguments.engine) as url:
            return run(arguments.command, os.environ | {VARIABLE: url})
    except ServerStartError as error:
        print(f'with_database.py: {error}', file=sys.stderr)
        return 1


def run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run the command and return its exit status; terminate the command if an exception occurs."""
    with subprocess.Popen(command, env=environment) as process:
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            raise
    return status if status >= 0 else 128 - status


def exit_on_signal(number: int, _frame: object) -> NoReturn:
    """Handle a signal: exit with the status that a shell reports for this signal."""
    sys.exit(128 + number)


if __name__ == '__main__':
    sys.exit(main())
