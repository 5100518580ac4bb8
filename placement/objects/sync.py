"""What a process makes sure of when it starts: the standard traits and resource classes.

Any number of processes may do this at once, with libraries of different age: each adds what
it misses, and the one that meets another's row runs its step again.
"""

import os_resource_classes
import os_traits
import sqlalchemy as sa

from placement import db_api
from placement.db import startup
from placement.db.sqlalchemy import models

_done: set[str] = set()


def reset() -> None:
    """Forget what this process has done, so that it is done again. Tests need this."""
    _done.clear()


def sync_traits() -> None:
    """Insert the traits of the os-traits library that the database misses, once per process.

    Rows that the library no longer knows stay.
    """
    if 'traits' not in _done:
        db_api.write(_insert_missing_traits)
        _done.add('traits')


def sync_resource_classes() -> None:
    """Insert the classes of os-resource-classes that the database misses, once per process.

    A standard class has its position in the library's list as its id, in every database.
    """
    if 'resource_classes' not in _done:
        db_api.write(_insert_missing_resource_classes)
        _done.add('resource_classes')


def _insert_missing_traits(conn: sa.Connection) -> None:
    present = set(conn.scalars(sa.select(models.traits.c.name)))
    missing = sorted(set(os_traits.get_traits()) - present)
    if missing:
        conn.execute(sa.insert(models.traits), [{'name': name} for name in missing])


def _insert_missing_resource_classes(conn: sa.Connection) -> None:
    present = set(conn.scalars(sa.select(models.resource_classes.c.name)))
    missing = [
        {'id': id, 'name': name}
        for id, name in enumerate(os_resource_classes.STANDARDS)
        if name not in present
    ]
    if missing:
        with startup.explicit_zero(conn):
            conn.execute(sa.insert(models.resource_classes), missing)
