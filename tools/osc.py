"""Run the functional tests of osc-placement against this source tree, and then the runbooks.

The functional tests of osc-placement import Placement's test fixtures, so the tests use the
placement package that is installed in the environment of this script. The script downloads the
source distribution of osc-placement, because a wheel need not contain tests.

In this environment, the test of the pages with runbooks executes the real client.
"""

import argparse
import os
from pathlib import Path
import subprocess
import sys
import tarfile

RELEASE = '4.9.1'
ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / '.osc'
_RUNBOOKS = 'test_the_runbooks_repair_their_states'
_PAGES = 'placement.tests.functional.cmd.test_operator_pages'


def main() -> int:
    """Run the tests and return 0 if they pass."""
    parser = argparse.ArgumentParser(description='Run the functional tests of osc-placement.')
    parser.add_argument(
        '--release', default=RELEASE, help='release of osc-placement (default: %(default)s)'
    )
    parser.add_argument(
        '--concurrency', default='2', help='number of test processes (default: %(default)s)'
    )
    parser.add_argument(
        'tests', nargs='*', help='regular expressions of the tests to run (default: all tests)'
    )
    options = parser.parse_args()
    _install(options.release)
    suite = _fetch(options.release)
    stestr = (sys.executable, '-m', 'stestr', '--test-path', './osc_placement/tests/functional')
    command = (*stestr, 'run', '--concurrency', options.concurrency, *options.tests)
    # A test runs the command `openstack` from the environment of this script.
    path = f'{Path(sys.executable).parent}{os.pathsep}{os.environ["PATH"]}'
    failed = subprocess.run(command, cwd=suite, env={**os.environ, 'PATH': path}).returncode
    if options.tests:
        return failed
    runbooks = (sys.executable, '-m', 'unittest', '-k', _RUNBOOKS, _PAGES)
    return subprocess.run(runbooks, cwd=ROOT).returncode or failed


def _fetch(release: str) -> Path:
    """Download the source of osc-placement unless it exists, and return its directory."""
    folder = WORK / f'osc_placement-{release}'
    if folder.exists():
        return folder
    WORK.mkdir(exist_ok=True)
    requirement = f'osc-placement=={release}'
    _pip('download', '--no-deps', '--no-binary', ':all:', '--dest', str(WORK), requirement)
    archive = next(WORK.glob(f'osc[-_]placement-{release}.tar.gz'))
    with tarfile.open(archive) as source:
        source.extractall(WORK, filter='data')
    unpacked = WORK / archive.name.removesuffix('.tar.gz')
    if unpacked != folder:
        unpacked.rename(folder)
    return folder


def _install(release: str) -> None:
    """Install the client; the environment can be newer than the downloaded source."""
    _pip('install', '--quiet', f'osc-placement=={release}', 'python-openstackclient')


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, '-m', 'pip', *arguments], check=True)


if __name__ == '__main__':
    sys.exit(main())
