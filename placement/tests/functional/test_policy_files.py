"""A running service whose policy server fails."""

import pathlib
import socket

import fixtures

from placement import policy
from placement.tests import where
from placement.tests.functional import base


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class PolicyServerTest(base.TestCase):
    def test_an_unreachable_policy_server(self):
        refusing = socket.socket()
        self.addCleanup(refusing.close)
        refusing.bind(('127.0.0.1', 0))  # It does not listen.
        url = f'http://127.0.0.1:{refusing.getsockname()[1]}/'
        file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'policy.yaml')
        file.write_text(f'"placement:traits:list": "{url}"\n')
        self.service.conf_fixture.config(policy_file=str(file), group='oslo_policy')
        policy.reset()
        policy.init(self.service.conf_fixture.conf)
        response = self.send('GET', '/traits')
        self.assertEqual((503, '1'), (response.status_code, response.headers['Retry-After']))
        self.assertIn('policy server', response.json()['errors'][0]['detail'])
