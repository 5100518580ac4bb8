"""Runs the service under uWSGI while random requests are sent to it."""

from collections.abc import Iterator
import contextlib
from dataclasses import dataclass
from pathlib import Path
import tempfile

import sqlalchemy as sa

from placement.openapi import files
from placement.tests import servers
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands
from tools.fuzz.session import Problem, Result, Session

_SETTINGS = {
    'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'true',
    'PYTHONPATH': commands.SEARCH_PATH,
}
# The number of lines of the log that a report contains.
_SHOWN_LINES = 100


@dataclass(frozen=True, slots=True)
class Service:
    """A running service.

    :ivar url: its URL
    :ivar log: the file with its log
    """

    url: str
    log: Path

    def errors(self) -> list[str]:
        """Return the lines of the log that report an error of the service."""
        lines = self.log.read_text(errors='replace').splitlines()
        return [line for line in lines if ' ERROR ' in line or ' CRITICAL ' in line]


@contextlib.contextmanager
def running(database: str) -> Iterator[Service]:
    """Run the service with a database, without Keystone, while the context is active.

    :param database: the URL of an empty database
    :raises unittest.SkipTest: uWSGI is not installed
    """
    with tempfile.TemporaryDirectory(prefix='placement-fuzz-') as folder:
        log = Path(folder, 'log')
        worker = machines.Worker(database, commands.uwsgi, _SETTINGS, log)
        try:
            yield Service(f'http://127.0.0.1:{worker.port}', log)
        finally:
            worker.stop()


def fuzz(version: str, admin: sa.URL, count: int, seed: int) -> Result:
    """Send the requests of one document to a service of its own with a database of its own.

    :param admin: the URL of an administrative database of the server
    """
    name = f'fuzz_{version.replace(".", "_")}'
    with running(servers.create_database(admin, name)) as service:
        result = Session(files.content(version), service.url).run(count, seed)
        if errors := service.errors():
            description = '\n'.join([f'{len(errors)} lines report errors', *errors[:_SHOWN_LINES]])
            problem = Problem('log of the service', description, 'the request ID is in the log')
            result.problems[problem.operation, description] = problem
    servers.drop_database(admin, name)
    return result
