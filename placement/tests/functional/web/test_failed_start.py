"""If the service cannot start, web servers print one line with the reason, and no traceback."""

from collections.abc import Sequence
import os
import signal
import subprocess
import time
import urllib.error
import urllib.request

from placement.tests.functional.faults import machines
from placement.tests.functional.programs import START_ERROR
from placement.tests.functional.web import base, commands
from placement.tests.waiting import LONGEST

MODULE = 'placement.wsgi.api'
REASON = '[placement_database] connection has no value.'


class FailedStartTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.folder / 'server.log'
        self.addCleanup(self.show_logs)
        self.configuration = self.folder / 'placement.conf'
        self.configuration.write_text('[api]\nauth_strategy = noauth2\n')

    def start(self, command: Sequence[str]) -> subprocess.Popen[bytes]:
        """Start a server with a configuration that has no connection."""
        environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        environment['OS_PLACEMENT_CONFIG_DIR'] = str(self.folder)
        environment['PYTHONPATH'] = commands.SEARCH_PATH
        with self.log.open('wb') as log:
            process = subprocess.Popen(command, env=environment, stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def reports(self) -> list[str]:
        """Return the lines of the log that contain the reason; the log has no traceback."""
        log = self.log.read_text()
        self.assertNotIn('Traceback', log)
        self.assertNotIn('File "', log)
        return [line for line in log.splitlines() if REASON in line]

    def test_waitress_exits(self) -> None:
        process = self.start(commands.waitress(machines.free_port(), MODULE))
        self.assertEqual(1, process.wait(LONGEST))
        (report,) = self.reports()
        self.assertTrue(report.startswith(START_ERROR), report)
        self.assertEqual([report], self.log.read_text().splitlines())

    def test_uwsgi_exits(self) -> None:
        process = self.start(commands.uwsgi(machines.free_port(), module=MODULE))
        self.assertNotEqual(0, process.wait(LONGEST))
        (report,) = self.reports()
        self.assertTrue(report.startswith(START_ERROR), report)

    def test_debug_shows_the_traceback(self) -> None:
        self.configuration.write_text('[DEFAULT]\ndebug = true\n')
        process = self.start(commands.waitress(machines.free_port(), MODULE))
        self.assertEqual(1, process.wait(LONGEST))
        self.assertIn('Traceback', self.log.read_text())

    def test_apache_tries_again(self) -> None:
        """As soon as the configuration is correct, the next request starts the service."""
        folder = self.folder / 'apache'
        folder.mkdir()
        folder.chmod(0o777)
        port = machines.free_port()
        process = self.start(commands.apache(port, folder, MODULE))
        self.log = folder / 'error.log'
        self.assertEqual(500, self.status(port))
        for report in self.reports():
            self.assertIn(f'] {START_ERROR}', report)
        self.assertNotEqual([], self.reports())

        database = folder / 'placement.db'
        with self.configuration.open('a') as configuration:
            configuration.write(
                f'[placement_database]\nconnection = sqlite:///{database}\nsync_on_startup = true\n'
            )
        self.assertEqual(200, self.status(port))
        process.send_signal(signal.SIGTERM)
        process.wait(LONGEST)

    def status(self, port: int) -> int:
        """Return the status of `GET /`, after the server has started to listen."""
        deadline = time.monotonic() + LONGEST
        while True:
            try:
                with urllib.request.urlopen(f'http://127.0.0.1:{port}/', timeout=LONGEST) as reply:
                    return reply.status
            except urllib.error.HTTPError as error:
                return error.code
            except OSError:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.1)
