"""Insert missing standard traits and resource classes into the database when the service starts.

Several processes can synchronize the database at the same time, with different versions of the
libraries os-traits and os-resource-classes. Each process inserts the rows that are missing. If
another process inserts one of these rows first, the INSERT violates a unique key, and the
transaction is retried.
"""

import os_resource_classes
import os_traits
import sqlalchemy as sa

from placement.db import engine, startup
from placement.db.sqlalchemy import models

# The synchronizations that this process has completed. A process that loads several WSGI
# applications executes each synchronization only once.
_completed: set[str] = set()


def reset() -> None:
    """Clear the state, so that the next call of each function synchronizes again (for tests)."""
    _completed.clear()


def sync_traits() -> None:
    """Insert the traits of os-traits that are missing in the database, once per process.

    Traits that are no longer in the library remain in the database.
    """
    if 'traits' not in _completed:
        engine.write(_insert_missing_traits)
        _completed.add('traits')


def sync_resource_classes() -> None:
    """Insert the classes of os-resource-classes that are missing in the database, once per process.

    The id of a standard class is its position in the list of the library.
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
