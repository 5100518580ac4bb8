"""Run the functional suite of osc-placement against this tree.

The client's own tests import Placement's test fixtures, so the package that is installed in the
environment of this script is the one that answers. The suite comes from the source distribution,
since wheels need not carry tests.
"""

import argparse
import os
from pathlib import Path
import subprocess
import sys
import tarfile

RELEASE = '4.9.1'
WORK = Path(__file__).resolve().parent.parent / '.osc'


def main() -> int:
    parser = argparse.ArgumentParser(description='Run the functional suite of osc-placement.')
    parser.add_argument('--release', default=RELEASE, help='release of osc-placement')
    parser.add_argument('--concurrency', default='2', help='test processes at once')
    parser.add_argument('tests', nargs='*', help='regular expressions of the tests to run')
    options = parser.parse_args()
    suite = _fetch(options.release)
    stestr = (sys.executable, '-m', 'stestr', '--test-path', './osc_placement/tests/functional')
    command = (*stestr, 'run', '--concurrency', options.concurrency, *options.tests)
    # One of the tests looks for the shell on the path.
    path = f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'
    return subprocess.run(command, cwd=suite, env={**os.environ, 'PATH': path}).returncode


def _fetch(release: str) -> Path:
    """Download and unpack the source, install the client; give the folder of the source."""
    folder = WORK / f'osc_placement-{release}'
    if folder.exists():
        return folder
    WORK.mkdir(exist_ok=True)
    requirement = f'osc-placement=={release}'
    _pip('download', '--no-deps', '--no-binary', ':all:', '--dest', str(WORK), requirement)
    _pip('install', '--quiet', requirement, 'python-openstackclient')
    archive = next(WORK.glob(f'osc[-_]placement-{release}.tar.gz'))
    with tarfile.open(archive) as source:
        source.extractall(WORK, filter='data')
    unpacked = WORK / archive.name.removesuffix('.tar.gz')
    if unpacked != folder:
        unpacked.rename(folder)
    return folder


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, '-m', 'pip', *arguments], check=True)


if __name__ == '__main__':
    sys.exit(main())
