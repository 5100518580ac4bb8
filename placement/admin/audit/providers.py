"""The provider trees, as they follow from the parents, and checks of the links and of generations.

A correction of links locks the providers that it changes, their parents, and their present and
future roots, as every request does that changes the structure of a tree. It then repeats the check.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from placement.admin.audit import consumers, model
from placement.admin.audit.model import Audited, Found, finding, rewrites
from placement.db import expressions
from placement.db.sqlalchemy import models
from placement.objects import generation

_PROVIDERS = models.resource_providers
_ID = _PROVIDERS.c.id
_PARENT_ID = _PROVIDERS.c.parent_provider_id
_ROOT_ID = _PROVIDERS.c.root_provider_id
_PARENT = _PROVIDERS.alias('parent')
_ROOT = _PROVIDERS.alias('root')
_TRUE_ROOT = _PROVIDERS.alias('true_root')
# A server limits the number of levels of a recursive statement. MariaDB silently truncates the
# result at the limit.
_DEEPEST = {True: 'max_recursive_iterations', False: 'cte_max_recursion_depth'}
_NAMED = sa.select(*model.PROVIDER).order_by(_ID)
_WITH_PARENT = _NAMED.outerjoin(_PARENT, _PARENT.c.id == _PARENT_ID)
_WITHOUT_PARENT = _WITH_PARENT.where(_PARENT_ID.is_not(None), _PARENT.c.id.is_(None))


def permit_any_depth(conn: sa.Connection) -> None:
    """Set the session variable of the server that statements with `TREE` need."""
    if conn.dialect.name == 'mysql':
        variable = _DEEPEST[bool(getattr(conn.dialect, 'is_mariadb', False))]
        conn.exec_driver_sql(f'SET SESSION {variable} = 4294967295')


def _tree() -> sa.CTE:
    topmost = _WITH_PARENT.with_only_columns(
        _ID, _ID.label('root_id'), sa.literal_column('0').label('depth')
    )
    tree = topmost.where(_PARENT.c.id.is_(None)).order_by(None).cte('tree', recursive=True)
    below = sa.select(_ID, tree.c.root_id, tree.c.depth + 1)
    return tree.union_all(below.join_from(tree, _PROVIDERS, tree.c.id == _PARENT_ID))


# The providers with `id`, `root_id` (the topmost ancestor) and `depth` (0 for this one). A provider
# whose parent does not exist is the topmost one. Those in and below a cycle are omitted.
TREE = _tree()
# The id, the parent, and the root of each provider with a wrong root, and its topmost ancestor,
# parents before their children. The correction of a missing parent sets the root of the provider.
WRONG_ROOTS = (
    sa.select(_ID, _PARENT_ID, _ROOT_ID, TREE.c.root_id)
    .join_from(TREE, _PROVIDERS, TREE.c.id == _ID)
    .where(
        _ROOT_ID.is_distinct_from(TREE.c.root_id),
        sa.or_(TREE.c.depth > 0, _PARENT_ID.is_(None)),
    )
    .order_by(TREE.c.depth, _ID)
)


def cyclic(parents: Mapping[int, int]) -> set[int]:
    """Return the ids of the providers that are their own ancestors.

    :param parents: the id of the parent of each provider that has one
    """
    cycles = set(parents)
    while True:
        # Without the topmost and the lowest level of what is not a cycle.
        inner = {id_ for id_ in cycles if parents[id_] in cycles}
        inner &= {parents[id_] for id_ in inner}
        if inner == cycles:
            return cycles
        cycles = inner


def root_corrections(
    wrong: Iterable[Any], current: Mapping[int, tuple[int | None, int | None]]
) -> dict[int, int]:
    """Return the roots to set, keyed by provider id, after the rows of the providers were locked.

    A root is corrected only if the provider has not changed, and its parent has the expected root,
    possibly after its own correction.

    :param wrong: rows of `WRONG_ROOTS` before the locks, parents before their children
    :param current: the parent and root of each locked provider, keyed by provider id
    """
    after = {id_: root_id for id_, (_, root_id) in current.items()}
    roots: dict[int, int] = {}
    for id_, parent_id, root_id, true_root_id in wrong:
        root_of_parent = true_root_id if parent_id is None else after.get(parent_id)
        if current.get(id_) == (parent_id, root_id) and root_of_parent == true_root_id:
            roots[id_] = after[id_] = true_root_id
    return roots


def _set_roots(batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    wrong = batch.keys
    locked = model.lock_providers(conn, {id_ for one in wrong for id_ in one} - {None})
    roots = root_corrections(wrong, {row.id: (row.parent_id, row.root_id) for row in locked})
    if not roots:
        return []
    # The decision depends on the parents. A Galera cluster must detect that a concurrent
    # transaction on another node moves one of them.
    parents = {row.parent_id for row in locked if row.id in roots}
    generation.touch(conn, _PROVIDERS, parents - roots.keys() - {None})
    batch = model.Batch([(id_,) for id_ in roots], batch.conf)
    new = {'root_provider_id': sa.case(roots, value=_ID)}
    return model.rewrite(_PROVIDERS, _NAMED, new, batch, conn)


@finding(fixes=[(WRONG_ROOTS, _set_roots)], order=2)
def root_missing(audited: Audited) -> Found:
    """Providers without a root, or with the wrong root."""
    root = _ROOT.c.uuid.label('root_provider_uuid')
    true_root = _TRUE_ROOT.c.uuid.label('true_root_provider_uuid')
    rows = WRONG_ROOTS.with_only_columns(*model.PROVIDER, root, _ROOT_ID, true_root)
    rows = rows.outerjoin(_ROOT, _ROOT.c.id == _ROOT_ID)
    return audited.rows(rows.join(_TRUE_ROOT, _TRUE_ROOT.c.id == TREE.c.root_id))


_AS_ROOT = {_PARENT_ID.name: sa.null(), _ROOT_ID.name: _ID}


@finding(fixes=rewrites({_PROVIDERS: _WITHOUT_PARENT}, _AS_ROOT), order=1)
def parent_missing(audited: Audited) -> Found:
    """Providers whose parent does not exist."""
    return audited.rows(_WITHOUT_PARENT.add_columns(_PARENT_ID))


@finding()
def parent_cycle(audited: Audited) -> Found:
    """Providers that are their own ancestors."""
    links = sa.select(_ID, _PARENT_ID).where(_PARENT_ID.is_not(None))
    found = cyclic(dict(map(tuple, audited.conn.execute(links))))
    rows = _WITH_PARENT.add_columns(_PARENT.c.uuid.label('parent_provider_uuid'))
    return audited.rows(rows.where(_ID.in_(expressions.id_list(found))))


# For each table: the rows without a generation, with names.
_WITHOUT_GENERATION = {
    table: names.where(table.c.generation.is_(None))
    for table, names in ((_PROVIDERS, _NAMED), (models.consumers, consumers.CONSUMER))
}


@finding(fixes=rewrites(_WITHOUT_GENERATION, {'generation': sa.literal(0)}), order=6)
def null_generation(audited: Audited) -> Found:
    """Providers and consumers without a generation."""
    return audited.rows(*_WITHOUT_GENERATION.values())
