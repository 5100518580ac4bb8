"""The classification of errors, with the exceptions that each driver raises."""

import sqlite3
import types
from types import MappingProxyType
from typing import Any
from unittest import mock

import fixtures
from hypothesis import given
from hypothesis import strategies as st
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import exc_filters
from oslotest import base
import psycopg
import pymysql
import sqlalchemy as sa

from placement import exception
from placement.db import failures
from placement.tests.properties import REPEATABLE

# Each verdict: whether the error is transient, a conflict, unavailable, a bad value.
CONFLICT = (True, True, True, False)
LOCK_TIMEOUT = (True, False, True, False)
LOST = (True, False, True, False)
UNAVAILABLE = (False, False, True, False)
BAD = (False, False, False, True)
DEFECT = (False, False, False, False)


def verdict(exc: Exception) -> tuple[bool, bool, bool, bool]:
    return (
        failures.is_transient(exc),
        failures.is_conflict(exc),
        failures.is_unavailable(exc),
        failures.is_bad_value(exc),
    )


def wrapped(orig: Exception, lost: bool = False) -> sa.exc.DBAPIError:
    """Return the error that SQLAlchemy raises for an error of a driver."""
    for base_class in type(orig).__mro__:
        kind = getattr(sa.exc, base_class.__name__, None)
        if kind is not None and issubclass(kind, sa.exc.DBAPIError):
            return kind('SELECT :secret', {'secret': 'x'}, orig, connection_invalidated=lost)
    return sa.exc.DBAPIError('SELECT :secret', {}, orig, connection_invalidated=lost)


class _MySQLdbError(Exception):
    """An error like those of mysqlclient, which is not always installed."""

    __module__ = 'MySQLdb'


class MysqlTest(base.BaseTestCase):
    CASES = MappingProxyType({
        1213: CONFLICT, 1020: CONFLICT, 1317: CONFLICT, 1412: CONFLICT, 1467: CONFLICT,
        1022: CONFLICT, 1062: CONFLICT, 1586: CONFLICT,  # duplicate key
        1216: CONFLICT, 1217: CONFLICT, 1451: CONFLICT, 1452: CONFLICT,  # reference
        3101: CONFLICT,  # certification in a replication group
        1205: LOCK_TIMEOUT,
        3: UNAVAILABLE, 28: UNAVAILABLE, 1021: UNAVAILABLE,  # disk full
        1026: UNAVAILABLE, 1030: UNAVAILABLE, 1114: UNAVAILABLE,  # disk full
        1040: UNAVAILABLE, 1203: UNAVAILABLE, 1226: UNAVAILABLE,  # too many connections
        1047: UNAVAILABLE,  # a Galera node that has lost its cluster
        1053: UNAVAILABLE, 1290: UNAVAILABLE, 1836: UNAVAILABLE, 1969: UNAVAILABLE,
        2002: UNAVAILABLE, 2003: UNAVAILABLE, 2026: UNAVAILABLE,
        3032: UNAVAILABLE, 3168: UNAVAILABLE,  # server is offline
        # a replication group without quorum, or a node that is not ready
        3100: UNAVAILABLE, 3796: UNAVAILABLE, 3797: UNAVAILABLE, 3798: UNAVAILABLE,
        3799: UNAVAILABLE, 4094: UNAVAILABLE,
        1264: BAD, 1265: BAD, 1267: BAD, 1270: BAD, 1271: BAD, 1292: BAD, 1300: BAD,
        1366: BAD, 1406: BAD, 3854: BAD, 3988: BAD,
        1054: DEFECT, 1064: DEFECT, 1146: DEFECT,
    })  # fmt: skip

    def test_numbers(self):
        for number, expected in self.CASES.items():
            for kind in (pymysql.err.OperationalError, pymysql.err.InternalError, _MySQLdbError):
                with self.subTest(number=number, kind=kind):
                    self.assertEqual(expected, verdict(wrapped(kind(number, 'text'))))

    def test_a_connection_with_tls_that_mysqlclient_lost(self):
        """SQLAlchemy does not recognize this error, so the connection would be used again."""
        lost = sa.exc.OperationalError('SELECT 1', {}, _MySQLdbError(2026, 'TLS/SSL error: eof'))
        context = mock.Mock(
            sqlalchemy_exception=lost,
            original_exception=lost.orig,
            connection=None,
            is_disconnect=False,
        )
        context.is_pre_ping, context.dialect.name = False, 'mysql'
        self.assertIsInstance(exc_filters.handler(context), db_exc.DBConnectionError)
        self.assertIs(True, context.is_disconnect)

    def test_other_errors(self):
        deadlock, timeout, gone, no_cluster = (
            wrapped(pymysql.err.OperationalError(number, 'text'), lost=number == 2006)
            for number in (1213, 1205, 2006, 1047)
        )
        for expected, error in (
            # SQLAlchemy does not wrap errors that occur while it sets up a connection.
            (UNAVAILABLE, pymysql.err.OperationalError(1040, 'Too many')),
            (CONFLICT, db_exc.DBDeadlock(deadlock)),
            # oslo.db raises DBDeadlock for a lock timeout too, but a timeout takes several seconds.
            (LOCK_TIMEOUT, db_exc.DBDeadlock(timeout)),
            *((LOST, gone), (LOST, db_exc.DBConnectionError(gone))),
            # The client must retry, not the service. If COMMIT fails, its outcome is unknown.
            (UNAVAILABLE, db_exc.DBConnectionError(no_cluster)),
            *(
                (expected, wrapped(pymysql.err.OperationalError(1180, text)))
                for expected, text in (
                    (CONFLICT, 'Got error 149 "Lock deadlock; Retry transaction" during COMMIT'),
                    (CONFLICT, 'Fehler 149 beim COMMIT'),
                    (UNAVAILABLE, 'Got error 28 "No space left on device" during COMMIT'),
                )
            ),
        ):
            with self.subTest(error=error):
                self.assertEqual(expected, verdict(error))
        for error in (gone, db_exc.DBConnectionError(no_cluster)):
            self.assertTrue(failures.is_connection_lost(error))

    @REPEATABLE
    @given(st.integers(min_value=0, max_value=70000))
    def test_any_number_has_a_consistent_verdict(self, number):
        transient, conflict, unavailable, bad = verdict(
            wrapped(pymysql.err.OperationalError(number, 'text'))
        )
        self.assertFalse(unavailable and bad)
        self.assertFalse(transient and not unavailable)
        self.assertFalse(conflict and not transient)


class _Psycopg2Error(Exception):
    """psycopg2 names the state `pgcode`, a read-only attribute of its own exceptions."""

    def __init__(self, pgcode: str):
        super().__init__('text')
        self.pgcode = pgcode


class PostgresqlTest(base.BaseTestCase):
    CASES = MappingProxyType({
        '40001': CONFLICT, '40P01': CONFLICT, '23503': CONFLICT, '23505': CONFLICT,
        '55P03': LOCK_TIMEOUT,
        '08006': UNAVAILABLE, '25006': UNAVAILABLE, '25P03': UNAVAILABLE, '53100': UNAVAILABLE,
        '53200': UNAVAILABLE, '53300': UNAVAILABLE, '57014': UNAVAILABLE, '57P01': UNAVAILABLE,
        '57P03': UNAVAILABLE, '58030': UNAVAILABLE,
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

    def test_errors_without_a_state(self):
        inner = wrapped(psycopg.OperationalError('server closed the connection'), lost=True)
        nul = psycopg.DataError('PostgreSQL text fields cannot contain NUL (0x00) bytes')
        self.assertEqual(LOST, verdict(inner))
        self.assertEqual(LOST, verdict(db_exc.DBConnectionError(inner)))
        self.assertEqual(BAD, verdict(wrapped(nul)))


class SqliteTest(base.BaseTestCase):
    def test_unavailable(self):
        for text in (
            'database is locked',
            'database or disk is full',
            'disk I/O error',
            'unable to open database file',
            'attempt to write a readonly database',
        ):
            self.assertEqual(UNAVAILABLE, verdict(wrapped(sqlite3.OperationalError(text))))

    def test_errors_of_a_database(self):
        engine = sa.create_engine('sqlite://')
        number = sa.Table('number', sa.MetaData(), sa.Column('n', sa.Integer, primary_key=True))
        with engine.connect() as conn:
            number.create(conn)
            too_large = self.raised(conn, sa.insert(number).values(n=2**70))
            self.assertEqual(BAD, verdict(too_large))
            not_text = self.raised(conn, sa.select(sa.literal('\ud800')))
            self.assertEqual(BAD, verdict(not_text))
            self.assertEqual(DEFECT, verdict(self.raised(conn, sa.text('SELECT nothing'))))

    def test_statement_that_is_too_deep(self):
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


class RetryReasonTest(base.BaseTestCase):
    def test_reasons(self):
        lost = psycopg.OperationalError('server closed the connection')
        for reason, errors in {
            'conflict': (
                wrapped(pymysql.err.OperationalError(1213, 'Deadlock found')),
                wrapped(psycopg.errors.SerializationFailure('text')),
            ),
            'key_violation': (
                wrapped(pymysql.err.IntegrityError(1062, 'Duplicate entry')),
                wrapped(psycopg.errors.ForeignKeyViolation('text')),
            ),
            'lock_timeout': (
                wrapped(pymysql.err.OperationalError(1205, 'Lock wait timeout exceeded')),
                wrapped(psycopg.errors.LockNotAvailable('text')),
            ),
            'connection_lost': (wrapped(lost, lost=True), db_exc.DBConnectionError()),
        }.items():
            for error in errors:
                self.assertTrue(failures.is_transient(error))
                self.assertEqual(reason, failures.retry_reason(error), error)


class TooLargeTest(base.BaseTestCase):
    def test_limits_of_engines(self):
        for error in (
            pymysql.err.OperationalError(1153, 'Got a packet bigger than max_allowed_packet'),
            psycopg.errors.StatementTooComplex('stack depth limit exceeded'),
            psycopg.OperationalError('number of parameters must be between 0 and 65535'),
            sqlite3.OperationalError('too many SQL variables'),
        ):
            self.assertTrue(failures.is_too_large(wrapped(error)), error)

    def test_parameters_are_ignored(self):
        for text in ('too many sql variables', 'disk is full'):
            orig = sqlite3.OperationalError('no such column')
            error = sa.exc.OperationalError('SELECT :p', {'p': text}, orig)
            self.assertFalse(failures.is_too_large(error))
            self.assertEqual(DEFECT, verdict(error))


class DenialTest(base.BaseTestCase):
    def test_the_log_names_the_remedy(self):
        for error, reason in (
            (pymysql.err.OperationalError(1142, 'INSERT command denied'), 'INSERT command denied'),
            (_MySQLdbError(1143, 'UPDATE command denied.'), 'UPDATE command denied'),
            (pymysql.err.OperationalError(1045, 'Access denied'), 'Access denied'),
            (psycopg.errors.InsufficientPrivilege('permission denied'), 'permission denied'),
        ):
            with fixtures.FakeLogger(format='%(levelname)s %(message)s') as log:
                translated = failures.translate(wrapped(error))
            self.assertIsInstance(translated, exception.DatabaseUnavailable)
            self.assertEqual(
                f'ERROR The database denies access: {reason}. Grant the privileges to the user, '
                'or correct [placement_database] connection.\n',
                log.output,
            )

    def test_numbers_of_mysql(self):
        for number in (1044, 1045, 1142, 1143, 1227, 1698):
            error = wrapped(pymysql.err.OperationalError(number, 'text'))
            self.assertTrue(failures.is_access_denied(error), number)

    def test_the_reason_has_no_statement(self):
        """PostgreSQL adds the line of the statement to the message."""

        class Denied(psycopg.errors.InsufficientPrivilege):
            diag = types.SimpleNamespace(message_primary='permission denied', message_detail=None)

        error = wrapped(Denied('permission denied\nLINE 1: SELECT secret'))
        self.assertEqual('permission denied', failures.reason(error))
        self.assertEqual('ProgrammingError: permission denied', failures.summary(error))


class UnverifiedTest(base.BaseTestCase):
    """`functional/faults/test_tls.py` provokes these errors."""

    UNVERIFIED = (
        pymysql.err.OperationalError(
            2003, "Can't connect ([SSL: CERTIFICATE_VERIFY_FAILED] certificate verify failed: IP)"
        ),
        pymysql.err.OperationalError(2026, "SSL is required but the server doesn't support it"),
        pymysql.err.OperationalError(2026, 'the certificate of the CA in the URL cannot be used: '),
        _MySQLdbError(2026, 'TLS/SSL error: SSL is required, but the server does not support it'),
        _MySQLdbError(2026, 'TLS/SSL error: unable to get local issuer certificate'),
        _MySQLdbError(2026, 'TLS/SSL error: Validation of SSL server certificate failed'),
        _MySQLdbError(2026, 'TLS/SSL error: No such file or directory (2)'),
        psycopg.OperationalError('connection failed: SSL error: certificate verify failed'),
        psycopg.OperationalError('server certificate for "a" does not match host name "b"'),
        psycopg.OperationalError('root certificate file "c" does not exist'),
        psycopg.OperationalError('server does not support SSL, but SSL was required'),
    )
    OTHER = (
        pymysql.err.OperationalError(2003, "Can't connect to 'ssl-certificate.example.org'"),
        _MySQLdbError(2026, 'TLS/SSL error: unexpected eof while reading'),
        psycopg.OperationalError('connection to server at "ssl-certificate" failed'),
    )

    def test_errors_of_drivers(self):
        for error in (*self.UNVERIFIED, *self.OTHER):
            expected = error in self.UNVERIFIED
            self.assertEqual(expected, failures.is_unverified(wrapped(error)), error)


class AllEnginesTest(base.BaseTestCase):
    def test_verdicts(self):
        for expected, error in (
            (CONFLICT, db_exc.DBDuplicateEntry(['name'])),
            (CONFLICT, db_exc.DBDeadlock()),
            (CONFLICT, db_exc.DBReferenceError('t', 'c', 'k', 'kt')),
            (LOST, db_exc.DBConnectionError()),
            (UNAVAILABLE, db_exc.DBNonExistentDatabase('d')),
            (UNAVAILABLE, sa.exc.TimeoutError('QueuePool limit')),
            (BAD, db_exc.DBDataError()),
        ):
            self.assertEqual(expected, verdict(error))

        def fail(kind: type[Exception]) -> None:
            raise kind('defect')

        # A ValueError is a bad value only if a driver raises it.
        for kind in (ValueError, OverflowError, KeyError, RuntimeError):
            self.assertEqual(DEFECT, verdict(self.assertRaises(kind, fail, kind)))

    def test_the_summary_is_one_line_without_parameters(self):
        """A name in the message of a driver cannot forge a line of the log."""
        message = 'duplicate key\nDETAIL:  Key (name)=(a\r\n2026-11-22 INFO forged) exists.'
        orig = sqlite3.OperationalError(message)
        self.assertEqual(
            'OperationalError: duplicate key DETAIL: Key (name)=(a 2026-11-22 INFO forged) exists.',
            failures.summary(sa.exc.OperationalError('SELECT :p', {'p': 'hidden'}, orig)),
        )
