"""Build and install Placement as documented: ``tox -e install``.

The script builds wheels from a clone, a shallow clone, an archive, and a source distribution, and
compares their versions and files. Then it runs the commands of the installation guide in a new
virtual environment, which it fills from the archive. It compares the OpenAPI documents of the
installed package, installs all extras, imports what they provide, and serves Placement with uWSGI.
All files are in a temporary directory. The tree must be a clone, because the script builds the last
commit.
"""

from collections.abc import Mapping
import configparser
import hashlib
import json
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile

import requests
import sqlalchemy as sa

from tools import guide, web_server, with_database

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

# Prints the digest of each OpenAPI document of the installed package.
_LIST_DOCUMENTS = """
import hashlib, importlib.resources, json
files = [file for file in importlib.resources.files('placement.openapi').iterdir()
         if file.name.endswith('.yaml')]
print(json.dumps({file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}))
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
            check_documents(folder, venv, archive)
            check_extras(venv, archive, set(settings['extras']))
            check_service(folder, venv)
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
    run(folder / 'clone', sys.executable, 'setup.py', '-q', 'sdist', '--dist-dir', str(folder))
    (source,) = folder.glob('*.tar.gz')

    reference, files = wheel(folder, folder / 'clone')
    if not reference.startswith(version):
        raise MismatchError(f'a clone has the version {reference} instead of {version}')
    for tree, expected in (
        (folder / 'shallow', version),
        (archive, version),
        (source, reference),
    ):
        if wheel(folder, tree) != (expected, files):
            raise MismatchError(f'the wheel of {tree.name} differs from the wheel of a clone')
    print(f'{len(files)} files; clone and sdist: {reference}, shallow clone and archive: {version}')
    return archive


def wheel(folder: Path, tree: Path) -> tuple[str, frozenset[str]]:
    """Build a wheel; return its version and the names of its files without the metadata."""
    target = folder / 'wheels'
    run(folder, *pip(), 'wheel', '--quiet', '--no-deps', '--wheel-dir', str(target), str(tree))
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


def check_documents(folder: Path, venv: Path, tree: Path) -> None:
    """Compare the OpenAPI documents of the installed package with those of a tree.

    :raises MismatchError: the package does not contain the same documents
    """
    command = [str(venv / 'bin/python'), '-c', _LIST_DOCUMENTS]
    environment = {k: v for k, v in os.environ.items() if k != 'PYTHONPATH'}
    output = subprocess.run(
        command, cwd=folder, env=environment, check=True, capture_output=True, text=True
    ).stdout
    expected = {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest()
        for path in (tree / 'placement' / 'openapi').glob('*.yaml')
    }
    if not expected or json.loads(output) != expected:
        raise MismatchError('the installed package does not contain all OpenAPI documents')
    print(f'{len(expected)} OpenAPI documents are in the installed package')


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
    """Migrate a database and serve Placement with uWSGI from the new environment.

    :raises MismatchError: Placement returns an unexpected response
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith(('OS_', 'PYTHON'))}
    environment |= {
        'OS_PLACEMENT_DATABASE__CONNECTION': f'sqlite:///{folder}/placement.db',
        'OS_API__AUTH_STRATEGY': 'noauth2',
    }
    run(folder, str(venv / 'bin/placement-manage'), '--version', environment=environment)
    run(folder, str(venv / 'bin/placement-manage'), 'db', 'sync', environment=environment)
    run(folder, str(venv / 'bin/placement-status'), 'upgrade', 'check', environment=environment)
    port = with_database.free_port()
    command: list[str | Path] = [venv / 'bin/uwsgi', '--master', '--lazy-apps', '--die-on-term']
    command += ['--virtualenv', venv, '--module', 'placement.wsgi.api:application']
    command += ['--http-socket', f'127.0.0.1:{port}', '--enable-threads']
    with web_server.served('uWSGI', command, port, environment, folder):
        headers = {'X-Auth-Token': 'admin', 'OpenStack-API-Version': 'placement 1.39'}
        url = f'http://127.0.0.1:{port}/resource_classes'
        response = requests.get(url, headers=headers, timeout=60)
    if response.status_code != 200:
        raise MismatchError(f'GET /resource_classes returned {response.status_code}')
    print('uWSGI serves Placement from the new environment')


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
