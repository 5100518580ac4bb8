"""Migrations of the database schema: upgrade, version and stamp.

The revisions are in `alembic/versions`. They have no downgrade.
"""

import functools
import logging
import pathlib
import time

from alembic import command, config, script
import sqlalchemy as sa

from placement import exception
from placement.db import engine as db_engine
from placement.db import startup
from placement.db.sqlalchemy import models

LOG = logging.getLogger(__name__)

_INI = pathlib.Path(__file__).with_name('alembic.ini')

# Alembic creates this table.
_REVISION = sa.table('alembic_version', sa.column('version_num'))

# On a cluster, an upgrade fails if the revision of the database has not changed for this time.
_STALL_SECONDS = 60.0
_PAUSE_SECONDS = 0.5


def upgrade(revision: str = 'head') -> None:
    """Upgrade the database to a revision. Any number of processes may do this at the same time.

    :param revision: the id of a revision, or `head` for the newest one
    :raises RuntimeError: a revision does not allow the stored data; the text has the remedy
    """
    configuration = _configuration()
    target = script.ScriptDirectory.from_config(configuration).as_revision_number(revision)
    if version() == target:
        return
    if _on_cluster():
        _upgrade_on_cluster(configuration, str(target))
    else:
        _upgrade(configuration, revision)


def version() -> str | None:
    """The id of the revision of the database; None if it has no revision."""
    with db_engine.get_placement_engine().connect() as conn:
        if not sa.inspect(conn).has_table(_REVISION.name):
            return None
        return _revision(conn)


def _revision(conn: sa.Connection) -> str | None:
    revision: str | None = conn.scalar(sa.select(_REVISION.c.version_num))
    return revision


def require_current() -> None:
    """Check that the database has the tables that this release uses.

    An unknown revision is accepted, because it belongs to a newer release. A database without a
    revision is accepted if it has all tables.

    :raises exception.UnsuitableDatabase: the schema is older; the text has the remedy
    """
    with db_engine.reader() as conn:
        tables = set(sa.inspect(conn).get_table_names())
        current = _revision(conn) if _REVISION.name in tables else None
    if current is None:
        outdated = not tables.issuperset(models.metadata.tables)
    else:
        outdated = current in _revisions()[1:]
    if outdated:
        raise exception.UnsuitableDatabase(
            f'The schema of the database is at revision {current or "none"}, but this release '
            f'needs revision {_revisions()[0]}. Run `placement-manage db sync`, or set '
            '[placement_database] sync_on_startup to true.'
        )


def stamp(version: str) -> None:
    """Set the revision of the database without a migration.

    :raises alembic.util.CommandError: the revision does not exist
    """
    configuration = _configuration()
    with startup.exclusive_transaction(db_engine.get_placement_engine()) as conn:
        configuration.attributes['connection'] = conn
        command.stamp(configuration, version)


def create_schema(engine: sa.Engine | None = None) -> None:
    """Create all tables of the model, without a revision. For tests.

    :param engine: the engine of the database; by default the engine of this process
    """
    models.metadata.create_all(db_engine.get_placement_engine() if engine is None else engine)


@functools.cache
def _revisions() -> tuple[str, ...]:
    """The ids of all revisions of this release, from the newest to the oldest."""
    directory = script.ScriptDirectory.from_config(_configuration())
    return tuple(revision.revision for revision in directory.walk_revisions())


def _configuration() -> config.Config:
    return config.Config(str(_INI))


def _on_cluster() -> bool:
    with db_engine.get_placement_engine().connect() as conn:
        return startup.is_cluster(conn)


def _upgrade(configuration: config.Config, revision: str) -> None:
    with startup.exclusive_transaction(db_engine.get_placement_engine()) as conn:
        configuration.attributes['connection'] = conn
        command.upgrade(configuration, revision)


def _upgrade_on_cluster(configuration: config.Config, target: str) -> None:
    """Upgrade on a Galera cluster, where no lock excludes processes on other nodes.

    All nodes execute changes of the schema in the same order, and the first statement of each
    revision succeeds only once. A process whose upgrade fails retries until the database is at the
    target. It gives up if the revision has not changed for `_STALL_SECONDS`.
    """
    last = version()
    deadline = time.monotonic() + _STALL_SECONDS
    while True:
        try:
            _upgrade(configuration, target)
        except RuntimeError:
            raise  # A revision does not allow the stored data.
        except Exception as error:
            # A concurrent upgrade, or a defect. Only the time without progress distinguishes them.
            current = version()
            if current == target:
                return
            if current != last:
                last = current
                deadline = time.monotonic() + _STALL_SECONDS
            elif time.monotonic() > deadline:
                raise
            LOG.info('The upgrade failed, perhaps because of a concurrent upgrade: %s', error)
            time.sleep(_PAUSE_SECONDS)
        else:
            return
