"""All API processes use one node through HAProxy, which has the other nodes as backups."""

from collections.abc import Callable
import time
from typing import Any

from placement.tests import where
from placement.tests.functional.cluster import proxy
from placement.tests.functional.galera import testcase


class SingleWriterTest(testcase.DeploymentTestCase):
    single_writer = True

    def setUp(self):
        super().setUp()
        # Pooled connections stay on the node that they were opened to. Use node 1 again.
        for number in (2, 3):
            self.database_proxy.command(f'shutdown sessions server galera/node{number}')
        self.database_proxy.wait_until_idle('galera/node2')

    def withstand(self, fail: Callable[[Any], None], repair: Callable[[Any], None]) -> None:
        """Let the node in use fail under load; repair it while another node is in use.

        The API processes continue with the other node and are not restarted.
        """
        node = self.nodes[0]
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            begin = time.monotonic()
            fail(node)
            self.database_proxy.wait_until('galera/node1', up=False)
            left = time.monotonic() - begin
            traffic.wait_for(204, 60)
            pause = time.monotonic() - begin
            for number in range(3):
                self.wait_until_back(number)
            failed = traffic.failed
            traffic.wait_for(204, 60)
            self.assertEqual(failed, traffic.failed, 'requests fail although another node is used')
            begin = time.monotonic()
            repair(node)
            self.database_proxy.wait_until('galera/node1', up=True)
            back = time.monotonic() - begin
            traffic.wait_for(204, 60)
            self.assertEqual(failed, traffic.failed, 'requests fail when the node is back')
        self.check(traffic, left=left, back=back, pause=pause)

    @where.at_night('The gate has other tests of the same cluster.')
    def test_concurrent_claims(self):
        used = self.database_proxy.server('galera/node2')['stot']
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 600)
        self.check(traffic)
        self.assertEqual(0, traffic.failed, traffic.unexpected)
        self.assertEqual(used, self.database_proxy.server('galera/node2')['stot'])

    def test_the_node_is_killed(self):
        self.withstand(lambda node: node.kill(), lambda node: node.start())

    @where.at_night('The gate has other tests of the same cluster.')
    def test_the_node_is_stopped(self):
        self.withstand(lambda node: node.stop(), lambda node: node.start())

    @where.at_night('The gate has other tests of the same cluster.')
    def test_the_node_hangs(self):
        self.withstand(lambda node: node.suspend(), lambda node: node.resume())

    @where.at_night('The gate has other tests of the same cluster.')
    def test_the_node_is_isolated(self):
        self.withstand(lambda node: node.isolate(), lambda node: node.isolate(False))

    @where.at_night('The gate has other tests of the same cluster.')
    def test_all_nodes_are_restarted_without_a_failed_request(self):
        """The procedure of doc/source/admin/galera.rst: the node in use is the last one."""
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            for number in (2, 1):
                self.restart_node(number)
                traffic.wait_for(204, 60)
            self.database_proxy.set_state('galera/node1', 'drain')
            for number in range(3):
                self.restart_worker(number)
                traffic.wait_for(204, 30)
            self.restart_node(0)
            traffic.wait_for(204, 60)
        self.check(traffic)
        self.assertEqual(0, traffic.failed, traffic.unexpected)

    def restart_node(self, number: int) -> None:
        """Restart a node that no API process uses."""
        name = f'galera/node{number + 1}'
        self.database_proxy.set_state(name, 'drain')
        self.database_proxy.wait_until_idle(name)
        self.nodes[number].stop()
        self.nodes[number].start()
        self.database_proxy.wait_until_passing(name)
        self.database_proxy.set_state(name, 'ready')

    def restart_worker(self, number: int) -> None:
        """Restart an API process, so that it closes its connections."""
        name = f'placement/api{number + 1}'
        self.proxy.set_state(name, 'drain')
        self.proxy.wait_until_idle(name)
        self.workers[number].stop()
        self.workers[number].start()
        self.proxy.wait_until_passing(name)
        self.proxy.set_state(name, 'ready')
        proxy.wait(lambda: self.proxy.is_up(name), f'{name} is not up')
