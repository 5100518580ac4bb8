"""Build and install Placement as documented: ``tox -e install``.

The script builds wheels from a clone, a shallow clone, an archive, and a source distribution, and
compares their versions and files. It selects the version with a tag and with ``PBR_VERSION``. Then
it runs the commands of the installation guide in a new virtual environment, which it fills from the
archive, and looks for the OpenAPI documents. It sends requests to Placement with the
configuration of the guide, with nothing but the packages of the guide and of the container
image, once with the module of the application and once with the script ``placement-api``. Then it
installs all extras and imports what they provide. All files are in a temporary directory. The tree
must be a clone, because the script builds the last commit.
"""

from collections.abc import Mapping
import configparser
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import sqlalchemy as sa

from api_reference.openapi import files
from tools import guide

ROOT = Path(__file__).resolve().parent.parent

# The module that each extra provides.
MODULES = {
    'memcached': 'cryptography',
    'metrics': 'prometheus_client',
    'mysql': 'pymysql',
    'mysqlclient': 'MySQLdb',
    'postgresql': 'psycopg',
    'profiler': 'werkzeug',
    'serve': 'waitress',
    'tools': 'jinja2',
    'uwsgi': None,
}

# The variables in the configuration of the guide. No request needs Keystone, because none has a
# token.
_VARIABLES = {
    'OS_AUTH_URL': 'http://127.0.0.1:1/v3',
    'DATABASE_PASSWORD': 'unused',
    'SERVICE_PASSWORD': 'unused',
}
# The status of each path for a request without a token.
_STATUSES = {'/': '200', '/healthcheck': '200', '/metrics': '200', '/resource_classes': '401'}
# Prints the status of each path; the first argument is the module or the file of the application.
_SEND = """
import runpy, sys
from wsgiref import util

run = runpy.run_path if '/' in sys.argv[1] else runpy.run_module
application = run(sys.argv[1])['application']
for path in sys.argv[2:]:
    environ, statuses = {'PATH_INFO': path}, []
    util.setup_testing_defaults(environ)
    list(application(environ, lambda status, *_: statuses.append(status)))
    print(statuses[-1][:3])
"""


class MismatchError(Exception):
    """A build or an installation is not as documented."""


def main() -> int:
    """Run all steps; return 1 if one of them failed."""
    settings = configparser.ConfigParser()
    settings.read(ROOT / 'setup.cfg', encoding='utf-8')
    with tempfile.TemporaryDirectory(prefix='placement-install-') as name:
        folder = Path(name)
        try:
            archive = compare_builds(folder, settings['metadata']['version'])
            venv = install(folder, archive)
            check_documents(venv)
            check_service(folder / 'guide', venv)
            check_extras(venv, archive, set(settings['extras']))
        except (MismatchError, subprocess.CalledProcessError) as error:
            print(f'install.py: {error}', file=sys.stderr)
            return 1
    return 0


def compare_builds(folder: Path, version: str) -> Path:
    """Build wheels from all kinds of trees; return the directory of the unpacked archive.

    :param version: the version in setup.cfg
    :raises MismatchError: a wheel has an unexpected version, or lacks files
    """
    archive = folder / 'archive'
    run(folder, 'git', 'clone', '--quiet', str(ROOT), 'clone')
    run(folder, 'git', 'clone', '--quiet', '--depth', '1', ROOT.as_uri(), 'shallow')
    run(folder, 'git', '-C', 'clone', 'archive', '--output', str(folder / 'archive.tar'), 'HEAD')
    shutil.unpack_archive(folder / 'archive.tar', archive)
    # Another repository around an archive determines no version.
    run(folder, 'git', 'init', '--quiet')
    run(folder / 'clone', sys.executable, 'setup.py', '-q', 'sdist', '--dist-dir', str(folder))
    (source,) = folder.glob('*.tar.gz')

    reference, names = wheel(folder, folder / 'clone')
    if not reference.startswith(version):
        raise MismatchError(f'a clone has the version {reference} instead of {version}')
    for tree, expected in (
        (folder / 'shallow', version),
        (archive, version),
        (source, reference),
    ):
        if wheel(folder, tree) != (expected, names):
            raise MismatchError(f'the wheel of {tree.name} differs from the wheel of a clone')
    check_selected_versions(folder, version)
    print(f'{len(names)} files; clone and sdist: {reference}, shallow clone and archive: {version}')
    return archive


def check_selected_versions(folder: Path, version: str) -> None:
    """Build wheels of the clone with a tag, and with a version in the environment.

    :raises MismatchError: a wheel has another version
    """
    run(folder / 'clone', 'git', 'tag', '--force', version)
    for selected, environment in ((version, None), ('1.2', {**os.environ, 'PBR_VERSION': '1.2'})):
        found, _ = wheel(folder, folder / 'clone', environment)
        if found != selected:
            raise MismatchError(f'the version {selected} is selected, but the wheel has {found}')


def wheel(
    folder: Path, tree: Path, environment: Mapping[str, str] | None = None
) -> tuple[str, frozenset[str]]:
    """Build a wheel; return its version and the names of its files without the metadata."""
    target = folder / 'wheels'
    command = (*pip(), 'wheel', '--quiet', '--no-deps', '--wheel-dir', str(target), str(tree))
    run(folder, *command, environment=environment)
    (path,) = target.glob('*.whl')
    with zipfile.ZipFile(path) as content:
        # The directory of the data files has the version in its name.
        names = frozenset(
            re.sub(r'^[^/]+\.data/', '', name)
            for name in content.namelist()
            if '.dist-info/' not in name
        )
    shutil.rmtree(target)
    return path.name.split('-')[1], names


def pip() -> tuple[str, ...]:
    """Return the command that runs pip in the environment of this script."""
    return (sys.executable, '-m', 'pip', '--disable-pip-version-check')


def install(folder: Path, tree: Path) -> Path:
    """Run the commands of the installation guide in a tree; return the new environment."""
    venv = folder / 'venv'
    commands = guide.section('Placement')
    for documented, actual in (('/usr/local/src/placement', tree), ('/opt/placement', venv)):
        commands = commands.replace(documented, str(actual))
    run(tree, 'bash', '-euxc', commands)
    connection = sa.make_url(guide.settings()['placement_database']['connection'])
    run(folder, str(venv / 'bin/python'), '-c', f'import {connection.get_driver_name()}')
    return venv


def check_documents(venv: Path) -> None:
    """Look for the OpenAPI documents in the installed package.

    :raises MismatchError: a document is missing
    """
    expected = {files.file_name(name) for name in (files.LATEST, files.COMBINED)}
    installed = {path.name for path in venv.glob('lib/python*/site-packages/placement/openapi/*')}
    if installed != expected:
        raise MismatchError(f'the installed package does not contain {", ".join(sorted(expected))}')
    print(f'the installed package contains {len(expected)} OpenAPI documents')


def check_extras(venv: Path, tree: Path, extras: set[str]) -> None:
    """Install all extras and import their modules.

    :raises MismatchError: this script does not know an extra
    """
    if unknown := extras - set(MODULES):
        raise MismatchError(f'add these extras to MODULES: {", ".join(sorted(unknown))}')
    run(tree, str(venv / 'bin/pip'), 'install', '--quiet', f'.[{",".join(sorted(extras))}]')
    modules = ', '.join(module for extra in sorted(extras) if (module := MODULES[extra]))
    run(venv, str(venv / 'bin/python'), '-c', f'import {modules}')


def check_service(folder: Path, venv: Path) -> None:
    """Send requests to Placement in an environment, with the configuration of the guide and SQLite.

    :param folder: a directory that does not exist
    :raises MismatchError: Placement returns an unexpected response
    """
    folder.mkdir()
    (folder / 'placement.conf').write_text(guide.configuration(**_VARIABLES))
    environment = {k: v for k, v in os.environ.items() if not k.startswith(('OS_', 'PYTHON'))}
    environment |= {
        'OS_PLACEMENT_CONFIG_DIR': str(folder),
        'OS_PLACEMENT_DATABASE__CONNECTION': f'sqlite:///{folder}/placement.db',
    }
    for command in ('manage --version', 'manage db sync', 'status upgrade check'):
        program, *arguments = command.split()
        run(folder, str(venv / f'bin/placement-{program}'), *arguments, environment=environment)
    run(folder, str(venv / 'bin/uwsgi'), '--version', environment=environment)
    for place in ('placement.wsgi.api', f'{venv}/bin/placement-api'):
        python = (str(venv / 'bin' / 'python'), '-c', _SEND, place, *_STATUSES)
        statuses = subprocess.check_output(python, cwd=folder, env=environment, text=True).split()
        if statuses != list(_STATUSES.values()):
            raise MismatchError(f'{place}: the statuses of {list(_STATUSES)} are {statuses}')
    print(f'Placement responds in {venv.name}, with the module and with the script')


def run(folder: Path, *command: str, environment: Mapping[str, str] | None = None) -> None:
    """Run a command in a directory, by default without PYTHONPATH and PBR_VERSION.

    :raises subprocess.CalledProcessError: the command fails
    """
    if environment is None:
        ignored = ('PBR_VERSION', 'PYTHONPATH')
        environment = {k: v for k, v in os.environ.items() if k not in ignored}
    subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL, check=True)


if __name__ == '__main__':
    sys.exit(main())
