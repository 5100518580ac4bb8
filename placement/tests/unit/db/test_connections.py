"""The connection settings that can be tested without a database server."""

import logging
import sqlite3
from typing import Any
from unittest import mock

import fixtures
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import engines
from oslotest import base
import sqlalchemy as sa
from sqlalchemy import event

from placement import exception
from placement.db import connections, transactions


class WaitForServerTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.sleep = self.useFixture(fixtures.MockPatchObject(connections.time, 'sleep')).mock
        self.engine = mock.Mock()

    def fail_to_connect(self, times: int) -> None:
        """Let the next attempts fail."""
        errors = [db_exc.DBConnectionError(OSError('refused'))] * times
        self.engine.connect.side_effect = [*errors, mock.Mock()]

    def wait(self, max_retries: int) -> int:
        """Wait for the server, and return the number of attempts."""
        connections.wait_for_server(self.engine, max_retries, 7)
        return self.engine.connect.call_count

    def test_success(self):
        self.assertEqual(1, self.wait(10))
        self.sleep.assert_not_called()

    def test_success_after_failures(self):
        for max_retries in (3, -1):
            self.engine.reset_mock()
            self.fail_to_connect(2)
            self.assertEqual(3, self.wait(max_retries))
        self.assertEqual([mock.call(7)] * 4, self.sleep.call_args_list)

    def test_the_last_attempt_fails(self):
        self.fail_to_connect(2)
        self.assertRaises(db_exc.DBConnectionError, self.wait, 2)
        self.sleep.assert_called_once_with(7)

    def test_no_attempt(self):
        self.assertEqual(0, self.wait(0))

    def test_other_errors_are_not_repeated(self):
        self.engine.connect.side_effect = exception.UnsuitableDatabase('binlog_format')
        self.assertRaises(exception.UnsuitableDatabase, self.wait, 10)


class SetUpMysqlTest(base.BaseTestCase):
    """The statements for a new connection to a MySQL or MariaDB server."""

    def statements(self, wsrep_sync_wait: int | None = None, **variables: str) -> list[str]:
        """Return the statements for a server whose SHOW VARIABLES returns `variables`."""
        connection = mock.Mock()
        cursor = connection.cursor.return_value
        cursor.fetchall.return_value = list(variables.items())
        connections._set_up_mysql(wsrep_sync_wait, connection, mock.Mock(info={}))
        return [call.args[0] for call in cursor.execute.call_args_list]

    def warnings(self, *values: int, **variables: str) -> list[str]:
        """Return the warnings while a process opens a connection with each of the values."""
        connections._warn_of_outdated_decisions.cache_clear()
        self.addCleanup(connections._warn_of_outdated_decisions.cache_clear)
        log = self.useFixture(fixtures.FakeLogger(connections.LOG.name, logging.WARNING))
        for value in values:
            self.statements(value, **variables)
        return log.output.splitlines()

    def test_a_cluster_node_waits_before_all_kinds_of_statements(self):
        statements = '; '.join(self.statements(wsrep_on='ON'))
        self.assertIn(', SESSION wsrep_sync_wait = 7;', statements)

    def test_a_cluster_node_serves_no_dirty_reads(self):
        for value in (None, 7):
            statements = '; '.join(self.statements(value, wsrep_on='ON'))
            self.assertIn('SET SESSION wsrep_dirty_reads = 0', statements)
        self.assertNotIn('wsrep_dirty_reads', '; '.join(self.statements(wsrep_on='OFF')))

    def test_a_configured_wsrep_sync_wait_is_not_changed(self):
        for statement in self.statements(wsrep_sync_wait=7, wsrep_on='ON'):
            self.assertNotIn('wsrep_sync_wait', statement)

    def test_a_configured_value_without_one_of_the_bits_is_one_warning(self):
        for value, remedy in ((0, 7), (1, 7), (3, 7), (5, 7), (6, 7), (8, 15)):
            with self.subTest(value):
                (line,) = self.warnings(value, value, wsrep_on='ON')
                self.assertIn(f'mysql_wsrep_sync_wait is {value}, ', line)
                self.assertIn(f'set it to {remedy}.', line)

    def test_no_warning(self):
        self.assertEqual([], self.warnings(7, 15, wsrep_on='ON'))
        self.assertEqual([], self.warnings(1, wsrep_on='OFF'))

    def test_a_single_server_has_nothing_to_wait_for(self):
        for variables in ({}, {'wsrep_on': 'OFF'}):
            for statement in self.statements(**variables):
                self.assertNotIn('wsrep_sync_wait', statement)

    def test_a_node_of_a_group_with_several_primaries_waits_for_the_other_nodes(self):
        for mode, consistency, waits in (
            ('OFF', 'EVENTUAL', True),
            ('OFF', 'BEFORE_ON_PRIMARY_FAILOVER', True),
            ('OFF', 'BEFORE', False),
            ('OFF', 'AFTER', False),
            ('OFF', 'BEFORE_AND_AFTER', False),
            ('ON', 'EVENTUAL', False),
        ):
            with self.subTest(mode=mode, consistency=consistency):
                statements = self.statements(
                    group_replication_single_primary_mode=mode,
                    group_replication_consistency=consistency,
                )
                expected = "SET SESSION group_replication_consistency = 'BEFORE'"
                self.assertEqual(waits, expected in statements)

    def test_a_binary_log_of_statements_is_rejected(self):
        error = self.assertRaises(
            exception.UnsuitableDatabase, self.statements, log_bin='ON', binlog_format='STATEMENT'
        )
        self.assertIn('Set binlog_format to ROW or MIXED', str(error))

    def test_binlog_format_without_a_binary_log_is_accepted(self):
        statements = self.statements(log_bin='OFF', binlog_format='STATEMENT')
        self.assertIn('READ-COMMITTED', statements[-1])

    def test_the_variable_of_the_isolation_level(self):
        """Older releases of MariaDB only have `tx_isolation`, and MySQL 8 does not have it."""
        for variables, expected in (
            ({}, 'tx_isolation'),
            ({'transaction_isolation': 'REPEATABLE-READ'}, 'transaction_isolation'),
        ):
            self.assertEqual(
                f"SET SESSION autocommit = 0, SESSION {expected} = 'READ-COMMITTED'",
                self.statements(**variables)[-1],
            )


class IdleConnectionsTest(base.BaseTestCase):
    """A pooled connection is checked before its use if it was idle for long."""

    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://', poolclass=sa.QueuePool, pool_pre_ping=True)
        self.opened = []
        event.listen(self.engine, 'connect', lambda *_: self.opened.append('opened'))
        connections._check_after_idle_time(self.engine)
        self.now = self.useFixture(
            fixtures.MockPatchObject(connections.time, 'monotonic', return_value=100.0)
        ).mock
        ping = self.engine.dialect.do_ping
        self.ping = self.useFixture(
            fixtures.MockPatchObject(self.engine.dialect, 'do_ping', side_effect=ping)
        ).mock
        self.use()

    def use(self, directly: bool = False) -> None:
        """Use a connection of the pool, as `db/engine.py` does, or directly from the engine."""
        if directly:
            conn = self.engine.connect()
        else:
            conn = transactions.connect(self.engine, transactions.Mode.AUTOCOMMIT)
        with conn:
            self.assertEqual(1, conn.scalar(sa.select(1)))

    def test_a_connection_in_use_is_not_checked(self):
        for _ in range(3):
            self.now.return_value += connections.IDLE_SECONDS - 1
            self.use()
        self.ping.assert_not_called()

    def test_an_idle_connection_is_checked(self):
        self.now.return_value += connections.IDLE_SECONDS
        self.use()
        self.ping.assert_called_once()
        self.assertEqual(1, len(self.opened))

    def test_a_dead_connection_is_replaced(self):
        self.now.return_value += connections.IDLE_SECONDS
        self.ping.side_effect = sqlite3.OperationalError('lost')
        self.use()
        self.ping.assert_called_once()
        self.assertEqual(2, len(self.opened))

    def test_a_program_that_uses_the_engine_directly(self):
        """It does not repeat its first statement, so each of its connections is checked."""
        self.use(directly=True)
        self.ping.assert_called_once()


class ListenersTest(base.BaseTestCase):
    """The listeners of oslo.db would cost time in each statement."""

    def prepared(self, **options: Any) -> sa.Engine:
        engine = engines.create_engine('sqlite://', **options)
        connections.prepare(engine)
        return engine

    def test_oslo_db_has_no_listeners(self):
        self.assertFalse(self.prepared()._has_events)

    def test_statements_are_traced(self):
        engine = self.prepared(connection_trace=True)
        sent: list[str] = []
        with engine.connect() as conn:
            conn.connection.set_trace_callback(sent.append)
            conn.execute(sa.select(1))
        self.assertIn('-- File:', ''.join(sent))


class SetUpSqliteTest(base.BaseTestCase):
    """The journal mode changes to WAL, also if several processes change it at the same time."""

    def setUp(self):
        super().setUp()
        self.sleep = self.useFixture(fixtures.MockPatchObject(connections.time, 'sleep')).mock

    def set_up(self, *results: Exception | None) -> list[str]:
        """Set up a connection; each attempt to change the mode has one of the results."""
        statements, remaining, mode = [], list(results), ['delete']

        def execute(statement: str) -> mock.Mock:
            statements.append(statement)
            if statement.endswith('WAL'):
                if error := remaining.pop(0):
                    raise error
                mode[0] = 'wal'
            return mock.Mock(fetchone=lambda: mode)

        connections._set_up_sqlite(mock.Mock(execute=execute), None)
        return statements

    def test_the_mode_is_changed(self):
        self.assertIn('PRAGMA journal_mode = WAL', self.set_up(None))
        self.sleep.assert_not_called()

    def test_another_process_changes_the_mode(self):
        locked = sqlite3.OperationalError('database is locked')
        self.set_up(locked, locked, None)
        self.assertEqual(2, self.sleep.call_count)

    def test_the_database_stays_locked(self):
        locked = sqlite3.OperationalError('database is locked')
        times = mock.Mock(side_effect=[0, 1, 31])
        self.useFixture(fixtures.MockPatchObject(connections.time, 'monotonic', times))
        self.assertRaises(sqlite3.OperationalError, self.set_up, locked, locked)

    def test_a_read_only_database(self):
        error = sqlite3.OperationalError('attempt to write a readonly database')
        self.assertRaises(sqlite3.OperationalError, self.set_up, error)
        self.sleep.assert_not_called()


class SetUpPostgresqlTest(base.BaseTestCase):
    def test_the_encoding_of_psycopg2_is_set(self):
        connection = mock.Mock(spec=['autocommit', 'cursor', 'commit', 'set_client_encoding'])
        connections._set_up_postgresql(connection, None)
        connection.set_client_encoding.assert_called_once_with('UTF8')

    def test_psycopg_3_detects_the_encoding(self):
        connection = mock.Mock(spec=['autocommit', 'cursor', 'commit'])
        connections._set_up_postgresql(connection, None)
        connection.commit.assert_called_once_with()

    def test_drivers_do_not_begin_transactions(self):
        connection = mock.Mock()
        connections._set_up_postgresql(connection, None)
        self.assertIs(True, connection.autocommit)
