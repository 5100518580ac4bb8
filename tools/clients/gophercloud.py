"""gophercloud: each function of its Placement package, called by the program `gophercloud.go`.

The program uses the sources in the packages of Debian.
"""

import os
from pathlib import Path
import re
import shutil
import subprocess

from tools.clients.calls import MismatchError
from tools.clients.cloud import REGION, VERSION, Cloud

_PACKAGE = 'golang-github-gophercloud-gophercloud-dev'
_GO_PATH = Path('/usr/share/gocode')
SOURCES = _GO_PATH / 'src/github.com/gophercloud/gophercloud/openstack/placement/v1'
_PROGRAM = Path(__file__).with_suffix('.go')
REMEDY = f'install the packages golang-go and {_PACKAGE} of Debian'


def version() -> str | None:
    """Return the version of the package, or None if it or the compiler is not installed."""
    if not SOURCES.is_dir() or not all(shutil.which(one) for one in ('go', 'dpkg-query')):
        return None
    command = ['dpkg-query', '--show', '--showformat=${Version}', _PACKAGE]
    return subprocess.run(command, capture_output=True, text=True).stdout or None


def use(cloud: Cloud) -> None:
    """Compile and run the program.

    :raises MismatchError: it fails, or does not call each function
    """
    require_all()
    credentials = cloud.credentials
    environment = {
        **os.environ,
        'GO111MODULE': 'off',
        'GOPATH': str(_GO_PATH),
        'OS_AUTH_URL': credentials['auth_url'],
        'OS_USERNAME': credentials['username'],
        'OS_PASSWORD': credentials['password'],
        'OS_PROJECT_NAME': credentials['project_name'],
        'OS_DOMAIN_NAME': credentials['user_domain_name'],
        'OS_REGION_NAME': REGION,
        'OS_PLACEMENT_API_VERSION': VERSION,
    }
    command = ['go', 'run', str(_PROGRAM), cloud.create_host().provider]
    result = subprocess.run(command, env=environment, capture_output=True, text=True)
    if result.returncode:
        raise MismatchError(result.stderr)


def require_all() -> None:
    """Require that the program calls each function that sends a request.

    :raises MismatchError: a function is missing
    """
    functions = {
        f'{file.parent.name}.{name}'
        for file in SOURCES.glob('*/requests.go')
        for name in re.findall(r'^func ([A-Z]\w*)\(', file.read_text(), re.MULTILINE)
    }
    called = set(re.findall(r'\b(resourceproviders\.\w+)\(', _PROGRAM.read_text()))
    if missing := functions - called:
        raise MismatchError(f'these functions were not called: {sorted(missing)}')


USES = (use,)
