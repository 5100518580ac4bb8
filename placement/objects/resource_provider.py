"""Read, create, update, move and delete one resource provider.

Before microversion 1.37, only root providers can move below another parent. From 1.37 on, every
provider can move.

Other modules contain related functions: `provider_rows` reads and locks providers, and
`provider_search` lists them.
"""

import enum
from typing import Final

from oslo_db import exception as db_exc
from oslo_utils import timeutils
import sqlalchemy as sa

from placement import exception, trail
from placement.db import engine, failures
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows
from placement.objects.provider_rows import Provider, lock_one, lock_parent, lock_with_root

_PROVIDERS = models.resource_providers
_INSERT = sa.insert(_PROVIDERS)
_MAKE_ROOT = (
    sa.update(_PROVIDERS)
    .where(_PROVIDERS.c.id == sa.bindparam('own_id'))
    .values(root_provider_id=sa.bindparam('own_id'))
)


class _Keep(enum.Enum):
    """The type of `KEEP_PARENT`, for a request that does not specify a parent."""

    PARENT = enum.auto()


KEEP_PARENT: Final = _Keep.PARENT


def get(uuid: str) -> Provider:
    """Return the provider with this UUID.

    :raises exception.ResourceProviderNotFound:
    """
    return engine.read(lambda conn: provider_rows.read(conn, uuid))


def create(uuid: str, name: str, parent_uuid: str | None = None) -> Provider:
    """Create a provider with generation 0.

    :param parent_uuid: the UUID of the parent, None to create a root provider
    :raises exception.ResourceProviderExists: another provider has the UUID or the name
    :raises exception.UnknownParent:
    :raises exception.ParentLoop: the parent is the provider itself
    """
    if parent_uuid == uuid:
        raise exception.ParentLoop(uuid, uuid)

    def work(conn: sa.Connection) -> Provider:
        parent = None if parent_uuid is None else lock_parent(conn, parent_uuid)
        try:
            return _insert(conn, uuid, name, parent)
        except db_exc.DBError as exc:
            if failures.is_key_violation(exc):
                # Only a rejected request needs to know which provider has the UUID or the name.
                conn.rollback()
                _require_unused(conn, uuid, name)
            raise

    created = engine.write(work)
    trail.log(trail.provider, None, created)
    return created


def update(
    uuid: str,
    name: str,
    parent_uuid: str | _Keep | None = KEEP_PARENT,
    may_reparent: bool = False,
) -> Provider:
    """Rename a provider, and move it with its subtree if the client requests another parent.

    :param parent_uuid: the UUID of the parent, None to make the provider a root, or KEEP_PARENT
    :param may_reparent: whether a provider that has a parent can move (microversion 1.37)
    :raises exception.ResourceProviderNotFound:
    :raises exception.ResourceProviderExists: another provider has the name
    :raises exception.UnknownParent:
    :raises exception.ParentLoop: the parent is the provider or one of its descendants
    :raises exception.ReparentingNotAllowed:
    """

    def work(conn: sa.Connection) -> tuple[Provider, Provider]:
        before = provider_rows.read(conn, uuid)
        if parent_uuid is not KEEP_PARENT and _requests_move(
            conn, before, parent_uuid, may_reparent=may_reparent
        ):
            _move(conn, before, parent_uuid, may_reparent=may_reparent)
        else:
            locked = lock_one(conn, uuid)
            if locked.parent_id != before.parent_id:
                raise exception.ConcurrentChange(f'Resource provider {uuid}')
        _require_unused(conn, None, name, except_id=before.id)
        conn.execute(sa.update(_PROVIDERS).where(_PROVIDERS.c.id == before.id).values(name=name))
        return before, provider_rows.read(conn, uuid)

    before, after = engine.write(work)
    trail.log(trail.provider, before, after)
    return after


def delete(uuid: str) -> None:
    """Delete a provider with its inventories and its links to traits and aggregates.

    :raises exception.ResourceProviderNotFound:
    :raises exception.CannotDeleteParentProvider: the provider has children
    :raises exception.ResourceProviderInUse: the provider has allocations
    """
    allocations = models.allocations

    def work(conn: sa.Connection) -> Provider:
        before = provider_rows.read(conn, uuid)
        (provider,) = lock_with_root(conn, before)
        if _exists(conn, _PROVIDERS, _PROVIDERS.c.parent_provider_id == provider.id):
            raise exception.CannotDeleteParentProvider(uuid)
        if _exists(conn, allocations, allocations.c.resource_provider_id == provider.id):
            raise exception.ResourceProviderInUse(uuid)
        delete_rows(conn, provider.id)
        return before

    trail.log(trail.provider, engine.write(work), None)


def _insert(conn: sa.Connection, uuid: str, name: str, parent: Provider | None) -> Provider:
    """Insert a provider, and return the inserted values without reading the row again."""
    values = {
        'uuid': uuid,
        'name': name,
        'generation': 0,
        'root_provider_id': parent.root_id if parent else None,
        'parent_provider_id': parent.id if parent else None,
    }
    result = conn.execute(_INSERT, values)
    new_id: int = result.inserted_primary_key[0]  # type: ignore[index]  # not None after an insert
    if parent is not None:
        generation.touch(conn, _PROVIDERS, [parent.id])
    else:
        conn.execute(_MAKE_ROOT, {'own_id': new_id})
    return Provider(
        id=new_id,
        uuid=uuid,
        name=name,
        generation=0,
        root_id=parent.root_id if parent else new_id,
        parent_id=parent.id if parent else None,
        root_uuid=parent.root_uuid if parent else uuid,
        parent_uuid=parent.uuid if parent else None,
        updated_at=None,
        created_at=timeutils.utcnow(),
    )


def delete_rows(conn: sa.Connection, provider_id: int) -> None:
    """Delete a locked provider, its inventories, and its links to traits and aggregates."""
    for table in (
        models.inventories,
        models.resource_provider_traits,
        models.resource_provider_aggregates,
    ):
        conn.execute(sa.delete(table).where(table.c.resource_provider_id == provider_id))
    # A root provider refers to itself in `root_provider_id`. Without this UPDATE, the foreign key
    # of the column could reject the DELETE.
    this_row = _PROVIDERS.c.id == provider_id
    conn.execute(sa.update(_PROVIDERS).where(this_row).values(root_provider_id=None))
    conn.execute(sa.delete(_PROVIDERS).where(this_row))


def _exists(conn: sa.Connection, table: sa.Table, clause: sa.ColumnElement[bool]) -> bool:
    return conn.execute(sa.select(table.c.id).where(clause).limit(1)).first() is not None


def _require_unused(
    conn: sa.Connection, uuid: str | None, name: str, except_id: int | None = None
) -> None:
    """Check that no other provider has the UUID or the name.

    :param uuid: the UUID of a new provider, None if a provider is renamed
    :param except_id: the id of the renamed provider, whose own name is allowed
    :raises exception.ResourceProviderExists: if both are in use, the error is about the name
    """
    same = [_PROVIDERS.c.name == name]
    if uuid is not None:
        same.append(_PROVIDERS.c.uuid == uuid)
    by_name = (_PROVIDERS.c.name == name).label('by_name')
    rows = conn.execute(sa.select(_PROVIDERS.c.id, by_name).where(sa.or_(*same))).all()
    others = [row for row in rows if row.id != except_id]
    # Report the name in preference to the UUID, because clients conclude from an error about the
    # UUID that another client has already created the same provider.
    if any(row.by_name for row in others):
        raise exception.ResourceProviderExists('name', name)
    if others and uuid is not None:
        raise exception.ResourceProviderExists('uuid', uuid)


# Moving ---------------------------------------------------------------------------


def _requests_move(
    conn: sa.Connection, provider: Provider, parent_uuid: str | None, *, may_reparent: bool
) -> bool:
    """Return whether the requested parent of a provider differs from its current parent.

    If the two UUIDs are spelled differently, they may still refer to the same parent. The function
    checks this only if the provider is not allowed to move. Otherwise it returns True, because a
    move below the current parent changes nothing.

    :param parent_uuid: the UUID of the requested parent, None for a root
    :param may_reparent: whether a provider that has a parent can move (microversion 1.37)
    """
    if parent_uuid == provider.parent_uuid:
        return False
    if may_reparent or parent_uuid is None or provider.parent_id is None:
        return True
    parent_id = sa.select(_PROVIDERS.c.id).where(_PROVIDERS.c.uuid == parent_uuid)
    return conn.execute(parent_id).scalar() != provider.parent_id


def _move(
    conn: sa.Connection, provider: Provider, parent_uuid: str | None, *, may_reparent: bool
) -> None:
    """Lock a provider, its new parent and their roots, and move the provider with its subtree.

    :param parent_uuid: the UUID of the new parent, None to make the provider a root
    :param may_reparent: whether a provider that has a parent can move (microversion 1.37)
    :raises exception.ReparentingNotAllowed:
    :raises exception.UnknownParent:
    :raises exception.ParentLoop: the parent is the provider or one of its descendants
    :raises exception.ConcurrentChange: a concurrent transaction deleted or moved one of the
        providers
    """
    if provider.parent_id is not None and not may_reparent:
        raise exception.ReparentingNotAllowed(provider.uuid)
    parent = None
    if parent_uuid is None:
        lock_with_root(conn, provider)
    else:
        parent = lock_parent(conn, parent_uuid, provider)
    moving = _subtree_ids(conn, provider)
    if parent is not None and parent.id in moving:
        raise exception.ParentLoop(provider.uuid, parent.uuid)
    _update_links(conn, provider, parent, moving)
    if parent is not None:
        # Two concurrent moves within one tree could together create a loop. Both transactions touch
        # the root, so a Galera cluster detects the conflict even if they share no other row.
        generation.touch(conn, _PROVIDERS, {parent.id, parent.root_id})


def _subtree_ids(conn: sa.Connection, provider: Provider) -> frozenset[int]:
    """Return the ids of a provider and its descendants."""
    rows = conn.execute(
        sa.select(_PROVIDERS.c.id, _PROVIDERS.c.parent_provider_id).where(
            # Also read providers without a root, because one of them may be a parent in this tree.
            sa.or_(
                _PROVIDERS.c.root_provider_id == provider.root_id,
                _PROVIDERS.c.root_provider_id.is_(None),
            )
        )
    )
    parents = {row[0]: row[1] for row in rows}
    subtree = {provider.id}
    while children := {id_ for id_, parent in parents.items() if parent in subtree} - subtree:
        subtree |= children
    return frozenset(subtree)


def _update_links(
    conn: sa.Connection, provider: Provider, parent: Provider | None, moving: frozenset[int]
) -> None:
    """Set the parent of a provider, and set the root of its whole subtree if the root changes."""
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
