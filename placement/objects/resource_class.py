"""Resource classes: the kinds of things that providers have. Standard ones come with a library.

The application chooses the ids: a standard class has its position in the library's list, custom
ones count from 10000 (microversion 1.2).
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
import datetime
from typing import TYPE_CHECKING

import os_resource_classes as orc
import sqlalchemy as sa

from placement import db_api, exception
from placement.db import names as db_names
from placement.db.sqlalchemy import models
from placement.objects import generation

if TYPE_CHECKING:
    from placement.context import RequestContext

FIRST_CUSTOM_ID = 10000

_CLASSES = models.resource_classes
_COLUMNS = (_CLASSES.c.id, _CLASSES.c.name, _CLASSES.c.updated_at, _CLASSES.c.created_at)
_IDS = sa.select(_CLASSES.c.name, _CLASSES.c.id).where(
    _CLASSES.c.name.in_(sa.bindparam('names', expanding=True))
)


@dataclass(frozen=True, slots=True)
class ResourceClass:
    """A resource class as clients see it, and its id."""

    id: int
    name: str
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


def is_custom(name: str) -> bool:
    """Whether a name is that of a custom class."""
    return name.startswith(orc.CUSTOM_NAMESPACE)


def find(ctx: 'RequestContext') -> list[ResourceClass]:
    """All resource classes, the standard ones first."""
    with db_api.reader() as conn:
        rows = conn.execute(sa.select(*_COLUMNS).order_by(_CLASSES.c.id)).all()
    return [ResourceClass(*row) for row in rows]


def get(ctx: 'RequestContext', name: str) -> ResourceClass:
    """One class by name.

    :raises exception.ResourceClassNotFound:
    """
    with db_api.reader() as conn:
        row = conn.execute(sa.select(*_COLUMNS).where(_CLASSES.c.name == name)).first()
    if row is None:
        raise exception.ResourceClassNotFound(name)
    return ResourceClass(*row)


def create(ctx: 'RequestContext', name: str) -> None:
    """Create a custom class.

    :raises exception.ResourceClassExists:
    """
    if not ensure(ctx, name):
        raise exception.ResourceClassExists(name)


def ensure(ctx: 'RequestContext', name: str) -> bool:
    """Create a custom class unless it is there.

    :returns: whether it was created
    """

    def work(conn: sa.Connection) -> bool:
        if _id_of(conn, name) is not None:
            return False
        highest = conn.execute(sa.select(sa.func.max(_CLASSES.c.id))).scalar()
        new_id = max(FIRST_CUSTOM_ID, (highest or 0) + 1)
        conn.execute(sa.insert(_CLASSES), {'id': new_id, 'name': name})
        return True

    return db_api.write(work)


def rename(ctx: 'RequestContext', name: str, new_name: str) -> None:
    """Rename a custom class, in use or not (microversions 1.2 to 1.6).

    :raises exception.ResourceClassNotFound: no class has the old name
    :raises exception.StandardResourceClass:
    :raises exception.ResourceClassExists: another class has the new name
    """

    def work(conn: sa.Connection) -> None:
        class_id = _lock(conn, name, 'update')
        if _id_of(conn, new_name) not in (None, class_id):
            raise exception.ResourceClassExists(new_name)
        conn.execute(sa.update(_CLASSES).where(_CLASSES.c.id == class_id).values(name=new_name))

    db_api.write(work)


def delete(ctx: 'RequestContext', name: str) -> None:
    """Delete a custom class that no provider has inventory of.

    :raises exception.ResourceClassNotFound:
    :raises exception.StandardResourceClass:
    :raises exception.ResourceClassInUse:
    """

    def work(conn: sa.Connection) -> None:
        class_id = _lock(conn, name, 'delete')
        stock = models.inventories
        in_use = conn.execute(
            sa.select(stock.c.id).where(stock.c.resource_class_id == class_id).limit(1)
        ).first()
        if in_use is not None:
            raise exception.ResourceClassInUse(name)
        conn.execute(sa.delete(_CLASSES).where(_CLASSES.c.id == class_id))

    db_api.write(work)


def ids(conn: sa.Connection, names: Collection[str]) -> dict[str, int]:
    """The ids of classes by requested name.

    :raises exception.UnknownResourceClasses: naming all that do not exist
    """
    return _known(conn, names)[0]


def stored_names(conn: sa.Connection, names: Collection[str]) -> dict[str, str]:
    """The stored names of classes by requested name.

    :raises exception.UnknownResourceClasses: naming all that do not exist
    """
    return find_ids(conn, names)[1]


def find_ids(conn: sa.Connection, names: Collection[str]) -> tuple[dict[str, int], dict[str, str]]:
    """The ids of classes by stored name, and their stored names by requested name.

    :raises exception.UnknownResourceClasses: naming all that do not exist
    """
    requested, stored = _known(conn, names)
    by_id = {id_: name for name, id_ in stored.items()}
    return stored, {name: by_id[id_] for name, id_ in requested.items()}


def _known(conn: sa.Connection, names: Collection[str]) -> tuple[dict[str, int], dict[str, int]]:
    """The ids of classes by requested name, and by stored name."""
    if not names:
        return {}, {}
    wanted = set(names)
    stored = {row.name: row.id for row in conn.execute(_IDS, {'names': sorted(wanted)})}
    requested = db_names.ids(conn, _CLASSES.c.name, wanted, stored)
    unknown = wanted - requested.keys()
    if unknown:
        raise exception.UnknownResourceClasses(unknown)
    return requested, stored


def hold(conn: sa.Connection, classes: Mapping[str, int]) -> None:
    """Keep custom classes from being deleted while inventory of them is added.

    Touching the rows locks them on one server, and on a cluster a rival that deletes one of
    them meets the touch.

    :param classes: ids by stored name; standard classes need no holding
    :raises exception.LostSwap: one of them is gone already
    """
    custom = sorted(class_id for name, class_id in classes.items() if is_custom(name))
    if generation.touch(conn, _CLASSES, custom) != len(custom):
        raise exception.LostSwap('A resource class')


def _id_of(conn: sa.Connection, name: str) -> int | None:
    return conn.execute(sa.select(_CLASSES.c.id).where(_CLASSES.c.name == name)).scalar()


def _lock(conn: sa.Connection, name: str, action: str) -> int:
    """Lock a custom class, and return its id."""
    row = conn.execute(
        sa.select(_CLASSES.c.id, _CLASSES.c.name).where(_CLASSES.c.name == name).with_for_update()
    ).first()
    if row is None:
        raise exception.ResourceClassNotFound(name)
    if not is_custom(row.name):
        raise exception.StandardResourceClass(row.name, action)
    return int(row.id)
