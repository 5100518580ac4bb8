"""A test case with a group of MySQL, three API processes, and HAProxy in front of them."""

import functools
import importlib
from pathlib import Path
import re
from typing import Any

import placement
from placement.tests.functional.cluster import configuration, proxy, testcase

_PAGE = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'databases.rst'
_SQL = re.compile(r'^\.\. code-block:: sql\n\n((?:    .+\n)+)', re.MULTILINE)
# The query of the page with which the program that HAProxy uses finds the primary.
CHECK = _SQL.findall(_PAGE.read_text().partition('\n.. _group-replication:\n')[2])[0]


@functools.cache
def _started_nodes() -> list[Any]:
    return testcase.started(importlib.import_module('tools.group_replication').group())


class DeploymentTestCase(testcase.DeploymentTestCase):
    """Uses a group of MySQL, whose only primary is the first server unless a class changes that."""

    waiting = "SET SESSION group_replication_consistency = 'BEFORE'"

    @classmethod
    def started_nodes(cls) -> list[Any]:
        return _started_nodes()

    @classmethod
    def is_usable(cls, node: Any) -> bool:
        return bool(node.rows(CHECK) == {(1,)})

    @classmethod
    def database_configuration(cls, port: int, checks: list[int]) -> str:
        return configuration.database(port, [node.port for node in cls.nodes], checks)

    def heal(self) -> None:
        """Start all servers, and make the first one the primary again."""
        for node in self.nodes:
            if not node.running:
                node.start()
        self.wait_until_complete()
        if not self.is_usable(self.nodes[0]):
            self.nodes[0].become_primary()

    def wait_until_complete(self) -> None:
        """Wait until each server knows that all servers are online."""

        def complete() -> bool:
            return all(node.online_members() == len(self.nodes) for node in self.nodes)

        proxy.wait(complete, 'a server is not online')
