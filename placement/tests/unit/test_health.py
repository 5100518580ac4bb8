"""The health check: shared results, its log, and its configuration."""

from concurrent import futures
import logging
import pathlib
import sqlite3
import threading

import fixtures
from oslotest import base
import psycopg
import pymysql
import sqlalchemy as sa

from placement import health
from placement.tests.unit import edge, identity


class HealthTest(base.BaseTestCase):
    """Probes of a service whose check of the database is replaced."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement.health', logging.INFO))
        self.clock = self.useFixture(identity.Clock())
        self.conf = edge.configuration()
        self.executions = 0
        self.error = None
        self.started = threading.Event()
        self.proceed = threading.Event()
        self.proceed.set()
        self.addCleanup(self.proceed.set)
        self.useFixture(fixtures.MockPatch('placement.health.check_database', self.check))
        # So long that only a defect makes a probe wait for the end.
        self.useFixture(fixtures.MockPatch('placement.health.SECONDS', 60))

    def check(self):
        self.executions += 1
        self.started.set()
        self.proceed.wait(60)
        if self.error:
            raise self.error

    def send(self, application=None, **more):
        application = application or health.application(edge.ok, self.conf)
        return edge.call(application, edge.environ(path='/healthcheck', **more))

    def test_a_recent_result_is_used_again(self):
        application = health.application(edge.ok, self.conf)
        for number, (error, status) in enumerate(((None, 200), (ValueError('down'), 503)), 1):
            self.error = error
            for seconds in (0, 0.5, 0.25):
                self.clock.advance(seconds)
                self.assertEqual(status, self.send(application).status)
            self.assertEqual(number, self.executions)
            self.clock.advance(0.25)

    def test_concurrent_requests_share_one_execution(self):
        application = health.application(edge.ok, self.conf)
        self.proceed.clear()
        with futures.ThreadPoolExecutor(8) as threads:
            results = [threads.submit(self.send, application) for _ in range(8)]
            self.proceed.set()
        self.assertEqual([200] * 8, [result.result().status for result in results])
        self.assertEqual(1, self.executions)

    def test_a_check_that_hangs_is_not_started_again(self):
        """For example, the resolution of the name of the database server takes long."""
        self.useFixture(fixtures.MockPatch('placement.health.SECONDS', 0))
        application = health.application(edge.ok, self.conf)
        self.proceed.clear()
        with futures.ThreadPoolExecutor(1) as threads:
            first = threads.submit(self.send, application)
            self.started.wait(60)
            for _ in range(3):
                self.clock.advance(1)
                self.assertEqual(503, self.send(application).status)
            self.proceed.set()
            self.assertEqual(200, first.result().status)
        self.assertEqual(1, self.executions)

    def test_the_result_has_no_details(self):
        self.error = sqlite3.OperationalError('secret path')
        for accept in ('*/*', 'application/json', 'text/html'):
            response = self.send(HTTP_ACCEPT=accept)
            self.assertEqual(503, response.status)
            self.assertIn(b'DATABASE UNAVAILABLE', response.body)
            self.assertNotIn(b'secret', response.body)

    def test_a_limit_of_connections_is_no_failure(self):
        """The connections in the pool can still serve all requests."""
        for error in (
            pymysql.err.OperationalError(1040, 'Zu viele Verbindungen'),
            pymysql.err.OperationalError(1203, 'User a has more than max_user_connections'),
            pymysql.err.OperationalError(1226, "exceeded 'max_user_connections' (value: 1)"),
            pymysql.err.OperationalError(1226, "exceeded 'max_connections_per_hour' (value: 1)"),
            psycopg.OperationalError('FATAL:  sorry, too many clients already'),
            psycopg.OperationalError('FATAL:  too many connections for role "placement"'),
        ):
            self.error = sa.exc.OperationalError(None, None, error)
            self.assertEqual(200, self.send().status, error)
        self.error = sa.exc.OperationalError(
            None, None, pymysql.err.OperationalError(1226, "exceeded 'max_queries_per_hour'")
        )
        self.assertEqual(503, self.send().status)

    def test_details(self):
        """A policy file that cannot be used is a detail of a success."""
        problem = self.useFixture(fixtures.MockPatch('placement.policy.problem')).mock
        problem.return_value = 'line 3'
        response = self.send(HTTP_ACCEPT='application/json')
        self.assertEqual((200, 'OK'), (response.status, response.json['reasons'][0]))
        self.conf.set_override('detailed', True, 'healthcheck')
        for self.error, status, details in (
            (None, 200, 'line 3'),
            (sqlite3.OperationalError('disk is full'), 503, 'OperationalError: disk is full'),
        ):
            response = self.send(HTTP_ACCEPT='application/json')
            self.assertEqual(status, response.status)
            self.assertEqual(details, response.json['reasons'][0]['details'])

    def test_only_changes_are_logged(self):
        application = health.application(edge.ok, self.conf)
        for self.error in (None, None, ValueError('down'), ValueError('down'), None, None):
            self.send(application)
            self.clock.advance(1)
        self.assertEqual(
            [
                'The health check of the database fails: ValueError: down',
                'The health check of the database passes again.',
            ],
            self.log.output.splitlines(),
        )

    def test_a_file_takes_the_service_out_of_operation(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'disabled')
        self.conf.set_override('backends', ['disable_by_file', 'placement_database'], 'healthcheck')
        self.conf.set_override('disable_by_file_path', str(path), 'healthcheck')
        application = health.application(edge.ok, self.conf)
        self.assertEqual(200, self.send(application).status)
        path.touch()
        response = self.send(application)
        self.assertEqual(503, response.status)
        self.assertIn(b'DISABLED BY FILE', response.body)
        path.unlink()
        self.assertEqual(200, self.send(application).status)

    def test_excluded_requests_belong_to_the_api(self):
        self.conf.set_override('allowed_source_ranges', ['192.0.2.0/24'], 'healthcheck')
        self.error = ValueError('down')
        self.assertEqual(503, self.send(REMOTE_ADDR='192.0.2.7').status)
        for address in ('198.51.100.1', '', '192.0.2.7, 192.0.2.8', '192.0.2.7:80', 'unknown'):
            self.assertEqual(b'ok', self.send(REMOTE_ADDR=address).body)

    def test_a_missing_backend_is_not_healthy(self):
        """For example, the name is misspelled."""
        self.conf.set_override('backends', ['placement_databse'], 'healthcheck')
        response = self.send()
        self.assertEqual(503, response.status)
        self.assertIn('placement_databse', self.log.output)

    def test_without_backends_every_check_passes(self):
        self.conf.set_override('backends', [], 'healthcheck')
        self.error = ValueError('down')
        self.assertEqual(200, self.send().status)
