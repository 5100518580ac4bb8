"""A test case that runs the service with a web server."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
import tempfile

from oslotest import base
from testtools import content

from placement.tests import where
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands

HEADERS = {
    'X-Auth-Token': 'admin',
    'X-Roles': 'admin,service',
    'OpenStack-API-Version': 'placement latest',
    'Content-Type': 'application/json',
}
PROVIDER = '11111111-1111-1111-1111-111111111111'


class FolderTestCase(base.BaseTestCase):
    """Creates a directory, whose logs are part of the report of a failure."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='placement-web-')
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.addCleanup(self.show_logs)

    def show_logs(self) -> None:
        """Attach the output of the server to the report of a failure."""
        for path in self.folder.rglob('*.log'):
            text = path.read_text(errors='replace')
            self.addDetail(str(path.relative_to(self.folder)), content.text_content(text))


@where.only_on('sqlite', reason='Tests of web servers run only on SQLite.')
class TestCase(FolderTestCase):
    """Creates a directory for a SQLite file; `serve` starts a server on that database."""

    def setUp(self) -> None:
        super().setUp()
        self.database = self.folder / 'placement.db'

    def serve(
        self, command: Callable[[int], Sequence[str]], settings: Mapping[str, str] | None = None
    ) -> None:
        """Start a server that runs until the end of the test.

        :param settings: additional environment variables
        """
        self.worker = machines.Worker(
            f'sqlite:///{self.database}',
            command,
            settings={
                'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'true',
                'PYTHONPATH': commands.SEARCH_PATH,
                **(settings or {}),
            },
            log=self.folder / 'server.log',
        )
        self.addCleanup(self.worker.stop)
