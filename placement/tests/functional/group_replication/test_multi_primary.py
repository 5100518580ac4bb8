"""Each API process uses a server of its own, and all of them write at the same time."""

from placement.tests import where
from placement.tests.functional.cluster import answers
from placement.tests.functional.group_replication import testcase
from placement.tests.functional.group_replication.gate import Gate

_FIRST, _SECOND = 0, 1  # the servers of a pair


class MultiPrimaryTest(testcase.DeploymentTestCase):
    @classmethod
    def started_nodes(cls):
        nodes = super().started_nodes()
        nodes[0].let_all_write()
        cls.addClassCleanup(nodes[0].become_only_primary)
        return nodes

    def test_concurrent_claims(self):
        """All claims that fit are granted, although all servers change the same providers.

        Other processes than those that granted the claims read them.
        """
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 300)
        self.check(traffic)
        self.assertEqual(0, traffic.failed, traffic.unexpected)

    def test_responses_while_a_server_applies_no_changes(self):
        """Responses reflect every write that another server has acknowledged."""
        gate = Gate(self.nodes[_SECOND], self.nodes[_FIRST])
        self.addCleanup(gate.remove)
        ports = [self.workers[number].port for number in (_FIRST, _SECOND)]
        self.assertEqual([], answers.send_pairs(ports, gate=gate).stale)

    @where.at_night('The gate has other tests of the same cluster.')
    def test_responses_under_load(self):
        ports = [self.workers[number].port for number in (_FIRST, _SECOND)]
        self.assertEqual([], answers.send_pairs(ports, rounds=4, clients=6).stale)
