"""Each API process uses a server of its own, and all of them write at the same time."""

from placement.tests import where
from placement.tests.functional.cluster import answers
from placement.tests.functional.group_replication import testcase
from placement.tests.functional.group_replication.gate import Gate


class MultiPrimaryTest(testcase.DeploymentTestCase):
    @classmethod
    def started_nodes(cls):
        nodes = super().started_nodes()
        nodes[0].let_all_write()
        cls.addClassCleanup(nodes[0].become_only_primary)
        return nodes

    def test_concurrent_claims(self):
        self.check_concurrent_claims()

    def test_responses_while_a_server_applies_no_changes(self):
        """Responses reflect every write that another server has acknowledged."""
        first, second, _ = self.nodes
        gate = Gate(second, first)
        self.addCleanup(gate.remove)
        ports = [worker.port for worker in self.workers[:2]]
        self.assertEqual([], answers.send_pairs(ports, gate=gate))

    @where.at_night('The gate has other tests of the same cluster.')
    def test_responses_under_load(self):
        ports = [worker.port for worker in self.workers[:2]]
        self.assertEqual([], answers.send_pairs(ports, rounds=4, clients=6))
