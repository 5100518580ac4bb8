"""The provider trees, as they follow from the parents of the providers."""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_PARENT = _PROVIDERS.alias('parent')
# A server limits the number of levels of a recursive statement. MariaDB silently truncates the
# result at the limit.
_DEEPEST = {True: 'max_recursive_iterations', False: 'cte_max_recursion_depth'}


def permit_any_depth(conn: sa.Connection) -> None:
    """Set the session variable of the server that statements with `TREE` need."""
    if conn.dialect.name == 'mysql':
        variable = _DEEPEST[bool(getattr(conn.dialect, 'is_mariadb', False))]
        conn.exec_driver_sql(f'SET SESSION {variable} = 4294967295')


def _tree() -> sa.CTE:
    topmost = (
        sa.select(
            _PROVIDERS.c.id,
            _PROVIDERS.c.id.label('root_id'),
            sa.literal_column('0').label('depth'),
        )
        .outerjoin(_PARENT, _PARENT.c.id == _PROVIDERS.c.parent_provider_id)
        .where(_PARENT.c.id.is_(None))
    )
    tree = topmost.cte('tree', recursive=True)
    return tree.union_all(
        sa.select(_PROVIDERS.c.id, tree.c.root_id, tree.c.depth + 1).join_from(
            tree, _PROVIDERS, _PROVIDERS.c.parent_provider_id == tree.c.id
        )
    )


# The providers with `id`, `root_id` (the topmost ancestor) and `depth` (0 for this one). A provider
# whose parent does not exist is the topmost one. Those in and below a cycle are omitted.
TREE = _tree()
# The id, the parent, and the root of each provider with a wrong root, and its topmost ancestor,
# parents before their children. The correction of a missing parent sets the root of the provider.
WRONG_ROOTS = (
    sa.select(
        _PROVIDERS.c.id,
        _PROVIDERS.c.parent_provider_id.label('parent_id'),
        _PROVIDERS.c.root_provider_id.label('root_id'),
        TREE.c.root_id.label('true_root_id'),
    )
    .join_from(TREE, _PROVIDERS, _PROVIDERS.c.id == TREE.c.id)
    .where(
        _PROVIDERS.c.root_provider_id.is_distinct_from(TREE.c.root_id),
        sa.or_(TREE.c.depth > 0, _PROVIDERS.c.parent_provider_id.is_(None)),
    )
    .order_by(TREE.c.depth, _PROVIDERS.c.id)
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
