"""The response of `/metrics`, and the metrics of several processes."""

from pathlib import Path
import subprocess
import sys
from unittest import mock

import fixtures
from oslotest import base

from placement import telemetry
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
        self.assertRegex(response.headers['content-type'], '^text/plain; version=')
        head = self.metrics.scrape(REQUEST_METHOD='HEAD')
        self.assertEqual((200, response.headers, b''), (head.status, head.headers, head.body))

    def test_the_accept_header_selects_the_format(self):
        for accept, is_open in (
            ('application/openmetrics-text; version=1.0.0', True),
            ('text/plain', False),
            ('application/openmetrics-text; version=x', False),
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
        for declared in telemetry.METRICS:
            self.assertIn(f'# HELP {declared.name} {declared.help}\n', text)
            self.assertIn(f'# TYPE {declared.name} {declared.kind}\n', text)


class SeveralProcessesTest(base.BaseTestCase):
    def test_metrics_that_are_not_added_up(self):
        # Outside of Apache, the package mod_wsgi has no such attribute.
        for servers, expected in (
            ({'uwsgi': mock.Mock(numproc=2)}, 1),
            ({'uwsgi': mock.Mock(numproc=1)}, 0),
            ({'mod_wsgi': mock.Mock(maximum_processes=4)}, 1),
            ({'mod_wsgi': mock.Mock(maximum_processes=1)}, 0),
            ({'mod_wsgi': mock.Mock(spec=())}, 0),
            ({}, 0),
        ):
            with (
                mock.patch.dict(sys.modules, servers),
                fixtures.FakeLogger('placement.telemetry') as log,
                SwitchedOn(),
            ):
                self.assertEqual(expected, len(log.output.splitlines()), servers)

    def test_the_directory_is_created(self):
        directory = Path(self.useFixture(fixtures.TempDir()).path) / 'metrics'
        with fixtures.FakeLogger('placement.telemetry') as log:
            metrics = self.useFixture(SwitchedOn(directory))
        self.assertEqual('', log.output)
        self.assertEqual(0, metrics.value(RETRIES, reason='conflict'))
        self.assertEqual(3, len(list(directory.iterdir())))
