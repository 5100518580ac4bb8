"""The files of several processes, and the processes to which they belong."""

from pathlib import Path
import stat

import fixtures
from oslotest import base

from placement import telemetry
from placement.telemetry import declarations, processes, server
from placement.tests.unit import edge
from placement.tests.unit.telemetry.switched_on import SwitchedOn


class FilesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        self.directory = folder / 'metrics'

    def test_the_directory_is_created(self):
        metrics = self.useFixture(SwitchedOn(self.directory))
        telemetry.retried('conflict')
        self.assertEqual({'conflict': 1}, metrics.increased(declarations.RETRIES))
        self.assertEqual(
            {'lock', 'process_0.lock', 'counter_0.db', 'gauge_livesum_0.db', 'histogram_0.db'},
            {path.name for path in self.directory.iterdir()},
        )

    def test_a_request_can_select_metrics(self):
        self.useFixture(SwitchedOn(self.directory))
        environ = edge.environ(QUERY_STRING=f'name[]={declarations.SEARCHES_CUT}')
        body = edge.call(telemetry.serve_metrics, environ).body
        self.assertEqual(1, body.count(b'# TYPE'))
        self.assertIn(f'\n{declarations.SEARCHES_CUT} 0.0\n'.encode(), body)

    def test_directories_that_cannot_be_used(self):
        file = self.directory.with_name('file')
        file.touch()
        for directory, reason in (
            (self.directory / 'below', 'No such file or directory'),
            (file, 'Not a directory'),
            ('', 'The variable is empty'),
        ):
            with (
                fixtures.EnvironmentVariable(server.DIRECTORY, str(directory)),
                fixtures.MonkeyPatch('placement.telemetry._instruments', None),
            ):
                error = self.assertRaises(telemetry.UnavailableError, telemetry.switch_on)
            self.assertEqual(
                f'The directory "{directory}", which the environment variable '
                f'PROMETHEUS_MULTIPROC_DIR names, cannot be used: {reason}',
                str(error),
            )

    def test_other_files_stay(self):
        self.directory.mkdir()
        other = self.directory / 'counter_of_somebody.txt'
        other.touch()
        self.useFixture(SwitchedOn(self.directory))
        self.assertTrue(other.exists())

    def test_an_empty_file(self):
        """A process that is killed can leave such a file."""
        metrics = self.useFixture(SwitchedOn(self.directory))
        telemetry.retried('conflict')
        self.directory.joinpath('counter_1.db').touch()
        self.assertEqual({'conflict': 1}, metrics.increased(declarations.RETRIES))

    def test_numbers(self):
        """A process has the smallest number that no living process has."""
        self.directory.mkdir()
        first, second, third, fourth = (processes.MetricFiles(self.directory) for _ in range(4))
        self.assertEqual([0, 1, 2], [one.number() for one in (first, second, third)])
        second._lock.close()  # as the end of the process does
        self.assertEqual([1], third.remove_gauges())
        self.assertEqual([1, 0, 2], [one.number() for one in (fourth, first, third)])

    def test_a_directory_that_disappears(self):
        self.useFixture(SwitchedOn(self.directory))
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()
        self.assertRaises(OSError, edge.call, telemetry.serve_metrics, edge.environ())

    def test_the_owner_can_write(self):
        self.useFixture(SwitchedOn(self.directory))
        self.assertTrue(stat.S_IMODE(self.directory.stat().st_mode) & stat.S_IWUSR)
