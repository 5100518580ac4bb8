"""The pools of connections; SQLite takes the place of the database servers."""

from collections.abc import Iterator
import contextlib
import pathlib
from typing import Any
from unittest import mock

import fixtures
from oslo_db.sqlalchemy import engines
from oslotest import base
import sqlalchemy as sa
from sqlalchemy import event

from placement import exception
from placement.db import pools


class StatementCacheTest(base.BaseTestCase):
    def test_the_length_of_all_statements_is_limited(self):
        collect = self.useFixture(fixtures.MockPatchObject(pools.gc, 'collect')).mock
        self.useFixture(fixtures.MockPatchObject(pools, 'STATEMENTS', 100))
        self.useFixture(fixtures.MockPatchObject(pools, 'LONGEST_STATEMENT', 30))
        cache = pools.StatementCache()
        for length, kept in (
            *((30, [30]), (31, [30]), (29, [30, 29]), (28, [30, 29, 28])),
            *((13, [30, 29, 28, 13]), (1, [1]), (30, [1, 30])),
        ):
            cache[length] = mock.Mock(string='x' * length)
            self.assertEqual(kept, list(cache))
        collect.assert_called_once_with()


class PoolTest(base.BaseTestCase):
    """The limits apply to reads and writes together."""

    def use_pool(self, size: int, overflow: int, **more: Any) -> None:
        self.opened, self.closed = [], []
        engines = [sa.create_engine('sqlite://', poolclass=sa.NullPool) for _ in range(2)]
        for writes, engine in enumerate(engines):
            event.listen(engine, 'connect', lambda *_, own=writes: self.opened.append(own))
            event.listen(engine, 'close', lambda *_, own=writes: self.closed.append(own))
            # For SQLite, the time of idle connections is not limited.
            engine.dialect.name = 'mysql'
        self.pool = pools.Pool(*engines, pools.Options(size, overflow, 0.01, **more))

    @contextlib.contextmanager
    def connected(self, writes: bool) -> Iterator[sa.Connection]:
        conn = self.pool.take(writes)
        try:
            yield conn
        finally:
            self.pool.give_back(writes, conn)

    def open(self) -> int:
        return len(self.opened) - len(self.closed)

    def test_each_kind_has_its_connection(self):
        """If one connection may be open, each change of the kind replaces it."""
        for size, opened in ((2, 2), (1, 6)):
            self.use_pool(size, 0)
            for writes in (False, True) * 3:
                with self.connected(writes):
                    self.assertLessEqual(self.open(), size)
            self.assertEqual(opened, len(self.opened))

    def test_all_connections_are_in_use(self):
        self.use_pool(1, 1)
        with self.connected(False), self.connected(True):
            for writes in (False, True):
                error = self.assertRaises(sa.exc.TimeoutError, self.pool.take, writes)
                self.assertIn('QueuePool limit of size 1 overflow 1', str(error))
        # One of them stays idle, and both can be used again.
        self.assertEqual(([False, True], 1), (self.opened, self.open()))
        with self.connected(True), self.connected(True):
            self.assertEqual(2, self.open())
        self.pool.dispose()
        self.assertEqual(0, self.open())

    def test_each_kind_keeps_idle_connections(self):
        """A write after many reads does not open a connection each time."""
        self.use_pool(2, 2)
        with self.connected(False), self.connected(False):
            pass
        for _ in range(3):
            with self.connected(True):
                pass
        self.assertEqual(([False, False, True], [False]), (self.opened, self.closed))

    def test_no_limit(self):
        for size, overflow in ((0, 0), (1, -1)):
            self.use_pool(size, overflow)
            with self.connected(False), self.connected(False), self.connected(True):
                self.assertEqual(3, self.open())
            self.pool.dispose()

    def test_all_idle_connections_are_closed_after_one_is_lost(self):
        self.use_pool(3, 0)
        with self.connected(True), self.connected(False):
            pass
        with self.connected(False) as conn:
            conn.invalidate()
        self.assertEqual((2, 0), (len(self.opened), self.open()))

    def test_a_connection_in_use_is_replaced_after_another_is_lost(self):
        """Both may lead to the same node, for example one that has left its Galera cluster."""
        self.use_pool(3, 0)
        with self.connected(False), self.connected(True) as lost:
            lost.invalidate()
        self.assertEqual(2, len(self.opened))
        for _ in range(2):
            with self.connected(False):
                self.assertEqual((3, 1), (len(self.opened), self.open()))

    def test_a_failure_to_open_does_not_count(self):
        self.use_pool(1, 0)
        with mock.patch.object(sa.Engine, 'connect', side_effect=OSError('refused')):
            for _ in range(3):
                self.assertRaises(OSError, self.pool.take, False)
        with self.connected(True):
            self.assertEqual([True], self.opened)

    def test_an_old_connection_is_replaced(self):
        now = self.useFixture(
            fixtures.MockPatchObject(pools.time, 'monotonic', return_value=100.0)
        ).mock
        self.use_pool(1, 0, connection_recycle_time=70)
        idle = pools.IDLE_SECONDS
        for seconds, opened in ((0, 1), (idle - 1, 1), (idle, 2), (29, 2), (29, 2), (29, 3)):
            now.return_value += seconds
            with self.connected(False):
                self.assertEqual((opened, 1), (len(self.opened), self.open()))


class SqliteFileTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'placement.db')
        self.sent: list[str] = []

    def pools(self, **options: Any) -> pools.Pools:
        template = self.template = engines.create_engine(f'sqlite:///{self.path}')
        event.listen(template, 'connect', lambda conn, _: conn.set_trace_callback(self.sent.append))
        own = pools.of(template, pools.Options(**options))
        self.addCleanup(own.pool.dispose)
        own.direct.connect().close()
        self.sent.clear()
        return own

    def read(self, engine: sa.Engine, commit: bool = False) -> list[str]:
        """Read with an engine, and return the statements that the connection executed."""
        self.sent.clear()
        with engine.connect() as conn:
            conn.exec_driver_sql('SELECT 1').all()
            if commit:
                conn.commit()
        return list(self.sent)

    def test_what_is_sent(self):
        """A write transaction takes the lock first; reads begin no transaction."""
        own = self.pools()
        self.assertEqual(['SELECT 1'], self.read(own.reader))
        self.assertEqual(['BEGIN IMMEDIATE', 'SELECT 1', 'COMMIT'], self.read(own.writer, True))
        for engine, begin in ((own.writer, 'BEGIN IMMEDIATE'), (own.direct, 'BEGIN')):
            self.assertEqual([begin, 'SELECT 1', 'ROLLBACK'], self.read(engine))

    def test_statements_are_traced(self):
        (sent,) = self.read(self.pools(connection_trace=True).reader)
        self.assertRegex(sent, r'^SELECT 1  -- .*File: .*test_pools\.py \(\d+\) read$')

    def test_failures_to_connect(self):
        own = self.pools()
        for error, raised, text in (
            (FileNotFoundError('ca.pem'), sa.exc.OperationalError, 'certificate of the CA'),
            (RuntimeError("'cryptography' is required"), exception.UnsuitableDatabase, 'Use TLS'),
        ):
            with mock.patch.object(self.template, 'raw_connection', side_effect=error):
                self.assertIn(text, str(self.assertRaises(raised, own.reader.connect)))
