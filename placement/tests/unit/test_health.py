"""The health check: shared results, its log, its configuration, and SQLite databases."""

from concurrent import futures
import logging
import pathlib
import sqlite3
import threading
from unittest import mock

import fixtures
from oslo_config import cfg
from oslotest import base
import psycopg
import pymysql
import sqlalchemy as sa
from sqlalchemy import pool

from placement import conf, health
from placement.db import engine as db_engine
from placement.db import health as db_health
from placement.tests.unit import edge


class SharedCheckTest(base.BaseTestCase):
    """The time limits are long, so that an unexpected wait fails the test in time."""

    def setUp(self):
        super().setUp()
        self.executions = 0
        self.error = None
        self.proceed = threading.Event()
        self.proceed.set()
        self.addCleanup(self.proceed.set)

    def check(self):
        self.executions += 1
        self.proceed.wait(60)
        if self.error:
            raise self.error

    def test_a_recent_result_is_used_again(self):
        for error in (None, ValueError('down')):
            self.error = error
            shared = health.SharedCheck(self.check, seconds=60, keep=60)
            before = self.executions
            self.assertEqual([error] * 3, [shared.error() for _ in range(3)])
            self.assertEqual(before + 1, self.executions)

    def test_an_outdated_result_is_replaced(self):
        shared = health.SharedCheck(self.check, seconds=60, keep=0)
        self.assertIsNone(shared.error())
        self.error = ValueError('down')
        self.assertIs(self.error, shared.error())
        self.assertEqual(2, self.executions)

    def test_concurrent_requests_share_one_execution(self):
        shared = health.SharedCheck(self.check, seconds=60, keep=60)
        self.proceed.clear()
        with futures.ThreadPoolExecutor(8) as threads:
            results = [threads.submit(shared.error) for _ in range(8)]
            self.proceed.set()
        self.assertEqual([None] * 8, [result.result() for result in results])
        self.assertEqual(1, self.executions)

    def test_a_check_that_hangs_fails_and_is_not_started_again(self):
        shared = health.SharedCheck(self.check, seconds=0, keep=0)
        self.proceed.clear()
        for _ in range(3):
            self.assertIsInstance(shared.error(), TimeoutError)
        self.assertEqual(1, self.executions)


class BackendTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement.health', logging.INFO))
        self.conf = edge.configuration()
        self.useFixture(fixtures.MockPatchObject(health, 'KEEP_SECONDS', 0))
        self.error = None
        self.useFixture(fixtures.MockPatchObject(db_health, 'check', self.check))

    def check(self):
        if self.error:
            raise self.error

    def send(self, application=None, **more):
        application = application or health.application(edge.ok, self.conf)
        return edge.call(application, edge.environ(path='/healthcheck', **more))

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
        self.conf.set_override('detailed', True, 'healthcheck')
        self.error = sqlite3.OperationalError('disk is full')
        response = self.send(HTTP_ACCEPT='application/json')
        self.assertEqual('OperationalError: disk is full', response.json['reasons'][0]['details'])

    def test_a_policy_file_that_cannot_be_used_is_a_detail(self):
        self.useFixture(fixtures.MockPatch('placement.policy.problem', return_value='line 3'))
        response = self.send(HTTP_ACCEPT='application/json')
        self.assertEqual((200, 'OK'), (response.status, response.json['reasons'][0]))

        self.conf.set_override('detailed', True, 'healthcheck')
        response = self.send(HTTP_ACCEPT='application/json')
        self.assertEqual(200, response.status)
        self.assertEqual('line 3', response.json['reasons'][0]['details'])

    def test_only_changes_are_logged(self):
        application = health.application(edge.ok, self.conf)
        for self.error in (None, None, ValueError('down'), ValueError('down'), None, None):
            self.send(application)
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

    def test_other_services_keep_their_default(self):
        other = cfg.ConfigOpts()
        conf.register_opts(other)
        third = cfg.ConfigOpts()
        third.register_opts(health.healthcheck.opts.HEALTHCHECK_OPTS, group='healthcheck')
        self.assertEqual(['placement_database'], other.healthcheck.backends)
        self.assertEqual([], third.healthcheck.backends)


class SQLiteTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'a b%20?#.db')

    def use(self, url: sa.URL | str, **options) -> sa.Engine:
        engine = sa.create_engine(url, **options)
        self.addCleanup(engine.dispose)
        self.useFixture(fixtures.MockPatchObject(db_engine, 'get_placement_engine', lambda: engine))
        return engine

    def test_a_file(self):
        engine = self.use(sa.URL.create('sqlite', database=str(self.path)))
        with engine.begin() as conn:
            conn.exec_driver_sql('CREATE TABLE t (n INTEGER)')
        db_health.check()
        self.path.write_bytes(b'x' * 4096)
        self.assertRaises(sa.exc.DatabaseError, db_health.check)

    def test_a_missing_file_is_not_created(self):
        self.use(sa.URL.create('sqlite', database=str(self.path)))
        self.assertRaises(sa.exc.OperationalError, db_health.check)
        self.assertFalse(self.path.exists())

    def test_a_uri(self):
        self.use(f'sqlite:///file:{self.path.parent}/other.db?mode=rw&uri=true')
        self.assertRaises(sa.exc.OperationalError, db_health.check)

    def test_a_database_in_memory(self):
        self.use('sqlite://', poolclass=pool.StaticPool)
        db_health.check()


class GaleraTest(base.BaseTestCase):
    def connection(self, **settings) -> mock.Mock:
        """Return a connection to a server with the variable wsrep_on and status wsrep_ready."""
        rows = {f"'{name}'": (name, value) for name, value in settings.items()}
        conn = mock.Mock()
        conn.dialect.name = 'mysql'
        conn.exec_driver_sql.side_effect = lambda text: mock.Mock(
            first=lambda: rows.get(text.split()[-1])
        )
        return conn

    def test_a_node_must_be_ready(self):
        for settings in ({}, {'wsrep_on': 'OFF', 'wsrep_ready': 'OFF'}):
            db_health._require_ready_node(self.connection(**settings))
        db_health._require_ready_node(self.connection(wsrep_on='ON', wsrep_ready='ON'))
        for ready in ({}, {'wsrep_ready': 'OFF'}):
            self.assertRaises(
                db_health.exception.DatabaseUnavailable,
                db_health._require_ready_node,
                self.connection(wsrep_on='ON', **ready),
            )
