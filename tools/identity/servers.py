"""Private servers of Keystone and Placement, on the loopback interface."""

from collections.abc import Iterator
import contextlib
import os
from pathlib import Path
import re
import subprocess
import sys

from tools import guide, web_server, with_database

ROOT = Path(__file__).resolve().parents[2]
VARIABLE = 'PLACEMENT_KEYSTONE_VENV'
PASSWORD = 'secret'
REGION = 'RegionOne'
PREFIX = '/placement'  # the path of the endpoint in the installation guide

SERVE = """
import importlib, sys
import waitress
module, port, prefix = sys.argv[1:]
del sys.argv[1:]  # Keystone parses the remaining arguments.
application = importlib.import_module(module).application
waitress.serve(application, listen=f'127.0.0.1:{port}', url_prefix=prefix)
"""

KEYSTONE_CONF = """
[database]
connection = sqlite:///{folder}/keystone.db
[token]
provider = fernet
[fernet_tokens]
key_repository = {folder}/fernet
[credential]
key_repository = {folder}/credential
[cache]
enabled = false
"""


def scripts() -> Path:
    """Return the directory with the commands of Keystone and of the OpenStack client."""
    return Path(os.environ.get(VARIABLE, sys.prefix), 'bin')


@contextlib.contextmanager
def keystone(folder: Path) -> Iterator[str]:
    """Run a new Keystone while the context is active; yield its URL."""
    if not (scripts() / 'keystone-manage').exists():
        sys.exit(f'Set {VARIABLE} to the path of a virtual environment with the package keystone')
    (folder / 'keystone.conf').write_text(KEYSTONE_CONF.format(folder=folder))
    environment = os.environ | {'OS_KEYSTONE_CONFIG_DIR': str(folder)}
    port = with_database.free_port()
    url = f'http://127.0.0.1:{port}'
    for name in ('fernet', 'credential'):
        (folder / name).mkdir(mode=0o700)
    endpoints = ('--bootstrap-public-url', f'{url}/v3', '--bootstrap-internal-url', f'{url}/v3')
    owner = ('--keystone-user', str(os.getuid()), '--keystone-group', str(os.getgid()))
    for command in (
        ('db_sync',),
        ('fernet_setup', *owner),
        ('credential_setup', *owner),
        (
            *('bootstrap', '--bootstrap-password', PASSWORD),
            *('--bootstrap-region-id', REGION, *endpoints),
        ),
    ):
        manage = [scripts() / 'keystone-manage', '--config-dir', folder, *command]
        completed = subprocess.run(manage, env=environment, capture_output=True, text=True)
        if completed.returncode:
            raise RuntimeError(f'{command} failed:\n{completed.stdout}{completed.stderr}')
    python = scripts() / 'python'
    with _served(python, 'keystone.wsgi.api', port, '', environment, folder):
        yield url


@contextlib.contextmanager
def placement(folder: Path, identity: str, port: int, **options: str) -> Iterator[str]:
    """Run Placement with the configuration of the installation guide; yield its URL.

    :param folder: the directory for the configuration and the database
    :param identity: the URL of Keystone
    :param options: additional options of `[keystone_authtoken]`
    """
    text = guide.configuration(OS_AUTH_URL=f'{identity}/v3', SERVICE_PASSWORD=PASSWORD)
    connection = f'connection = sqlite:///{folder}/placement.db'
    text = re.sub('^connection = .*', connection, text, flags=re.MULTILINE)
    text += '[keystone_authtoken]\n'
    text += '\n'.join(f'{name} = {value}' for name, value in options.items())
    folder.mkdir(exist_ok=True)
    (folder / 'placement.conf').write_text(text)
    environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    environment |= {
        'OS_PLACEMENT_CONFIG_DIR': str(folder),
        'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'true',
        'PYTHONPATH': str(ROOT),
    }
    python = Path(sys.executable)
    with _served(python, 'placement.wsgi.api', port, PREFIX, environment, folder):
        yield f'http://127.0.0.1:{port}{PREFIX}'


def _served(
    python: Path, module: str, port: int, prefix: str, environment: dict[str, str], folder: Path
) -> contextlib.AbstractContextManager[None]:
    """Serve the attribute `application` of a module while the context is active."""
    command: list[str | Path] = [python, '-c', SERVE, module, str(port), prefix]
    context: contextlib.AbstractContextManager[None] = web_server.served(
        # Keystone also logs tracebacks for requests that fail with 409 Conflict.
        *(module, command, port, environment, folder),
        print_failures=module.startswith('placement'),
    )
    return context
