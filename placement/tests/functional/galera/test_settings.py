"""Settings of the cluster and of Placement that doc/source/admin/databases.rst describes."""

import contextlib
import uuid

from placement.tests import where
from placement.tests.functional.base import claim
from placement.tests.functional.cluster import answers
from placement.tests.functional.faults import machines, storm
from placement.tests.functional.galera import testcase
from placement.tests.functional.galera.gate import Gate

_FIRST, _SECOND = 0, 1  # the nodes of a pair


class SettingsTest(testcase.DeploymentTestCase):
    def claim(self, number: int) -> str:
        """Write a claim through an API process, and return its path."""
        path = f'/allocations/{uuid.uuid4()}'
        body = claim({self.providers[0]: {'VCPU': 1}})
        self.assertEqual(204, storm.send(self.workers[number].port, 'PUT', path, body))
        return path

    # Responses reflect every write that another node has acknowledged -------------

    def gate(self) -> Gate:
        gate = Gate(self.nodes[_SECOND], self.nodes[_FIRST])
        self.addCleanup(gate.remove)
        return gate

    def test_responses_while_a_node_applies_no_changes(self) -> None:
        ports = [self.workers[number].port for number in (_FIRST, _SECOND)]
        self.assertEqual([], answers.send_pairs(ports, gate=self.gate()))

    @where.at_night('The gate has other tests of the same cluster.')
    def test_responses_under_load(self) -> None:
        ports = [self.workers[number].port for number in (_FIRST, _SECOND)]
        self.assertEqual([], answers.send_pairs(ports, rounds=4, clients=6))

    def test_1_is_not_sufficient_for_requests_that_begin_with_a_write(self):
        """This is the effect of `mysql_wsrep_sync_wait = 1`."""
        log = self.logs / 'insufficient'
        worker = machines.Worker(
            self.database(self.nodes[_SECOND].port),
            log=log,
            settings={'OS_PLACEMENT_DATABASE__MYSQL_WSREP_SYNC_WAIT': '1'},
        )
        self.addCleanup(worker.remove)
        statuses = {}
        ports = self.workers[_FIRST].port, worker.port
        gate = self.gate()
        with contextlib.closing(answers.Pair(*ports, gate=gate, pause=None)) as pair:
            for kind in answers.WRITE_FIRST:
                self.assertFalse(pair.is_fresh(kind), kind)
                statuses[kind] = pair.answer_seen[0]
        # 400: the node has not even applied the creation of the provider.
        self.assertEqual({}, {k: s for k, s in statuses.items() if s not in (400, 404, 409)})
        self.assertEqual(1, log.read_text().count('mysql_wsrep_sync_wait is 1, so responses'))

    # Other settings ---------------------------------------------------------------

    @where.at_night('The gate has other tests of the same cluster.')
    def test_an_isolated_node_with_dirty_reads_is_not_used(self):
        node = self.nodes[2]
        path = self.claim(2)
        node.set_global('wsrep_dirty_reads', 1)
        self.addCleanup(node.set_global, 'wsrep_dirty_reads', 0)
        node.isolate()
        self.wait_until_gone(2)
        # So `mysql-check` of HAProxy does not detect it, but /healthcheck does.
        self.assertEqual((1,), node.execute('SELECT 1'))
        self.assertEqual(1, node.execute('SELECT COUNT(*) FROM placement.allocations')[0])
        self.assertEqual(503, self.health(2))
        self.assertEqual(503, storm.send(self.workers[2].port, 'GET', path))
