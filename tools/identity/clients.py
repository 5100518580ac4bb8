"""Check the page on the service catalog, and the clients that find Placement in the catalog."""

import json
import os
import subprocess
from typing import Any

import openstack

from tools import guide
from tools.identity.checks import Checks
from tools.identity.servers import PASSWORD, PREFIX, REGION, scripts

SECTION = 'Service user and catalog'


class Client:
    """Runs commands with the credentials of the administrator of Keystone.

    :param identity: the URL of Keystone
    """

    def __init__(self, identity: str) -> None:
        self.credentials: dict[str, Any] = {
            'auth_url': f'{identity}/v3',
            'username': 'admin',
            'password': PASSWORD,
            'project_name': 'admin',
            'user_domain_id': 'default',
            'project_domain_id': 'default',
        }

    def run(self, script: str) -> str:
        """Run a script with bash and return its output.

        :raises RuntimeError: a command of the script fails
        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        environment |= {f'OS_{k.upper()}': v for k, v in self.credentials.items()}
        environment['PATH'] = f'{scripts()}{os.pathsep}{os.environ["PATH"]}'
        completed = subprocess.run(
            ('bash', '-euo', 'pipefail', '-c', script),
            env=environment,
            capture_output=True,
            text=True,
        )
        if completed.returncode:
            raise RuntimeError(f'{script}failed:\n{completed.stdout}{completed.stderr}')
        return completed.stdout


def set_up_catalog(client: Client, port: int) -> None:
    """Run the commands of the installation guide for the service user and the catalog.

    :param port: the port of Placement
    :raises RuntimeError: a command fails
    """
    script = guide.section(SECTION)
    for documented, actual in (
        ('. /root/admin-openrc\n', ''),
        ('$(openssl rand -hex 16)', PASSWORD),
        ('https://$PLACEMENT_HOST/placement', f'http://127.0.0.1:{port}{PREFIX}'),
    ):
        if documented not in script:
            raise RuntimeError(f'{guide.PAGE.name} does not contain {documented}')
        script = script.replace(documented, actual)
    client.run(script)


def check_clients(checks: Checks, client: Client) -> None:
    """Check that clients find Placement in the catalog; it must have no provider yet."""
    listed = client.run('openstack resource class list')
    checks.equal('osc-placement lists classes', True, 'VCPU' in listed)

    connection = openstack.connect(region_name=REGION, **client.credentials)
    classes = {one.name for one in connection.placement.resource_classes()}
    checks.equal('openstacksdk lists resource classes', True, 'VCPU' in classes)
    checks.equal('openstacksdk lists no provider', [], _providers(connection))
    connection.placement.create_resource_provider(name='host')
    checks.equal('openstacksdk lists a provider', ['host'], _providers(connection))
    listed = json.loads(client.run('openstack resource provider list -f json\n'))
    checks.equal('osc-placement lists a provider', ['host'], [one['name'] for one in listed])


def _providers(connection: openstack.connection.Connection) -> list[str]:
    return [one.name for one in connection.placement.resource_providers()]
