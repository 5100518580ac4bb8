"""The page on the service catalog, and the clients that find Placement in the catalog."""

import json
import os
import subprocess
from typing import Any
import unittest

import openstack

from tools import guide
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


class ClientTest(unittest.TestCase):
    """Clients find Placement in the catalog."""

    client: Client

    def test_clients(self) -> None:
        """Read and write with osc-placement and openstacksdk."""
        self.assertIn('VCPU', self.client.run('openstack resource class list'))
        connection = openstack.connect(region_name=REGION, **self.client.credentials)
        self.assertIn('VCPU', {one.name for one in connection.placement.resource_classes()})
        self.assertEqual([], list(connection.placement.resource_providers()))
        connection.placement.create_resource_provider(name='host')
        (provider,) = connection.placement.resource_providers()
        listed = json.loads(self.client.run('openstack resource provider list -f json\n'))
        self.assertEqual([provider.id], [one['uuid'] for one in listed])
