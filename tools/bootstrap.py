"""The virtual environment that the other tools work in.

Uses nothing but the standard library, so that it runs before anything is installed. All that is
installed goes to ``.venv`` in the working tree; the rest of the system stays as it was.
"""

import hashlib
from pathlib import Path
import re
import subprocess
import sys

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / '.venv'
OLDEST = (3, 11)

# Where the dependencies are named: a change in one of them makes the environment stale.
DECLARATIONS = (
    'setup.cfg',
    'requirements.txt',
    'test-requirements.txt',
    'lint-requirements.txt',
)


def prepare(purpose: str, *arguments: str) -> Path:
    """Make the environment fit for a purpose and give the path of its interpreter.

    :param purpose: a word to remember what is installed, for example ``serve``
    :param arguments: what pip is to install, for example ``-e .[serve]``
    """
    if sys.version_info < OLDEST:
        oldest = '.'.join(str(part) for part in OLDEST)
        sys.exit(f'Placement needs Python {oldest} or newer, this is {sys.version}')
    python = VENV / 'bin' / 'python'
    stamp = VENV / f'installed-{purpose}'
    wanted = _fingerprint(arguments)
    if python.exists() and stamp.exists() and stamp.read_text() == wanted:
        return python
    if not python.exists():
        _say(f'Making a virtual environment in {VENV}')
        _run(sys.executable, '-m', 'venv', str(VENV))
    _say('Installing Placement and what it needs: about a minute the first time')
    _run(str(python), '-m', 'pip', 'install', '-qq', '--disable-pip-version-check', *arguments)
    stamp.write_text(wanted)
    return python


def add_optional(declaration: str) -> None:
    """Install the requirements of a file, each by itself, as far as this machine can.

    :param declaration: the name of the file, for example ``server-test-requirements.txt``
    """
    for line in (ROOT / declaration).read_text().splitlines():
        requirement = line.partition('#')[0].strip()
        if requirement:
            _add_optional(requirement)


def _add_optional(requirement: str) -> None:
    stamp = VENV / f'installed-{re.split("[^A-Za-z0-9_-]", requirement)[0]}'
    wanted = f'{sys.version} {requirement}'
    if stamp.exists() and stamp.read_text() == wanted:
        return
    _say(f'Installing {requirement}')
    command = (str(VENV / 'bin' / 'python'), '-m', 'pip', 'install', '-qq', '--retries', '1')
    done = subprocess.run(
        (*command, '--disable-pip-version-check', requirement),
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    if done.returncode:
        _say(
            f'{requirement} was not installed, tests that need it are skipped: {done.stdout[-500:]}'
        )
        return
    stamp.write_text(wanted)


def _fingerprint(arguments: tuple[str, ...]) -> str:
    digest = hashlib.sha256(repr((sys.version, arguments)).encode())
    for name in DECLARATIONS:
        digest.update((ROOT / name).read_bytes())
    return digest.hexdigest()


def _say(text: str) -> None:
    print(f'== {text}', flush=True)


def _run(*command: str) -> None:
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL)
    if done.returncode:
        sys.exit('{} failed with {}'.format(' '.join(command), done.returncode))
