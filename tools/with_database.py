"""Run a command beside a private database server: ``with_database.py ENGINE -- COMMAND ...``.

ENGINE is ``mariadb`` or ``postgresql``. The server of the distribution's package is started on a
free port of the loopback interface with a data folder of its own, and is stopped and removed when
the command ends. The command finds the URL of an administrative database in
PLACEMENT_TEST_DATABASE_URL. The exit status is that of the command. Without the server's programs
this fails.

Durability is switched off: nothing that is written here is meant to outlive the command. Works
for root (the server then runs as the user that its package made) and for anyone else.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
import contextlib
from dataclasses import dataclass
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
PATIENCE = 90  # seconds that a server may take to start or to stop
USER = 'placement'


class ServerFailed(Exception):
    """The server could not be started; the text says why."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where a server is to run, and as whom."""

    folder: Path
    port: int
    password: str
    account: str | None  # the user to run as; None: the user who runs this

    def run(self, *command: str | Path) -> None:
        """Run a command that prepares the server, or fail with what it printed."""
        done = subprocess.run(
            [str(part) for part in command],
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            **self.identity(),
        )
        if done.returncode:
            raise ServerFailed(f'{command[0]} failed with {done.returncode}:\n{done.stdout}')

    def identity(self) -> dict[str, Any]:
        """Arguments for subprocess that change the user."""
        if self.account is None:
            return {}
        group = pwd.getpwnam(self.account).pw_gid
        return {'user': self.account, 'group': group, 'extra_groups': []}

    def private_file(self, name: str, text: str) -> Path:
        """Write a file that only the server can read."""
        path = self.folder / name
        path.touch(mode=0o600)
        path.write_text(text)
        if self.account is not None:
            shutil.chown(path, self.account)
        return path


def mariadb(setting: Setting, options: Sequence[str]) -> tuple[list[str | Path], str]:
    """Prepare a MariaDB server; give its command line and the URL of its first database."""
    data = setting.folder / 'data'
    setting.run(
        program('mariadb-install-db'),
        '--no-defaults',
        f'--datadir={data}',
        '--auth-root-authentication-method=normal',
        '--skip-test-db',
    )
    account = f"'{USER}'@'127.0.0.1'"
    first = setting.private_file(
        'first.sql',
        f"CREATE USER {account} IDENTIFIED BY '{setting.password}';\n"
        f'GRANT ALL ON *.* TO {account} WITH GRANT OPTION;\n',
    )
    command: list[str | Path] = [
        program('mariadbd'),
        '--no-defaults',
        f'--datadir={data}',
        f'--socket={setting.folder / "socket"}',
        f'--pid-file={setting.folder / "pid"}',
        f'--init-file={first}',
        '--bind-address=127.0.0.1',
        f'--port={setting.port}',
        '--skip-name-resolve',
        '--character-set-server=utf8mb4',
        '--max-connections=500',
        '--innodb-flush-log-at-trx-commit=0',
        '--innodb-doublewrite=0',
        '--performance-schema=OFF',
        *options,
    ]
    place = f'{USER}:{setting.password}@127.0.0.1:{setting.port}'
    return command, f'mysql+pymysql://{place}/mysql?charset=utf8mb4'


def postgresql(setting: Setting, options: Sequence[str]) -> tuple[list[str | Path], str]:
    """Prepare a PostgreSQL server; give its command line and the URL of its first database."""
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
    place = f'{USER}:{setting.password}@127.0.0.1:{setting.port}'
    return [*command, *options], f'postgresql+psycopg://{place}/postgres'


Prepare = Callable[[Setting, Sequence[str]], tuple[list[str | Path], str]]
ENGINES: dict[str, tuple[Prepare, str]] = {
    'mariadb': (mariadb, 'mysql'),
    'postgresql': (postgresql, 'postgres'),
}


def program(name: str) -> Path:
    """Find a program of a database server, also where packages keep it out of the path."""
    found = shutil.which(name, path=f'{os.environ.get("PATH", "")}:/usr/sbin:/usr/local/sbin')
    if found:
        return Path(found)
    versions = Path('/usr/lib/postgresql').glob(f'*/bin/{name}')
    newest = max(versions, key=lambda path: float(path.parts[-3]), default=None)
    if newest is None:
        raise ServerFailed(
            f'{name} is not installed; the packages mariadb-server and postgresql of Debian and '
            'Ubuntu have what is needed'
        )
    return newest


@contextlib.contextmanager
def server(engine: str, options: Sequence[str] = ()) -> Iterator[str]:
    """Run a database server for the duration of the context.

    :param engine: a key of `ENGINES`
    :param options: further arguments for the server
    :returns: the URL of an administrative database of the server
    :raises ServerFailed: it is not installed, or does not come up
    """
    prepare, account = ENGINES[engine]
    folder = Path(tempfile.mkdtemp(prefix=f'placement-{engine}-'))
    try:
        runs_as = account if os.getuid() == 0 else None
        if runs_as is not None:
            try:
                shutil.chown(folder, runs_as)
            except LookupError:
                raise ServerFailed(
                    f'root cannot run {engine}, and there is no user {runs_as}'
                ) from None
        setting = Setting(folder, free_port(), secrets.token_hex(8), runs_as)
        command, url = prepare(setting, options)
        with (folder / 'log').open('wb') as log:
            process = subprocess.Popen(
                [str(part) for part in command],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C is for the command; the server is stopped when that has ended.
                start_new_session=True,
                **setting.identity(),
            )
        try:
            wait_until_ready(process, url, folder / 'log')
            yield url
        finally:
            stop(process, engine)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def free_port() -> int:
    """Give a TCP port of the loopback interface that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(('127.0.0.1', 0))
        return probe.getsockname()[1]


def wait_until_ready(process: subprocess.Popen, url: str, log: Path) -> None:
    """Return as soon as the server accepts a login; fail with its log when it does not."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        try:
            engine.connect().close()
        except sa.exc.OperationalError:
            time.sleep(0.1)
        else:
            return
    raise ServerFailed(f'The server does not answer:\n{log.read_text(errors="replace")}')


def stop(process: subprocess.Popen, engine: str) -> None:
    """Stop a server, if need be by force."""
    # To PostgreSQL, SIGINT means: do not wait until the clients have gone.
    process.send_signal(signal.SIGINT if engine == 'postgresql' else signal.SIGTERM)
    try:
        process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> int:
    parser = argparse.ArgumentParser(
        description='Run a command beside a private database server.',
        usage='%(prog)s ENGINE -- COMMAND ...',
    )
    parser.add_argument('engine', choices=sorted(ENGINES))
    parser.add_argument('command', nargs='+')
    arguments = parser.parse_args()
    # Leave by an exception, so that the server is stopped.
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGHUP, leave)
    try:
        with server(arguments.engine) as url:
            return run(arguments.command, os.environ | {VARIABLE: url})
    except ServerFailed as error:
        print(f'with_database.py: {error}', file=sys.stderr)
        return 1


def run(command: Sequence[str], environment: dict[str, str]) -> int:
    """Run the command to its end and give its exit status; take it along when leaving."""
    with subprocess.Popen(command, env=environment) as process:
        try:
            status = process.wait()
        except BaseException:
            process.terminate()
            raise
    return status if status >= 0 else 128 - status


def leave(number: int, frame: object) -> NoReturn:
    sys.exit(128 + number)


if __name__ == '__main__':
    sys.exit(main())
