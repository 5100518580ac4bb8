"""The loop around a writing transaction: what is run again, and for how long."""

from collections.abc import Callable
import sqlite3
from typing import Any
from unittest import mock

from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_db import exception as db_exc
from oslotest import base
import pymysql
import sqlalchemy as sa
from sqlalchemy import event

from placement import conf, db_api, exception

TABLE = sa.Table('number', sa.MetaData(), sa.Column('n', sa.Integer, primary_key=True))


def lock_timeout() -> Exception:
    orig = pymysql.err.OperationalError(1205, 'Lock wait timeout exceeded')
    return db_exc.DBDeadlock(sa.exc.OperationalError('SELECT 1', {}, orig))


class Clock:
    """A time in which only sleeping and working take any."""

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
        context_manager = db_api.enginefacade.transaction_context()
        self.patch(db_api, 'placement_context_manager', context_manager)
        context_manager.configure(connection='sqlite://')
        self.engine = db_api.get_placement_engine()
        self.addCleanup(self.engine.dispose)
        with self.engine.begin() as conn:
            TABLE.create(conn)
        self.clock = Clock()
        self.patch(db_api, 'time', self.clock)
        self.attempts = 0

    def patch(self, target: Any, name: str, value: Any) -> None:
        patch = mock.patch.object(target, name, value)
        patch.start()
        self.addCleanup(patch.stop)

    def failing(
        self, *errors: Callable[[], Exception] | type[Exception], lasting: float = 0.0
    ) -> Callable[[sa.Connection], str]:
        """Work that inserts a row and then fails, with each error once and the last for ever."""

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
        with db_api.reader() as conn:
            return list(conn.scalars(sa.select(TABLE.c.n)))

    def test_success(self):
        self.assertEqual('done', db_api.write(self.failing(None)))
        self.assertEqual((1, [0], []), (self.attempts, self.rows(), self.clock.pauses))

    def test_nobody_is_at_fault(self):
        """It is run again as a whole, and only the last run leaves something."""
        errors = (
            lambda: exception.ConcurrentChange('a row'),
            db_exc.DBDeadlock,
            lambda: db_exc.DBDuplicateEntry(['uuid']),
            lambda: db_exc.DBReferenceError('t', 'c', 'k', 'kt'),
            db_exc.DBConnectionError,
            lock_timeout,
            None,
        )
        self.assertEqual('done', db_api.write(self.failing(*errors)))
        self.assertEqual((7, [6]), (self.attempts, self.rows()))
        self.assertEqual(6, len(self.clock.pauses))

    def test_client_is_at_fault(self):
        work = self.failing(lambda: exception.ResourceProviderNotFound('uuid'))
        self.assertRaises(exception.ResourceProviderNotFound, db_api.write, work, 10)
        self.assertEqual((1, []), (self.attempts, self.rows()))

    def test_defect(self):
        self.assertRaises(KeyError, db_api.write, self.failing(KeyError), 10)
        self.assertEqual((1, []), (self.attempts, self.rows()))

    def test_one_key_refuses_again_and_again(self):
        """The transaction is not retried until the deadline."""
        for error in (
            lambda: db_exc.DBDuplicateEntry(['uuid']),
            lambda: db_exc.DBReferenceError('t', 'c', 'k', 'kt'),
        ):
            self.attempts = 0
            self.assertRaises(exception.RepeatedKeyViolation, db_api.write, self.failing(error))
            self.assertEqual(db_api.SAME_KEY_ATTEMPTS, self.attempts)
            self.assertEqual([], self.rows())

    def test_keys_refuse_in_turns(self):
        """Concurrent transactions create and delete rows: each attempt meets another one."""
        errors = [
            lambda: db_exc.DBDuplicateEntry(['uuid']),
            lambda: db_exc.DBReferenceError('t', 'c', 'k', 'kt'),
        ] * db_api.SAME_KEY_ATTEMPTS
        self.assertEqual('done', db_api.write(self.failing(*errors, None)))
        self.assertEqual(len(errors) + 1, self.attempts)

    def test_swap_is_lost_until_the_deadline(self):
        work = self.failing(lambda: exception.ConcurrentChange('a row'), lasting=1)
        self.assertRaises(exception.ConcurrentChange, db_api.write, work)
        self.assertBetween(20, 31, self.attempts)
        self.assertBetween(30, 32, self.clock.now - 1000)
        self.assertEqual([], self.rows())

    def test_least_attempts(self):
        """Against rivals, however long it takes."""
        for error in (lambda: exception.ConcurrentChange('a row'), db_exc.DBDeadlock):
            self.attempts = 0
            work = self.failing(error, lasting=10)
            self.assertRaises(exception.PlacementException, db_api.write, work, 12)
            self.assertEqual(12, self.attempts)

    def test_least_attempts_do_not_wait_for_strangers(self):
        work = self.failing(lock_timeout, lasting=15)
        self.assertRaises(exception.DatabaseUnavailable, db_api.write, work, 10)
        self.assertBetween(2, 3, self.attempts)

    def test_deadlocks_until_the_deadline(self):
        work = self.failing(db_exc.DBDeadlock, lasting=1)
        self.assertRaises(exception.DatabaseUnavailable, db_api.write, work)
        self.assertBetween(20, 31, self.attempts)

    def test_unavailable_at_once(self):
        def full() -> Exception:
            return sa.exc.OperationalError(
                'INSERT', {}, sqlite3.OperationalError('database or disk is full')
            )

        self.assertRaises(exception.DatabaseUnavailable, db_api.write, self.failing(full), 10)
        self.assertEqual((1, []), (self.attempts, self.rows()))

    def test_no_connection(self):
        for error in (
            db_exc.DBConnectionError,
            lambda: sa.exc.TimeoutError('QueuePool limit'),
            lambda: sqlite3.OperationalError('raised by a listener, so not wrapped'),
            lambda: sa.exc.OperationalError('', {}, pymysql.err.OperationalError(1045, 'denied')),
        ):
            with mock.patch.object(sa.Engine, 'connect', side_effect=error()) as connect:
                self.assertRaises(
                    exception.DatabaseUnavailable, db_api.write, self.failing(None), 10
                )
                self.assertEqual(1, connect.call_count)
        self.assertEqual(0, self.attempts)

    def test_unsuitable_server(self):
        error = exception.UnsuitableDatabase('remedy')
        with mock.patch.object(sa.Engine, 'connect', side_effect=error):
            self.assertRaises(exception.UnsuitableDatabase, db_api.write, self.failing(None))

    def fail_commits(self, *errors: Exception) -> None:
        waiting = list(errors)

        def fail(conn: sa.Connection) -> None:
            if waiting:
                raise waiting.pop(0)

        event.listen(self.engine, 'commit', fail)
        self.addCleanup(event.remove, self.engine, 'commit', fail)

    def test_connection_is_lost_while_committing(self):
        self.fail_commits(db_exc.DBConnectionError())
        self.assertRaises(exception.OutcomeUnknown, db_api.write, self.failing(None), 10)
        self.assertEqual(1, self.attempts)

    def test_certification_is_lost_while_committing(self):
        self.fail_commits(db_exc.DBDeadlock(), db_exc.DBDeadlock())
        self.assertEqual('done', db_api.write(self.failing(None)))
        self.assertEqual((3, [2]), (self.attempts, self.rows()))

    def test_value_that_no_column_holds(self):
        def work(conn: sa.Connection) -> None:
            conn.execute(sa.insert(TABLE).values(n=2**70))

        self.assertRaises(exception.UnstorableValue, db_api.write, work)

    def test_pauses_grow_to_a_bound(self):
        self.assertLessEqual(db_api._pause(1), 0.01)
        for attempt in (1, 5, 20, 5000):
            for _ in range(50):
                self.assertBetween(0, 0.5, db_api._pause(attempt))

    def test_reader(self):
        with db_api.reader() as conn:
            self.assertEqual([], conn.execute(sa.select(TABLE)).all())

    def test_reader_translates(self):
        def read(error: Exception) -> None:
            with db_api.reader():
                raise error

        self.assertRaises(exception.DatabaseUnavailable, read, db_exc.DBConnectionError())
        self.assertRaises(exception.TraitNotFound, read, exception.TraitNotFound('T'))
        self.assertRaises(KeyError, read, KeyError())

    def assertBetween(self, low: float, high: float, value: float) -> None:
        self.assertLessEqual(low, value)
        self.assertLessEqual(value, high)
