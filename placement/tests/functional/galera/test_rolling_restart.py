"""The procedures of doc/source/admin/databases.rst for restarts without a failed request."""

from pathlib import Path
import tempfile

from placement.tests import where
from placement.tests.functional.cluster.testcase import NAMES
from placement.tests.functional.galera import testcase
from placement.tests.waiting import wait_until


class RollingRestartTest(testcase.DeploymentTestCase):
    """Each API process uses a node of its own."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.flags = [Path(folder.name) / f'api{number}-disabled' for number in range(3)]
        super().setUpClass()

    @classmethod
    def settings_of(cls, number):
        return {
            'OS_HEALTHCHECK__BACKENDS': 'placement_database,disable_by_file',
            'OS_HEALTHCHECK__DISABLE_BY_FILE_PATH': str(cls.flags[number]),
        }

    def test_nodes(self):
        """HAProxy drains the API process of a node before the node stops."""
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            for name, node in zip(NAMES, self.nodes, strict=True):
                self.proxy.restart(name, node)
                traffic.wait_for(204, 30)
        self.check(traffic, failed=0)

    @where.at_night('The gate has other tests of the same cluster.')
    def test_api_processes(self):
        """A file disables an API process, so that HAProxy removes it from the pool."""
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            for number, worker in enumerate(self.workers):
                self.flags[number].touch()
                self.wait_until_gone(number)
                wait_until(lambda name=NAMES[number]: self.proxy.server(name)['scur'] == '0')
                worker.stop()
                traffic.wait_for(204, 60)
                self.flags[number].unlink()
                worker.start()
                self.wait_until_back(number)
                traffic.wait_for(204, 30)
        self.check(traffic, failed=0)
