"""The statements of a search: names, pages of trees, and sharing providers.

A page of trees is one statement, which finds the roots and reads their trees. It returns one row
for each provider. The traits, aggregates and inventories of a provider are JSON arrays that the
database builds, because rows cost more than bytes. `prefilter` has the conditions that select
roots; `facts` and `paging` execute the statements.
"""

from collections.abc import Collection, Iterable, Sequence
import functools
from typing import Any

import os_traits
import sqlalchemy as sa

from placement import capacity
from placement.candidates import model
from placement.candidates.prefilter import (
    MEMBERS,
    ROOT_ID_OF_MEMBER,
    ROOTS,
    Clause,
    can_serve,
    in_order,
)
from placement.db import clauses, json_sql, portable_sql
from placement.db.sqlalchemy import models

# The kinds of rows of `ids_of_names` and `names_of_ids`.
CLASS, TRAIT, AGGREGATE, TREE, SHARING = 'class', 'trait', 'aggregate', 'tree', 'sharing'

_PROVIDERS = models.resource_providers
_TRAITS = models.resource_provider_traits
_AGGREGATES = models.resource_provider_aggregates

# The aliases of provider facts. They are created once: creating an alias takes longer than the rest
# of a statement.
_PROVIDER = _PROVIDERS.alias('provider')
_INVENTORIES = models.inventories.alias('inventory')
_TRAIT_LINK = _TRAITS.alias('trait_link')
_AGGREGATE_LINK = _AGGREGATES.alias('aggregate_link')


# Names ------------------------------------------------------------------------


# Kind -> the column with the name, and the column with the id that replaces it.
NAMED: dict[str, tuple[sa.Column[Any], sa.Column[Any]]] = {
    CLASS: (models.resource_classes.c.name, models.resource_classes.c.id),
    TRAIT: (models.traits.c.name, models.traits.c.id),
    AGGREGATE: (models.placement_aggregates.c.uuid, models.placement_aggregates.c.id),
    TREE: (_PROVIDERS.c.uuid, _PROVIDERS.c.root_provider_id),
}

Parameters = dict[str, Any]


def ids_of_names(query: model.Query[str]) -> tuple[sa.CompoundSelect[Any], Parameters]:
    """Return a statement for the ids of all names of a query, as rows (kind, name, id).

    It also returns the sharing trait (kind SHARING) if any provider has it. Like some others here,
    the statement is the same for all requests except for its parameters: building it takes longer
    than executing it.

    :returns: the statement and its parameters: the sorted names of each kind that the query has
    """
    names = {
        CLASS: query.classes,
        TRAIT: query.traits,
        AGGREGATE: query.aggregates,
        TREE: query.in_trees,
    }
    requested = {kind: sorted(of_kind) for kind, of_kind in names.items() if of_kind}
    return _ids_of_names(tuple(requested)), requested


@functools.cache
def _ids_of_names(kinds: tuple[str, ...]) -> sa.CompoundSelect[Any]:
    named = [
        _rows_of_kind(kind, name, id_).where(name.in_(sa.bindparam(kind, expanding=True)))
        for kind, (name, id_) in NAMED.items()
        if kind in kinds
    ]
    traits = models.traits.c
    sharing = _rows_of_kind(SHARING, traits.name, traits.id).where(
        traits.name == os_traits.MISC_SHARES_VIA_AGGREGATE,
        sa.exists().where(_TRAITS.c.trait_id == traits.id),
    )
    return sa.union_all(*named, sharing)


def names_of_ids(
    class_ids: Iterable[int], trait_ids: Iterable[int]
) -> tuple[sa.CompoundSelect[Any], Parameters]:
    """Return a statement for the names of classes and traits, as rows (kind, name, id)."""
    return _NAMES_OF_IDS, {CLASS: sorted(class_ids), TRAIT: sorted(trait_ids)}


def _rows_of_kind(kind: str, name: sa.Column[Any], id_: sa.Column[Any]) -> sa.Select[Any]:
    return sa.select(sa.literal_column(f"'{kind}'"), portable_sql.StoredText(name), id_)


_NAMES_OF_IDS = sa.union_all(
    *(
        _rows_of_kind(kind, *NAMED[kind]).where(
            NAMED[kind][1].in_(sa.bindparam(kind, expanding=True, literal_execute=True))
        )
        for kind in (CLASS, TRAIT)
    )
)


# Provider facts ---------------------------------------------------------------


@functools.cache
def provider_facts(with_aggregates: bool) -> sa.Select[Any]:
    """Return a select of the columns that `facts.providers_of` reads, without a FROM.

    The caller joins `_PROVIDER`. Traits, aggregates and inventories are texts of JSON arrays.
    """
    inventory = json_sql.JsonNumberArray(
        _INVENTORIES.c.resource_class_id,
        _INVENTORIES.c.total,
        _INVENTORIES.c.reserved,
        _INVENTORIES.c.min_unit,
        _INVENTORIES.c.max_unit,
        _INVENTORIES.c.step_size,
        json_sql.JsonNumber(_INVENTORIES.c.allocation_ratio),
        clauses.used(_INVENTORIES),
    )
    return sa.select(
        _PROVIDER.c.id,
        _PROVIDER.c.uuid,
        _PROVIDER.c.root_provider_id,
        _PROVIDER.c.parent_provider_id,
        _ids_of_provider(_TRAIT_LINK, 'trait_id'),
        _ids_of_provider(_AGGREGATE_LINK, 'aggregate_id') if with_aggregates else sa.null(),
        sa.select(json_sql.JsonList(inventory))
        .select_from(_INVENTORIES)
        .where(_INVENTORIES.c.resource_provider_id == _PROVIDER.c.id)
        .correlate(_PROVIDER)
        .scalar_subquery(),
    )


def _ids_of_provider(link: sa.FromClause, column: str) -> sa.ScalarSelect[str]:
    return (
        sa.select(json_sql.JsonList(link.c[column]))
        .where(link.c.resource_provider_id == _PROVIDER.c.id)
        .correlate(_PROVIDER)
        .scalar_subquery()
    )


# Parameters of pages: the roots of a page have ids above `after`, up to `upto`.
_AFTER = sa.bindparam('after', type_=sa.Integer)
_UPTO = sa.bindparam('upto', type_=sa.Integer)
_SIZE = sa.bindparam('size', type_=sa.Integer)
# Old releases left providers without a root, and a damaged database has root ids of providers that
# do not exist or have a parent. Their trees are not searched, and a page must not count them.
_IS_ROOT = (
    ROOTS.c.parent_provider_id.is_(None),
    ROOTS.c.root_provider_id == ROOTS.c.id,
)
_HAS_ROOT = clauses.has_rows(
    sa.select(sa.literal_column('1'))
    .where(ROOTS.c.id == ROOT_ID_OF_MEMBER, *_IS_ROOT)
    .correlate(MEMBERS)
)
# The highest id of an INTEGER column.
MAX_ID = capacity.MAX_INT


def page(conditions: Sequence[Clause], with_aggregates: bool) -> sa.Select[Any]:
    """Return a statement for the trees of the next roots that satisfy the conditions.

    Its parameters are `after`, `upto` and `size`; roots are in the order of their ids.
    """
    return _page(tuple(conditions), with_aggregates) if conditions else _plain_page(with_aggregates)


@functools.cache
def _plain_page(with_aggregates: bool) -> sa.Select[Any]:
    return _page((), with_aggregates)


def _page(conditions: Iterable[Clause], with_aggregates: bool) -> sa.Select[Any]:
    few = (
        sa.select(ROOTS.c.id)
        .where(
            *_IS_ROOT,
            ROOTS.c.id > _AFTER,
            ROOTS.c.id <= _UPTO,
            *conditions,
        )
        .order_by(ROOTS.c.id)
        .limit(_SIZE)
    )
    return _facts_of_roots(few.subquery('few'), with_aggregates)


def page_by_members(
    slot: model.Slot,
    conditions: Iterable[Clause],
    tree_conditions: Sequence[Clause],
    with_aggregates: bool,
) -> sa.Select[Any]:
    """Return the same as `page`, selected by the providers that could serve one slot.

    PERF: selecting members of trees, instead of searching the members of each root, saves one
    look-up for each tree: a fifth to a third of the time of a page on which few trees fit.

    :param conditions: conditions on ROOT_ID_OF_MEMBER. They are evaluated for each member, so they
        must not concern its tree
    :param tree_conditions: the conditions of the other slots. They are evaluated last, in this
        order, and once for each tree, however many of its members could serve the slot. That is why
        they are a HAVING
    """
    root = ROOT_ID_OF_MEMBER
    few = (
        sa.select(root.label('id'))
        .where(root > _AFTER, root <= _UPTO, *conditions, can_serve(slot))
        .group_by(root)
        .order_by(root)
        .limit(_SIZE)
    )
    few = few.having(in_order([*tree_conditions, _HAS_ROOT]))
    return _facts_of_roots(few.subquery('few'), with_aggregates)


def trees(root_ids: Collection[int], excluded: Collection[int] = ()) -> sa.Select[Any]:
    """Return a statement for the trees of these roots, except for the excluded providers."""
    few = sa.select(ROOTS.c.id).where(*_IS_ROOT, ROOTS.c.id.in_(clauses.id_list(root_ids)))
    statement = _facts_of_roots(few.subquery('few'), with_aggregates=True)
    if not excluded:
        return statement
    return statement.where(_PROVIDER.c.id.not_in(clauses.id_list(excluded)))


def _facts_of_roots(few: sa.Subquery, with_aggregates: bool) -> sa.Select[Any]:
    return provider_facts(with_aggregates).join_from(
        few, _PROVIDER, _PROVIDER.c.root_provider_id == few.c.id
    )


def sharing_providers(
    sharing_id: int, aggregate_ids: Collection[int] | None = None, roots: Collection[int] = ()
) -> sa.Select[Any]:
    """Return a statement for sharing providers: all, those in aggregates, or those of some trees.

    :param sharing_id: the id of the sharing trait
    """
    statement = (
        provider_facts(with_aggregates=True)
        .join_from(_TRAITS, _PROVIDER, _PROVIDER.c.id == _TRAITS.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == _PROVIDER.c.root_provider_id)
        .where(_TRAITS.c.trait_id == sharing_id, *_IS_ROOT)
    )
    if roots:
        statement = statement.where(_PROVIDER.c.root_provider_id.in_(clauses.id_list(roots)))
    if aggregate_ids is not None:
        link = _AGGREGATE_LINK
        statement = statement.where(
            sa.exists().where(
                link.c.resource_provider_id == _PROVIDER.c.id,
                link.c.aggregate_id.in_(clauses.id_list(aggregate_ids)),
            )
        )
    return statement


def root_at(position: int) -> sa.Select[Any]:
    """Return a statement for the id of the root at a position in the order of ids."""
    roots = sa.select(ROOTS.c.id).where(*_IS_ROOT)
    return roots.order_by(ROOTS.c.id).offset(position).limit(1)


def root_count() -> sa.Select[Any]:
    """Return a statement for the number of trees."""
    return sa.select(sa.func.count(ROOTS.c.id)).where(*_IS_ROOT)


def aggregates_of_trees(
    aggregate_ids: Collection[int], conditions: Iterable[Clause]
) -> sa.Select[Any]:
    """Return a statement for rows (root, aggregate): which trees have providers in which one."""
    link = _AGGREGATES
    return (
        _roots_of_members(link, conditions)
        .add_columns(link.c.aggregate_id)
        .where(link.c.aggregate_id.in_(clauses.id_list(aggregate_ids)))
        .distinct()
    )


def one_tree_per_aggregate(
    aggregate_ids: Collection[int], conditions: Iterable[Clause]
) -> sa.Select[Any]:
    """Return a statement for rows (root,): one tree with a provider in each aggregate, or NULL."""
    link, aggregate = _AGGREGATES, models.placement_aggregates
    first = _roots_of_members(link, conditions).where(link.c.aggregate_id == aggregate.c.id)
    return sa.select(first.limit(1).correlate(aggregate).scalar_subquery()).where(
        aggregate.c.id.in_(clauses.id_list(aggregate_ids))
    )


def _roots_of_members(link: sa.FromClause, conditions: Iterable[Clause]) -> sa.Select[Any]:
    """Select the roots that satisfy the conditions, for the providers of rows of `link`."""
    return (
        sa.select(ROOTS.c.id)
        .select_from(link)
        .join(MEMBERS, MEMBERS.c.id == link.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == MEMBERS.c.root_provider_id)
        .where(*_IS_ROOT, *conditions)
    )
