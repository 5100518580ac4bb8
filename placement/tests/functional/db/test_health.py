"""The health check follows the state of the database, without a restart of the service."""

from concurrent import futures
import contextlib
import time
from unittest import mock

import sqlalchemy as sa
import webob

from placement import health
from placement.tests.functional.faults import machines
from placement.tests.functional.races import testcase
from placement.tests.waiting import wait_until

PROBES = 12
# The service and its health check need few of these connections.
CONNECTIONS = 20
_LIMIT = {
    'mariadb': (f'--max-connections={CONNECTIONS}',),
    'mysql': (f'--max-connections={CONNECTIONS}',),
    'postgresql': ('-c', f'max_connections={CONNECTIONS}'),
}


class HealthTest(testcase.RaceTestCase):
    def setUp(self):
        self.server = machines.DatabaseServer(*_LIMIT[machines.engine_of_run()])
        self.addCleanup(self.server.remove)
        self.connection = self.server.create_database('placement')
        patch = mock.patch.object(health, 'check_database', wraps=health.check_database)
        self.checks = patch.start()
        self.addCleanup(patch.stop)
        super().setUp()

    def probe(self) -> int:
        """Send a health check and return the status of the response."""
        response = webob.Request.blank('/healthcheck').get_response(self.application)
        status: int = response.status_int
        return status

    def assert_becomes(self, status: int, after: str) -> None:
        """Send health checks until the response has a status."""
        wait_until(lambda: self.probe() == status, f'not {status} after {after}')

    def test_a_stopped_server(self):
        self.assertEqual(200, self.probe())
        self.server.kill()
        self.assert_becomes(503, 'the stop')
        self.server.start()
        self.assert_becomes(200, 'the start')

    def test_a_server_that_hangs(self):
        """The server accepts connections but never responds."""
        self.assertEqual(200, self.probe())
        self.server.hang()
        self.assert_becomes(503, 'the hang')
        # The checks of many probes do not add up.
        self.checks.reset_mock()
        start = time.monotonic()
        with futures.ThreadPoolExecutor(PROBES) as pool:
            statuses = list(pool.map(lambda _: self.probe(), range(PROBES)))
        self.assertEqual([503] * PROBES, statuses)
        # A probe can wait for the end of one check. The machine of the tests can be busy.
        self.assertLess(time.monotonic() - start, 2 * health.SECONDS)
        self.assertLess(self.checks.call_count, PROBES)
        self.server.resume()
        self.assert_becomes(200, 'the end of the hang')
        self.assertEqual(200, self.send('GET', '/resource_classes').status)

    def test_other_programs_use_up_the_connections(self):
        """The connections in the pool of the service still serve all requests."""
        self.assertEqual(200, self.send('GET', '/resource_classes').status)
        with contextlib.ExitStack() as others:
            wait_until(lambda: self._has_no_free_connection(others))
            self.checks.reset_mock()
            # The result of a check is used for a second.
            wait_until(lambda: self.probe() and self.checks.called)
            self.assert_becomes(200, 'a check without a free connection')
            self.assertEqual(200, self.send('GET', '/resource_classes').status)
        self.assert_becomes(200, 'the end of the other programs')

    def _has_no_free_connection(self, others: contextlib.ExitStack) -> bool:
        """Open connections until the server rejects one, and check that a check fails, too.

        The server may still be closing an earlier connection.
        """
        with contextlib.suppress(sa.exc.OperationalError):
            for _ in range(2 * CONNECTIONS):
                others.enter_context(machines.other_connection(self.connection))
        try:
            health.check_database()
        except sa.exc.OperationalError:
            return True
        return False
