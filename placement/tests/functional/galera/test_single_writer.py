"""All API processes use one node through HAProxy, which has the other nodes as backups."""

from collections.abc import Callable
from typing import Any

from placement.tests import where
from placement.tests.functional.cluster.testcase import NAMES
from placement.tests.functional.galera import testcase
from placement.tests.waiting import wait_until

FIRST, SECOND, THIRD = 'galera/node1', 'galera/node2', 'galera/node3'


class SingleWriterTest(testcase.DeploymentTestCase):
    single_writer = True

    def use_the_first_node(self) -> None:
        """Close the pooled connections to the other nodes, so that new ones use the first node."""
        for name in (SECOND, THIRD):
            self.database_proxy.command(f'shutdown sessions server {name}')
        wait_until(lambda: self.database_proxy.server(SECOND)['scur'] == '0')

    def check_failure(self, fail: Callable[[Any], None], repair: Callable[[Any], None]) -> None:
        """Let the node in use fail; repair it while another node is in use."""

        def notice() -> None:
            self.database_proxy.wait_until(FIRST, up=False)
            self.wait_until_back()

        def repair_and_wait() -> None:
            repair(self.nodes[0])
            self.database_proxy.wait_until(FIRST, up=True)

        self.use_the_first_node()
        self.check(*self.withstand(lambda: fail(self.nodes[0]), notice, repair_and_wait))

    @where.at_night('The gate has other tests of the same cluster.')
    def test_concurrent_claims(self) -> None:
        self.use_the_first_node()
        used = self.database_proxy.server(SECOND)['stot']
        self.check_concurrent_claims(600)
        self.assertEqual(used, self.database_proxy.server(SECOND)['stot'])

    def test_the_node_is_killed(self) -> None:
        self.check_failure(*testcase.FAILURES['killed'])

    @where.at_night('The gate has other tests of the same cluster.')
    def test_other_failures_of_the_node(self) -> None:
        for name in ('stopped', 'hangs', 'isolated'):
            with self.subTest(name):
                self.check_failure(*testcase.FAILURES[name])

    @where.at_night('The gate has other tests of the same cluster.')
    def test_all_nodes_are_restarted_without_a_failed_request(self) -> None:
        """The procedure of doc/source/admin/databases.rst: the node in use is the last one.

        The API processes restart before it, so that they close their connections.
        """
        self.use_the_first_node()
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            for name, node in ((THIRD, self.nodes[2]), (SECOND, self.nodes[1])):
                self.database_proxy.restart(name, node)
                traffic.wait_for(204, 60)
            self.database_proxy.set_state(FIRST, 'drain')
            for name, worker in zip(NAMES, self.workers, strict=True):
                self.proxy.restart(name, worker)
                traffic.wait_for(204, 30)
            self.database_proxy.restart(FIRST, self.nodes[0])
            traffic.wait_for(204, 60)
        self.check(traffic, failed=0)
