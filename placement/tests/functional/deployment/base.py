"""A test case that starts servers with the files in etc/."""

import os
from pathlib import Path
import subprocess
import sys

from placement.tests.functional.deployment import haproxy, load, stack
from placement.tests.functional.faults import machines
from placement.tests.functional.web import base

_TOUR = Path(__file__).parents[4] / 'tools' / 'tour.py'


class TestCase(base.TestCase):
    """Starts servers in a directory of the test and stops them at its end."""

    def stack(self, prefix: str = '/placement') -> stack.Stack:
        """Return the stack of this test."""
        self.servers = stack.Stack(self.folder, prefix)
        return self.servers

    def started(self, server: machines.Worker) -> machines.Worker:
        """Stop a server at the end of the test."""
        self.addCleanup(server.stop)
        return server

    def client(self, server: machines.Worker) -> load.Client:
        """Return a client of a server with TLS."""
        client = load.Client(server, self.servers.prefix, self.servers.certificate)
        self.addCleanup(client.close)
        return client

    def haproxy(self) -> haproxy.HAProxy:
        """Return the administrative socket of HAProxy."""
        return haproxy.HAProxy(self.folder / 'haproxy' / 'admin.sock')

    def tour(self, server: machines.Worker) -> None:
        """Run tools/tour.py against a server; the tour verifies the certificate."""
        url = f'https://127.0.0.1:{server.port}{self.servers.prefix}'
        completed = subprocess.run(
            (sys.executable, _TOUR, '--url', url),
            env={**os.environ, 'SSL_CERT_FILE': str(self.servers.certificate)},
            capture_output=True,
            text=True,
        )
        self.assertEqual(0, completed.returncode, completed.stdout + completed.stderr)
        self.assertIn('The tour is complete', completed.stdout)
