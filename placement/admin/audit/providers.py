"""Checks of the links between providers, and of generations.

A correction of links locks the providers that it changes, their parents, and their present and
future roots, as every request does that changes the structure of a tree. It then repeats the check.
"""

from collections.abc import Collection, Iterable, Sequence
import functools
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.admin.audit import consumers, model, trees
from placement.claims import statements
from placement.db import engine, expressions
from placement.db.sqlalchemy import models
from placement.objects import generation, provider_rows

_PROVIDERS = models.resource_providers
_ID = _PROVIDERS.c.id
_PARENT_ID = _PROVIDERS.c.parent_provider_id
_ROOT_ID = _PROVIDERS.c.root_provider_id
_PARENT = _PROVIDERS.alias('parent')
_ROOT = _PROVIDERS.alias('root')
_WITHOUT_PARENT = sa.and_(_PARENT_ID.is_not(None), _PARENT.c.id.is_(None))
# The rows that a driver receives together.
_FETCHED = 10_000


def _with_parents(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    return sa.select(*columns).outerjoin(_PARENT, _PARENT.c.id == _PARENT_ID).order_by(_ID)


def _read_trees(conn: sa.Connection) -> trees.Trees:
    """Return what is wrong with the links between all providers."""
    select = _with_parents(_ID, _PARENT_ID, _ROOT_ID, _PARENT.c.id.is_not(None)).where(
        # Roots whose root is correct are left out.
        sa.or_(_PARENT_ID.is_not(None), _ROOT_ID.is_(None), _ROOT_ID != _ID)
    )
    links = conn.execute(select.order_by(None), execution_options={'yield_per': _FETCHED})
    return trees.judge(trees.Link(*link) for link in links)


def _among(ids: Iterable[int]) -> sa.ColumnElement[bool]:
    return _ID.in_(expressions.id_list(ids))


def _lock(conn: sa.Connection, ids: Collection[int | None]) -> Collection[Any]:
    """Lock the providers with these ids, in the order of their UUIDs, and return their rows."""
    uuids = conn.scalars(
        sa.select(_PROVIDERS.c.uuid).where(_among(i for i in ids if i is not None))
    )
    return provider_rows.lock_rows(conn, set(uuids))


def _require(conn: sa.Connection, update: sa.Update, count: int) -> None:
    """Execute an update of `count` rows.

    :raises exception.ConcurrentChange: a concurrent transaction deleted one of the rows
    """
    if conn.execute(update).rowcount != count:
        raise exception.ConcurrentChange('A row of the database')


def _change(row: Any, after: dict[str, int | None]) -> model.Change:
    identity = {'provider': row.name, 'provider_uuid': row.uuid}
    return model.Change(identity, {name: getattr(row, name) for name in after}, after)


def _set_roots(repair: model.Repair) -> list[model.Change]:
    """Set the root of each provider whose root is NULL or wrong.

    If a concurrent request moves a provider, its root is set in the next round. The rounds end when
    no root is wrong, or when the same roots are wrong as before.
    """
    changes: list[model.Change] = []
    before: tuple[trees.WrongRoot, ...] = ()
    while True:
        with engine.snapshot() as conn:
            wrong = _read_trees(conn).wrong_roots
        if wrong == before:
            return changes
        changes += repair.write(wrong, _set)
        before = wrong


def _set(wrong: Collection[trees.WrongRoot], conn: sa.Connection) -> list[model.Change]:
    locked = _lock(conn, {id_ for one in wrong for id_ in one})
    roots = trees.root_corrections(wrong, {row.id: (row.parent_id, row.root_id) for row in locked})
    if not roots:
        return []
    before = conn.execute(sa.select(_PROVIDERS).where(_among(roots)).order_by(_ID)).all()
    update = sa.update(_PROVIDERS).where(_among(roots))
    _require(conn, update.values(root_provider_id=sa.case(roots, value=_ID)), len(roots))
    # The decision depends on the parents. A Galera cluster must detect that a concurrent
    # transaction on another node moves one of them.
    parents = {row.parent_provider_id for row in before} - roots.keys() - {None}
    if generation.touch(conn, _PROVIDERS, parents) != len(parents):
        raise exception.ConcurrentChange('The parent of a resource provider')
    return [_change(row, {'root_provider_id': roots[row.id]}) for row in before]


@model.finding(
    model.ROOT_MISSING,
    'providers without a root, or with the wrong root',
    correction=model.Correction(2, 'sets the root', _set_roots),
)
def root_missing(audited: model.Audited) -> model.Found:
    wrong = audited.once(_read_trees).wrong_roots
    first = wrong[: audited.row_limit]
    if not first:
        return model.Found(len(wrong))
    select = (
        sa.select(_ID, *model.provider_columns(_ID), _ROOT.c.uuid.label('root_provider_uuid'))
        .add_columns(_ROOT_ID)
        .outerjoin(_ROOT, _ROOT.c.id == _ROOT_ID)
        .where(_among({id_ for one in first for id_ in (one.id, one.true_root_id)}))
    )
    named = {row.pop('id'): model.readable(row) for row in model.mappings(audited.conn, select)}
    return model.Found(
        len(wrong),
        tuple(
            {
                **named[one.id],
                'true_root_provider_uuid': named[one.true_root_id]['provider_uuid'],
            }
            for one in first
        ),
    )


def _make_roots(repair: model.Repair) -> list[model.Change]:
    return repair.write(model.keys(_with_parents(_ID).where(_WITHOUT_PARENT)), _make)


def _make(ids: Collection[int], conn: sa.Connection) -> list[model.Change]:
    """Make the providers whose parent does not exist roots."""
    _lock(conn, {*ids, *conn.scalars(sa.select(_ROOT_ID).where(_among(ids)))})
    found = conn.execute(_with_parents(*_PROVIDERS.c).where(_among(ids), _WITHOUT_PARENT)).all()
    if not found:
        return []
    update = sa.update(_PROVIDERS).where(_among(row.id for row in found))
    _require(conn, update.values(parent_provider_id=None, root_provider_id=_ID), len(found))
    return [_change(row, {'parent_provider_id': None, 'root_provider_id': row.id}) for row in found]


@model.finding(
    model.PARENT_MISSING,
    'providers whose parent does not exist',
    correction=model.Correction(1, 'makes the provider a root', _make_roots),
)
def parent_missing(audited: model.Audited) -> model.Found:
    select = _with_parents(*model.provider_columns(_ID), _PARENT_ID)
    return audited.rows(select.where(_WITHOUT_PARENT))


@model.finding(model.PARENT_CYCLE, 'providers that are their own ancestors')
def parent_cycle(audited: model.Audited) -> model.Found:
    cyclic = audited.once(_read_trees).cyclic
    if not cyclic:
        return model.Found()
    parent = _PARENT.c.uuid.label('parent_provider_uuid')
    return audited.rows(_with_parents(*model.provider_columns(_ID), parent).where(_among(cyclic)))


# For each table: the rows without a generation, with names.
_WITHOUT_GENERATION: dict[sa.Table, sa.Select[Any]] = {
    table: select.where(table.c.generation.is_(None))
    for table, select in (
        (_PROVIDERS, sa.select(*model.provider_columns(_ID)).order_by(_ID)),
        (models.consumers, consumers.WITH_OWNERS),
    )
}


def _set_generations(repair: model.Repair) -> list[model.Change]:
    changes: list[model.Change] = []
    for table in _WITHOUT_GENERATION:
        uuids = sa.select(table.c.uuid).where(table.c.generation.is_(None)).order_by(table.c.uuid)
        changes += repair.write(model.keys(uuids), functools.partial(_set_generation, table))
    return changes


def _set_generation(
    table: sa.Table, uuids: Sequence[str], conn: sa.Connection
) -> list[model.Change]:
    """Set the generations that are still missing, after the rows are locked."""
    if table is _PROVIDERS:
        locked = provider_rows.lock_rows(conn, uuids)
    else:
        locked = conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(uuids)}).all()
    among = table.c.id.in_([row.id for row in locked])
    found = list(model.mappings(conn, _WITHOUT_GENERATION[table].where(among)))
    update = sa.update(table).where(among, table.c.generation.is_(None))
    _require(conn, update.values(generation=0), len(found))
    return [
        model.Change(model.readable(row), {'generation': None}, {'generation': 0}) for row in found
    ]


@model.finding(
    'null-generation',
    'providers and consumers without a generation',
    correction=model.Correction(6, 'sets the generation to 0', _set_generations),
)
def null_generation(audited: model.Audited) -> model.Found:
    return audited.rows(*_WITHOUT_GENERATION.values())
