"""The response of `/metrics`, and the metrics of several processes."""

from pathlib import Path
import subprocess
import sys
from unittest import mock

import fixtures
from oslotest import base

from placement import deploy
from placement.tests.unit import edge
from placement.tests.unit.telemetry.switched_on import SwitchedOn

# Only a new process has not imported prometheus_client.
WITHOUT_METRICS = """
import sys
from placement import deploy
from placement.tests.unit import edge

application = deploy.build(edge.configuration())
assert edge.call(application, edge.environ()).status == 200
assert edge.call(application, edge.environ(path='/metrics')).status == 401
print([name for name in sys.modules if name.startswith('prometheus_client')])
"""
RETRIES = 'placement_database_retries_total'


class ExpositionTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.metrics = self.useFixture(SwitchedOn())

    def test_without_metrics_prometheus_client_is_not_imported(self):
        command = (sys.executable, '-c', WITHOUT_METRICS)
        self.assertEqual('[]', subprocess.check_output(command, text=True).strip())

    def test_get_and_head(self):
        response = self.metrics.scrape()
        self.assertEqual(200, response.status)
        self.assertIn(b'\nplacement_http_requests_in_progress 0.0\n', response.body)
        self.assertEqual(str(len(response.body)), response.headers['content-length'])
        self.assertRegex(response.headers['content-type'], '^text/plain; version=')
        head = self.metrics.scrape(REQUEST_METHOD='HEAD')
        self.assertEqual((200, response.headers, b''), (head.status, head.headers, head.body))

    def test_the_accept_header_selects_the_format(self):
        for accept, is_open in (
            ('application/openmetrics-text; version=1.0.0', True),
            # A version that is not a number is ignored.
            ('text/plain; version=latest', False),
            ('application/openmetrics-text; version=1.x', False),
        ):
            response = self.metrics.scrape(HTTP_ACCEPT=accept)
            self.assertEqual(200, response.status)
            self.assertEqual(is_open, response.body.endswith(b'# EOF\n'))
            media_type = 'application/openmetrics-text' if is_open else 'text/plain'
            self.assertRegex(response.headers['content-type'], f'^{media_type}')

    def test_all_values_of_labels_exist_from_the_start(self):
        """A query for an increase needs the value before the increase."""
        samples = self.metrics.samples()
        self.assertEqual({0}, set(samples.values()))
        labelled = [name for name, labels in samples if labels]
        self.assertEqual(
            {
                RETRIES: 5,
                'placement_claims_refused_total': 12,
                'placement_token_validations_total': 3,
                'placement_token_hits_total': 2,
            },
            {name: labelled.count(name) for name in labelled},
        )
        text = self.metrics.scrape().body.decode()
        self.assertEqual(12, text.count('# TYPE'))
        self.assertEqual(12, text.count('# HELP'))


class SeveralProcessesTest(base.BaseTestCase):
    """Metrics of several processes that are not added up."""

    def warnings(self, servers: dict[str, mock.Mock | None], multiprocess: bool) -> int:
        """Return how often three requests log a warning.

        :param servers: the modules of the web server; None for a module that does not exist
        :param multiprocess: what the web server states in the environment of a request
        """
        modules = {'uwsgi': None, 'mod_wsgi': None, **servers}
        config = edge.configuration()
        config.set_override('enabled', True, 'metrics')
        with (
            mock.patch.dict(sys.modules, modules),
            fixtures.FakeLogger('placement.telemetry') as log,
            SwitchedOn(),
        ):
            application = deploy.build(config)
            for _ in range(3):
                edge.call(application, edge.environ(**{'wsgi.multiprocess': multiprocess}))
        return len(log.output.splitlines())

    def test_the_web_server_states_the_number(self):
        # Outside of Apache, the package mod_wsgi has no such attribute.
        for servers, expected in (
            ({'uwsgi': mock.Mock(numproc=2)}, (1, 1)),
            ({'uwsgi': mock.Mock(numproc=1)}, (0, 0)),
            ({'mod_wsgi': mock.Mock(maximum_processes=4)}, (1, 1)),
            # For one process, mod_wsgi states in a request that there are several.
            ({'mod_wsgi': mock.Mock(maximum_processes=1)}, (0, 0)),
            ({}, (0, 1)),
            ({'mod_wsgi': mock.Mock(spec=())}, (0, 1)),
        ):
            found = tuple(self.warnings(servers, multiprocess) for multiprocess in (False, True))
            self.assertEqual(expected, found, servers)


class DirectoryTest(base.BaseTestCase):
    """The directory in which several processes keep their metrics."""

    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path) / 'metrics'

    def test_other_files_stay(self):
        self.directory.mkdir()
        other = self.directory / 'counter_of_somebody.txt'
        other.touch()
        metrics = self.useFixture(SwitchedOn(self.directory))
        self.assertTrue(other.exists())
        # A process that is killed can leave such a file.
        self.directory.joinpath('counter_1.db').touch()
        self.assertEqual(0, metrics.value(RETRIES, reason='conflict'))

    def test_the_directory_is_created_and_disappears(self):
        metrics = self.useFixture(SwitchedOn(self.directory))
        self.assertEqual(200, metrics.scrape().status)
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()
        self.assertRaises(OSError, metrics.scrape)

    def test_a_request_can_select_metrics(self):
        name = 'placement_candidate_searches_cut_total'
        body = self.useFixture(SwitchedOn(self.directory)).scrape(f'name[]={name}').body
        self.assertEqual(1, body.count(b'# TYPE'))
        self.assertIn(f'\n{name} 0.0\n'.encode(), body)
