"""Create the virtual environment in which other tools run.

This module uses only the standard library, because it runs before any package is installed. It
installs all packages into ``.venv`` in the top directory of the source tree.
"""

from concurrent import futures
import hashlib
from pathlib import Path
import re
import subprocess
import sys

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / '.venv'
MINIMUM_PYTHON = (3, 11)

# The files that declare dependencies. If one of these files changes, pip runs again.
DECLARATIONS = (
    'setup.cfg',
    'requirements.txt',
    'test-requirements.txt',
    'lint-requirements.txt',
    'doc/requirements.txt',
)


def prepare(purpose: str, *arguments: str) -> Path:
    """Create or update the environment and return the path of its interpreter.

    :param purpose: a name for the set of installed packages, for example ``serve``
    :param arguments: the arguments for ``pip install``, for example ``-e .[serve]``
    """
    if sys.version_info < MINIMUM_PYTHON:
        minimum = '.'.join(str(part) for part in MINIMUM_PYTHON)
        sys.exit(f'Placement needs Python {minimum} or newer, this is {sys.version}')
    python = VENV / 'bin' / 'python'
    stamp = VENV / f'installed-{purpose}'
    fingerprint = _fingerprint(arguments)
    if python.exists() and stamp.exists() and stamp.read_text() == fingerprint:
        return python
    if not python.exists():
        _print(f'Creating a virtual environment in {VENV}')
        _run(sys.executable, '-m', 'venv', str(VENV))
    _print('Installing Placement and its dependencies; the first run takes about a minute')
    _run(str(python), '-m', 'pip', 'install', '-qq', '--disable-pip-version-check', *arguments)
    stamp.write_text(fingerprint)
    return python


def add_optional(*declarations: str) -> None:
    """Install each requirement in some files separately; continue if an installation fails.

    The installations run beside each other, because compilers use only one processor.

    :param declarations: the names of the requirements files, for example
        ``server-test-requirements.txt``
    """
    lines = [line for name in declarations for line in (ROOT / name).read_text().splitlines()]
    requirements = [line.partition('#')[0].strip() for line in lines]
    with futures.ThreadPoolExecutor() as threads:
        for done in [threads.submit(_add_optional, one) for one in requirements if one]:
            done.result()


def _add_optional(requirement: str) -> None:
    stamp = VENV / f'installed-{re.split("[^A-Za-z0-9_-]", requirement)[0]}'
    fingerprint = f'{sys.version} {requirement}'
    if stamp.exists() and stamp.read_text() == fingerprint:
        return
    _print(f'Installing {requirement}')
    command = (str(VENV / 'bin' / 'python'), '-m', 'pip', 'install', '-qq', '--retries', '1')
    completed = subprocess.run(
        (*command, '--disable-pip-version-check', requirement),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if completed.returncode:
        _print(
            f'Failed to install {requirement}, so tests that need it are skipped: '
            f'{completed.stdout[-500:]}'
        )
        return
    stamp.write_text(fingerprint)


def _fingerprint(arguments: tuple[str, ...]) -> str:
    digest = hashlib.sha256(repr((sys.version, arguments)).encode())
    for name in DECLARATIONS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _print(text: str) -> None:
    print(f'== {text}', flush=True)


def _run(*command: str) -> None:
    completed = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    if completed.returncode:
        sys.exit('{} failed with {}'.format(' '.join(command), completed.returncode))
