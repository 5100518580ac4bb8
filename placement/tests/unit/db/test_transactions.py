"""BEGIN, COMMIT and ROLLBACK are sent only if a transaction begins or is open.

SQLite takes the place of the database servers. The statements that would change the mode of a
connection are recorded.
"""

import contextlib
from typing import Any
from unittest import mock

from oslotest import base
import sqlalchemy as sa
from sqlalchemy import event

from placement.db import transactions
from placement.db.transactions import Mode


class MysqlTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://', poolclass=sa.StaticPool)
        self.engine.connect().close()  # the dialect reads the version first
        self.sent: list[str] = []
        for name in ('do_commit', 'do_rollback'):
            self.record(name)
        transactions.prepare_mysql(self.engine)
        self.connection = mock.Mock()
        self.connection.cursor.return_value.execute = self.sent.append
        event.listen(self.engine, 'checkout', self.check_out)

    def record(self, name: str) -> None:
        """Record the calls of a method of the dialect."""
        method = getattr(self.engine.dialect, name)

        def recorded(connection: Any) -> None:
            self.sent.append(name)
            method(connection)

        setattr(self.engine.dialect, name, recorded)

    def check_out(self, _connection: Any, record: Any, _proxy: Any) -> None:
        if not record.info:
            transactions.set_up_mysql(self.connection, record.info, 'tx_isolation')
        transactions.require_mysql_mode(self.connection, record.info)

    def use(self, mode: Mode, commit: bool = False) -> list[str]:
        """Execute a statement in a mode, and return what was sent besides the statement."""
        self.sent.clear()
        with transactions.connect(self.engine, mode) as conn:
            conn.execute(sa.select(1)).all()
            if commit:
                conn.commit()
        return list(self.sent)

    def test_what_is_sent(self):
        """The mode is set if it changes. A transaction without COMMIT is rolled back."""
        read, write = Mode.AUTOCOMMIT, Mode.TRANSACTION
        to_read, to_write = (
            f"SET SESSION autocommit = {on}, SESSION tx_isolation = '{level}'"
            for on, level in ((1, 'REPEATABLE-READ'), (0, 'READ-COMMITTED'))
        )
        for mode, commit, sent in (
            *((read, False, [to_read]), (read, False, [])),
            *((write, True, [to_write, 'do_commit']), (write, True, ['do_commit'])),
            *((write, False, ['do_rollback']), (write, False, ['do_rollback'])),
        ):
            self.assertEqual(sent, self.use(mode, commit))

    def test_rollback_of_a_statement_after_a_commit(self):
        with transactions.connect(self.engine, Mode.TRANSACTION) as conn:
            conn.execute(sa.select(1)).all()
            conn.commit()
            conn.execute(sa.select(1)).all()
        self.assertEqual(['do_commit', 'do_rollback'], self.sent[1:])

    def test_a_transaction_is_open_after_a_failed_commit(self):
        """The caller rolls it back (see `engine.write`)."""
        self.use(Mode.TRANSACTION)
        with transactions.connect(self.engine, Mode.TRANSACTION) as conn:
            conn.execute(sa.select(1)).all()
            with mock.patch.object(self.engine.dialect, 'do_commit', side_effect=KeyError):
                self.assertRaises(KeyError, conn.commit)
            self.sent.clear()
            for _ in range(2):
                self.engine.dialect.do_rollback(conn.connection)
        self.assertEqual(['do_rollback'], self.sent)

    def test_a_program_that_uses_the_engine_directly_gets_a_transaction(self):
        self.use(Mode.AUTOCOMMIT)
        self.sent.clear()
        with self.engine.connect() as conn:
            conn.execute(sa.select(1)).all()
        self.assertIn('autocommit = 0', self.sent[0])
        self.assertEqual(['do_rollback'], self.sent[1:])

    def test_an_engine_that_has_not_connected(self):
        engine = sa.create_engine('sqlite://', poolclass=sa.StaticPool)
        transactions.prepare_mysql(engine)
        with engine.connect() as conn:
            self.assertEqual(1, conn.scalar(sa.select(1)))


class ModePoolTest(base.BaseTestCase):
    """The pool prefers a connection in the requested mode, and keeps its limits."""

    def setUp(self):
        super().setUp()
        # The statements that set the mode of a connection.
        self.statements: list[str] = []

    def make_pool(self, size: int, overflow: int) -> None:
        self.opened = 0
        self.pool = transactions.ModePool(
            self.open, pool_size=size, max_overflow=overflow, timeout=0.01
        )
        event.listen(self.pool, 'connect', self.set_up)
        event.listen(self.pool, 'checkout', self.check_out)

    def open(self) -> mock.Mock:
        self.opened += 1
        connection = mock.Mock()
        connection.cursor.return_value.execute = self.statements.append
        return connection

    def set_up(self, connection: Any, record: Any) -> None:
        transactions.set_up_mysql(connection, record.info, 'tx_isolation')

    def check_out(self, connection: Any, record: Any, _proxy: Any) -> None:
        transactions.require_mysql_mode(connection, record.info)

    def connect(self, mode: Mode) -> Any:
        return contextlib.closing(transactions.connect(self.pool, mode))

    def test_each_mode_has_its_connection(self):
        """A full pool changes the mode of a connection."""
        for size, statements in ((2, 2), (1, 6)):
            self.statements.clear()
            self.make_pool(size, 0)
            for mode in [*Mode] * 3:
                with self.connect(mode):
                    pass
            self.assertEqual((size, statements), (self.opened, len(self.statements)))

    def test_an_idle_connection_in_the_mode_is_found_behind_others(self):
        self.make_pool(3, 0)
        writer, reader = Mode.TRANSACTION, Mode.AUTOCOMMIT
        with self.connect(writer), self.connect(writer), self.connect(reader):
            pass
        statements = len(self.statements)
        with self.connect(Mode.AUTOCOMMIT), self.connect(Mode.TRANSACTION):
            pass
        self.assertEqual((3, statements), (self.opened, len(self.statements)))

    def test_the_limit_applies_to_both_modes_together(self):
        self.make_pool(1, 1)
        with self.connect(Mode.AUTOCOMMIT), self.connect(Mode.TRANSACTION):
            for mode in Mode:
                self.assertRaises(sa.exc.TimeoutError, self.connect, mode)
        self.assertEqual((2, 1), (self.opened, self.pool.checkedin()))

    def test_a_failure_to_open_does_not_count(self):
        self.make_pool(1, 0)
        with mock.patch.object(self.pool, '_create_connection', side_effect=OSError('refused')):
            for _ in range(3):
                self.assertRaises(OSError, self.connect, Mode.AUTOCOMMIT)
        with self.connect(Mode.AUTOCOMMIT):
            self.assertEqual(1, self.opened)


class ClassOfThePoolTest(base.BaseTestCase):
    def test_the_limits_of_the_engine_are_kept(self):
        engine = sa.create_engine(
            'sqlite://',
            poolclass=sa.QueuePool,
            pool_size=3,
            max_overflow=4,
            pool_timeout=5,
            pool_recycle=6,
        )
        transactions.prepare_mysql(engine)
        engine.dispose()
        self.assertIsInstance(engine.pool, transactions.ModePool)
        self.assertEqual(
            (3, 4, 5, 6),
            (
                engine.pool.size(),
                engine.pool._max_overflow,
                engine.pool.timeout(),
                engine.pool._recycle,
            ),
        )
        with engine.connect() as conn:
            self.assertEqual(1, conn.scalar(sa.select(1)))

    def test_an_engine_without_a_pool_is_not_changed(self):
        engine = sa.create_engine('sqlite://', poolclass=sa.NullPool)
        transactions.prepare_mysql(engine)
        self.assertIsInstance(engine.pool, sa.NullPool)


class SnapshotTest(base.BaseTestCase):
    def test_a_snapshot_is_begun_explicitly(self):
        for dialect, statement in transactions._SNAPSHOTS.items():
            conn = mock.Mock(info={})
            conn.dialect.name = dialect
            transactions.begin_snapshot(conn)
            conn.exec_driver_sql.assert_called_once_with(statement)
            self.assertTrue(conn.info)


class SqliteTest(base.BaseTestCase):
    """A transaction begins in the requested mode."""

    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://', poolclass=sa.StaticPool)
        transactions.prepare_sqlite(self.engine)
        self.sent: list[str] = []
        with self.engine.connect() as conn:
            conn.connection.isolation_level = None  # as oslo.db sets it
            conn.connection.set_trace_callback(self.sent.append)
        self.sent.clear()

    def read(self, conn: sa.Connection) -> None:
        conn.exec_driver_sql('SELECT 1').all()

    def test_what_is_sent(self):
        """A write transaction takes the lock first; reads begin no transaction."""

        def snapshot(conn: sa.Connection) -> None:
            transactions.begin_snapshot(conn)
            self.read(conn)
            conn.commit()

        for mode, work, sent in (
            (Mode.AUTOCOMMIT, self.read, ['SELECT 1']),
            (Mode.AUTOCOMMIT, snapshot, ['BEGIN', 'SELECT 1', 'COMMIT']),
            (Mode.TRANSACTION, self.read, ['BEGIN IMMEDIATE', 'SELECT 1', 'ROLLBACK']),
            (None, self.read, ['BEGIN', 'SELECT 1', 'ROLLBACK']),
        ):
            self.sent.clear()
            opened = transactions.connect(self.engine, mode) if mode else self.engine.connect()
            with opened as conn:
                work(conn)
                in_transaction = conn.connection.in_transaction
            self.assertEqual(in_transaction, sent[-1] == 'ROLLBACK')
            self.assertEqual(sent, self.sent)

    def test_threads_that_share_a_connection_share_its_transaction(self):
        with self.engine.connect() as outer, self.engine.connect() as inner:
            self.read(outer)
            self.read(inner)
        self.assertEqual(1, self.sent.count('BEGIN'))


class PostgresqlTest(base.BaseTestCase):
    """BEGIN is sent together with the first statement."""

    def setUp(self):
        super().setUp()
        self.cursor = mock.MagicMock()
        self.context = mock.Mock()
        self.info: dict[Any, Any] = {transactions._BEGIN_PENDING: True}
        self.context.root_connection.info = self.info

    def execute(self, driver: str) -> bool:
        self.context.dialect.driver = driver
        return transactions._execute(self.cursor, 'SELECT 1', {}, self.context)

    def test_psycopg2(self):
        self.assertTrue(self.execute('psycopg2'))
        self.cursor.execute.assert_called_once_with('BEGIN; SELECT 1', {})

    def test_psycopg_3(self):
        self.assertTrue(self.execute('psycopg'))
        connection = self.cursor.connection
        calls = [call[0] for call in connection.mock_calls]
        self.assertEqual(
            ['pipeline', 'pipeline().__enter__', 'execute', 'pipeline().__exit__'], calls
        )
        connection.execute.assert_called_once_with('BEGIN')
        self.cursor.execute.assert_called_once_with('SELECT 1', {})

    def test_psycopg_3_with_an_old_libpq(self):
        """It has no pipelines, so BEGIN is sent first."""
        self.context.dialect.loaded_dbapi.Pipeline.is_supported.return_value = False
        self.assertFalse(self.execute('psycopg'))
        self.cursor.execute.assert_called_once_with('BEGIN')
        self.assertTrue(self.info[transactions._OPEN])

    def test_later_statements(self):
        self.execute('psycopg2')
        self.assertFalse(self.execute('psycopg2'))
        self.cursor.execute.assert_called_once()

    def test_many_rows(self):
        """BEGIN is sent first."""
        executed = transactions._execute_many(self.cursor, 'INSERT', [], self.context)
        self.assertFalse(executed)
        self.cursor.execute.assert_called_once_with('BEGIN')

    def test_a_statement_without_parameters(self):
        self.context.dialect.driver = 'psycopg2'
        transactions._execute_without_parameters(self.cursor, 'SELECT 1', self.context)
        self.cursor.execute.assert_called_once_with('BEGIN; SELECT 1', None)
