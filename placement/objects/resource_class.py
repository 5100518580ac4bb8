"""Resource classes. The library os-resource-classes defines the standard classes.

The id of a standard class is its position in the list of the library. The ids of custom classes,
which clients create (from microversion 1.2 on), start at 10000.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
import datetime
from typing import Any

import os_resource_classes as orc
import sqlalchemy as sa

from placement import exception
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import generation

FIRST_CUSTOM_ID = 10000

_CLASSES = models.resource_classes
_COLUMNS = (_CLASSES.c.id, _CLASSES.c.name, _CLASSES.c.updated_at, _CLASSES.c.created_at)
_IDS = sa.select(_CLASSES.c.name, _CLASSES.c.id).where(
    _CLASSES.c.name.in_(sa.bindparam('names', expanding=True))
)


@dataclass(frozen=True, slots=True)
class ResourceClass:
    """A resource class."""

    id: int
    name: str
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


def is_custom(name: str) -> bool:
    """Return whether this is the name of a custom class, as opposed to a standard class."""
    return name.startswith(orc.CUSTOM_NAMESPACE)


def list_all() -> list[ResourceClass]:
    """Return all resource classes, ordered by id: standard classes before custom classes."""
    statement = sa.select(*_COLUMNS).order_by(_CLASSES.c.id)
    rows = engine.read(lambda conn: conn.execute(statement).all())
    return [ResourceClass(*row) for row in rows]


def get(name: str) -> ResourceClass:
    """Return the resource class with this name.

    :raises exception.ResourceClassNotFound:
    """
    row = engine.read(lambda conn: _row(conn, name))
    if row is None or row.name != name:
        raise exception.ResourceClassNotFound(name)
    return ResourceClass(*row)


def create(name: str) -> None:
    """Create a custom class.

    :raises exception.ResourceClassExists:
    """
    if not ensure(name):
        raise exception.ResourceClassExists(name)


def ensure(name: str) -> bool:
    """Create a custom class if it does not exist.

    :returns: whether this call created the class
    :raises exception.ResourceClassExists: another class exists whose name the database compares as
        equal
    """

    def work(conn: sa.Connection) -> bool:
        row = _row(conn, name)
        if row is not None and row.name != name:
            raise exception.ResourceClassExists(row.name)
        if row is not None:
            return False
        highest = conn.execute(sa.select(sa.func.max(_CLASSES.c.id))).scalar()
        new_id = max(FIRST_CUSTOM_ID, (highest or 0) + 1)
        conn.execute(sa.insert(_CLASSES), {'id': new_id, 'name': name})
        return True

    return engine.write(work)


def rename(name: str, new_name: str) -> None:
    """Rename a custom class (microversions 1.2 to 1.6), even if inventory of the class exists.

    :raises exception.ResourceClassNotFound: no class has the old name
    :raises exception.StandardResourceClass:
    :raises exception.ResourceClassExists: another class has the new name
    """

    def work(conn: sa.Connection) -> None:
        class_id = _lock(conn, name, 'update')
        row = _row(conn, new_name)
        if row is not None and row.id != class_id:
            raise exception.ResourceClassExists(new_name)
        conn.execute(sa.update(_CLASSES).where(_CLASSES.c.id == class_id).values(name=new_name))

    engine.write(work)


def delete(name: str) -> None:
    """Delete a custom class, if no inventory of the class exists.

    :raises exception.ResourceClassNotFound:
    :raises exception.StandardResourceClass:
    :raises exception.ResourceClassInUse:
    """
    inventories = models.inventories

    def work(conn: sa.Connection) -> None:
        class_id = _lock(conn, name, 'delete')
        in_use = conn.execute(
            sa.select(inventories.c.id).where(inventories.c.resource_class_id == class_id).limit(1)
        ).first()
        if in_use is not None:
            raise exception.ResourceClassInUse(name)
        conn.execute(sa.delete(_CLASSES).where(_CLASSES.c.id == class_id))

    engine.write(work)


def ids(conn: sa.Connection, names: Collection[str]) -> dict[str, int]:
    """Return the id of each named resource class, keyed by class name.

    :raises exception.UnknownResourceClasses: lists all classes that do not exist
    """
    if not names:
        return {}
    stored = {row.name: row.id for row in conn.execute(_IDS, {'names': sorted(set(names))})}
    return require(names, stored)


def require(names: Collection[str], stored: Mapping[str, int]) -> dict[str, int]:
    """Return the id of each named resource class, keyed by class name.

    :param stored: the ids of the classes whose names the database considers equal to `names`, keyed
        by stored name
    :raises exception.UnknownResourceClasses: lists all classes that do not exist
    """
    # Even if the collation of the column ignores letter case, only an identical name is accepted.
    unknown = set(names) - stored.keys()
    if unknown:
        raise exception.UnknownResourceClasses(unknown)
    return {name: stored[name] for name in names}


def touch(conn: sa.Connection, classes: Mapping[str, int]) -> None:
    """Touch the rows of custom classes, so that no class is deleted while inventory of it is added.

    On a single database server, the UPDATE locks the rows. In a Galera cluster, certification
    detects the conflict with a transaction on another node that deletes one of the classes.

    :param classes: the class ids, keyed by class name; standard classes are not touched, because
        they are never deleted
    :raises exception.ConcurrentChange: a concurrent transaction deleted or renamed one of the
        classes
    """
    custom = {class_id: name for name, class_id in classes.items() if is_custom(name)}
    # After the deletion of the class with the highest id, a new class can get the same id.
    same_names = _CLASSES.c.name.in_(sorted(custom.values()))
    if generation.touch(conn, _CLASSES, sorted(custom), same_names) != len(custom):
        raise exception.ConcurrentChange('A resource class')


def _row(conn: sa.Connection, name: str) -> Any:
    return conn.execute(sa.select(*_COLUMNS).where(_CLASSES.c.name == name)).first()


def _lock(conn: sa.Connection, name: str, action: str) -> int:
    """Lock a custom class, and return its id.

    :param action: the verb for the error message: 'update' or 'delete'
    :raises exception.ResourceClassNotFound:
    :raises exception.StandardResourceClass:
    """
    row = conn.execute(
        sa.select(_CLASSES.c.id, _CLASSES.c.name).where(_CLASSES.c.name == name).with_for_update()
    ).first()
    if row is None or row.name != name:
        raise exception.ResourceClassNotFound(name)
    if not is_custom(name):
        raise exception.StandardResourceClass(name, action)
    return int(row.id)
