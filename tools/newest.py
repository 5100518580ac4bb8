"""Run tests with the newest Python, MariaDB, and PostgreSQL: ``tox -e newest``.

The script installs Debian unstable in a directory (debootstrap), which further runs use again. In a
mount namespace of its own, it mounts ``/usr`` of this directory over ``/usr``, so the tests find
these programs at their usual paths, and nothing is installed on the machine. There it creates a
virtual environment with the packages in ``constraints/test.txt``. It runs the unit tests, and the
functional tests on SQLite, without those of browsers and web servers, and on the two servers. The
arguments name the parts of `PARTS` to run; default: all.

The directory is the value of PLACEMENT_NEWEST_ROOT; by default, /var/cache/placement-tests/newest.
Delete it to test newer versions. The script needs root, and the packages debootstrap,
mariadb-server, and postgresql, which create the users of the servers.
"""

import os
from pathlib import Path
import shutil
import subprocess
import sys
import tempfile

ROOT = Path(__file__).resolve().parent.parent
SYSTEM = Path(os.environ.get('PLACEMENT_NEWEST_ROOT', '/var/cache/placement-tests/newest'))
PACKAGES = (
    'ca-certificates,curl,git,mariadb-server,memcached,openssl,postgresql,procps,'
    'python3-venv,sqlite3'
)
PARTS = ('unit', 'sqlite', 'mariadb', 'postgresql')
# The variable is set inside of the namespace.
INSIDE = 'PLACEMENT_NEWEST_INSIDE'


def main() -> int:
    """Return the number of the parts that failed."""
    if INSIDE in os.environ:
        with tempfile.TemporaryDirectory(prefix='placement-newest-') as folder:
            return _test(Path(folder))
    if not SYSTEM.exists():
        if shutil.which('debootstrap') is None:
            sys.exit('debootstrap is not installed')
        _install()
    mount = 'mount --bind "$0/usr" /usr && exec "$@"'
    command = ('/usr/bin/python3', '-m', 'tools.newest', *sys.argv[1:])
    inside = ('unshare', '--mount', 'sh', '-c', mount, str(SYSTEM), *command)
    return subprocess.run(inside, cwd=ROOT, env=os.environ | {INSIDE: 'true'}).returncode


def _install() -> None:
    partial = SYSTEM.with_name(f'{SYSTEM.name}.partial')
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    options = ('--variant=minbase', f'--include={PACKAGES}')
    subprocess.run(('debootstrap', *options, 'sid', partial), check=True)
    partial.rename(SYSTEM)


def _test(folder: Path) -> int:
    python = folder / 'bin' / 'python'
    pip = (python, '-m', 'pip', 'install', '-qq', '--disable-pip-version-check')
    wheels = ('--only-binary', ':all:', '--require-hashes', '-r', 'constraints/test.txt')
    subprocess.run((sys.executable, '-m', 'venv', folder), check=True)
    subprocess.run((*pip, *wheels), check=True)
    subprocess.run((*pip, '--no-deps', '--no-build-isolation', '-e', '.'), check=True)
    path = f'{python.parent}:/usr/sbin:/usr/bin'
    versions = 'python --version; mariadbd --version; /usr/lib/postgresql/*/bin/postgres --version'
    subprocess.run(('sh', '-c', versions), env={'PATH': path}, check=True)
    failures = 0
    for part in sys.argv[1:] or PARTS:
        print(f'== {part}', flush=True)
        server = ('python', 'tools/with_database.py', part, '--')
        start = server if part in ('mariadb', 'postgresql') else ()
        tests = ROOT / 'placement' / 'tests' / ('unit' if part == 'unit' else 'functional')
        # The directory has no web servers, and not all programs that other tests need.
        variables = os.environ | {'PATH': path, 'PLACEMENT_TEST_REQUIRE_SERVERS': ''}
        command = (*start, 'stestr', '--test-path', tests, 'run')
        completed = subprocess.run(command, env=variables)
        failures += completed.returncode != 0
    return failures


if __name__ == '__main__':
    sys.exit(main())
