"""A test case with a Galera cluster, three API processes, and HAProxy in front of them."""

import functools
import importlib
from typing import Any

from placement.db.connections import SYNC_WAIT_BITS
from placement.tests.functional.cluster import configuration, proxy, testcase


def tool() -> Any:
    """Return the module tools/galera.py."""
    return importlib.import_module('tools.galera')


@functools.cache
def _started_nodes() -> list[Any]:
    return testcase.started(tool().cluster())


class DeploymentTestCase(testcase.DeploymentTestCase):
    """Uses a Galera cluster."""

    waiting = f'SET SESSION wsrep_sync_wait = {SYNC_WAIT_BITS}'

    @classmethod
    def started_nodes(cls) -> list[Any]:
        return _started_nodes()

    @classmethod
    def is_usable(cls, node: Any) -> bool:
        return bool(node.is_synced())

    @classmethod
    def database_configuration(cls, port: int, checks: list[int]) -> str:
        return configuration.database(port, [node.port for node in cls.nodes], checks)

    def heal(self) -> None:
        """Resume, start and connect all nodes, and wait until all of them have the same data."""
        for node in self.nodes:
            node.resume()
            if not node.running:
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

        proxy.wait(complete, 'a node is not part of the cluster')
