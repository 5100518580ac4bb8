"""Readers and writing transactions: which failures are retried, and for how long."""

from collections.abc import Callable
from concurrent import futures
import functools
import io
import logging
import sqlite3
from typing import Any
from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_db import exception as db_exc
from oslo_log import formatters, log
from oslotest import base
import psycopg
import pymysql
import sqlalchemy as sa
from sqlalchemy import event

from placement import conf, db_api, exception, messages
from placement.db import engine as db_engine
from placement.db import retry
from placement.telemetry import declarations
from placement.tests.unit.telemetry.switched_on import SwitchedOn

TABLE = sa.Table('number', sa.MetaData(), sa.Column('n', sa.Integer, primary_key=True))


def lock_timeout() -> Exception:
    orig = pymysql.err.OperationalError(1205, 'Lock wait timeout exceeded')
    return db_exc.DBDeadlock(sa.exc.OperationalError('SELECT 1', {}, orig))


class Clock:
    """A clock that advances only if a test calls `sleep()` or changes `now`."""

    def __init__(self) -> None:
        self.now = 1000.0
        self.pauses: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


class WriteTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        config = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        conf.register_opts(config.conf)
        context_manager = db_engine.enginefacade.transaction_context()
        self.patch(db_engine, 'placement_context_manager', context_manager)
        context_manager.configure(connection='sqlite://')
        self.engine = db_engine.get_placement_engine()
        self.addCleanup(self.engine.dispose)
        with self.engine.begin() as conn:
            TABLE.create(conn)
        self.clock = Clock()
        self.patch(retry, 'time', self.clock)
        self.attempts = 0

    def patch(self, target: Any, name: str, value: Any) -> None:
        patch = mock.patch.object(target, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def failing(
        self, *errors: Callable[[], Exception] | type[Exception], lasting: float = 0.0
    ) -> Callable[[sa.Connection], str]:
        """Return a function that inserts a row and then raises the next error.

        After the last error, each call raises the last error again. If the error is None, the call
        succeeds.

        :param lasting: the duration of each call, in seconds
        """

        def work(conn: sa.Connection) -> str:
            conn.execute(sa.insert(TABLE).values(n=self.attempts))
            self.clock.now += lasting
            error = errors[min(self.attempts, len(errors) - 1)]
            self.attempts += 1
            if error is not None:
                raise error()
            return 'done'

        return work

    def rows(self) -> list[int]:
        with db_engine.snapshot() as conn:
            return list(conn.scalars(sa.select(TABLE.c.n)))

    def test_success(self):
        self.assertEqual('done', db_engine.write(self.failing(None)))
        self.assertEqual((1, [0], []), (self.attempts, self.rows(), self.clock.pauses))

    def test_transient_failures_are_retried(self):
        """The whole transaction is retried, and only the last attempt changes the database."""
        metrics = self.useFixture(SwitchedOn())
        errors = (
            lambda: exception.ConcurrentChange('a row'),
            db_exc.DBDeadlock,
            lambda: db_exc.DBDuplicateEntry(['uuid']),
            lambda: db_exc.DBReferenceError('t', 'c', 'k', 'kt'),
            db_exc.DBConnectionError,
            lock_timeout,
            None,
        )
        self.assertEqual('done', db_engine.write(self.failing(*errors)))
        self.assertEqual((7, [6]), (self.attempts, self.rows()))
        self.assertEqual(6, len(self.clock.pauses))
        self.assertEqual(
            {
                'concurrent_change': 1,
                'conflict': 1,
                'connection_lost': 1,
                'key_violation': 2,
                'lock_timeout': 1,
            },
            metrics.increased(declarations.RETRIES),
        )

    def test_error_of_the_client_is_not_retried(self):
        metrics = self.useFixture(SwitchedOn())
        work = self.failing(lambda: exception.ResourceProviderNotFound('uuid'))
        self.assertRaises(exception.ResourceProviderNotFound, db_engine.write, work, 10)
        self.assertEqual((1, []), (self.attempts, self.rows()))
        self.assertEqual({}, metrics.increased(declarations.RETRIES))

    def test_connections_in_use(self):
        metrics = self.useFixture(SwitchedOn())

        def in_use(_: Any = None) -> float | None:
            return metrics.value(declarations.CONNECTIONS_IN_USE)

        self.assertEqual(1, db_engine.write(in_use))
        with db_engine.snapshot():
            self.assertEqual(1, in_use())
        self.assertRaises(KeyError, db_engine.write, self.failing(KeyError))
        with mock.patch.object(sa.Engine, 'connect', side_effect=db_exc.DBConnectionError):
            self.assertRaises(exception.DatabaseUnavailable, db_engine.write, in_use)
        self.assertEqual(0, in_use())

    def test_the_shared_connection_is_unlocked_after_each_use(self):
        with db_engine.snapshot():
            self.assertFalse(self.can_lock())
        self.assertRaises(KeyError, db_engine.write, self.failing(KeyError))
        with mock.patch.object(sa.Engine, 'connect', side_effect=db_exc.DBConnectionError):
            self.assertRaises(exception.DatabaseUnavailable, db_engine.read, self.rows)
        self.assertTrue(self.can_lock())

    def can_lock(self) -> bool:
        """Whether another thread could use the shared connection."""
        lock = db_engine._SHARED_CONNECTION_LOCK

        def attempt() -> bool:
            if locked := lock.acquire(blocking=False):
                lock.release()
            return locked

        with futures.ThreadPoolExecutor(1) as pool:
            return pool.submit(attempt).result()

    def test_disconnecting_early(self):
        metrics = self.useFixture(SwitchedOn())

        def work(conn: sa.Connection, disconnect: Callable[[], None]) -> list[int]:
            rows = list(conn.scalars(sa.select(TABLE.c.n)))
            for _ in range(2):
                disconnect()
                self.assertTrue(conn.closed)
                self.assertEqual(0, metrics.value(declarations.CONNECTIONS_IN_USE))
            return rows

        db_engine.write(self.failing(None))
        self.assertEqual([0], db_engine.read_single_statement(work))
        self.assertEqual([0], db_engine.read_snapshot(work))

    def test_defect_is_not_retried(self):
        self.assertRaises(KeyError, db_engine.write, self.failing(KeyError), 10)
        self.assertEqual((1, []), (self.attempts, self.rows()))

    def test_repeated_violation_of_one_key(self):
        """Placement stops retrying the transaction before the deadline."""
        for error in (
            lambda: db_exc.DBDuplicateEntry(['uuid']),
            lambda: db_exc.DBReferenceError('t', 'c', 'k', 'kt'),
        ):
            self.attempts = 0
            self.assertRaises(exception.RepeatedKeyViolation, db_engine.write, self.failing(error))
            self.assertEqual(retry.SAME_KEY_ATTEMPTS, self.attempts)
            self.assertEqual([], self.rows())

    def test_alternating_violations_of_two_keys(self):
        """Concurrent transactions create and delete rows, so each attempt violates another key."""
        errors = [
            lambda: db_exc.DBDuplicateEntry(['uuid']),
            lambda: db_exc.DBReferenceError('t', 'c', 'k', 'kt'),
        ] * retry.SAME_KEY_ATTEMPTS
        self.assertEqual('done', db_engine.write(self.failing(*errors, None)))
        self.assertEqual(len(errors) + 1, self.attempts)

    def test_the_lines_of_the_log_contain_the_reason_once(self):
        """oslo.log would append the active exception to the line."""
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        config = cfg.ConfigOpts()
        log.register_options(config)
        config([], default_config_files=[], default_config_dirs=[])
        handler.setFormatter(formatters.ContextFormatter(config=config))
        self.addCleanup(logging.setLogRecordFactory, logging.getLogRecordFactory())
        logging.setLogRecordFactory(messages.LogRecord)
        retry.LOG.addHandler(handler)
        self.addCleanup(retry.LOG.removeHandler, handler)
        for error, raised in (
            (lock_timeout, exception.DatabaseUnavailable),
            (lambda: db_exc.DBDuplicateEntry(['uuid']), exception.RepeatedKeyViolation),
        ):
            self.assertRaises(raised, db_engine.write, self.failing(error, lasting=1))
        lines = [line for line in stream.getvalue().splitlines() if 'WARNING' in line]
        self.assertEqual([1, 1], [line.count('Giving up') for line in lines])
        self.assertEqual(
            [(1, 0), (0, 1)],
            [(line.count('Lock wait timeout'), line.count('DBDuplicateEntry')) for line in lines],
        )

    def test_concurrent_changes_until_the_deadline(self):
        work = self.failing(lambda: exception.ConcurrentChange('a row'), lasting=1)
        self.assertRaises(exception.ConcurrentChange, db_engine.write, work)
        self.assertBetween(20, 31, self.attempts)
        self.assertBetween(30, 32, self.clock.now - 1000)
        self.assertEqual([], self.rows())

    def test_minimum_of_attempts_after_the_deadline(self):
        """After the deadline, conflicts are retried until the minimum number of attempts."""
        for error in (lambda: exception.ConcurrentChange('a row'), db_exc.DBDeadlock):
            self.attempts = 0
            work = self.failing(error, lasting=10)
            self.assertRaises(exception.PlacementException, db_engine.write, work, 12)
            self.assertEqual(12, self.attempts)

    def test_minimum_of_attempts_excludes_lock_timeouts(self):
        work = self.failing(lock_timeout, lasting=15)
        self.assertRaises(exception.DatabaseUnavailable, db_engine.write, work, 10)
        self.assertBetween(2, 3, self.attempts)

    def test_deadlocks_until_the_deadline(self):
        log = self.useFixture(fixtures.FakeLogger('placement.db', logging.WARNING))
        work = self.failing(db_exc.DBDeadlock, lasting=1)
        self.assertRaises(exception.DatabaseUnavailable, db_engine.write, work)
        self.assertBetween(20, 31, self.attempts)
        self.assertEqual(
            f'Giving up after {self.attempts} attempts: DBDeadlock: None\n', log.output
        )

    def test_a_read_only_server_is_retried_once(self):
        """The new connection may lead to another server."""
        dispose = self.useFixture(fixtures.MockPatchObject(sa.Engine, 'dispose')).mock
        for reason in (
            pymysql.err.OperationalError(1290, 'running with the --read-only option'),
            pymysql.err.OperationalError(1836, 'Running in read-only mode'),
            psycopg.errors.ReadOnlySqlTransaction('cannot execute INSERT'),
        ):
            error = functools.partial(sa.exc.OperationalError, '', {}, reason)
            self.attempts = 0
            self.assertRaises(
                exception.DatabaseUnavailable, db_engine.write, self.failing(error), 10
            )
            self.assertEqual(2, self.attempts)
        self.assertEqual(6, dispose.call_count)
        self.attempts = 0
        self.assertEqual('done', db_engine.write(self.failing(error, None)))

    def test_full_disk_is_not_retried(self):
        def full() -> Exception:
            return sa.exc.OperationalError(
                'INSERT', {}, sqlite3.OperationalError('database or disk is full')
            )

        self.assertRaises(exception.DatabaseUnavailable, db_engine.write, self.failing(full), 10)
        self.assertEqual((1, []), (self.attempts, self.rows()))

    def test_failure_to_connect_is_not_retried(self):
        for error in (
            db_exc.DBConnectionError,
            lambda: sa.exc.TimeoutError('QueuePool limit'),
            lambda: sqlite3.OperationalError('raised by a listener, so not wrapped'),
            lambda: sa.exc.OperationalError('', {}, pymysql.err.OperationalError(1045, 'denied')),
        ):
            with mock.patch.object(sa.Engine, 'connect', side_effect=error()) as connect:
                self.assertRaises(
                    exception.DatabaseUnavailable, db_engine.write, self.failing(None), 10
                )
                self.assertEqual(1, connect.call_count)
        self.assertEqual(0, self.attempts)

    def test_unsuitable_server(self):
        error = exception.UnsuitableDatabase('remedy')
        log = self.useFixture(fixtures.FakeLogger('placement.db', logging.WARNING))
        with mock.patch.object(sa.Engine, 'connect', side_effect=error):
            self.assertRaises(exception.DatabaseUnavailable, db_engine.write, self.failing(None))
        self.assertIn('remedy', log.output)

    def fail_commits(self, *errors: Exception) -> None:
        remaining = list(errors)

        def fail(conn: sa.Connection) -> None:
            if remaining:
                raise remaining.pop(0)

        event.listen(self.engine, 'commit', fail)
        self.addCleanup(event.remove, self.engine, 'commit', fail)

    def test_connection_lost_during_commit(self):
        log = self.useFixture(fixtures.FakeLogger('placement.db', logging.WARNING))
        self.fail_commits(db_exc.DBConnectionError())
        self.assertRaises(exception.OutcomeUnknown, db_engine.write, self.failing(None), 10)
        self.assertIn('outcome is unknown: DBConnectionError: None\n', log.output)
        self.assertEqual(1, self.attempts)

    def test_failed_certification_during_commit(self):
        self.fail_commits(db_exc.DBDeadlock(), db_exc.DBDeadlock())
        self.assertEqual('done', db_engine.write(self.failing(None)))
        self.assertEqual((3, [2]), (self.attempts, self.rows()))

    def test_a_connection_that_fails_to_roll_back_is_closed(self):
        self.fail_commits(db_exc.DBDeadlock())
        connections = []

        def work(conn: sa.Connection) -> None:
            conn.execute(sa.select(1))
            connections.append(conn.connection.dbapi_connection)
            if len(connections) == 1:
                failure = sqlite3.OperationalError('disk I/O error')
                conn.connection.rollback = mock.Mock(side_effect=failure)

        db_engine.write(work)
        first, second = connections
        self.assertIsNot(first, second)
        self.assertRaises(sqlite3.ProgrammingError, first.cursor)  # it is closed

    def test_value_out_of_range(self):
        def work(conn: sa.Connection) -> None:
            conn.execute(sa.insert(TABLE).values(n=2**70))

        self.assertRaises(exception.UnstorableValue, db_engine.write, work)

    def test_pauses_have_a_maximum(self):
        self.assertLessEqual(retry._pause(1), 0.01)
        for attempt in (1, 5, 20, 5000):
            for _ in range(50):
                self.assertBetween(0, 0.5, retry._pause(attempt))

    def test_read(self):
        self.assertEqual([], db_engine.read(lambda conn: conn.execute(sa.select(TABLE)).all()))

    def test_snapshot(self):
        with db_engine.snapshot() as conn:
            self.assertEqual([], conn.execute(sa.select(TABLE)).all())

    def test_errors_of_reads_are_translated(self):
        def fail(error: Exception) -> None:
            raise error

        self.check_translation(lambda error: db_engine.read(lambda _: fail(error)))

    def test_an_interrupted_snapshot_sends_nothing_on_its_connection(self):
        with (
            mock.patch.object(sa.Connection, 'invalidate') as invalidate,
            self.assertRaises(KeyboardInterrupt),
            db_engine.snapshot(),
        ):
            raise KeyboardInterrupt
        invalidate.assert_called_once_with()

    def test_errors_of_snapshots_are_translated(self):
        def read(error: Exception) -> None:
            with db_engine.snapshot():
                raise error

        self.check_translation(read)

    def check_translation(self, read: Callable[[Exception], None]) -> None:
        """Check the exceptions that `read` raises for errors of the database."""
        too_many_parameters = sa.exc.OperationalError(
            'SELECT', {}, sqlite3.OperationalError('too many SQL variables')
        )

        self.assertRaises(exception.DatabaseUnavailable, read, db_exc.DBConnectionError())
        self.assertRaises(exception.RequestTooLarge, read, too_many_parameters)
        self.assertRaises(exception.UnstorableValue, read, db_exc.DBDataError())
        self.assertRaises(exception.TraitNotFound, read, exception.TraitNotFound('T'))
        self.assertRaises(KeyError, read, KeyError())

    def test_a_read_on_a_dead_connection_is_repeated_once(self):
        self.assertEqual('done', db_engine.read(self.losing(1)))
        self.assertEqual(2, self.attempts)
        self.attempts = 0
        self.assertRaises(exception.DatabaseUnavailable, db_engine.read, self.losing(2))
        self.assertEqual(2, self.attempts)

    def test_a_read_that_waited_for_long_is_not_repeated(self):
        self.patch(db_engine, 'time', self.clock)
        work = self.losing(1, lasting=10)
        self.assertRaises(exception.DatabaseUnavailable, db_engine.read, work)
        self.assertEqual(1, self.attempts)

    def test_other_errors_of_reads_are_not_repeated(self):
        def work(conn: sa.Connection) -> None:
            self.attempts += 1
            raise db_exc.DBDeadlock

        self.assertRaises(exception.DatabaseUnavailable, db_engine.read, work)
        self.assertEqual(1, self.attempts)

    def losing(self, times: int, lasting: float = 0.0) -> Callable[[sa.Connection], str]:
        """Return a function that reads, and whose connection is lost in its first calls."""

        def work(conn: sa.Connection) -> str:
            conn.execute(sa.select(TABLE)).all()
            self.clock.now += lasting
            self.attempts += 1
            if self.attempts <= times:
                raise db_exc.DBConnectionError
            return 'done'

        return work

    def test_the_begin_of_a_snapshot_is_repeated_once(self):
        begin = mock.Mock(side_effect=[db_exc.DBConnectionError, None])
        self.patch(db_engine.transactions, 'begin_snapshot', begin)
        with db_engine.snapshot() as conn:
            self.assertEqual([], conn.execute(sa.select(TABLE)).all())
        self.assertEqual(2, begin.call_count)

    def test_a_connection_that_is_lost_after_the_last_read(self):
        """All data has been read."""
        self.fail_commits(db_exc.DBConnectionError())
        with db_engine.snapshot() as conn:
            self.assertEqual([], conn.execute(sa.select(TABLE)).all())

    def test_only_the_first_configuration_has_an_effect(self):
        configurator = db_engine._Configurator()
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.set_override('connection', 'sqlite://', 'placement_database')
        config([], default_config_files=[], default_config_dirs=[])
        with mock.patch.object(db_engine, 'placement_context_manager') as manager:
            configurator(config)
            with self.assertLogs(db_engine.LOG, 'WARNING'):
                configurator(config)
        self.assertEqual(1, manager.configure.call_count)

    def test_facade(self):
        """`db_api` exports the documented names, and `db.engine` defines them."""
        for name in db_api.__all__:
            if name != 'placement_context_manager':  # replaced in setUp
                self.assertIs(getattr(db_engine, name), getattr(db_api, name), name)

    def test_engine_is_prepared_once(self):
        with mock.patch.object(db_engine.connections, 'prepare') as prepare:
            self.assertIs(self.engine, db_engine.get_placement_engine())
        prepare.assert_not_called()

    def assertBetween(self, low: float, high: float, value: float) -> None:
        self.assertLessEqual(low, value)
        self.assertLessEqual(value, high)
