"""Time limits of database connections, for each driver."""

import contextlib
import itertools
import types
from unittest import mock

from oslotest import base
import sqlalchemy as sa
from sqlalchemy import pool

from placement import exception
from placement.db import connections, timeouts
from placement.tests.unit import edge

LIMITS = timeouts.Timeouts(connect=10, read=30, write=20)
TCP = {
    'keepalives': 1,
    'keepalives_idle': 10,
    'keepalives_interval': 5,
    'keepalives_count': 3,
    'tcp_user_timeout': 25000,
}


class ArgumentsTest(base.BaseTestCase):
    def test_arguments(self):
        mysql = {'connect_timeout': 10, 'read_timeout': 30, 'write_timeout': 20}
        for driver, limited, unlimited in (
            # This driver requires a limit.
            ('pymysql', mysql, {'connect_timeout': 365 * 24 * 3600}),
            ('mysqldb', mysql, {}),
            ('psycopg', {'connect_timeout': 10, **TCP}, TCP),
            ('psycopg2', {'connect_timeout': 10, **TCP}, TCP),
            ('pysqlite', {}, {}),
        ):
            self.assertEqual(limited, timeouts.arguments(driver, LIMITS), driver)
            self.assertEqual(unlimited, timeouts.arguments(driver, timeouts.Timeouts()), driver)

    def test_a_statement_can_wait_for_a_lock(self):
        options = edge.configuration().placement_database
        self.assertGreater(options.read_timeout, connections.LOCK_SECONDS)

    def test_the_options_must_not_be_negative(self):
        for name in ('connect_timeout', 'read_timeout', 'write_timeout'):
            with self.subTest(name):
                config = edge.configuration()
                self.assertRaises(ValueError, config.set_override, name, -1, 'placement_database')


class EngineTest(base.BaseTestCase):
    """Which arguments a driver receives; mysqlclient stands for all of them."""

    def setUp(self):
        super().setUp()
        self.received = []

    def engine(self, query: str = '') -> sa.Engine:
        driver = mock.Mock(paramstyle='format', connect=self.connect)
        engine = sa.create_engine(
            f'mysql+mysqldb://host/placement{query}',
            module=driver,
            poolclass=pool.NullPool,
            _initialize=False,
        )
        timeouts.apply(engine, LIMITS)
        return engine

    def connect(self, *_positional, **named) -> mock.Mock:
        self.received.append(
            {name: value for name, value in named.items() if name.endswith('timeout')}
        )
        return mock.Mock()

    def test_limits(self):
        """The URL takes precedence; a context opens an unlimited connection."""
        every = {'connect_timeout': 10, 'read_timeout': 30, 'write_timeout': 20}
        self.engine('?read_timeout=5&connect_timeout=3').connect().close()
        engine = self.engine()
        with timeouts.connect_unlimited(engine):
            pass
        engine.connect().close()
        self.assertEqual(
            [every | {'connect_timeout': 3, 'read_timeout': 5}, {'connect_timeout': 10}, every],
            self.received,
        )


class PyMySQLTest(base.BaseTestCase):
    """The handshake has the limit for connecting."""

    def limits(self, read: int | None) -> list[int | None]:
        """Return the limits of the handshake and of a statement."""
        driver = mock.Mock()
        named = {'connect_timeout': 10} | ({} if read is None else {'read_timeout': read})
        connection = timeouts._connect_pymysql(driver, [], named)
        (call,) = driver.connect.mock_calls
        self.assertEqual(10, call.kwargs['connect_timeout'])
        return [call.kwargs['read_timeout'], connection._read_timeout]

    def test_limits(self):
        self.assertEqual([10, 30], self.limits(30))
        self.assertEqual([5, 5], self.limits(5))
        self.assertEqual([10, None], self.limits(None))

    def test_a_password_that_requires_cryptography(self):
        driver = mock.Mock()
        driver.connect.side_effect = RuntimeError("'cryptography' package is required")
        error = self.assertRaises(
            exception.UnsuitableDatabase,
            timeouts._connect_pymysql,
            driver,
            [],
            {'connect_timeout': 10},
        )
        self.assertIn('Use TLS, or install the extra mysql', str(error))


class Psycopg(types.SimpleNamespace):
    """A driver whose connections pass values to generators until these end."""

    class OperationalError(Exception):
        pass

    class Connection:
        closed = False

        def wait(self, gen, readiness):
            with contextlib.suppress(StopIteration):
                next(gen)
                for ready in readiness:
                    gen.send(ready)
            return self.closed

        def close(self):
            self.closed = True


class PsycopgTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        clock = itertools.count()
        patch = mock.patch.object(timeouts.time, 'monotonic', lambda: next(clock))
        patch.start()
        self.addCleanup(patch.stop)
        self.connection = timeouts._psycopg_class(Psycopg)()
        self.received = []

    def generator(self, length):
        for _ in range(length):
            self.received.append((yield 'R'))

    def test_a_server_that_does_not_respond(self):
        self.connection.read_limit = 5
        error = self.assertRaises(
            Psycopg.OperationalError, self.connection.wait, self.generator(100), [0] * 100
        )
        self.assertIn('5 seconds', str(error))
        self.assertTrue(self.connection.closed)
        self.assertEqual([0] * 4, self.received)

    def test_a_response_in_parts(self):
        self.connection.read_limit = 5
        self.assertFalse(self.connection.wait(self.generator(40), [0, 0, 1] * 13))
        self.assertEqual([0, 0, 1] * 13, self.received)

    def test_the_result_of_the_generator(self):
        def generator():
            yield 'R'
            return 'rows'

        limited = self.connection._limited(generator())
        self.assertEqual('R', next(limited))
        end = self.assertRaises(StopIteration, limited.send, 1)
        self.assertEqual('rows', end.value)

    def test_no_limit(self):
        self.assertFalse(self.connection.wait(self.generator(100), [0] * 99))
        self.assertEqual([0] * 99, self.received)


class PingTest(base.BaseTestCase):
    """The check of a pooled connection has the limit for connecting."""

    def test_limits(self):
        for driver, attribute in timeouts._READ_LIMITS.items():
            observed = []

            def ping(connection, attribute=attribute, observed=observed):
                observed.append(getattr(connection, attribute))
                return True

            engine = mock.Mock(**{'dialect.driver': driver, 'dialect.do_ping': ping})
            with mock.patch.object(timeouts.event, 'listen'):
                timeouts.apply(engine, LIMITS)
            for limit in (30, 5, 0, None):
                connection = types.SimpleNamespace(**{attribute: limit})
                self.assertTrue(engine.dialect.do_ping(connection))
                self.assertEqual(limit, getattr(connection, attribute))
            self.assertEqual([10, 5, 10, 10], observed)
