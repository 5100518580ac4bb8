"""Checks of an SQLite database."""

import os
import pathlib

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.preflight import database
from placement.admin.preflight.model import Verdict, failure, ok, warning


def read_writable(_conn: sa.Connection, config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the file and its directory are writable."""
    name = database.database_url(config).database
    if name in (None, '', ':memory:'):
        return [judge_memory()]
    path = pathlib.Path(str(name)).absolute()
    return [judge_writable(str(path), os.access(path, os.W_OK), os.access(path.parent, os.W_OK))]


def judge_memory() -> Verdict:
    """Return the verdict for a database in memory."""
    return warning(
        'The database is in memory. A process loses all data when it ends.',
        'Set [placement_database] connection to the URL of a file or of a server.',
    )


def judge_writable(path: str, file: bool, directory: bool) -> Verdict:
    """Judge whether the file and its directory are writable for the user of the command."""
    if file and directory:
        return ok(f'{path} and its directory are writable.')
    if file:
        return failure(
            f'The directory of {path} is not writable, so that SQLite cannot create its WAL.',
            'Make the directory writable for the user of the service.',
        )
    return failure(f'{path} is not writable.', 'Make it writable for the user of the service.')
