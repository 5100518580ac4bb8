"""Re-parenting: move a provider, with its subtree, below another parent, or make it a root.

Before microversion 1.37, only root providers can move. From 1.37 on, every provider can move.
"""

import sqlalchemy as sa

from placement import exception
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_locks, tree
from placement.objects.provider_rows import Provider

_PROVIDERS = models.resource_providers


def is_requested(
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


def move(
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
        provider_locks.lock_with_root(conn, provider)
    else:
        parent = provider_locks.lock_parent(conn, parent_uuid, provider)
    moving = _subtree(conn, provider)
    if parent is not None and parent.id in moving:
        raise exception.ParentLoop(provider.uuid, parent.uuid)
    _update_links(conn, provider, parent, moving)
    if parent is not None:
        # Two concurrent moves within one tree could together create a loop. Both transactions touch
        # the root, so a Galera cluster detects the conflict even if they share no other row.
        generation.touch(conn, _PROVIDERS, {parent.id, parent.root_id})


def _subtree(conn: sa.Connection, provider: Provider) -> frozenset[int]:
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
    return tree.subtree(provider.id, {row[0]: row[1] for row in rows})


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
