"""Synchronization of the database with the standard traits and resource classes at startup.

Several processes can do this at the same time, with different versions of the libraries. Each
inserts the rows that it does not find. If a concurrent process inserts one of them first, the
insert violates a unique key, and the step is retried.
"""

import os_resource_classes
import os_traits
import sqlalchemy as sa

from placement.db import engine, startup
from placement.db.sqlalchemy import models

# The steps that this process has completed. One process can load several applications.
_completed: set[str] = set()


def reset() -> None:
    """Make the next call of each function synchronize again. Only tests need this."""
    _completed.clear()


def sync_traits() -> None:
    """Insert the traits of os-traits that the database does not have, once per process.

    Traits that are no longer in the library stay in the database.
    """
    if 'traits' not in _completed:
        engine.write(_insert_missing_traits)
        _completed.add('traits')


def sync_resource_classes() -> None:
    """Insert the classes of os-resource-classes that the database does not have, once per process.

    In every database, the id of a standard class is its position in the list of the library.
    """
    if 'resource_classes' not in _completed:
        engine.write(_insert_missing_resource_classes)
        _completed.add('resource_classes')


def _insert_missing_traits(conn: sa.Connection) -> None:
    present = set(conn.scalars(sa.select(models.traits.c.name)))
    missing = sorted(set(os_traits.get_traits()) - present)
    if missing:
        conn.execute(sa.insert(models.traits), [{'name': name} for name in missing])


def _insert_missing_resource_classes(conn: sa.Connection) -> None:
    present = set(conn.scalars(sa.select(models.resource_classes.c.name)))
    missing = [
        {'id': class_id, 'name': name}
        for class_id, name in enumerate(os_resource_classes.STANDARDS)
        if name not in present
    ]
    if missing:
        with startup.explicit_zero(conn):
            conn.execute(sa.insert(models.resource_classes), missing)
