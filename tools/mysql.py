"""Unpack MySQL from packages of Debian unstable, for ``with_database.py mysql``.

The stable releases of Debian contain MariaDB, but not MySQL. This module downloads the server, its
clients, and the libraries that they need with apt-get, and unpacks them in a directory of their
own, which further runs use again. The programs run with the dynamic loader and the libraries of
this directory. Nothing is installed on the machine, and any user can do this.

The directory is the value of PLACEMENT_MYSQL_ROOT; by default, ``placement-tests/mysql`` in
/var/cache for root, and in ~/.cache for other users.

This module uses only the standard library.
"""

from collections.abc import Iterator
import contextlib
import fcntl
import functools
import os
from pathlib import Path
import shutil
import subprocess
import tempfile

VARIABLE = 'PLACEMENT_MYSQL_ROOT'
KEYS = Path('/usr/share/keyrings/debian-archive-keyring.gpg')
PACKAGES = ('mysql-server-core', 'mysql-client-core')
TIMEOUT = 300  # seconds in which apt-get must have downloaded everything


class UnavailableError(Exception):
    """MySQL cannot be had on this machine; the message is one sentence with the reason."""


def folder() -> Path:
    """Return the directory of the unpacked packages, which may be missing."""
    if VARIABLE in os.environ:
        return Path(os.environ[VARIABLE])
    cache = Path('/var/cache') if os.getuid() == 0 else Path.home() / '.cache'
    return cache / 'placement-tests' / 'mysql'


@functools.cache
def root() -> Path:
    """Return the directory of the unpacked packages; download them if necessary.

    :raises UnavailableError: they are missing, and cannot be downloaded or used
    """
    path = folder()
    if _is_complete(path):
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with _locked(path.with_name(f'{path.name}.lock')):
            if not _is_complete(path):  # another process may have unpacked them in the meantime
                _create(path)
    except OSError as error:
        raise UnavailableError(f'{path} cannot be created: {error}') from error
    return path


def command(program: str) -> list[str | Path]:
    """Return the beginning of a command that runs a program of MySQL, for example ``mysqld``.

    :raises UnavailableError: the packages are missing, and cannot be downloaded or used
    """
    return _command(root(), program)


def _command(path: Path, program: str) -> list[str | Path]:
    loader = next(path.glob('usr/lib/*/ld-linux-*.so.*'), path / 'loader')
    libraries = f'{loader.parent}:{path / "usr/lib/mysql/private"}'
    directory = 'sbin' if program == 'mysqld' else 'bin'
    return [loader, '--library-path', libraries, path / 'usr' / directory / program]


def _is_complete(path: Path) -> bool:
    programs = [_command(path, name) for name in ('mysqld', 'mysql', 'mysqldump')]
    with contextlib.suppress(OSError):
        return not any(
            subprocess.run([*program, '--no-defaults', '--version'], capture_output=True).returncode
            for program in programs
        )
    return False


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Let other processes that create the directory wait."""
    with path.open('w') as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _create(path: Path) -> None:
    if shutil.which('apt-get') is None or not KEYS.exists():
        raise UnavailableError('apt-get or the package debian-archive-keyring is not installed')
    with tempfile.TemporaryDirectory(dir=path.parent, prefix='mysql-') as name:
        temporary = Path(name)
        unpacked = temporary / 'root'
        unpacked.mkdir()
        for package in _download(temporary):
            _run('dpkg-deb', '--extract', package, unpacked)
        # Other users than root run the servers.
        unpacked.chmod(0o755)
        if not _is_complete(unpacked):
            raise UnavailableError('the packages of Debian unstable do not run here')
        shutil.rmtree(path, ignore_errors=True)
        unpacked.rename(path)


def _download(temporary: Path) -> list[Path]:
    """Download the packages and all that they need; return the files."""
    for name in ('lists/partial', 'archives/partial'):
        (temporary / name).mkdir(parents=True)
    source = f'deb [signed-by={KEYS}] {_archive()} sid main\n'
    (temporary / 'sources.list').write_text(source)
    (temporary / 'status').touch()  # as if no package were installed
    settings = {
        'Dir::Etc::sourcelist': temporary / 'sources.list',
        'Dir::Etc::sourceparts': '-',
        'Dir::State::lists': temporary / 'lists',
        'Dir::State::status': temporary / 'status',
        'Dir::Cache': temporary,
        'Dir::Cache::archives': temporary / 'archives',
        'Acquire::Languages': 'none',
        'APT::Sandbox::User': '',
        'APT::Install-Recommends': 'false',
        'APT::Update::Error-Mode': 'any',
        'Debug::NoLocking': 'true',
    }
    options = [part for key, value in settings.items() for part in ('-o', f'{key}={value}')]
    _run('apt-get', '-q', *options, 'update')
    _run('apt-get', '-q', '-y', *options, '--download-only', 'install', *PACKAGES)
    return sorted((temporary / 'archives').glob('*.deb'))


def _archive() -> str:
    """Return the URI of the archive of Debian from which this machine installs packages."""
    of_debian = ('Identifier: Packages', 'Origin: Debian', 'Label: Debian')
    uris = _run('apt-get', 'indextargets', '--format', '$(REPO_URI)', *of_debian).split()
    if not uris:
        raise UnavailableError('apt-get has no lists of an archive of Debian')
    return uris[0]


def _run(*command: str | Path) -> str:
    """Run a command, and return its output."""
    try:
        completed = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=TIMEOUT,
        )
    except subprocess.TimeoutExpired:
        raise UnavailableError(f'{command[0]} did not end within {TIMEOUT} s') from None
    if completed.returncode:
        lines = completed.stdout.strip().splitlines() or ['no output']
        # The first error of apt-get has the reason of the later ones.
        reason = next((line for line in lines if line.startswith('E: ')), lines[-1])
        raise UnavailableError(f'{command[0]} failed with {completed.returncode}: {reason}')
    return completed.stdout
