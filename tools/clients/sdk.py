"""openstacksdk: its functional tests, which call the functions of its Placement proxy."""

import json
import os
from pathlib import Path
import subprocess
import sys
import tempfile

import openstack

from tools.clients.calls import MismatchError, require
from tools.clients.cloud import REGION, Cloud

# The names of the clouds in the functional tests.
_CLOUDS = ('devstack', 'devstack-alt', 'devstack-admin', 'devstack-system-admin')


def check_authentication(cloud: Cloud) -> None:
    """Check which plugins for authentication work without an identity service."""
    for plugin, options in (('none', {}), ('admin_token', {'token': 'admin'})):
        url = f'{cloud.url}/placement/'
        connection = openstack.connect(
            auth_type=plugin, auth={'endpoint': url}, placement_endpoint_override=url, **options
        )
        try:
            list(connection.placement.resource_classes())
            forbidden = False
        except openstack.exceptions.ForbiddenException:
            forbidden = True
        require(forbidden == (plugin == 'none'), f'{plugin}: forbidden is {forbidden}')


def run_functional_tests(cloud: Cloud) -> None:
    """Run the functional tests of Placement, which the wheel of openstacksdk contains.

    :raises MismatchError: a test fails
    """
    # The tests of `usages` expect an allocation of the project, see `user/clients.rst`.
    cloud.create_host()
    with tempfile.TemporaryDirectory(prefix='placement-clients-') as folder:
        config = Path(folder, 'clouds.yaml')
        entry = {'auth': cloud.credentials, 'region_name': REGION}
        config.write_text(json.dumps({'clouds': dict.fromkeys(_CLOUDS, entry)}))
        root = Path(openstack.__file__).parent
        command: list[str | Path] = [
            sys.executable,
            '-m',
            'unittest',
            'discover',
            '--top-level-directory',
            root.parent,
        ]
        command += ['--start-directory', root / 'tests' / 'functional' / 'placement' / 'v1']
        environment = {**os.environ, 'OS_CLIENT_CONFIG_FILE': str(config)}
        result = subprocess.run(
            command, env=environment, cwd=folder, capture_output=True, text=True
        )
    print(f'openstacksdk functional tests: {result.stderr.splitlines()[-1]}')
    if result.returncode:
        raise MismatchError(result.stderr[-6000:])


USES = (check_authentication, run_functional_tests)
