"""Resource providers: reading, creating, renaming, moving and deleting them.

A provider whose `root_provider_id` is NULL comes from an old release whose online data
migrations were never run; it is invisible here.
"""

from collections.abc import Collection
from dataclasses import dataclass
import datetime
import enum
from typing import Any

from oslo_utils import timeutils
import sqlalchemy as sa

from placement import db_api, exception
from placement.db import names
from placement.db.sqlalchemy import models
from placement.objects import generation, tree

_PROVIDERS = models.resource_providers
_ROOT = models.resource_providers.alias('root')
_PARENT = models.resource_providers.alias('parent')

COLUMNS = (
    _PROVIDERS.c.id,
    _PROVIDERS.c.uuid,
    _PROVIDERS.c.name,
    _PROVIDERS.c.generation,
    _PROVIDERS.c.root_provider_id.label('root_id'),
    _PROVIDERS.c.parent_provider_id.label('parent_id'),
    _ROOT.c.uuid.label('root_uuid'),
    _PARENT.c.uuid.label('parent_uuid'),
    _PROVIDERS.c.updated_at,
    _PROVIDERS.c.created_at,
)
SELECT = sa.select(*COLUMNS).select_from(
    _PROVIDERS.join(_ROOT, _ROOT.c.id == _PROVIDERS.c.root_provider_id).outerjoin(
        _PARENT, _PARENT.c.id == _PROVIDERS.c.parent_provider_id
    )
)
_BY_UUID = SELECT.where(_PROVIDERS.c.uuid == sa.bindparam('uuid'))
ID = _PROVIDERS.c.id
_LOCK = (
    sa.select(
        _PROVIDERS.c.id,
        _PROVIDERS.c.uuid,
        _PROVIDERS.c.generation,
        _PROVIDERS.c.root_provider_id.label('root_id'),
        _PROVIDERS.c.parent_provider_id.label('parent_id'),
    )
    .where(_PROVIDERS.c.uuid.in_(sa.bindparam('uuids', expanding=True)))
    .order_by(_PROVIDERS.c.uuid)
    .with_for_update()
)


class _Keep(enum.Enum):
    """The parent that a body does not mention."""

    PARENT = enum.auto()


KEEP_PARENT = _Keep.PARENT


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider with the uuids of its root (itself, for a root) and its parent."""

    id: int
    uuid: str
    name: str
    generation: int
    root_id: int
    parent_id: int | None
    root_uuid: str
    parent_uuid: str | None
    updated_at: datetime.datetime | None
    created_at: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class Locked:
    """What a writer needs of a provider whose row it has locked."""

    id: int
    uuid: str
    generation: int
    root_id: int
    parent_id: int | None


def get(uuid: str) -> Provider:
    """One provider by uuid.

    :raises exception.ResourceProviderNotFound:
    """
    with db_api.reader() as conn:
        return read(conn, uuid)


def read(conn: sa.Connection, uuid: str) -> Provider:
    """One provider by uuid, in a transaction that is under way.

    :raises exception.ResourceProviderNotFound:
    """
    row: Any = conn.execute(_BY_UUID, {'uuid': uuid}).first()
    if row is None:
        raise exception.ResourceProviderNotFound(uuid)
    return Provider(*row)


def with_generation(key: sa.ColumnElement[Any], *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """What `read_with_generation` takes: a select of what belongs to one provider.

    The caller adds an outer join from `ID` to the tables of the columns. As one statement it
    costs one way to the database, and the generation is the one of what it is shown with.

    :param key: a column that is NULL where nothing was joined; rows with NULL are not given
    """
    return sa.select(_PROVIDERS.c.generation, key, *columns).where(
        _PROVIDERS.c.uuid == sa.bindparam('uuid'), _PROVIDERS.c.root_provider_id.is_not(None)
    )


def read_with_generation(
    conn: sa.Connection, statement: sa.Select[Any], uuid: str, **parameters: Any
) -> tuple[int, list[Any]]:
    """A provider's generation, and rows (key, columns...) of what belongs to it.

    :param parameters: further parameters of the statement
    :raises exception.ResourceProviderNotFound:
    """
    rows = conn.execute(statement, {'uuid': uuid, **parameters}).all()
    if not rows:
        raise exception.ResourceProviderNotFound(uuid)
    return rows[0][0], [row[1:] for row in rows if row[1] is not None]


def lock(
    conn: sa.Connection, uuids: Collection[str], stored: Collection[str] = ()
) -> dict[str, Locked]:
    """Lock the providers that exist, and return them by requested UUID.

    A provider without a root is locked, because it may be the root that others refer to, but it
    is not returned.

    :param uuids: requested UUIDs
    :param stored: UUIDs that were read from the database, whose providers are locked too
    :raises exception.AmbiguousKeys: two of the requested UUIDs are one provider
    """
    if not uuids and not stored:
        return {}
    rows = conn.execute(_LOCK, {'uuids': sorted({*uuids, *stored})})
    locked = {row.uuid: Locked(*row) for row in rows if row.root_id is not None}
    requested = set(uuids)
    if locked.keys() == requested:
        return locked
    ids = names.ids(
        conn,
        _PROVIDERS.c.uuid,
        requested.union(stored),
        {uuid: known.id for uuid, known in locked.items()},
    )
    names.require_distinct({uuid: id_ for uuid, id_ in ids.items() if uuid in requested})
    by_id = {known.id: known for known in locked.values()}
    return {uuid: by_id[id_] for uuid, id_ in ids.items()}


def lock_one(conn: sa.Connection, uuid: str) -> Locked:
    """Lock one provider.

    :raises exception.ResourceProviderNotFound:
    """
    found = lock(conn, [uuid]).get(uuid)
    if found is None:
        raise exception.ResourceProviderNotFound(uuid)
    return found


def require_generation(provider: Locked, given: int) -> None:
    """Check the generation that a client gave.

    :raises exception.ResourceProviderGenerationConflict: the provider has another one
    """
    if provider.generation != given:
        raise exception.ResourceProviderGenerationConflict(
            provider.uuid, given, provider.generation
        )


def create(uuid: str, name: str, parent_uuid: str | None = None) -> Provider:
    """Create a provider, with generation 0, as a root or below a parent.

    :raises exception.ResourceProviderExists: the uuid or the name is taken
    :raises exception.UnknownParent:
    :raises exception.ParentLoop: the parent is the provider itself
    """
    if parent_uuid == uuid:
        raise exception.ParentLoop(uuid, uuid)

    def work(conn: sa.Connection) -> Provider:
        parent = None if parent_uuid is None else _hold_parent(conn, parent_uuid, None)
        _require_free(conn, uuid, name)
        values = {
            'uuid': uuid,
            'name': name,
            'generation': 0,
            'root_provider_id': parent.root_id if parent else None,
            'parent_provider_id': parent.id if parent else None,
        }
        result = conn.execute(sa.insert(_PROVIDERS), values)
        new_id = result.inserted_primary_key[0]  # type: ignore[index]
        if parent is not None:
            generation.touch(conn, _PROVIDERS, [parent.id])
            return _new(new_id, uuid, name, parent.root_id, parent.root_uuid, parent)
        conn.execute(
            sa.update(_PROVIDERS).where(_PROVIDERS.c.id == new_id).values(root_provider_id=new_id)
        )
        return _new(new_id, uuid, name, new_id, uuid, None)

    return db_api.write(work)


def _new(
    id_: int, uuid: str, name: str, root_id: int, root_uuid: str, parent: Provider | None
) -> Provider:
    """A provider that was created in this moment; what the database thinks of it is not asked."""
    return Provider(
        id=id_,
        uuid=uuid,
        name=name,
        generation=0,
        root_id=root_id,
        parent_id=parent.id if parent else None,
        root_uuid=root_uuid,
        parent_uuid=parent.uuid if parent else None,
        updated_at=None,
        created_at=timeutils.utcnow(),
    )


def update(
    uuid: str,
    name: str,
    parent_uuid: 'str | _Keep | None' = KEEP_PARENT,
    may_reparent: bool = False,
) -> Provider:
    """Rename a provider, and move it with its subtree when a parent is given.

    :param parent_uuid: the new parent, None to make it a root, or KEEP_PARENT
    :param may_reparent: from microversion 1.37 on a provider may leave the parent that it has
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderExists: another provider has the name
    :raises exception.UnknownParent:
    :raises exception.ParentLoop: the parent is the provider or one of its descendants
    :raises exception.ReparentingNotAllowed:
    """

    def work(conn: sa.Connection) -> Provider:
        before = read(conn, uuid)
        if _stays(conn, before, parent_uuid, may_reparent):
            if lock_one(conn, uuid).parent_id != before.parent_id:
                raise exception.ConcurrentChange(f'Resource provider {uuid}')
        else:
            assert not isinstance(parent_uuid, _Keep)
            _move(conn, before, parent_uuid, may_reparent)
        _require_free(conn, None, name, except_id=before.id)
        conn.execute(sa.update(_PROVIDERS).where(_PROVIDERS.c.id == before.id).values(name=name))
        return read(conn, uuid)

    return db_api.write(work)


def delete(uuid: str) -> None:
    """Delete a provider with its inventories and its links to traits and aggregates.

    :raises exception.ResourceProviderNotFound:
    :raises exception.CannotDeleteParentProvider: it has children
    :raises exception.ResourceProviderInUse: it has allocations
    """

    def work(conn: sa.Connection) -> None:
        before = read(conn, uuid)
        provider = _lock_in_tree(conn, before)
        if _exists(conn, _PROVIDERS, _PROVIDERS.c.parent_provider_id == provider.id):
            raise exception.CannotDeleteParentProvider(uuid)
        held = models.allocations
        if _exists(conn, held, held.c.resource_provider_id == provider.id):
            raise exception.ResourceProviderInUse(uuid)
        _erase(conn, provider.id)

    db_api.write(work)


def _erase(conn: sa.Connection, provider_id: int) -> None:
    for table in (
        models.inventories,
        models.resource_provider_traits,
        models.resource_provider_aggregates,
    ):
        conn.execute(sa.delete(table).where(table.c.resource_provider_id == provider_id))
    # A root refers to itself, which foreign keys would hold against its deletion.
    here = _PROVIDERS.c.id == provider_id
    conn.execute(sa.update(_PROVIDERS).where(here).values(root_provider_id=None))
    conn.execute(sa.delete(_PROVIDERS).where(here))


def _exists(conn: sa.Connection, table: sa.Table, clause: sa.ColumnElement[bool]) -> bool:
    return conn.execute(sa.select(table.c.id).where(clause).limit(1)).first() is not None


def _require_free(
    conn: sa.Connection, uuid: str | None, name: str, except_id: int | None = None
) -> None:
    same = [_PROVIDERS.c.name == name]
    if uuid is not None:
        same.append(_PROVIDERS.c.uuid == uuid)
    by_name = (_PROVIDERS.c.name == name).label('by_name')
    rows = conn.execute(sa.select(_PROVIDERS.c.id, by_name).where(sa.or_(*same))).all()
    taken = [row for row in rows if row.id != except_id]
    # A client that is told that the name is taken does not look for a race about the uuid.
    if any(row.by_name for row in taken):
        raise exception.ResourceProviderExists('name', name)
    if taken and uuid is not None:
        raise exception.ResourceProviderExists('uuid', uuid)


def _stays(
    conn: sa.Connection, provider: Provider, parent_uuid: 'str | _Keep | None', may_reparent: bool
) -> bool:
    """Whether a request leaves the parent as it is.

    A provider that may move may also move to the parent that it has, so that it need not be
    known whether the database compares the two UUIDs as equal.
    """
    if parent_uuid is KEEP_PARENT or parent_uuid == provider.parent_uuid:
        return True
    if may_reparent or parent_uuid is None or provider.parent_id is None:
        return False
    same = sa.select(_PROVIDERS.c.id).where(_PROVIDERS.c.uuid == parent_uuid)
    return conn.execute(same).scalar() == provider.parent_id


def _lock_in_tree(conn: sa.Connection, provider: Provider) -> Locked:
    """Lock a provider and the root of its tree, at once: claims lock providers by uuid too.

    :raises exception.ConcurrentChange: it was deleted or moved to another tree meanwhile
    """
    locked = lock(conn, {provider.root_uuid, provider.uuid}).get(provider.uuid)
    if locked is None or locked.root_id != provider.root_id:
        raise exception.ConcurrentChange(f'Resource provider {provider.uuid}')
    return locked


def _hold_parent(conn: sa.Connection, parent_uuid: str, moving: Provider | None) -> Provider:
    """Lock the roots of the trees that change, the parent, and the provider that moves there.

    :raises exception.UnknownParent:
    :raises exception.ConcurrentChange: one of them was deleted or moved to another tree meanwhile
    """
    try:
        parent = read(conn, parent_uuid)
    except exception.ResourceProviderNotFound:
        raise exception.UnknownParent(parent_uuid) from None
    involved = [parent] if moving is None else [parent, moving]
    found = lock(conn, {uuid for one in involved for uuid in (one.root_uuid, one.uuid)})
    locked = {row.id: row for row in found.values()}
    for one in involved:
        if one.id not in locked or locked[one.id].root_id != one.root_id:
            raise exception.ConcurrentChange(f'Resource provider {one.uuid}')
    return parent


def _move(
    conn: sa.Connection, provider: Provider, parent_uuid: str | None, may_reparent: bool
) -> None:
    if provider.parent_id is not None and not may_reparent:
        raise exception.ReparentingNotAllowed(provider.uuid)
    parent = None
    if parent_uuid is None:
        _lock_in_tree(conn, provider)
    else:
        parent = _hold_parent(conn, parent_uuid, provider)
    members = conn.execute(
        sa.select(_PROVIDERS.c.id, _PROVIDERS.c.parent_provider_id).where(
            # A provider without a root is between providers of the tree, if anywhere.
            sa.or_(
                _PROVIDERS.c.root_provider_id == provider.root_id,
                _PROVIDERS.c.root_provider_id.is_(None),
            )
        )
    )
    moving = tree.subtree(provider.id, {row[0]: row[1] for row in members})
    if parent is not None and parent.id in moving:
        raise exception.ParentLoop(provider.uuid, parent.uuid)
    root_id = parent.root_id if parent else provider.id
    if root_id != provider.root_id:
        conn.execute(
            sa.update(_PROVIDERS)
            .where(_PROVIDERS.c.id.in_(sorted(moving)))
            .values(root_provider_id=root_id)
        )
    conn.execute(
        sa.update(_PROVIDERS)
        .where(_PROVIDERS.c.id == provider.id)
        .values(parent_provider_id=parent.id if parent else None)
    )
    if parent is not None:
        # The root too: two moves within one tree may share no other row, and make a loop.
        generation.touch(conn, _PROVIDERS, {parent.id, parent.root_id})
