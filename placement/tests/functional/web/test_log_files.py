"""The log of the service in a file that logrotate rotates."""

import grp
import gzip
import os
from pathlib import Path
import pwd
import re
import subprocess
import threading

import fixtures
import requests

from placement.tests import where
from placement.tests.functional.log import examples
from placement.tests.functional.web import base, commands
from placement.tests.waiting import LONGEST, wait_until

_CLIENTS = 4
_ROTATIONS = 4
_LINE = re.compile(r' (\d+) INFO placement\.requestlog \[None (req-\S+) .* status: 200 ')


@where.at_night('The servers take minutes.')
class RotationTest(base.TestCase):
    """Several processes write to a file while logrotate rotates it."""

    def request_id(self) -> str:
        """Send a request and return its request ID."""
        response = requests.get(f'http://127.0.0.1:{self.worker.port}/', timeout=LONGEST)
        response.raise_for_status()
        return response.headers['x-openstack-request-id']

    def test_no_line_is_lost(self) -> None:
        logrotate = commands.program('logrotate')
        text = examples.example('log-to-file').replace(examples.DIRECTORY, str(self.folder))
        (self.folder / 'placement.conf').write_text(text)
        self.useFixture(fixtures.EnvironmentVariable('OS_PLACEMENT_CONFIG_DIR', str(self.folder)))
        self.serve(lambda port: [*commands.uwsgi(port), '--processes', '3'])
        ids: list[str] = []
        end = threading.Event()
        clients = [
            threading.Thread(target=self._send_until, args=(end, ids)) for _ in range(_CLIENTS)
        ]
        for client in clients:
            client.start()
        try:
            # Two of the processes can be fast enough for all clients.
            wait_until(lambda: len({match[1] for match in self._matches()}) > 1)
            for _ in range(_ROTATIONS):
                self._wait_for_more(ids)
                self._rotate(logrotate)
            self._wait_for_more(ids)
        finally:
            end.set()
            for client in clients:
                client.join()

        wait_until(lambda: len(self._matches()) >= len(ids))
        self.assertEqual(sorted(ids), sorted(match[2] for match in self._matches()))
        names = {path.name for path in self.folder.glob('placement.log*')}
        rotated = {f'placement.log.{number}.gz' for number in range(2, _ROTATIONS + 1)}
        self.assertEqual({'placement.log', 'placement.log.1', *rotated}, names)

    def _send_until(self, end: threading.Event, ids: list[str]) -> None:
        while not end.is_set():
            ids.append(self.request_id())

    def _wait_for_more(self, ids: list[str]) -> None:
        count = len(ids) + 50
        wait_until(lambda: len(ids) >= count)

    def _rotate(self, logrotate: str) -> None:
        user, group = pwd.getpwuid(os.geteuid()).pw_name, grp.getgrgid(os.getegid()).gr_name
        text = examples.ROTATION.read_text().replace(examples.DIRECTORY, str(self.folder))
        # The directory also contains the output of uWSGI.
        text = text.replace('/*.log ', '/placement.log ')
        configuration = self.folder / 'logrotate.conf'
        configuration.write_text(text.replace('su placement placement', f'su {user} {group}'))
        configuration.chmod(0o600)
        state = self.folder / 'logrotate.state'
        process = subprocess.run(
            [logrotate, '--force', '--state', str(state), str(configuration)],
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        self.assertEqual((0, '', ''), (process.returncode, process.stdout, process.stderr))

    def _matches(self) -> list[re.Match[str]]:
        """Return the process ID and the request ID of each line of the request log."""
        lines = (
            line for path in self.folder.glob('placement.log*') for line in _text(path).splitlines()
        )
        return [match for line in lines if (match := _LINE.search(line))]


def _text(path: Path) -> str:
    content = path.read_bytes()
    return (gzip.decompress(content) if path.suffix == '.gz' else content).decode()
