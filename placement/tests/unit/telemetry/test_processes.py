"""The files of several processes, and the processes to which they belong."""

import os
from pathlib import Path
import stat
import subprocess
from unittest import mock

import fixtures
from oslotest import base

from placement import telemetry
from placement.telemetry import declarations, processes, server
from placement.tests.unit import edge
from placement.tests.unit.telemetry.switched_on import SwitchedOn


class IdentityTest(base.BaseTestCase):
    def test_this_process_is_alive(self):
        self.assertTrue(processes.is_alive(processes.identity()))

    def test_a_later_process_with_the_same_id_is_another_process(self):
        pid, _, start_time = processes.identity().partition('-')
        self.assertFalse(processes.is_alive(f'{pid}-{int(start_time) - 1}'))

    def test_a_process_that_ended(self):
        with subprocess.Popen(('sleep', '60')) as child:
            name = f'{child.pid}-{processes._start_time(child.pid)}'
            self.assertTrue(processes.is_alive(name))
            child.kill()
            # The process is a zombie until its parent reads its status.
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
            self.assertFalse(processes.is_alive(name))
        self.assertFalse(processes.is_alive(name))

    def test_a_system_without_proc(self):
        self.useFixture(fixtures.MonkeyPatch('placement.telemetry.processes._PROC', Path('/no')))
        self.useFixture(fixtures.MonkeyPatch('placement.telemetry.processes._known', {}))
        self.assertEqual(f'{os.getpid()}-0', processes.identity())
        for error, alive in (
            (None, True),
            (ProcessLookupError, False),
            (PermissionError, True),  # it is a process of another user
        ):
            with mock.patch.object(os, 'kill', side_effect=error):
                self.assertEqual(alive, processes.is_alive('123-0'))


class FilesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = Path(self.useFixture(fixtures.TempDir()).path)
        self.directory = folder / 'metrics'

    def test_the_directory_is_created(self):
        metrics = self.useFixture(SwitchedOn(self.directory))
        telemetry.retried('conflict')
        self.assertEqual({'conflict': 1}, metrics.increased(declarations.RETRIES))
        name = processes.identity()
        self.assertEqual(
            {
                'lock',
                *(f'{kind}_{name}.db' for kind in ('counter', 'gauge_livesum', 'histogram')),
            },
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

    def test_damaged_files_of_ended_processes_are_removed(self):
        """A process that is killed can leave such files."""
        metrics = self.useFixture(SwitchedOn(self.directory))
        telemetry.retried('conflict')
        too_long_key = b'\x40' + b'\0' * 7 + b'\x7f' + b'\0' * 55
        for number, content in enumerate((b'', b'\x01', too_long_key)):
            (self.directory / f'counter_{os.getpid()}-{number}.db').write_bytes(content)
        with mock.patch.object(processes.LOG, 'warning') as warning:
            self.assertEqual({'conflict': 1}, metrics.increased(declarations.RETRIES))
        self.assertEqual(3, warning.call_count)
        self.assertEqual(2, len(list(self.directory.glob('counter_*'))))  # one is the archive

    def test_a_directory_that_disappears(self):
        self.useFixture(SwitchedOn(self.directory))
        for path in self.directory.iterdir():
            path.unlink()
        self.directory.rmdir()
        self.assertRaises(OSError, edge.call, telemetry.serve_metrics, edge.environ())
        processes.MetricFiles(self.directory).leave()  # raises nothing

    def test_the_owner_can_write(self):
        self.useFixture(SwitchedOn(self.directory))
        self.assertTrue(stat.S_IMODE(self.directory.stat().st_mode) & stat.S_IWUSR)
