"""Runs the service under uWSGI while random requests are sent to it."""

from pathlib import Path
import tempfile

import sqlalchemy as sa

from placement.openapi import files
from placement.tests import servers
from placement.tests.functional.web import commands
from tools.fuzz.session import Problem, Result, Session
from tools.perf import service

_SETTINGS = {
    'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': 'true',
    'PYTHONPATH': commands.SEARCH_PATH,
}
# The number of lines of the log that a report contains.
_SHOWN_LINES = 100


def fuzz(version: str, admin: sa.URL, count: int, seed: int) -> Result:
    """Send the requests of one document to a service of its own with a database of its own.

    :param admin: the URL of an administrative database of the server
    :raises unittest.SkipTest: uWSGI is not installed
    """
    name = f'fuzz_{version.replace(".", "_")}'
    database = servers.create_database(admin, name)
    with tempfile.TemporaryDirectory(prefix='placement-fuzz-') as folder:
        log = Path(folder, 'log')
        with service.running(database, commands.uwsgi, settings=_SETTINGS, log=log) as worker:
            url = f'http://127.0.0.1:{worker.port}'
            result = Session(files.content(version), url).run(count, seed)
        lines = log.read_text(errors='replace').splitlines()
    if errors := [line for line in lines if ' ERROR ' in line or ' CRITICAL ' in line]:
        description = '\n'.join([f'{len(errors)} lines report errors', *errors[:_SHOWN_LINES]])
        problem = Problem('log of the service', description, 'the request ID is in the log')
        result.problems[problem.operation, description] = problem
    servers.drop_database(admin, name)
    return result
