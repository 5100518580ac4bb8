"""Settings of the cluster and of Placement that doc/source/admin/galera.rst describes."""

import contextlib
import time
import uuid

import sqlalchemy as sa

from placement.tests.functional.faults import machines, storm
from placement.tests.functional.galera import testcase
from placement.tests.functional.races.testcase import claim, start

_TABLES_WITHOUT_KEY = """
SELECT table_name FROM information_schema.tables
WHERE table_schema = 'placement' AND table_name NOT IN (
    SELECT table_name FROM information_schema.table_constraints
    WHERE table_schema = 'placement' AND constraint_type = 'PRIMARY KEY')
"""


class SettingsTest(testcase.DeploymentTestCase):
    def claim(self, number: int) -> str:
        """Write a claim through an API process, and return its path."""
        path = f'/allocations/{uuid.uuid4()}'
        body = claim({self.providers[0]: 1})
        self.assertEqual(204, storm.send(self.workers[number].port, 'PUT', path, body))
        return path

    @contextlib.contextmanager
    def applying_nothing(self, number: int):
        """Prevent a node from applying the changes of other nodes."""
        with machines.other_connection(self.nodes[number].url) as conn:
            conn.exec_driver_sql('FLUSH TABLES WITH READ LOCK')
            yield
            conn.exec_driver_sql('UNLOCK TABLES')

    def test_a_read_waits_for_the_writes_of_other_nodes(self):
        with self.applying_nothing(1):
            path = self.claim(0)
            reading = start(lambda: storm.exchange(self.workers[1].port, 'GET', path))
            time.sleep(1)
            self.assertFalse(reading.done())
        status, content = reading.result(60)
        self.assertEqual(200, status)
        self.assertIn(self.providers[0].encode(), content)

    def test_a_read_can_be_outdated_without_causal_reads(self):
        """This is the effect of `mysql_wsrep_sync_wait = 0`."""
        worker = machines.Worker(
            self.database(self.nodes[1].port),
            settings={'OS_PLACEMENT_DATABASE__MYSQL_WSREP_SYNC_WAIT': '0'},
        )
        self.addCleanup(worker.remove)
        with self.applying_nothing(1):
            path = self.claim(0)
            status, content = storm.exchange(worker.port, 'GET', path)
        self.assertEqual((200, b'{"allocations":{}}'), (status, content))

    @testcase.full
    def test_an_isolated_node_with_dirty_reads_is_not_used(self):
        node = self.nodes[2]
        path = self.claim(2)
        node.set_global('wsrep_dirty_reads', 1)
        self.addCleanup(node.set_global, 'wsrep_dirty_reads', 0)
        node.isolate()
        self.wait_until_gone(2)
        self.assertEqual(1, node.execute('SELECT COUNT(*) FROM placement.allocations')[0])
        self.assertEqual(503, self.health(2))
        self.assertEqual(503, storm.send(self.workers[2].port, 'GET', path))

    @testcase.full
    def test_an_isolated_node_executes_statements_without_a_table(self):
        """So `mysql-check` of HAProxy does not detect it, but /healthcheck does."""
        node = self.nodes[2]
        node.isolate()
        self.wait_until_gone(2)
        self.assertEqual((1,), node.execute('SELECT 1'))
        self.assertEqual(503, self.health(2))

    def test_every_table_has_a_primary_key(self):
        with self.engine().connect() as conn:
            self.assertEqual([], conn.scalars(sa.text(_TABLES_WITHOUT_KEY)).all())

    @testcase.full
    def test_a_node_starts_only_with_a_row_based_binary_log(self):
        """It starts with another `innodb_autoinc_lock_mode`, although Galera requires 2."""
        node = self.nodes[2]
        node.stop()
        with self.assertRaises(testcase.tool().with_database.ServerStartError) as caught:
            node.start('--binlog-format=MIXED')
        self.assertIn("Only binlog_format= 'ROW' is currently supported", str(caught.exception))
        node.start('--innodb-autoinc-lock-mode=1')
        node.stop()
