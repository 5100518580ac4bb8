"""A test case with a Galera cluster, three API processes, and HAProxy in front of them."""

from typing import Any

from placement.tests.functional.cluster import testcase
from placement.tests.waiting import wait_until

# What happens to a node -> how it fails, and how it is repaired.
FAILURES = {
    'killed': (lambda node: node.kill(), lambda node: node.start()),
    'stopped': (lambda node: node.stop(), lambda node: node.start()),
    'hangs': (lambda node: node.suspend(), lambda node: node.resume()),
    'isolated': (lambda node: node.isolate(), lambda node: node.isolate(False)),
}


class DeploymentTestCase(testcase.DeploymentTestCase):
    """Uses a Galera cluster."""

    cluster = ('tools.galera', 'cluster')
    # The bits are those with which Placement connects.
    waiting = 'SET SESSION wsrep_sync_wait = 7'

    @classmethod
    def is_usable(cls, node: Any) -> bool:
        return bool(node.is_synced())

    def heal(self) -> None:
        """Resume, start and connect all nodes, and wait until all of them have the same data."""
        for node in self.nodes:
            if node.running:
                node.resume()
            else:
                node.start(wait=False)
        for node in self.nodes:
            node.wait_until_listening()
            node.isolate(False)
        self.wait_until_complete()

    def wait_until_complete(self) -> None:
        """Wait until all nodes are synced members of the same primary component.

        A node that hung reports the earlier membership until it notices its exclusion.
        """

        def complete() -> bool:
            changes = {node.status('wsrep_cluster_conf_id') for node in self.nodes}
            sizes = {node.status('wsrep_cluster_size') for node in self.nodes}
            synced = all(node.is_synced() for node in self.nodes)
            return synced and len(changes) == 1 and sizes == {str(len(self.nodes))}

        wait_until(complete, 'a node is not part of the cluster')
