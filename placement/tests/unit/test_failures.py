"""What is made of the errors of each driver, with the drivers' own exceptions."""

import sqlite3
from types import MappingProxyType
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from oslo_db import exception as db_exc
from oslotest import base
import psycopg
import pymysql
import sqlalchemy as sa

from placement.db import failures

# transient, rivalry, unavailable, bad value
RIVAL = (True, True, True, False)
WAITED = (True, False, True, False)
LOST = (True, False, True, False)
AWAY = (False, False, True, False)
BAD = (False, False, False, True)
DEFECT = (False, False, False, False)


def verdict(exc: Exception) -> tuple[bool, bool, bool, bool]:
    return (
        failures.is_transient(exc),
        failures.is_rivalry(exc),
        failures.is_unavailable(exc),
        failures.is_bad_value(exc),
    )


def wrapped(orig: Exception, lost: bool = False) -> sa.exc.DBAPIError:
    """An error of a driver as SQLAlchemy raises it."""
    for base_class in type(orig).__mro__:
        kind = getattr(sa.exc, base_class.__name__, None)
        if kind is not None and issubclass(kind, sa.exc.DBAPIError):
            return kind('SELECT :secret', {'secret': 'x'}, orig, connection_invalidated=lost)
    return sa.exc.DBAPIError('SELECT :secret', {}, orig, connection_invalidated=lost)


class MysqlTest(base.BaseTestCase):
    CASES = MappingProxyType({
        1213: RIVAL, 1020: RIVAL, 1317: RIVAL, 1412: RIVAL,
        1022: RIVAL, 1062: RIVAL, 1586: RIVAL,  # duplicate key
        1216: RIVAL, 1217: RIVAL, 1451: RIVAL, 1452: RIVAL,  # reference
        1205: WAITED,
        3: AWAY, 28: AWAY, 1021: AWAY, 1026: AWAY, 1030: AWAY, 1114: AWAY,  # disk full
        1040: AWAY, 1203: AWAY, 1226: AWAY,  # too many connections
        1047: AWAY,  # node without its cluster
        1053: AWAY, 1290: AWAY, 1836: AWAY, 1969: AWAY,
        2002: AWAY, 2003: AWAY,
        1264: BAD, 1366: BAD, 1406: BAD,
        1054: DEFECT, 1064: DEFECT, 1146: DEFECT,
    })  # fmt: skip

    def test_numbers(self):
        for number, expected in self.CASES.items():
            for kind in (pymysql.err.OperationalError, pymysql.err.InternalError):
                with self.subTest(number=number, kind=kind):
                    self.assertEqual(expected, verdict(wrapped(kind(number, 'text'))))

    def test_raw(self):
        """Errors that come up while a connection is set up are not wrapped."""
        self.assertEqual(AWAY, verdict(pymysql.err.OperationalError(1040, 'Too many')))

    def test_wrapped_twice(self):
        inner = wrapped(pymysql.err.OperationalError(1213, 'Deadlock found'))
        self.assertEqual(RIVAL, verdict(db_exc.DBDeadlock(inner)))

    def test_a_lock_that_is_not_given(self):
        """oslo.db calls this a deadlock; but it took its time, and will take it again."""
        inner = wrapped(pymysql.err.OperationalError(1205, 'Lock wait timeout exceeded'))
        self.assertEqual(WAITED, verdict(db_exc.DBDeadlock(inner)))

    def test_lost(self):
        for number in (2006, 2013, 4031):
            inner = wrapped(pymysql.err.OperationalError(number, 'gone'), lost=True)
            self.assertEqual(LOST, verdict(inner))
            self.assertTrue(failures.is_connection_lost(inner))
            self.assertEqual(LOST, verdict(db_exc.DBConnectionError(inner)))

    def test_node_without_its_cluster(self):
        """It is asked again by the client, not by us; at COMMIT the outcome is unknown."""
        inner = wrapped(pymysql.err.OperationalError(1047, 'WSREP has not yet prepared node'))
        error = db_exc.DBConnectionError(inner)
        self.assertEqual(AWAY, verdict(error))
        self.assertTrue(failures.is_connection_lost(error))

    def test_failed_commit(self):
        text = 'Got error 149 "Lock deadlock; Retry transaction" during COMMIT'
        self.assertEqual(RIVAL, verdict(wrapped(pymysql.err.OperationalError(1180, text))))
        text = 'Fehler 149 beim COMMIT'
        self.assertEqual(RIVAL, verdict(wrapped(pymysql.err.OperationalError(1180, text))))
        text = 'Got error 28 "No space left on device" during COMMIT'
        self.assertEqual(AWAY, verdict(wrapped(pymysql.err.OperationalError(1180, text))))

    @given(st.integers(min_value=0, max_value=70000))
    def test_any_number_has_one_meaning(self, number):
        transient, rivalry, unavailable, bad = verdict(
            wrapped(pymysql.err.OperationalError(number, 'text'))
        )
        self.assertFalse(unavailable and bad)
        self.assertFalse(transient and not unavailable)
        self.assertFalse(rivalry and not transient)


class _Psycopg2Error(Exception):
    """psycopg2 has the state under another name, and lets nobody set it."""

    def __init__(self, pgcode: str):
        super().__init__('text')
        self.pgcode = pgcode


class PostgresqlTest(base.BaseTestCase):
    CASES = MappingProxyType({
        '40001': RIVAL, '40P01': RIVAL, '23503': RIVAL, '23505': RIVAL,
        '55P03': WAITED,
        '08006': AWAY, '25006': AWAY, '25P03': AWAY, '53100': AWAY, '53200': AWAY, '53300': AWAY,
        '57014': AWAY, '57P01': AWAY, '57P03': AWAY, '58030': AWAY,
        '22001': BAD, '22003': BAD, '22021': BAD,
        '42P01': DEFECT, '42601': DEFECT, 'XX000': DEFECT,
    })  # fmt: skip

    def test_states(self):
        for state, expected in self.CASES.items():
            with self.subTest(state=state):
                kind = psycopg.errors.lookup(state)
                self.assertEqual(expected, verdict(wrapped(kind('text'))))
                psycopg2 = sa.exc.DBAPIError('SELECT 1', {}, _Psycopg2Error(state))
                self.assertEqual(expected, verdict(psycopg2))

    def test_lost(self):
        inner = wrapped(psycopg.OperationalError('server closed the connection'), lost=True)
        self.assertEqual(LOST, verdict(inner))
        self.assertEqual(LOST, verdict(db_exc.DBConnectionError(inner)))

    def test_bad_values(self):
        for error in (
            psycopg.DataError('PostgreSQL text fields cannot contain NUL (0x00) bytes'),
            psycopg.errors.NumericValueOutOfRange('integer out of range'),
        ):
            self.assertEqual(BAD, verdict(wrapped(error)))


class SqliteTest(base.BaseTestCase):
    def test_unavailable(self):
        for text in (
            'database is locked',
            'database or disk is full',
            'disk I/O error',
            'unable to open database file',
            'attempt to write a readonly database',
        ):
            self.assertEqual(AWAY, verdict(wrapped(sqlite3.OperationalError(text))))

    def test_parameters_are_not_looked_at(self):
        error = sa.exc.OperationalError(
            'SELECT :p', {'p': 'disk is full'}, sqlite3.OperationalError('no such column')
        )
        self.assertEqual(DEFECT, verdict(error))

    def test_real_ones(self):
        engine = sa.create_engine('sqlite://')
        number = sa.Table('number', sa.MetaData(), sa.Column('n', sa.Integer, primary_key=True))
        with engine.connect() as conn:
            number.create(conn)
            too_large = self.raised(conn, sa.insert(number).values(n=2**70))
            self.assertEqual(BAD, verdict(too_large))
            not_text = self.raised(conn, sa.select(sa.literal('\ud800')))
            self.assertEqual(BAD, verdict(not_text))
            self.assertEqual(DEFECT, verdict(self.raised(conn, sa.text('SELECT nothing'))))

    def test_a_statement_that_is_too_deep(self):
        n = sa.column('n')
        deep = sa.select(sa.or_(*(sa.and_(n == i, n == i + 1) for i in range(1100))))
        with sa.create_engine('sqlite://').connect() as conn:
            error = self.raised(
                conn, deep.select_from(sa.select(sa.literal(1).label('n')).subquery())
            )
        self.assertTrue(failures.is_too_large(error))
        self.assertEqual(DEFECT, verdict(error))

    def raised(self, conn: sa.Connection, statement: Any) -> Exception:
        try:
            conn.execute(statement)
        except Exception as exc:
            return exc
        raise AssertionError('nothing was raised')


class TooLargeTest(base.BaseTestCase):
    def test_more_than_the_engine_takes(self):
        for error in (
            pymysql.err.OperationalError(1153, 'Got a packet bigger than max_allowed_packet'),
            psycopg.errors.StatementTooComplex('stack depth limit exceeded'),
            psycopg.OperationalError('number of parameters must be between 0 and 65535'),
            sqlite3.OperationalError('too many SQL variables'),
        ):
            self.assertTrue(failures.is_too_large(wrapped(error)), error)

    def test_parameters_are_not_looked_at(self):
        error = sa.exc.OperationalError(
            'SELECT :p', {'p': 'too many sql variables'}, sqlite3.OperationalError('no such column')
        )
        self.assertFalse(failures.is_too_large(error))


class AllEnginesTest(base.BaseTestCase):
    def test_words_of_oslo_db(self):
        self.assertEqual(RIVAL, verdict(db_exc.DBDuplicateEntry(['name'])))
        self.assertEqual(RIVAL, verdict(db_exc.DBDeadlock()))
        self.assertEqual(RIVAL, verdict(db_exc.DBReferenceError('t', 'c', 'k', 'kt')))
        self.assertEqual(LOST, verdict(db_exc.DBConnectionError()))
        self.assertEqual(AWAY, verdict(db_exc.DBNonExistentDatabase('d')))
        self.assertEqual(BAD, verdict(db_exc.DBDataError()))

    def test_full_pool(self):
        self.assertEqual(AWAY, verdict(sa.exc.TimeoutError('QueuePool limit')))

    def test_defects_of_our_own(self):
        """A ValueError of this package is no refusal of a driver."""
        for kind in (ValueError, OverflowError, KeyError, RuntimeError):
            try:
                raise kind('defect')
            except Exception as exc:
                self.assertEqual(DEFECT, verdict(exc))

    def test_summary_tells_no_parameters(self):
        error = sa.exc.OperationalError(
            'SELECT :p', {'p': 'hidden'}, sqlite3.OperationalError('database is locked')
        )
        self.assertEqual('OperationalError: database is locked', failures.summary(error))

    def test_summary_is_one_line(self):
        """Names in the words of a driver cannot forge a line of the log."""
        words = 'duplicate key\nDETAIL:  Key (name)=(a\r\n2026-11-22 INFO forged) exists.'
        error = sa.exc.OperationalError('SELECT', {}, sqlite3.OperationalError(words))
        self.assertEqual(
            'OperationalError: duplicate key DETAIL: Key (name)=(a 2026-11-22 INFO forged) exists.',
            failures.summary(error),
        )
