"""A running service whose policy file becomes malformed, or whose policy server fails."""

import pathlib
import socket

import fixtures

from placement import deploy, policy
from placement.tests import where
from placement.tests.functional import base
from placement.tests.functional.fixtures.placement import Interception
from placement.tests.unit import identity

OLD = '"placement:traits:list": "role:admin"\n"placement:resource_classes:list": "!"\n'


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class MalformedFileTest(base.TestCase):
    def setUp(self):
        super().setUp()
        self.clock = self.useFixture(identity.Clock())
        self.file = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'policy.yaml')
        self.write(OLD)
        config = self.service.conf_fixture.conf
        config.set_override('policy_file', str(self.file), 'oslo_policy')
        config.set_override('detailed', True, 'healthcheck')
        policy.reset()
        self.service.endpoint = 'http://detailed.example/placement'
        self.useFixture(Interception(deploy.loadapp(config), self.service.endpoint))

    def write(self, text: str) -> None:
        new = self.file.with_name('new')
        new.write_text(text)
        new.rename(self.file)

    def statuses(self) -> list[int]:
        self.clock.advance(1)
        paths = ('/traits', '/resource_classes')
        return [self.send('GET', path).status_code for path in paths for _ in range(3)]

    def test_the_previous_rules_stay_in_force(self):
        self.assertEqual([200] * 3 + [403] * 3, self.statuses())
        for text in ('a: b: c\n', '- a list\n', 'a: 1\n', '"a": "rule:a"\n'):
            self.write(text)
            self.assertEqual([200] * 3 + [403] * 3, self.statuses())
            health = self.send('GET', '/healthcheck')
            self.assertEqual(200, health.status_code)
            self.assertIn(str(self.file), health.text)

        self.write('"placement:traits:list": "!"\n')
        self.assertEqual([403] * 3 + [200] * 3, self.statuses())
        self.assertNotIn(str(self.file), self.send('GET', '/healthcheck').text)

    def test_an_unreachable_policy_server(self):
        refusing = socket.socket()
        self.addCleanup(refusing.close)
        refusing.bind(('127.0.0.1', 0))  # It does not listen.
        url = f'http://127.0.0.1:{refusing.getsockname()[1]}/'
        self.write(f'"placement:traits:list": "{url}"\n')
        response = self.send('GET', '/traits')
        self.assertEqual((503, '1'), (response.status_code, response.headers['Retry-After']))
        self.assertIn('policy server', response.json()['errors'][0]['detail'])
