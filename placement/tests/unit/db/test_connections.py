"""The connection settings that can be tested without a database server."""

from unittest import mock

import fixtures
from oslo_db import exception as db_exc
from oslotest import base
import sqlalchemy as sa

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


class SkipRollbackAfterCommitTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://', poolclass=sa.StaticPool)
        self.engine.connect().close()  # the dialect reads the version first
        self.rollbacks = 0
        rollback = self.engine.dialect.do_rollback

        def counted(connection):
            self.rollbacks += 1
            rollback(connection)

        self.engine.dialect.do_rollback = counted
        connections.skip_rollback_after_commit(self.engine)

    def read(self, conn):
        conn.execute(sa.select(1)).all()

    def test_an_engine_that_has_not_connected(self):
        engine = sa.create_engine('sqlite://', poolclass=sa.StaticPool)
        connections.skip_rollback_after_commit(engine)
        with engine.connect() as conn:
            self.assertEqual(1, conn.scalar(sa.select(1)))

    def test_no_rollback_after_a_commit(self):
        with self.engine.connect() as conn:
            self.read(conn)
            conn.commit()
        self.assertEqual(0, self.rollbacks)

    def test_rollback_without_a_commit(self):
        for rounds in (1, 2):
            with self.engine.connect() as conn:
                self.read(conn)
            self.assertEqual(rounds, self.rollbacks)

    def test_rollback_of_a_statement_after_a_commit(self):
        with self.engine.connect() as conn:
            self.read(conn)
            conn.commit()
            self.read(conn)
        self.assertEqual(1, self.rollbacks)

    def test_rollback_of_the_next_transaction(self):
        with self.engine.begin() as conn:
            self.read(conn)
        with self.engine.connect() as conn:
            self.read(conn)
        self.assertEqual(1, self.rollbacks)


class SetUpMysqlTest(base.BaseTestCase):
    """The statements for a new connection to a MySQL or MariaDB server."""

    def statements(self, make_causal: bool = True, **variables: str) -> list[str]:
        """Return the statements for a server whose SHOW VARIABLES returns `variables`."""
        connection = mock.Mock()
        cursor = connection.cursor.return_value
        cursor.fetchall.return_value = list(variables.items())
        connections._set_up_mysql(make_causal, connection, None)
        cursor.close.assert_called_once_with()
        return [call.args[0] for call in cursor.execute.call_args_list]

    def test_reads_of_a_cluster_node_are_causal(self):
        self.assertIn('SET SESSION wsrep_sync_wait = 1', self.statements(wsrep_on='ON'))

    def test_a_configured_wsrep_sync_wait_is_not_changed(self):
        for statement in self.statements(make_causal=False, wsrep_on='ON'):
            self.assertNotIn('wsrep_sync_wait', statement)

    def test_reads_of_a_single_server_need_no_wait(self):
        for variables in ({}, {'wsrep_on': 'OFF'}):
            for statement in self.statements(**variables):
                self.assertNotIn('wsrep_sync_wait', statement)

    def test_a_binary_log_of_statements_is_rejected(self):
        error = self.assertRaises(
            exception.UnsuitableDatabase, self.statements, log_bin='ON', binlog_format='STATEMENT'
        )
        self.assertIn('Set binlog_format to ROW or MIXED', str(error))

    def test_binlog_format_without_a_binary_log_is_accepted(self):
        statements = self.statements(log_bin='OFF', binlog_format='STATEMENT')
        self.assertIn('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED', statements)


class SetUpPostgresqlTest(base.BaseTestCase):
    def test_the_encoding_of_psycopg2_is_set(self):
        connection = mock.Mock(spec=['cursor', 'commit', 'set_client_encoding'])
        connections._set_up_postgresql(connection, None)
        connection.set_client_encoding.assert_called_once_with('UTF8')

    def test_psycopg_3_detects_the_encoding(self):
        connection = mock.Mock(spec=['cursor', 'commit'])
        connections._set_up_postgresql(connection, None)
        connection.commit.assert_called_once_with()
