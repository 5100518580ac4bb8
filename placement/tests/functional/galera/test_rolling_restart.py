"""The procedures of doc/source/admin/galera.rst for restarts without a failed request."""

from pathlib import Path
import tempfile

from placement.tests import where
from placement.tests.functional.galera import testcase


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
            for number, node in enumerate(self.nodes):
                name = f'placement/api{number + 1}'
                self.proxy.set_state(name, 'drain')
                self.proxy.wait_until_idle(name)
                node.stop()
                traffic.wait_for(204, 30)
                node.start()
                self.proxy.wait_until_passing(name)
                self.proxy.set_state(name, 'ready')
                self.wait_until_back(number)
                traffic.wait_for(204, 30)
        self.check(traffic)
        self.assertEqual(0, traffic.failed, traffic.unexpected)

    @where.at_night('The gate has other tests of the same cluster.')
    def test_api_processes(self):
        """A file disables an API process, so that HAProxy removes it from the pool."""
        with self.traffic().running() as traffic:
            traffic.wait_for(204, 60)
            for number, worker in enumerate(self.workers):
                self.flags[number].touch()
                self.wait_until_gone(number)
                self.proxy.wait_until_idle(f'placement/api{number + 1}')
                worker.stop()
                traffic.wait_for(204, 60)
                self.flags[number].unlink()
                worker.start()
                self.wait_until_back(number)
                traffic.wait_for(204, 30)
        self.check(traffic)
        self.assertEqual(0, traffic.failed, traffic.unexpected)
