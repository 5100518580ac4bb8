"""Each API process uses a node of its own, and all of them write at the same time."""

from collections.abc import Callable
from typing import Any

from placement.tests import where
from placement.tests.functional.faults import storm
from placement.tests.functional.galera import testcase
from placement.tests.waiting import wait_until

_LAST = 2  # the node that fails, and its API process


class MultiWriterTest(testcase.DeploymentTestCase):
    def check_failure(self, fail: Callable[[Any], None], repair: Callable[[Any], None]) -> None:
        """Let a node fail; its API process leaves the pool, and the others grant claims."""

        def repair_and_wait() -> None:
            repair(self.nodes[_LAST])
            self.wait_until_back(_LAST)

        traffic, _ = self.withstand(
            lambda: fail(self.nodes[_LAST]), lambda: self.wait_until_gone(_LAST), repair_and_wait
        )
        self.check(traffic)

    def test_concurrent_claims(self) -> None:
        self.check_concurrent_claims()

    def test_a_node_is_isolated(self) -> None:
        """Split brain: the node without a majority rejects requests, the other nodes go on."""

        def isolate(node: Any) -> None:
            node.isolate()
            wait_until(lambda: self.health(_LAST) == 503, 'the health check passes')
            path = f'/resource_providers/{self.providers[0]}'
            self.assertEqual(503, storm.send(self.workers[_LAST].port, 'GET', path))
            self.assertEqual('non-Primary', node.status('wsrep_cluster_status'))

        self.check_failure(isolate, lambda node: node.isolate(False))

    @where.at_night('The gate has other tests of the same cluster.')
    def test_failures_of_a_node(self) -> None:
        for name in ('killed', 'stopped', 'hangs'):
            with self.subTest(name):
                self.check_failure(*testcase.FAILURES[name])
        self.assertIn('IST received', self.nodes[_LAST].log)

    @where.at_night('The gate has other tests of the same cluster.')
    def test_a_node_loses_its_data(self) -> None:
        """The node receives a full copy of the data from another node."""

        def lose(node: Any) -> None:
            node.kill()
            node.state_file.unlink()

        self.check_failure(lose, lambda node: node.start())
        self.assertIn('SST complete', self.nodes[_LAST].log)
