"""The functions that record metrics, switched off and on."""

import subprocess
import sys
from unittest import mock

from oslotest import base

from placement import telemetry
from placement.telemetry import declarations, server
from placement.tests.unit import edge
from placement.tests.unit.telemetry.switched_on import SwitchedOn

# Only a new process has not imported prometheus_client.
WITHOUT_METRICS = """
import sys
from placement import deploy, telemetry
from placement.tests.unit import edge

deploy.build(edge.configuration())
telemetry.request_started(True)
telemetry.request_ended('/', 'GET', '2xx', 0.1)
telemetry.connection_acquired()
telemetry.connection_released()
telemetry.retried('conflict')
telemetry.refused('capacity')
telemetry.searched(1, 2, True)
telemetry.token_validated('accepted', 0.1)
telemetry.token_known('memory')
print([name for name in sys.modules if name.startswith('prometheus_client')])
"""


class SwitchedOffTest(base.BaseTestCase):
    def test_prometheus_client_is_not_imported(self):
        command = (sys.executable, '-c', WITHOUT_METRICS)
        self.assertEqual('[]', subprocess.check_output(command, text=True).strip())


class SwitchedOnTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.metrics = self.useFixture(SwitchedOn())

    def test_all_reasons_exist_from_the_start(self):
        """A query for an increase needs the value before the increase."""
        samples = self.metrics.samples()
        for name, label, values in (
            (declarations.RETRIES, 'reason', declarations.RETRY_REASONS),
            (declarations.REFUSALS, 'reason', declarations.REFUSAL_REASONS),
            (declarations.VALIDATIONS, 'result', declarations.VALIDATION_RESULTS),
            (declarations.MEMORY_HITS, 'level', declarations.MEMORY_LEVELS),
        ):
            for value in values:
                self.assertEqual(0, samples.pop((name, ((label, value),))))
        self.assertEqual({0}, set(samples.values()))
        self.assertTrue(all(labels == () for _, labels in samples))

    def test_requests(self):
        duration = declarations.REQUEST_DURATION
        telemetry.request_started(False)
        telemetry.request_started(False)
        self.assertEqual(2, self.metrics.value(declarations.REQUESTS_IN_PROGRESS))
        telemetry.request_ended('/traits/{name}', 'PUT', '2xx', 0.25)
        telemetry.request_ended('/traits/{name}', 'PUT', '2xx', 0.5)
        self.assertEqual(0, self.metrics.value(declarations.REQUESTS_IN_PROGRESS))
        labels = {'route': '/traits/{name}', 'method': 'PUT', 'status': '2xx'}
        self.assertEqual(2, self.metrics.value(f'{duration}_count', **labels))
        self.assertEqual(0.75, self.metrics.value(f'{duration}_sum', **labels))

    def test_labels_have_few_values(self):
        for n in range(100):
            telemetry.request_ended(None, f'METHOD{n}', '4xx', 0.1)
        duration = declarations.REQUEST_DURATION
        counts = [key for key in self.metrics.samples() if key[0] == f'{duration}_count']
        self.assertEqual(1, len(counts))
        labels = {'route': 'unmatched', 'method': 'other', 'status': '4xx'}
        self.assertEqual(100, self.metrics.value(f'{duration}_count', **labels))

    def test_connections(self):
        telemetry.connection_acquired()
        telemetry.connection_acquired()
        telemetry.connection_released()
        self.assertEqual(1, self.metrics.value(declarations.CONNECTIONS_IN_USE))

    def test_reasons(self):
        telemetry.retried('conflict')
        telemetry.refused('capacity')
        telemetry.refused('capacity')
        self.assertEqual({'conflict': 1}, self.metrics.increased(declarations.RETRIES))
        self.assertEqual({'capacity': 2}, self.metrics.increased(declarations.REFUSALS))

    def test_searches(self):
        telemetry.searched(7, 100, False)
        telemetry.searched(0, 10, True)
        for name, value in (
            (f'{declarations.CANDIDATES_RETURNED}_count', 2),
            (f'{declarations.CANDIDATES_RETURNED}_sum', 7),
            (f'{declarations.SEARCH_STEPS}_count', 2),
            (f'{declarations.SEARCH_STEPS}_sum', 110),
            (declarations.SEARCHES_CUT, 1),
        ):
            self.assertEqual(value, self.metrics.value(name), name)

    def test_tokens(self):
        telemetry.token_validated('accepted', 0.25)
        telemetry.token_validated('rejected', 0.5)
        for _ in range(2):
            telemetry.token_known('memory')
        validations = self.metrics.increased(declarations.VALIDATIONS)
        self.assertEqual({'accepted': 1, 'rejected': 1}, validations)
        self.assertEqual(0.75, self.metrics.value(f'{declarations.VALIDATION_DURATION}_sum'))
        self.assertEqual({'memory': 2}, self.metrics.increased(declarations.MEMORY_HITS))

    def test_switching_on_again_keeps_the_values(self):
        telemetry.retried('conflict')
        telemetry.switch_on()
        self.assertEqual({'conflict': 1}, self.metrics.increased(declarations.RETRIES))


class ExpositionTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(SwitchedOn())

    def test_get_and_head(self):
        response = edge.call(telemetry.serve_metrics, edge.environ())
        self.assertEqual(200, response.status)
        self.assertIn(b'\nplacement_http_requests_in_progress 0.0\n', response.body)
        self.assertEqual(str(len(response.body)), response.headers['content-length'])
        self.assertRegex(response.headers['content-type'], '^text/plain; version=')
        head = edge.call(telemetry.serve_metrics, edge.environ('HEAD'))
        self.assertEqual((200, response.headers, b''), (head.status, head.headers, head.body))

    def test_the_accept_header_selects_the_format(self):
        accept = 'application/openmetrics-text; version=1.0.0'
        response = edge.call(telemetry.serve_metrics, edge.environ(HTTP_ACCEPT=accept))
        self.assertRegex(response.headers['content-type'], '^application/openmetrics-text')
        self.assertTrue(response.body.endswith(b'# EOF\n'))

    def test_every_metric_has_its_help_text(self):
        text = edge.call(telemetry.serve_metrics, edge.environ()).body.decode()
        for name, declared in declarations.METRICS.items():
            self.assertIn(f'# HELP {name} {declared.help}\n# TYPE {name} {declared.kind}\n', text)
        self.assertEqual(len(declarations.METRICS), text.count('# TYPE'))


class SeveralProcessesTest(base.BaseTestCase):
    """Metrics of several processes that are not added up."""

    def logged(self, servers: dict[str, mock.Mock | None], multiprocess: bool) -> int:
        """Return how often three requests log a warning.

        :param servers: the modules of the web server; None for a module that does not exist
        :param multiprocess: what the web server states in the environment of a request
        """
        modules = {'uwsgi': None, 'mod_wsgi': None, **servers}
        with (
            mock.patch.dict(sys.modules, modules),
            mock.patch.object(server.LOG, 'warning') as warning,
            SwitchedOn(),
        ):
            for _ in range(3):
                telemetry.request_started(multiprocess)
        server.process_count.cache_clear()
        return warning.call_count

    def test_the_web_server_states_the_number(self):
        for servers, expected in (
            ({'uwsgi': mock.Mock(numproc=2)}, 1),
            ({'uwsgi': mock.Mock(numproc=1)}, 0),
            ({'mod_wsgi': mock.Mock(maximum_processes=4)}, 1),
            # For one process, mod_wsgi states in a request that there are several.
            ({'mod_wsgi': mock.Mock(maximum_processes=1)}, 0),
        ):
            self.assertEqual(expected, self.logged(servers, multiprocess=True), servers)

    def test_the_number_of_threads(self):
        for module, expected in (
            (mock.Mock(opt={'threads': b'8'}), 8),
            (mock.Mock(opt={}), None),
            # The option was set twice.
            (mock.Mock(opt={'threads': [b'8', b'4']}), None),
            (mock.Mock(spec=()), None),
            (None, None),
        ):
            with mock.patch.dict(sys.modules, {'uwsgi': module}):
                self.assertEqual(expected, server.thread_count())

    def test_only_the_request_states_the_number(self):
        # Outside of Apache, the package mod_wsgi has no such attribute.
        for servers in ({}, {'mod_wsgi': mock.Mock(spec=())}):
            self.assertEqual(1, self.logged(servers, multiprocess=True))
            self.assertEqual(0, self.logged(servers, multiprocess=False))
