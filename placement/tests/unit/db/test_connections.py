"""The connection settings that can be tested without a database server."""

import logging
import sqlite3
from unittest import mock

import fixtures
from oslo_db import exception as db_exc
from oslotest import base

from placement import exception
from placement.db import connections


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

    def test_attempts(self):
        refused = db_exc.DBConnectionError
        for failures, max_retries, attempts, raised in (
            *((0, 10, 1, None), (2, 3, 3, None), (2, -1, 3, None), (2, 2, 2, refused)),
            (0, 0, 0, None),
        ):
            with self.subTest(failures=failures, max_retries=max_retries):
                self.engine.reset_mock()
                self.sleep.reset_mock()
                self.fail_to_connect(failures)
                if raised is None:
                    self.assertEqual(attempts, self.wait(max_retries))
                else:
                    self.assertRaises(raised, self.wait, max_retries)
                self.assertEqual(attempts, self.engine.connect.call_count)
                self.assertEqual([mock.call(7)] * max(attempts - 1, 0), self.sleep.mock_calls)

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

    def test_statements(self):
        sync_wait, dirty_reads = (
            ', SESSION wsrep_sync_wait = 7',
            'SET SESSION wsrep_dirty_reads = 0',
        )
        on, group = {'wsrep_on': 'ON'}, "SET SESSION group_replication_consistency = 'BEFORE'"
        for configured, variables, text, expected in (
            # A node of a cluster waits before all kinds of statements, unless it is configured.
            *((None, on, sync_wait, True), (7, on, 'SESSION wsrep_sync_wait', False)),
            *((None, on, dirty_reads, True), (7, on, dirty_reads, True)),
            (None, {'wsrep_on': 'OFF'}, 'SESSION wsrep', False),
            (None, {}, 'SESSION wsrep', False),
            # A node of a group with several primaries waits for the other nodes.
            *(
                (
                    None,
                    {
                        'group_replication_single_primary_mode': mode,
                        'group_replication_consistency': consistency,
                    },
                    group,
                    mode == 'OFF' and consistency in ('EVENTUAL', 'BEFORE_ON_PRIMARY_FAILOVER'),
                )
                for mode in ('OFF', 'ON')
                for consistency in (
                    *('EVENTUAL', 'BEFORE_ON_PRIMARY_FAILOVER'),
                    *('BEFORE', 'AFTER', 'BEFORE_AND_AFTER'),
                )
                if (mode, consistency) != ('ON', 'BEFORE')
            ),
            (None, {'log_bin': 'OFF', 'binlog_format': 'STATEMENT'}, 'sql_mode', True),
        ):
            with self.subTest(configured=configured, **variables):
                statements = '; '.join(self.statements(configured, **variables))
                self.assertEqual(expected, text in statements, statements)

    def test_a_configured_value_without_one_of_the_bits_is_one_warning(self):
        for value, remedy in ((0, 7), (1, 7), (3, 7), (5, 7), (6, 7), (8, 15)):
            with self.subTest(value):
                (line,) = self.warnings(value, value, wsrep_on='ON')
                self.assertIn(f'mysql_wsrep_sync_wait is {value}, ', line)
                self.assertIn(f'set it to {remedy}.', line)

    def test_no_warning(self):
        self.assertEqual([], self.warnings(7, 15, wsrep_on='ON'))
        self.assertEqual([], self.warnings(1, wsrep_on='OFF'))

    def test_a_binary_log_of_statements_is_rejected(self):
        error = self.assertRaises(
            exception.UnsuitableDatabase, self.statements, log_bin='ON', binlog_format='STATEMENT'
        )
        self.assertIn('Set binlog_format to ROW or MIXED', str(error))


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

    def test_attempts(self):
        """The mode is changed again while another process holds the lock, for a limited time."""
        locked = sqlite3.OperationalError('database is locked')
        for results, sleeps in (([None], 0), ([locked, locked, None], 2)):
            self.sleep.reset_mock()
            self.assertIn('PRAGMA journal_mode = WAL', self.set_up(*results))
            self.assertEqual(sleeps, self.sleep.call_count)
        self.sleep.reset_mock()
        error = sqlite3.OperationalError('attempt to write a readonly database')
        self.assertRaises(sqlite3.OperationalError, self.set_up, error)
        self.sleep.assert_not_called()
        times = mock.Mock(side_effect=[0, 1, 31])
        self.useFixture(fixtures.MockPatchObject(connections.time, 'monotonic', times))
        self.assertRaises(sqlite3.OperationalError, self.set_up, locked, locked)


class SetUpPostgresqlTest(base.BaseTestCase):
    def test_drivers(self):
        """Psycopg 3 detects the encoding."""
        for more in ([], ['set_client_encoding']):
            connection = mock.Mock(spec=['cursor', 'commit', *more])
            connections._set_up_postgresql(connection, None)
            connection.commit.assert_called_once_with()
        connection.set_client_encoding.assert_called_once_with('UTF8')
