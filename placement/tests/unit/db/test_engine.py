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

from placement import conf, exception, messages
from placement.db import engine as db_engine
from placement.db import retry
from placement.tests.unit.telemetry.switched_on import SwitchedOn

TABLE = sa.Table('number', sa.MetaData(), sa.Column('n', sa.Integer, primary_key=True))


def lock_timeout() -> Exception:
    orig = pymysql.err.OperationalError(1205, 'Lock wait timeout exceeded')
    return db_exc.DBDeadlock(sa.exc.OperationalError('SELECT 1', {}, orig))


def concurrent_change() -> Exception:
    return exception.ConcurrentChange('a row')


def not_found() -> Exception:
    return exception.ResourceProviderNotFound('uuid')


def full_disk() -> Exception:
    orig = sqlite3.OperationalError('database or disk is full')
    return sa.exc.OperationalError('INSERT', {}, orig)


KEYS = (
    lambda: db_exc.DBDuplicateEntry(['uuid']),
    lambda: db_exc.DBReferenceError('t', 'c', 'k', 'kt'),
)
READ_ONLY = tuple(
    functools.partial(sa.exc.OperationalError, '', {}, orig)
    for orig in (
        pymysql.err.OperationalError(1290, 'running with the --read-only option'),
        pymysql.err.OperationalError(1836, 'Running in read-only mode'),
        psycopg.errors.ReadOnlySqlTransaction('cannot execute INSERT'),
    )
)


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
        errors = (concurrent_change, *KEYS, db_exc.DBDeadlock, db_exc.DBConnectionError)
        self.assertEqual('done', db_engine.write(self.failing(*errors, lock_timeout, None)))
        self.assertEqual((7, [6]), (self.attempts, self.rows()))
        self.assertEqual(6, len(self.clock.pauses))
        reasons = ('concurrent_change', 'conflict', 'connection_lost', 'lock_timeout')
        expected = {**dict.fromkeys(reasons, 1), 'key_violation': 2}
        self.assertEqual(expected, metrics.increased('placement_database_retries_total'))

    def test_failures_and_their_attempts(self):
        """The number of attempts, of which the last one raises an error for the client."""
        unavailable = exception.DatabaseUnavailable
        metrics = self.useFixture(SwitchedOn())
        dispose = self.useFixture(fixtures.MockPatchObject(sa.Engine, 'dispose')).mock
        for error, raised, attempts in (
            (
                lambda: exception.ResourceProviderNotFound('x'),
                exception.ResourceProviderNotFound,
                1,
            ),
            (KeyError, KeyError, 1),
            (full_disk, unavailable, 1),
            # The new connection may lead to another server.
            *((error, unavailable, 2) for error in READ_ONLY),
            *((error, exception.RepeatedKeyViolation, retry.SAME_KEY_ATTEMPTS) for error in KEYS),
        ):
            for minimum in (1, 10):
                self.attempts = 0
                self.assertRaises(raised, db_engine.write, self.failing(error), minimum)
                self.assertEqual((attempts, []), (self.attempts, self.rows()), error)
        self.assertEqual(4 * len(READ_ONLY), dispose.call_count)
        retries = metrics.increased('placement_database_retries_total')
        self.assertEqual({'connection_lost': 6, 'key_violation': 36}, retries)
        self.attempts = 0
        self.assertEqual('done', db_engine.write(self.failing(READ_ONLY[0], None)))

    def test_failures_until_the_deadline(self):
        """After the deadline, conflicts are retried until the minimum number of attempts."""
        unavailable = exception.DatabaseUnavailable
        for error, raised, lasting, minimum, attempts in (
            (concurrent_change, exception.ConcurrentChange, 1, 1, range(20, 32)),
            (db_exc.DBDeadlock, unavailable, 1, 1, range(20, 32)),
            (concurrent_change, exception.ConcurrentChange, 10, 12, [12]),
            (db_exc.DBDeadlock, unavailable, 10, 12, [12]),
            (lock_timeout, unavailable, 15, 10, [2, 3]),
        ):
            with self.subTest(error=error, minimum=minimum):
                self.attempts, self.clock.pauses, begin = 0, [], self.clock.now
                work = self.failing(error, lasting=lasting)
                self.assertRaises(raised, db_engine.write, work, minimum)
                self.assertIn(self.attempts, attempts)
                self.assertGreaterEqual(self.clock.now - begin, 30)
                self.assertEqual([], self.rows())
                self.assertLessEqual(self.clock.pauses[0], 0.01)
                self.assertLessEqual(max(self.clock.pauses), 0.5)

    def test_alternating_violations_of_two_keys(self):
        """Concurrent transactions create and delete rows, so each attempt violates another key."""
        errors = KEYS * retry.SAME_KEY_ATTEMPTS
        self.assertEqual('done', db_engine.write(self.failing(*errors, None)))
        self.assertEqual(len(errors) + 1, self.attempts)

    def test_the_connection_is_released_after_each_use(self):
        """It is neither counted as in use, nor locked for other threads."""
        metrics = self.useFixture(SwitchedOn())

        def in_use(_: Any = None) -> float | None:
            return metrics.value('placement_database_connections_in_use')

        self.assertEqual(1, db_engine.write(in_use))
        with db_engine.snapshot():
            self.assertEqual(1, in_use())
        self.assertRaises(KeyError, db_engine.write, self.failing(KeyError))
        with mock.patch.object(sa.Engine, 'connect', side_effect=db_exc.DBConnectionError):
            self.assertRaises(exception.DatabaseUnavailable, db_engine.write, in_use)
            self.assertRaises(exception.DatabaseUnavailable, db_engine.read, in_use)
        self.assertEqual(0, in_use())
        # Another thread can use the shared connection.
        with futures.ThreadPoolExecutor(1) as pool:
            self.assertEqual(1, pool.submit(db_engine.read, in_use).result())
        db_engine.write(self.failing(None))
        self.assertEqual(1, db_engine.read_snapshot(in_use))
        self.assertEqual(0, in_use())

    def test_the_lines_of_the_log_contain_the_reason_once(self):
        """oslo.log would append the active exception to the line."""
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        config = cfg.ConfigOpts()
        log.register_options(config)
        config([], default_config_files=[], default_config_dirs=[])
        handler.setFormatter(formatters.ContextFormatter(config=config))
        handler.setFormatter(messages.LineFormatter(handler, config))
        retry.LOG.addHandler(handler)
        self.addCleanup(retry.LOG.removeHandler, handler)
        for error, raised, reason in (
            (lock_timeout, exception.DatabaseUnavailable, 'Lock wait timeout'),
            (KEYS[0], exception.RepeatedKeyViolation, 'DBDuplicateEntry'),
        ):
            stream.truncate(0)
            self.assertRaises(raised, db_engine.write, self.failing(error, lasting=1))
            (line,) = (line for line in stream.getvalue().splitlines() if 'WARNING' in line)
            self.assertEqual((1, 1), (line.count('Giving up'), line.count(reason)), line)

    def test_failure_to_connect_is_not_retried(self):
        log = self.useFixture(fixtures.FakeLogger('placement.db', logging.WARNING))
        for error in (
            db_exc.DBConnectionError,
            lambda: sa.exc.TimeoutError('QueuePool limit'),
            lambda: sqlite3.OperationalError('raised by a listener, so not wrapped'),
            lambda: sa.exc.OperationalError('', {}, pymysql.err.OperationalError(1045, 'denied')),
            lambda: exception.UnsuitableDatabase('remedy'),
        ):
            with mock.patch.object(sa.Engine, 'connect', side_effect=error()) as connect:
                self.assertRaises(
                    exception.DatabaseUnavailable, db_engine.write, self.failing(None), 10
                )
                self.assertEqual(1, connect.call_count)
        self.assertEqual(0, self.attempts)
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

    def test_errors_of_reads_are_translated(self):
        too_many = sqlite3.OperationalError('too many SQL variables')
        for error, raised in (
            (db_exc.DBConnectionError(), exception.DatabaseUnavailable),
            (sa.exc.OperationalError('SELECT', {}, too_many), exception.RequestTooLarge),
            (db_exc.DBDataError(), exception.UnstorableValue),
            (exception.TraitNotFound('T'), exception.TraitNotFound),
            (KeyError(), KeyError),
        ):
            work = mock.Mock(side_effect=error)
            self.assertRaises(raised, db_engine.read, work)
            with self.assertRaises(raised), db_engine.snapshot() as conn:
                work(conn)

    def test_a_read_is_repeated_once_on_a_dead_connection(self):
        """Unless it has waited for long."""
        self.patch(db_engine, 'time', self.clock)
        self.assertEqual('done', db_engine.read(self.losing(1)))
        for times, lasting, attempts in ((2, 0, 2), (1, 10, 1)):
            self.attempts = 0
            work = self.losing(times, lasting)
            self.assertRaises(exception.DatabaseUnavailable, db_engine.read, work)
            self.assertEqual(attempts, self.attempts)
        self.attempts = 0
        work = self.failing(db_exc.DBDeadlock)
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

    def test_engine_is_prepared_once(self):
        with mock.patch.object(db_engine.connections, 'prepare') as prepare:
            self.assertIs(self.engine, db_engine.get_placement_engine())
        prepare.assert_not_called()


class SnapshotTest(base.BaseTestCase):
    """A snapshot is begun and ended explicitly, also if a read fails."""

    def setUp(self):
        super().setUp()
        manager = db_engine.enginefacade.transaction_context()
        path = self.useFixture(fixtures.TempDir()).path
        manager.configure(connection=f'sqlite:///{path}/placement.db')
        self.useFixture(fixtures.MockPatchObject(db_engine, 'placement_context_manager', manager))
        self.pools = db_engine.get_pools()
        self.addCleanup(self.pools.pool.dispose)
        with self.pools.direct.begin() as conn:
            TABLE.create(conn)

    def failing_at(self, statement: str, error: type[BaseException]) -> mock.Mock:
        """Let the first such statement fail, and return the listener."""
        remaining = [error]

        def fail(_conn: Any, _cursor: Any, text: str, *_: Any) -> None:
            if text.startswith(statement) and remaining:
                raise remaining.pop()('failure')

        event.listen(self.pools.reader, 'before_cursor_execute', fail)

    def rows(self) -> int:
        read = sa.select(sa.func.count()).select_from(TABLE)
        return db_engine.read_snapshot(lambda conn: conn.scalar(read))

    def test_a_read_after_a_failure_reads_fresh_data(self):
        """Whether a read or the end of the snapshot fails."""
        for number, (statement, error, raised) in enumerate(
            (
                ('BEGIN', db_exc.DBConnectionError, None),
                ('SELECT', db_exc.DBError, db_exc.DBError),
                ('SELECT', KeyboardInterrupt, KeyboardInterrupt),
                ('ROLLBACK', db_exc.DBConnectionError, None),
                ('ROLLBACK', KeyError, None),
            )
        ):
            self.assertEqual(number, self.rows())
            self.failing_at(statement, error)
            if raised is None:
                self.assertEqual(number, self.rows())
            else:
                self.assertRaises(raised, self.rows)
            db_engine.write(lambda conn, n=number: conn.execute(sa.insert(TABLE).values(n=n)))
            self.assertEqual(number + 1, self.rows())

    def test_a_connection_whose_snapshot_may_be_open_is_not_used_again(self):
        """On a server, the pool would not end the snapshot."""
        opened = mock.Mock()
        event.listen(self.pools.reader.pool, 'connect', opened)
        self.failing_at('BEGIN', KeyError)
        self.assertRaises(db_exc.DBError, self.rows)
        self.rows()
        self.assertEqual(2, opened.call_count)

    def test_a_transaction_that_stays_open_after_a_failed_commit_is_rolled_back(self):
        """SQLAlchemy considers it ended, and sends no ROLLBACK."""
        errors = [db_exc.DBDeadlock()]
        dialect = self.pools.writer.dialect
        commit = dialect.do_commit

        def fail_once(connection: Any) -> None:
            if errors:
                raise errors.pop()
            commit(connection)

        connections = []

        def work(conn: sa.Connection) -> None:
            connections.append(conn.connection.dbapi_connection)
            conn.execute(sa.insert(TABLE).values(n=1))

        self.useFixture(fixtures.MockPatchObject(dialect, 'do_commit', fail_once))
        db_engine.write(work)
        self.assertEqual(2, len(connections))
        self.assertIs(*connections)
        self.assertEqual(1, self.rows())

    def test_a_connection_that_fails_to_roll_back_is_not_used_again(self):
        """Its transaction may still be open."""
        errors = [sqlite3.OperationalError('disk I/O error')]
        dialect = self.pools.writer.dialect
        rollback = dialect.do_rollback

        def fail_once(connection: Any) -> None:
            if errors:
                raise errors.pop()
            rollback(connection)

        def fail(conn: sa.Connection) -> None:
            conn.execute(sa.insert(TABLE).values(n=1))
            raise KeyError

        self.useFixture(fixtures.MockPatchObject(dialect, 'do_rollback', fail_once))
        self.assertRaises(exception.DatabaseUnavailable, db_engine.write, fail)
        db_engine.write(lambda conn: conn.execute(sa.insert(TABLE).values(n=2)))
        self.assertEqual(1, self.rows())

    def test_an_interrupted_snapshot_sends_nothing_on_its_connection(self):
        with (
            mock.patch.object(sa.Connection, 'invalidate') as invalidate,
            self.assertRaises(KeyboardInterrupt),
            db_engine.snapshot(),
        ):
            raise KeyboardInterrupt
        invalidate.assert_called_once_with()
