"""The procedures of doc/source/admin/databases.rst after all nodes have stopped."""

import re

from placement.tests import where
from placement.tests.functional.galera import testcase
from tools import with_database


@where.at_night('The gate has other tests of the same cluster.')
class RecoveryTest(testcase.DeploymentTestCase):
    """The API processes keep running, and recover with the cluster."""

    def kill_all(self):
        for node in self.nodes:
            node.kill()

    def claim_and_stop(self, stop):
        """Grant claims, call `stop`, and check that no claim is granted any more."""
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            stop()
            traffic.wait_for(503, 20)
            granted = traffic.statuses[204]
            traffic.wait_for(503, 20)
            self.assertEqual(granted, traffic.statuses[204])
        return traffic

    def check_recovery(self, traffic):
        """Check that the API processes serve requests and that no granted claim is missing."""
        self.wait_until_back()
        self.check(traffic)
        with self.traffic().running() as further:
            further.wait_for(204, 30)

    def state(self, number):
        """Return `seqno` and `safe_to_bootstrap` in the state file of a node."""
        text = self.nodes[number].state_file.read_text()
        return tuple(
            int(re.search(rf'^{name}: *(-?\d+)', text, re.MULTILINE)[1])
            for name in ('seqno', 'safe_to_bootstrap')
        )

    def test_all_nodes_were_stopped(self):
        """The node that stopped last starts first; the cluster does not start with another one."""

        def stop():
            for node in self.nodes:
                node.stop()

        traffic = self.claim_and_stop(stop)
        self.assertEqual([0, 0, 1], [self.state(number)[1] for number in range(3)])
        first, second, last = self.nodes
        with self.assertRaises(with_database.ServerStartError) as caught:
            first.start('--wsrep-new-cluster')
        self.assertIn('may not be safe to bootstrap', str(caught.exception))
        last.start('--wsrep-new-cluster')
        for node in (first, second):
            node.start()
        self.check_recovery(traffic)

    def test_all_nodes_were_killed_and_start_together(self):
        """If the nodes have saved the membership, they form the cluster by themselves."""
        traffic = self.claim_and_stop(self.kill_all)
        self.heal()
        self.check_recovery(traffic)

    def test_all_nodes_were_killed_and_one_is_chosen(self):
        """Without the saved membership, the node with the highest position starts first."""
        traffic = self.claim_and_stop(self.kill_all)
        for number, node in enumerate(self.nodes):
            self.assertEqual((-1, 0), self.state(number))
            node.state_file.with_name('gvwstate.dat').unlink()
        positions = [int(node.recovered_position().rpartition(':')[2]) for node in self.nodes]
        newest = self.nodes[positions.index(max(positions))]
        text = newest.state_file.read_text()
        newest.state_file.write_text(text.replace('safe_to_bootstrap: 0', 'safe_to_bootstrap: 1'))
        newest.start('--wsrep-new-cluster')
        self.heal()
        self.check_recovery(traffic)

    def test_the_majority_is_lost(self):
        """An operator makes the last node the primary component; the others join it later."""

        def kill():
            for node in self.nodes[:2]:
                node.kill()
            self.wait_until_gone(2)

        traffic = self.claim_and_stop(kill)
        last = self.nodes[2]
        last.set_global('wsrep_provider_options', 'pc.bootstrap=YES')
        self.wait_until_back(2)
        self.assertEqual(204, traffic.claim())
        self.heal()
        self.check_recovery(traffic)
