"""Checks of the links between providers, and of generations.

A correction of links locks the providers that it changes, their parents, and their present and
future roots, as every request does that changes the structure of a tree. It then repeats the check.
"""

from collections.abc import Collection, Iterable
import functools
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.admin.audit import consumers, model, trees
from placement.claims import statements
from placement.db import expressions
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows

_PROVIDERS = models.resource_providers
_ID = _PROVIDERS.c.id
_PARENT_ID = _PROVIDERS.c.parent_provider_id
_ROOT_ID = _PROVIDERS.c.root_provider_id
_PARENT = _PROVIDERS.alias('parent')
_ROOT = _PROVIDERS.alias('root')
_TRUE_ROOT = _PROVIDERS.alias('true_root')
_WITHOUT_PARENT = sa.and_(_PARENT_ID.is_not(None), _PARENT.c.id.is_(None))


def _with_parents(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return sa.select(*columns).outerjoin(_PARENT, _PARENT.c.id == _PARENT_ID).order_by(_ID)


def _among(ids: Iterable[int]) -> sa.ColumnElement[bool]:
    return _ID.in_(expressions.id_list(ids))


def _lock(conn: sa.Connection, ids: Collection[int | None]) -> Collection[Any]:
    """Lock the providers with these ids, in the order of their UUIDs, and return their rows."""
    uuids = conn.scalars(
        sa.select(_PROVIDERS.c.uuid).where(_among(i for i in ids if i is not None))
    )
    return provider_rows.lock_rows(conn, set(uuids))


def _change(row: Any, after: dict[str, int | None]) -> model.Row:
    identity = {'provider': row.name, 'provider_uuid': row.uuid}
    return model.change(identity, {name: getattr(row, name) for name in after}, after)


def _set_roots(batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    wrong = batch.keys
    locked = _lock(conn, {id_ for one in wrong for id_ in one})
    roots = trees.root_corrections(wrong, {row.id: (row.parent_id, row.root_id) for row in locked})
    if not roots:
        return []
    before = conn.execute(sa.select(_PROVIDERS).where(_among(roots)).order_by(_ID)).all()
    update = sa.update(_PROVIDERS).where(_among(roots))
    model.require(conn, update.values(root_provider_id=sa.case(roots, value=_ID)), len(roots))
    # The decision depends on the parents. A Galera cluster must detect that a concurrent
    # transaction on another node moves one of them.
    parents = {row.parent_provider_id for row in before} - roots.keys() - {None}
    if generation.touch(conn, _PROVIDERS, parents) != len(parents):
        raise exception.ConcurrentChange('The parent of a resource provider')
    return [_change(row, {'root_provider_id': roots[row.id]}) for row in before]


@model.finding(
    model.ROOT_MISSING,
    'providers without a root, or with the wrong root',
    correction=model.Correction(2, 'sets the root', [(trees.WRONG_ROOTS, _set_roots)]),
)
def root_missing(audited: model.Audited) -> model.Found:
    return audited.rows(
        trees.WRONG_ROOTS.with_only_columns(
            *model.provider_columns(_ID),
            _ROOT.c.uuid.label('root_provider_uuid'),
            _ROOT_ID,
            _TRUE_ROOT.c.uuid.label('true_root_provider_uuid'),
        )
        .outerjoin(_ROOT, _ROOT.c.id == _ROOT_ID)
        .join(_TRUE_ROOT, _TRUE_ROOT.c.id == trees.TREE.c.root_id)
    )


def _make_roots(batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    """Make the providers whose parent does not exist roots."""
    ids = batch.keys
    _lock(conn, {*ids, *conn.scalars(sa.select(_ROOT_ID).where(_among(ids)))})
    found = conn.execute(_with_parents(*_PROVIDERS.c).where(_among(ids), _WITHOUT_PARENT)).all()
    update = sa.update(_PROVIDERS).where(_among(row.id for row in found))
    model.require(conn, update.values(parent_provider_id=None, root_provider_id=_ID), len(found))
    return [_change(row, {'parent_provider_id': None, 'root_provider_id': row.id}) for row in found]


@model.finding(
    model.PARENT_MISSING,
    'providers whose parent does not exist',
    correction=model.Correction(
        1, 'makes the provider a root', [(_with_parents(_ID).where(_WITHOUT_PARENT), _make_roots)]
    ),
)
def parent_missing(audited: model.Audited) -> model.Found:
    select = _with_parents(*model.provider_columns(_ID), _PARENT_ID)
    return audited.rows(select.where(_WITHOUT_PARENT))


@model.finding(model.PARENT_CYCLE, 'providers that are their own ancestors')
def parent_cycle(audited: model.Audited) -> model.Found:
    links = sa.select(_ID, _PARENT_ID).where(_PARENT_ID.is_not(None))
    cyclic = trees.cyclic(dict(map(tuple, audited.conn.execute(links))))
    if not cyclic:
        return model.Found()
    parent = _PARENT.c.uuid.label('parent_provider_uuid')
    return audited.rows(_with_parents(*model.provider_columns(_ID), parent).where(_among(cyclic)))


# For each table: the rows without a generation, with names.
_WITHOUT_GENERATION: dict[sa.Table, sa.Select[Any]] = {
    table: names.where(table.c.generation.is_(None))
    for table, names in (
        (_PROVIDERS, sa.select(*model.provider_columns(_ID)).order_by(_ID)),
        (models.consumers, consumers.WITH_OWNERS),
    )
}


def _set_generations(table: sa.Table, batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    """Set the generations that are still missing, after the rows are locked."""
    if table is _PROVIDERS:
        locked = provider_rows.lock_rows(conn, batch.keys)
    else:
        locked = conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(batch.keys)}).all()
    among = table.c.id.in_([row.id for row in locked])
    found = model.mappings(conn, _WITHOUT_GENERATION[table].where(among))
    update = sa.update(table).where(among, table.c.generation.is_(None))
    model.require(conn, update.values(generation=0), len(found))
    none, zero = {'generation': None}, {'generation': 0}
    return [model.change(model.readable(row), none, zero) for row in found]


@model.finding(
    'null-generation',
    'providers and consumers without a generation',
    correction=model.Correction(
        6,
        'sets the generation to 0',
        [
            (rows.with_only_columns(table.c.uuid), functools.partial(_set_generations, table))
            for table, rows in _WITHOUT_GENERATION.items()
        ],
    ),
)
def null_generation(audited: model.Audited) -> model.Found:
    return audited.rows(*_WITHOUT_GENERATION.values())
