"""The metrics of several processes are added up, also after processes have ended."""

from pathlib import Path
import subprocess
import sys

import fixtures
from oslotest import base

from placement.telemetry import declarations, processes, server
from placement.tests import where

# A process that counts, starts a request, and ends when its standard input is closed.
COUNT = """
import sys
from placement import telemetry

telemetry.switch_on()
telemetry.request_started(True)
for _ in range(int(sys.argv[1])):
    telemetry.retried('conflict')
    telemetry.request_ended('/', 'GET', '2xx', 0.1)
    telemetry.request_started(True)
print('counted', flush=True)
sys.stdin.read()
"""
# A process whose child process counts, like the workers of uWSGI without lazy-apps.
FORK = """
import os
from placement import telemetry
from placement.tests import where

telemetry.switch_on()
telemetry.retried('conflict')
if os.fork():
    telemetry.retried('conflict')
    os.wait()
else:
    telemetry.retried('conflict')
"""
LABELS = (('method', 'GET'), ('route', '/'), ('status', '2xx'))
REQUESTS = (f'{declarations.REQUEST_DURATION}_count', LABELS)
RETRIES = (declarations.RETRIES, (('reason', 'conflict'),))
IN_PROGRESS = (declarations.REQUESTS_IN_PROGRESS, ())


@where.only_on('sqlite', reason='No SQL statement is executed.')
class ProcessesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path, 'metrics')
        self.useFixture(fixtures.EnvironmentVariable(server.DIRECTORY, str(self.directory)))

    def start(self, count: int) -> subprocess.Popen[str]:
        """Start a process that counts; the process may not have counted yet."""
        process = subprocess.Popen(
            (sys.executable, '-c', COUNT, str(count)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def counted(self, *counts: int) -> list[subprocess.Popen[str]]:
        """Return processes that have counted. They have started together."""
        started = [self.start(count) for count in counts]
        for process in started:
            self.assertEqual('counted\n', process.stdout.readline())
        return started

    def files(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())

    def gauges(self) -> list[str]:
        return [name for name in self.files() if name.startswith('gauge_')]

    def sums(self) -> tuple[float, float, float]:
        """Return the numbers of retries, of requests, and of requests in progress."""
        collector = processes.AllProcesses(processes.MetricFiles(self.directory))
        values = {
            (sample.name, tuple(sorted(sample.labels.items()))): sample.value
            for metric in collector.collect()
            for sample in metric.samples
        }
        return values.get(RETRIES, 0), values.get(REQUESTS, 0), values.get(IN_PROGRESS, 0)

    def test_processes_that_start_together(self):
        self.counted(1, 2, 3, 4, 5, 6)
        self.assertEqual((21, 21, 6), self.sums())

    def test_a_process_that_exits_takes_its_gauges_and_leaves_its_counters(self):
        first, _ = self.counted(1, 2)
        first.communicate()
        self.assertEqual((3, 3, 1), self.sums())
        self.assertEqual(1, len(self.gauges()), self.files())

    def test_a_process_that_is_killed(self):
        first, _ = self.counted(1, 2)
        first.kill()
        first.wait()
        self.assertEqual(2, len(self.gauges()), self.files())
        self.assertEqual((3, 3, 1), self.sums())
        self.assertEqual(1, len(self.gauges()), self.files())

    def test_the_next_process_continues_the_counters_of_a_killed_one(self):
        first, _ = self.counted(1, 2)
        first.kill()
        first.wait()
        before = self.files()
        self.counted(4)
        self.assertEqual(before, self.files())
        self.assertEqual((7, 7, 2), self.sums())

    def test_the_number_of_files_is_bounded(self):
        self.counted(1)
        for number in range(1, 6):
            (process,) = self.counted(1)
            process.communicate()
            self.assertEqual((1 + number, 1 + number, 1), self.sums())
            # A lock, and for each of two processes a lock, counters, and histograms.
            self.assertEqual(7 + len(self.gauges()), len(self.files()), self.files())

    def test_a_restart_of_the_service_starts_at_zero(self):
        """Also if the previous processes were killed."""
        exiting, killed = self.counted(1, 2)
        exiting.communicate()
        killed.kill()
        killed.wait()
        self.counted(4)
        self.assertEqual((4, 4, 1), self.sums())
        self.assertEqual(3, len(list(self.directory.glob('*.db'))), self.files())

    def test_a_child_process_has_its_own_files(self):
        waiting = self.counted(0)
        subprocess.run((sys.executable, '-c', FORK), check=True)
        self.assertEqual((3, 0, 1), self.sums())
        self.assertEqual(3, len(list(self.directory.glob('counter_*'))), self.files())
        self.assertIsNone(waiting[0].poll())
