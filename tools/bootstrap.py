"""Create the virtual environment in which other tools run.

This module uses only the standard library, because it runs before any package is installed. It
installs all packages into ``.venv`` in the top directory of the source tree.
"""

from concurrent import futures
import hashlib
from pathlib import Path
import subprocess
import sys

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / '.venv'
MINIMUM_PYTHON = (3, 11)

# pip and uv accept only the files whose hashes `tox -e constraints` wrote. Setuptools builds
# packages without an isolated environment, because pip would fill that with packages of any hash.
PIP = ('-m', 'pip', 'install', '-qq', '--disable-pip-version-check')
HASHED = ('--require-hashes', '-r')
WHEELS = ('--only-binary', ':all:', *HASHED)
BUILT = ('--no-deps', '--no-build-isolation')


def prepare(name: str) -> Path:
    """Create or update the environment and return the path of its interpreter.

    :param name: the name of the file in ``constraints`` that lists the packages, ``test`` or
        ``service``
    """
    if sys.version_info < MINIMUM_PYTHON:
        minimum = '.'.join(str(part) for part in MINIMUM_PYTHON)
        sys.exit(f'Placement needs Python {minimum} or newer, this is {sys.version}')
    python = VENV / 'bin' / 'python'
    stamp = VENV / f'installed-{name}'
    constraints = _constraints(name)
    fingerprint = _fingerprint(constraints, ROOT / 'setup.cfg')
    if python.exists() and stamp.exists() and stamp.read_text() == fingerprint:
        return python
    if not python.exists():
        _print(f'Creating a virtual environment in {VENV}')
        _run(sys.executable, '-m', 'venv', str(VENV))
    _print('Installing Placement and its dependencies; the first run can take a minute')
    if not _install_with_uv(python, constraints):
        _run(str(python), *PIP, *WHEELS, str(constraints))
    _run(str(python), *PIP, *BUILT, '-e', '.')
    stamp.write_text(fingerprint)
    return python


def _install_with_uv(python: Path, constraints: Path) -> bool:
    """Install packages with uv, which takes 6 instead of 60 seconds; return whether it succeeded.

    uv does not read the configuration of pip, for example the URL of another package index.
    """
    get_uv = (str(python), *PIP, *WHEELS, str(_constraints('uv')))
    install = (str(python.with_name('uv')), 'pip', 'install', '--quiet', '--python', str(python))
    return all(
        subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL).returncode == 0
        for command in (get_uv, (*install, *WHEELS, str(constraints)))
    )


def add_optional(*names: str) -> None:
    """Install packages that pip compiles; continue if an installation fails.

    The installations run beside each other, because compilers use only one processor.

    :param names: the names of files in ``constraints``, for example ``uwsgi``
    """
    with futures.ThreadPoolExecutor() as threads:
        for done in [threads.submit(_add_optional, name) for name in names]:
            done.result()


def _add_optional(name: str) -> None:
    stamp = VENV / f'installed-{name}'
    constraints = _constraints(name)
    fingerprint = _fingerprint(constraints)
    if stamp.exists() and stamp.read_text() == fingerprint:
        return
    _print(f'Installing {name}')
    python = str(VENV / 'bin' / 'python')
    completed = subprocess.run(
        (python, *PIP, '--retries', '1', *BUILT, *HASHED, str(constraints)),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if completed.returncode:
        _print(
            f'Failed to install {name}, so tests that need it are skipped: '
            f'{completed.stdout[-500:]}'
        )
        return
    stamp.write_text(fingerprint)


def _constraints(name: str) -> Path:
    return ROOT / 'constraints' / f'{name}.txt'


def _fingerprint(*declarations: Path) -> str:
    digest = hashlib.sha256(sys.version.encode())
    for path in declarations:
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _print(text: str) -> None:
    print(f'== {text}', flush=True)


def _run(*command: str) -> None:
    completed = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    if completed.returncode:
        sys.exit('{} failed with {}'.format(' '.join(command), completed.returncode))
