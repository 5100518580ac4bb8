"""Test ``auth_strategy = keystone`` with a real Keystone: ``tox -e keystone``.

This script starts Keystone on SQLite with Fernet tokens, and runs the commands of the installation
guide for the service user and the catalog. It starts Placement with the configuration of the guide
and with different options, and sends the requests of `requests.yaml`. It uses openstacksdk and
osc-placement. All files are in a temporary directory, and all servers listen on the loopback
interface. Set PLACEMENT_KEYSTONE_VENV to the path of a virtual environment in which the packages
keystone, python-openstackclient, and osc-placement are installed. If the variable is not set, the
script uses the current environment.
"""

import contextlib
import os
from pathlib import Path
import sys
import tempfile
import unittest

from tools import gabbi_file, with_database
from tools.identity import clients, servers

# With these options, Placement validates the token of each request.
_UNCACHED = {'service_token_roles_required': 'true', 'token_cache_time': '-1'}
# Name of a variable in `requests.yaml` -> the options of `[keystone_authtoken]`.
_OPTIONS = {
    'UNCACHED': _UNCACHED,
    'DELAYED': _UNCACHED | {'delay_auth_decision': 'true'},
    'REMEMBERS': {'service_type': 'placement'},
    'FORGETS': {'token_cache_time': '2'},
}


def main() -> int:
    """Run all tests and return 1 if a test failed."""
    with (
        contextlib.ExitStack() as stack,
        tempfile.TemporaryDirectory(prefix='placement-identity-') as directory,
        servers.keystone(folder := Path(directory)) as identity,
    ):
        ports = {name: with_database.free_port() for name in _OPTIONS}
        client = clients.Client(identity)
        clients.set_up_catalog(client, ports['UNCACHED'])
        os.environ['KEYSTONE'] = identity
        for name, options in _OPTIONS.items():
            server = servers.placement(folder / name, identity, ports[name], **options)
            os.environ[name] = stack.enter_context(server)
        suite = gabbi_file.suite(Path(__file__).with_name('requests.yaml'), os.environ['UNCACHED'])
        clients.ClientTest.client = client
        suite.addTests(unittest.defaultTestLoader.loadTestsFromTestCase(clients.ClientTest))
        result = unittest.TextTestRunner(verbosity=2).run(suite)
    return int(not result.wasSuccessful())


if __name__ == '__main__':
    sys.exit(main())
