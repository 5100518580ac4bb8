"""Test ``auth_strategy = keystone`` with a real Keystone: ``tox -e keystone``.

This script starts Keystone on SQLite with Fernet tokens, and runs the commands of the installation
guide for the service user and the catalog. Then it starts Placement with the configuration of the
guide, and sends requests with tokens of different roles and scopes, with openstacksdk, and with
osc-placement. It checks for how long a process remembers a token, and writes forged tokens to
memcached. All files are in a temporary directory, and all servers listen on the loopback interface.
Set PLACEMENT_KEYSTONE_VENV to the path of a virtual environment in which the packages keystone,
python-openstackclient, and osc-placement are installed. If the variable is not set, the script uses
the current environment.
"""

from pathlib import Path
import sys
import tempfile

from tools import with_database
from tools.identity import cache, clients, memory, servers, tokens
from tools.identity.checks import Checks
from tools.identity.cloud import Cloud

# With these options, Placement validates the token of each request.
WITHOUT_CACHE = {'service_token_roles_required': 'true', 'token_cache_time': '-1'}


def main() -> int:
    """Run all checks and return 1 if a check failed."""
    checks = Checks()
    with (
        tempfile.TemporaryDirectory(prefix='placement-identity-') as directory,
        servers.keystone(folder := Path(directory)) as identity,
    ):
        port = with_database.free_port()
        client = clients.Client(identity)
        clients.set_up_catalog(client, port)
        cloud = _create_users(identity)
        with servers.placement(folder, identity, port, **WITHOUT_CACHE) as send:
            clients.check_clients(checks, client)
            tokens.check_tokens(checks, cloud, send)
            tokens.check_unauthorized(checks, f'{identity}/v3', send)
        options = WITHOUT_CACHE | {'delay_auth_decision': 'true'}
        with servers.placement(folder, identity, port, **options) as send:
            tokens.check_delayed(checks, f'{identity}/v3', cloud, send)
        memory.check_memory(checks, cloud, folder, identity, port)
        cache.check_cache(checks, cloud, cache.Service(folder, identity, port))
    print(f'{checks.passed} passed, {checks.failed} failed')
    return int(checks.failed > 0)


def _create_users(identity: str) -> Cloud:
    cloud = Cloud(identity)
    for project in ('one', 'two'):
        cloud.create_project(project)
    cloud.add_domain_admin()
    for user, role in (
        ('services', 'service'),
        ('reader', 'reader'),
        ('member', 'member_only'),
        ('another-admin', 'admin'),
    ):
        cloud.create_user(user, 'one', role)
    return cloud


if __name__ == '__main__':
    sys.exit(main())
