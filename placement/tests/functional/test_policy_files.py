"""A running service with a policy server."""

import pathlib
import socket
import ssl
from typing import Any

import fixtures
import requests

from placement import policy
from placement.tests import where
from placement.tests.functional import base
from placement.tests.functional.web import commands
from placement.tests.unit.test_policy_remote import ALLOWED, PolicyServer


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class PolicyServerTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def list_traits(self, url: str, **options: Any) -> requests.Response:
        """Send a request that needs the permission of a policy server."""
        file = self.folder / 'policy.yaml'
        file.write_text(f'"placement:traits:list": "{url}"\n')
        self.service.conf_fixture.config(policy_file=str(file), **options, group='oslo_policy')
        policy.reset()
        policy.init(self.service.conf_fixture.conf)
        return self.send('GET', '/traits')

    def test_the_certificate_of_a_policy_server(self):
        certificate = commands.certificate(self.folder)
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(certificate, certificate.with_suffix('.key'))
        url = f'https://{self.useFixture(PolicyServer(tls)).address}{ALLOWED}'
        self.assertEqual(200, self.list_traits(url).status_code)
        verified = {'remote_ssl_verify_server_crt': True}
        self.assertEqual(503, self.list_traits(url, **verified).status_code)
        trusted = {**verified, 'remote_ssl_ca_crt_file': str(certificate)}
        self.assertEqual(200, self.list_traits(url, **trusted).status_code)

    def test_an_unreachable_policy_server(self):
        refusing = socket.socket()
        self.addCleanup(refusing.close)
        refusing.bind(('127.0.0.1', 0))  # It does not listen.
        response = self.list_traits(f'http://127.0.0.1:{refusing.getsockname()[1]}/')
        self.assertEqual((503, '1'), (response.status_code, response.headers['Retry-After']))
        self.assertIn('policy server', response.json()['errors'][0]['detail'])
