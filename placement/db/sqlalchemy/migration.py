"""The versions of the database schema: finding out, writing down, moving on.

The revisions are in `alembic/versions`. They only go up.
"""

import functools
import logging
import pathlib
import time

from alembic import command, config, script
import sqlalchemy as sa

from placement import db_api, exception
from placement.db import startup
from placement.db.sqlalchemy import models

LOG = logging.getLogger(__name__)

_INI = pathlib.Path(__file__).with_name('alembic.ini')

# Alembic makes this table.
_REVISION = sa.table('alembic_version', sa.column('version_num'))

# How long a process waits for a rival on another node that has stopped making progress.
_PATIENCE = 60.0
_PAUSE = 0.5


def upgrade(revision: str = 'head') -> None:
    """Migrate the database to a revision. Any number of processes may do this at once.

    :param revision: the id of a revision, or `head` for the newest
    :raises RuntimeError: data that a revision does not allow; the text says what to do
    """
    configuration = _configuration()
    target = script.ScriptDirectory.from_config(configuration).as_revision_number(revision)
    if version() == target:
        return
    if _on_cluster():
        _upgrade_beside_rivals(configuration, str(target))
    else:
        _upgrade(configuration, revision)


def version() -> str | None:
    """Give the id of the revision of the database; None when it was never migrated."""
    with db_api.get_placement_engine().connect() as conn:
        if not sa.inspect(conn).has_table(_REVISION.name):
            return None
        return conn.scalar(sa.select(_REVISION.c.version_num))


def require_current() -> None:
    """Check that the database has the tables that this release uses.

    A revision that this release does not have is that of a newer release, and is accepted. So is a
    database without a revision that has all tables.

    :raises exception.UnsuitableDatabase: the schema is older; the text says what to do
    """
    with db_api.reader() as conn:
        tables = set(sa.inspect(conn).get_table_names())
        found = None
        if _REVISION.name in tables:
            found = conn.scalar(sa.select(_REVISION.c.version_num))
    if found is None:
        outdated = not tables.issuperset(models.metadata.tables)
    else:
        outdated = found in _revisions()[1:]
    if outdated:
        raise exception.UnsuitableDatabase(
            f'The schema of the database is at revision {found or "none"}, but this release needs '
            f'revision {_revisions()[0]}. Run `placement-manage db sync`, or set '
            '[placement_database] sync_on_startup to true.'
        )


def stamp(version: str) -> None:
    """Write down that the database has a revision, without changing anything else.

    :raises alembic.util.CommandError: there is no such revision
    """
    configuration = _configuration()
    with startup.alone(db_api.get_placement_engine()) as conn:
        configuration.attributes['connection'] = conn
        command.stamp(configuration, version)


def create_schema(engine: sa.Engine | None = None) -> None:
    """Make all tables from the model, without a revision. For tests.

    :param engine: where to make them; the database of the service if left out
    """
    models.metadata.create_all(db_api.get_placement_engine() if engine is None else engine)


@functools.cache
def _revisions() -> tuple[str, ...]:
    """The ids of all revisions of this release, the newest first."""
    directory = script.ScriptDirectory.from_config(_configuration())
    return tuple(revision.revision for revision in directory.walk_revisions())


def _configuration() -> config.Config:
    return config.Config(str(_INI))


def _on_cluster() -> bool:
    with db_api.get_placement_engine().connect() as conn:
        return startup.is_cluster(conn)


def _upgrade(configuration: config.Config, revision: str) -> None:
    with startup.alone(db_api.get_placement_engine()) as conn:
        configuration.attributes['connection'] = conn
        command.upgrade(configuration, revision)


def _upgrade_beside_rivals(configuration: config.Config, target: str) -> None:
    """Migrate on a cluster, where no lock keeps a process on another node out.

    All nodes execute changes of the schema in one order, and the first statement of each
    revision succeeds once only. So there is one winner for each, and whoever loses looks
    again until the winner has arrived.
    """
    last_seen = version()
    deadline = time.monotonic() + _PATIENCE
    while True:
        try:
            _upgrade(configuration, target)
        except RuntimeError:
            raise  # a revision refuses the data
        except Exception as error:
            # Whatever the rival's work made fail, or a defect: time tells.
            seen = version()
            if seen == target:
                return
            if seen != last_seen:
                last_seen = seen
                deadline = time.monotonic() + _PATIENCE
            elif time.monotonic() > deadline:
                raise
            LOG.info('The schema could not be migrated; another process may be at it: %s', error)
            time.sleep(_PAUSE)
        else:
            return
