"""Insert missing standard traits and resource classes into the database when the service starts.

Several processes can synchronize the database at the same time, with different versions of the
libraries os-traits and os-resource-classes. Each process inserts the rows that are missing. If
another process inserts one of these rows first, the INSERT violates a unique key, and the
transaction is retried.
"""

from collections.abc import Iterator
import contextlib
import functools

import os_resource_classes
import os_traits
import sqlalchemy as sa

from placement.db import engine
from placement.db.sqlalchemy import models


def reset() -> None:
    """Let the next call of each function synchronize again (for tests)."""
    sync_traits.cache_clear()
    sync_resource_classes.cache_clear()


# A process that loads several WSGI applications executes each synchronization only once.
@functools.cache
def sync_traits() -> None:
    """Insert the traits of os-traits that are missing in the database, once per process.

    Traits that are no longer in the library remain in the database.
    """
    engine.write(_insert_missing_traits)


@functools.cache
def sync_resource_classes() -> None:
    """Insert the classes of os-resource-classes that are missing in the database, once per process.

    The id of a standard class is its position in the list of the library.
    """
    engine.write(_insert_missing_resource_classes)


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
        with explicit_zero(conn):
            conn.execute(sa.insert(models.resource_classes), missing)


@contextlib.contextmanager
def explicit_zero(conn: sa.Connection) -> Iterator[None]:
    """Allow inserts of rows whose auto-increment key is 0.

    By default, MySQL replaces the key 0 with the next free number. This function restores the SQL
    mode afterwards, because the connection returns to the pool.
    """
    if conn.dialect.name != 'mysql':
        yield
        return
    mode = conn.exec_driver_sql('SELECT @@SESSION.sql_mode').scalar_one()
    conn.exec_driver_sql(
        'SET SESSION sql_mode = %s', (f'{mode},NO_AUTO_VALUE_ON_ZERO'.lstrip(','),)
    )
    yield
    # After a failure, the mode is not restored, because the connection may be lost. The mode
    # affects only inserts with key 0, and no other statement of this service inserts such rows.
    conn.exec_driver_sql('SET SESSION sql_mode = %s', (mode,))
