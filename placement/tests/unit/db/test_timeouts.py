"""Time limits of database connections, for each driver."""

import contextlib
import itertools
import types
from unittest import mock

from oslotest import base
import sqlalchemy as sa
from sqlalchemy import pool

from placement.db import connections
from placement.tests.unit import edge

LIMITS = connections.Timeouts(connect=10, read=30, write=20)
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
            *(
                (driver, {'connect_timeout': 10, **TCP}, {'connect_timeout': 0, **TCP})
                for driver in ('psycopg', 'psycopg2')
            ),
            ('pysqlite', {}, {}),
        ):
            self.assertEqual(limited, connections.arguments(driver, LIMITS), driver)
            self.assertEqual(
                unlimited, connections.arguments(driver, connections.Timeouts()), driver
            )

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
        connections.limit_waits(engine, LIMITS)
        return engine

    def connect(self, *_positional, **named) -> mock.Mock:
        self.received.append(
            {name: value for name, value in named.items() if name.endswith('timeout')}
        )
        return mock.Mock()

    def test_limits(self):
        """The URL takes precedence."""
        every = {'connect_timeout': 10, 'read_timeout': 30, 'write_timeout': 20}
        for query in ('?read_timeout=5&connect_timeout=3', ''):
            self.engine(query).connect().close()
        self.assertEqual([every | {'connect_timeout': 3, 'read_timeout': 5}, every], self.received)


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
        patch = mock.patch.object(connections.time, 'monotonic', lambda: next(clock))
        patch.start()
        self.addCleanup(patch.stop)
        self.connection = connections._psycopg_class(Psycopg, 5)()
        self.received = []

    def generator(self, length):
        for _ in range(length):
            self.received.append((yield 'R'))

    def test_a_server_that_does_not_respond(self):
        error = self.assertRaises(
            Psycopg.OperationalError, self.connection.wait, self.generator(100), [0] * 100
        )
        self.assertIn('5 seconds', str(error))
        self.assertTrue(self.connection.closed)
        self.assertEqual([0] * 4, self.received)

    def test_a_response_in_parts(self):
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
