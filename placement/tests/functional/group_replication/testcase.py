"""A test case with a group of MySQL, three API processes, and HAProxy in front of them."""

from pathlib import Path
import re
from typing import Any

import placement
from placement.tests.functional.cluster import testcase
from placement.tests.waiting import wait_until

_PAGE = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'databases.rst'
_SQL = re.compile(r'^\.\. code-block:: sql\n\n((?:    .+\n)+)', re.MULTILINE)
# The query of the page with which the program that HAProxy uses finds the primary.
CHECK = _SQL.findall(_PAGE.read_text().partition('\n.. _group-replication:\n')[2])[0]


class DeploymentTestCase(testcase.DeploymentTestCase):
    """Uses a group of MySQL, whose only primary is the first server unless a class changes that."""

    cluster = ('tools.group_replication', 'group')
    waiting = "SET SESSION group_replication_consistency = 'BEFORE'"

    @classmethod
    def is_usable(cls, node: Any) -> bool:
        return bool(node.rows(CHECK) == {(1,)})

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

        wait_until(complete, 'a server is not online')
