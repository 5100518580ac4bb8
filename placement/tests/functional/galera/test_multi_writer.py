"""Each API process uses a node of its own, and all of them write at the same time."""

from collections.abc import Callable
import time
from typing import Any

from placement.tests import where
from placement.tests.functional.cluster import proxy
from placement.tests.functional.faults import storm
from placement.tests.functional.galera import testcase

_LAST = 2  # the node that fails, and its API process


class MultiWriterTest(testcase.DeploymentTestCase):
    def withstand(self, fail: Callable[[Any], None], repair: Callable[[Any], None]) -> None:
        """Let a node fail under load, wait until its API process leaves the pool, and repair it.

        The other API processes grant claims before, during and after the failure.
        """
        node = self.nodes[_LAST]
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            begin = time.monotonic()
            fail(node)
            self.wait_until_gone(_LAST)
            left = time.monotonic() - begin
            granted = traffic.statuses[204]
            pause = proxy.wait(lambda: traffic.statuses[204] > granted + 60, 'no claim is granted')
            failed = traffic.failed
            traffic.wait_for(204, 60)
            self.assertEqual(failed, traffic.failed, 'requests fail although the server has left')
            begin = time.monotonic()
            repair(node)
            self.wait_until_back(_LAST)
            back = time.monotonic() - begin
            traffic.wait_for(204, 60)
        self.check(traffic, left=left, back=back, pause=pause)

    def test_concurrent_claims(self):
        """All claims that fit are granted, although all nodes change the same providers."""
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 300)
        self.check(traffic)
        self.assertEqual(0, traffic.failed, traffic.unexpected)

    @where.at_night('The gate has other tests of the same cluster.')
    def test_a_node_is_killed(self):
        self.withstand(lambda node: node.kill(), lambda node: node.start())
        self.assertIn('IST received', self.nodes[_LAST].log)

    def test_a_node_is_isolated(self):
        """Split brain: the node without a majority rejects requests, the other nodes go on."""

        def isolate(node: Any) -> None:
            node.isolate()
            proxy.wait(lambda: self.health(_LAST) == 503, 'the health check passes')
            claim = f'/resource_providers/{self.providers[0]}'
            self.assertEqual(503, storm.send(self.workers[_LAST].port, 'GET', claim))
            self.assertEqual('non-Primary', node.status('wsrep_cluster_status'))

        self.withstand(isolate, lambda node: node.isolate(False))

    @where.at_night('The gate has other tests of the same cluster.')
    def test_a_node_is_stopped(self):
        self.withstand(lambda node: node.stop(), lambda node: node.start())

    @where.at_night('The gate has other tests of the same cluster.')
    def test_a_node_hangs(self):
        self.withstand(lambda node: node.suspend(), lambda node: node.resume())

    @where.at_night('The gate has other tests of the same cluster.')
    def test_a_node_loses_its_data(self):
        """The node receives a full copy of the data from another node."""

        def lose(node: Any) -> None:
            node.kill()
            node.state_file.unlink()

        self.withstand(lose, lambda node: node.start())
        self.assertIn('SST complete', self.nodes[_LAST].log)

    @where.at_night('The gate has other tests of the same cluster.')
    def test_no_node_has_a_majority(self):
        """No claim is granted, and the cluster recovers when its nodes are connected again."""
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            for node in self.nodes[1:]:
                node.isolate()
            for number in range(3):
                self.wait_until_gone(number)
            granted = traffic.statuses[204]
            traffic.wait_for(503, 20)
            self.assertEqual(granted, traffic.statuses[204])
            for node in self.nodes[1:]:
                node.isolate(False)
            begin = time.monotonic()
            for number in range(3):
                self.wait_until_back(number)
            back = time.monotonic() - begin
            traffic.wait_for(204, 60)
        self.check(traffic, back=back)
