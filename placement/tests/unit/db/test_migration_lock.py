"""Detection of a Galera cluster, and the lock of a migration on its nodes."""

from unittest import mock

from oslotest import base

from placement.db.sqlalchemy import migration


def connection(*wsrep_on: tuple[str, str]) -> mock.Mock:
    """Return a connection to a MySQL server with the given rows of SHOW VARIABLES."""
    conn = mock.Mock()
    conn.dialect.name = 'mysql'
    conn.invalidated = False
    conn.engine.url.database = 'placement'
    conn.exec_driver_sql.return_value.first.return_value = next(iter(wsrep_on), None)
    conn.scalar.return_value = 1
    return conn


class IsClusterTest(base.BaseTestCase):
    def test_a_node_of_a_cluster(self):
        self.assertTrue(migration.is_cluster(connection(('wsrep_on', 'ON'))))

    def test_a_server_that_is_not_in_a_cluster(self):
        self.assertFalse(migration.is_cluster(connection(('wsrep_on', 'OFF'))))

    def test_a_server_without_the_variable(self):
        self.assertFalse(migration.is_cluster(connection()))

    def test_another_engine_is_not_queried(self):
        conn = connection(('wsrep_on', 'ON'))
        conn.dialect.name = 'postgresql'
        self.assertFalse(migration.is_cluster(conn))
        conn.exec_driver_sql.assert_not_called()


class MysqlLockTest(base.BaseTestCase):
    def locks(self, conn: mock.Mock) -> list[str]:
        """Return the names of the functions that were selected."""
        return [call.args[0].selected_columns[0].name for call in conn.scalar.call_args_list]

    def test_a_server_has_a_lock_that_is_released(self):
        conn = connection()
        with migration._mysql_lock(conn):
            self.assertEqual(['get_lock'], self.locks(conn))
        self.assertEqual(['get_lock', 'release_lock'], self.locks(conn))

    def test_the_request_for_the_lock_is_repeated_until_it_succeeds(self):
        conn = connection()
        conn.scalar.side_effect = [0, None, 1, 1]
        with migration._mysql_lock(conn):
            self.assertEqual(['get_lock'] * 3, self.locks(conn))

    def test_a_lost_connection_releases_no_lock(self):
        conn = connection()
        with migration._mysql_lock(conn):
            conn.invalidated = True
        self.assertEqual(['get_lock'], self.locks(conn))

    def test_a_node_of_a_cluster_has_no_lock(self):
        conn = connection(('wsrep_on', 'ON'))
        with migration._mysql_lock(conn):
            pass
        self.assertEqual([], self.locks(conn))
