"""Correct missing parents and wrong roots of providers.

A transaction locks the providers that it changes, their parents, and their present and future
roots, as every request does that changes the structure of a tree. It then repeats the check.
"""

from collections.abc import Collection, Iterable
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from placement import exception
from placement.admin.audit import batches, providers, trees
from placement.admin.audit.model import PARENT_MISSING, ROOT_MISSING, Change
from placement.admin.audit.rows import PROVIDERS
from placement.admin.progress import Progress
from placement.db import engine, expressions
from placement.objects import generation, provider_rows

_ID = PROVIDERS.c.id
_PARENT = PROVIDERS.c.parent_provider_id
_ROOT = PROVIDERS.c.root_provider_id


def make_roots(_conf: cfg.ConfigOpts, report: Progress) -> list[Change]:
    """Make each provider whose parent does not exist a root."""
    with engine.snapshot() as conn:
        ids = providers.read_trees(conn).parent_missing
    return batches.write(PARENT_MISSING, ids, _make_roots, report)


def set_roots(_conf: cfg.ConfigOpts, report: Progress) -> list[Change]:
    """Set the root of each provider whose root is NULL or wrong.

    If a concurrent request moves a provider, its root is set in the next round. The rounds end when
    no root is wrong, or when the same roots are wrong as before.
    """
    changes: list[Change] = []
    before: tuple[trees.WrongRoot, ...] = ()
    while (wrong := _read_wrong_roots()) != before:
        changes += batches.write(ROOT_MISSING, wrong, _set_roots, report)
        before = wrong
    return changes


def _read_wrong_roots() -> tuple[trees.WrongRoot, ...]:
    with engine.snapshot() as conn:
        return providers.read_trees(conn).wrong_roots


def _make_roots(ids: Collection[int], conn: sa.Connection) -> list[Change]:
    roots = sa.select(_ROOT).where(_among(ids))
    _lock(conn, {*ids, *conn.scalars(roots)})
    parent = PROVIDERS.alias('parent')
    rows = conn.execute(
        sa.select(PROVIDERS)
        .outerjoin(parent, parent.c.id == _PARENT)
        .where(_among(ids), _PARENT.is_not(None), parent.c.id.is_(None))
        .order_by(_ID)
    ).all()
    if not rows:
        return []
    changed = sa.update(PROVIDERS).where(_among(row.id for row in rows))
    _require(conn, changed.values(parent_provider_id=None, root_provider_id=_ID), len(rows))
    return [
        _change(PARENT_MISSING, row, {'parent_provider_id': None, 'root_provider_id': row.id})
        for row in rows
    ]


def _set_roots(wrong: Collection[trees.WrongRoot], conn: sa.Connection) -> list[Change]:
    involved = {
        id_
        for one in wrong
        for id_ in (one.id, one.parent_id, one.root_id, one.true_root_id)
        if id_ is not None
    }
    locked = {row.id: (row.parent_id, row.root_id) for row in _lock(conn, involved)}
    roots = trees.root_corrections(wrong, locked)
    if not roots:
        return []
    rows = conn.execute(sa.select(PROVIDERS).where(_among(roots)).order_by(_ID)).all()
    changed = sa.update(PROVIDERS).where(_among(roots))
    _require(conn, changed.values(root_provider_id=sa.case(roots, value=_ID)), len(roots))
    # The decision depends on the parents. A Galera cluster must detect that a concurrent
    # transaction on another node moves one of them.
    parents = {row.parent_provider_id for row in rows} - roots.keys() - {None}
    if generation.touch(conn, PROVIDERS, parents) != len(parents):
        raise exception.ConcurrentChange('The parent of a resource provider')
    return [_change(ROOT_MISSING, row, {'root_provider_id': roots[row.id]}) for row in rows]


def _lock(conn: sa.Connection, ids: Collection[int | None]) -> Collection[Any]:
    """Lock the providers with these ids, in the order of their UUIDs, and return their rows."""
    uuids = conn.scalars(sa.select(PROVIDERS.c.uuid).where(_among(i for i in ids if i is not None)))
    return provider_rows.lock_rows(conn, set(uuids))


def _among(ids: Iterable[int]) -> sa.ColumnElement[bool]:
    return _ID.in_(expressions.id_list(ids))


def _require(conn: sa.Connection, update: sa.Update, count: int) -> None:
    """Execute an update of `count` rows.

    :raises exception.ConcurrentChange: a concurrent transaction deleted one of the rows
    """
    if conn.execute(update).rowcount != count:
        raise exception.ConcurrentChange('A resource provider')


def _change(code: str, row: Any, after: dict[str, int | None]) -> Change:
    identity = {'provider': row.name, 'provider_uuid': row.uuid}
    return Change(code, identity, {name: getattr(row, name) for name in after}, after)
