"""If the service cannot start, web servers print one line with the reason, and no traceback."""

from collections.abc import Sequence
import contextlib
import os
import subprocess

import requests

from placement.tests.functional.faults import machines
from placement.tests.functional.programs import START_ERROR
from placement.tests.functional.web import base, commands
from placement.tests.waiting import LONGEST, wait_until

REASON = '[placement_database] connection has no value.'


class FailedStartTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.folder / 'server.log'
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
        self.addCleanup(process.terminate)
        return process

    def reports(self) -> list[str]:
        """Return the lines of the log that contain the reason; the log has no traceback."""
        log = self.log.read_text()
        self.assertNotIn('Traceback', log)
        self.assertNotIn('File "', log)
        return [line for line in log.splitlines() if REASON in line]

    def test_uwsgi_exits(self) -> None:
        process = self.start(commands.uwsgi(machines.free_port()))
        self.assertNotEqual(0, process.wait(LONGEST))
        (report,) = self.reports()
        self.assertTrue(report.startswith(START_ERROR), report)

    def test_apache_tries_again(self) -> None:
        """As soon as the configuration is correct, the next request starts the service."""
        folder = self.folder / 'apache'
        folder.mkdir()
        folder.chmod(0o777)
        port = machines.free_port()
        self.start(commands.mod_wsgi(port, folder))
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

    def status(self, port: int) -> int:
        """Return the status of `GET /`, after the server has started to listen."""
        url = f'http://127.0.0.1:{port}/'

        def listens() -> bool:
            with contextlib.suppress(requests.ConnectionError):
                self.response = requests.get(url, timeout=LONGEST)
                return True
            return False

        wait_until(listens, 'the server does not listen')
        return self.response.status_code
