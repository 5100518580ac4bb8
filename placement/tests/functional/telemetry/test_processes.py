"""The metrics of several processes are added up, also after processes have ended."""

import os
from pathlib import Path

import fixtures
from oslotest import base

from placement.tests import where
from placement.tests.functional import forked, programs

# A process that has served requests, and serves the last one until its standard input is closed.
# Meanwhile, it responds to requests for the metrics.
COUNT = """
import sys
from placement import telemetry
from placement.requestlog import RequestMetrics
from placement.tests.unit import edge

def last(environ, start_response):
    print('counted', flush=True)
    for _ in sys.stdin:
        body = edge.call(telemetry.serve_metrics, edge.environ()).body
        print(body.decode() + '# END', flush=True)
    return edge.ok(environ, start_response)

telemetry.switch_on()
for application in (*[edge.ok] * int(sys.argv[1]), last):
    edge.call(RequestMetrics(application, lambda environ: '/'), edge.environ())
"""
# A process whose child process counts, like the workers of uWSGI without lazy-apps.
FORK = """
import os
from placement import telemetry
from placement.requestlog import RequestMetrics
from placement.tests.unit import edge

telemetry.switch_on()
application = RequestMetrics(edge.ok, lambda environ: '/')
edge.call(application, edge.environ())
child = os.fork()
edge.call(application, edge.environ())
if child:
    os.wait()
"""
REQUESTS = 'placement_http_request_duration_seconds_count{method="GET",route="/",status="2xx"}'
IN_PROGRESS = 'placement_http_requests_in_progress'


@where.only_on('sqlite', reason='No SQL statement is executed.')
class ProcessesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.directory = Path(self.useFixture(fixtures.TempDir()).path, 'metrics')
        self.useFixture(
            fixtures.EnvironmentVariable('PROMETHEUS_MULTIPROC_DIR', str(self.directory))
        )

    def counted(self, *counts: int) -> list[forked.Process]:
        """Return processes that have counted requests. They have started together."""
        pipes = {'stdin': programs.PIPE, 'stdout': programs.PIPE}
        started = [
            programs.shared().start(('-c', COUNT, str(count)), dict(os.environ), **pipes)
            for count in counts
        ]
        for process in started:
            self.addCleanup(self.kill, process)
            self.assertEqual(b'counted\n', process.stdout.readline())
        return started

    def kill(self, process: forked.Process) -> None:
        process.kill()
        self.exit(process)

    def exit(self, process: forked.Process) -> None:
        process.stdin.close()
        process.wait()
        process.stdout.close()

    def files(self) -> list[str]:
        return sorted(path.name for path in self.directory.iterdir())

    def assert_sums(self, process: forked.Process, requests: int, in_progress: int) -> None:
        """Check the numbers of requests and of requests in progress that a process returns."""
        process.stdin.write(b'\n')
        process.stdin.flush()
        lines = dict(
            line.rpartition(' ')[::2]
            for line in iter(lambda: process.stdout.readline().decode().strip(), '# END')
        )
        found = float(lines.get(REQUESTS, 0)), float(lines[IN_PROGRESS])
        self.assertEqual((requests, in_progress), found)

    def test_processes_that_start_together(self):
        for process in self.counted(1, 2, 3, 4, 5, 6):
            self.assert_sums(process, 21, 6)

    def test_a_process_that_ends_takes_its_gauges_and_leaves_its_counters(self):
        first, second, third = self.counted(1, 2, 4)
        self.assert_sums(third, 7, 3)
        # The request that an exiting process served has ended.
        self.exit(first)
        self.assert_sums(third, 8, 2)
        # The next process removes the gauges of a killed one.
        self.kill(second)
        self.assert_sums(third, 8, 2)
        (fourth,) = self.counted(1)
        self.assert_sums(fourth, 9, 2)

    def test_a_child_process_has_its_own_files(self):
        (waiting,) = self.counted(0)
        before = len(self.files())
        result = programs.shared().run(('-c', FORK), (), dict(os.environ))
        self.assertEqual(0, result.status, result.stderr)
        self.assert_sums(waiting, 3, 1)
        # The parent process and the child process.
        self.assertLessEqual(2, len(self.files()) - before)
