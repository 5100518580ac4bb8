"""Builds the statements of a search for pages of trees and for sharing providers.

A page of trees is read by one statement, which selects the roots and returns one row for each
provider of their trees. In this row, the traits, aggregates and inventories of the provider are
JSON arrays that the database builds. This is faster than one row for each trait, aggregate and
inventory. `prefilter` builds the conditions that select roots. `facts` and `page_reader` execute
the statements.
"""

from collections.abc import Collection, Iterable, Sequence
import functools
from typing import Any

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
from placement.db import capacity_sql, json_sql, provider_conditions
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_TRAITS = models.resource_provider_traits
_AGGREGATES = models.resource_provider_aggregates

# The table aliases of `provider_facts`. PERF: an alias takes longer to create than the rest of a
# statement, so each is created only once.
_PROVIDER = _PROVIDERS.alias('provider')
_INVENTORIES = models.inventories.alias('inventory')
_TRAIT_LINK = _TRAITS.alias('trait_link')
_AGGREGATE_LINK = _AGGREGATES.alias('aggregate_link')


# Provider facts ---------------------------------------------------------------


@functools.cache
def provider_facts(with_aggregates: bool) -> sa.Select[Any]:
    """Return a SELECT of the columns that `facts.providers_of` reads.

    The SELECT has no FROM clause: the caller adds `_PROVIDER` with a join. The columns for traits,
    aggregates and inventories contain JSON arrays as text.
    """
    inventory = json_sql.JsonNumberArray(
        _INVENTORIES.c.resource_class_id,
        _INVENTORIES.c.total,
        _INVENTORIES.c.reserved,
        _INVENTORIES.c.min_unit,
        _INVENTORIES.c.max_unit,
        _INVENTORIES.c.step_size,
        json_sql.JsonNumber(_INVENTORIES.c.allocation_ratio),
        capacity_sql.used(_INVENTORIES),
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


# The parameters of pages. A page has at most `size` roots, with after < id <= upto.
_AFTER = sa.bindparam('after', type_=sa.Integer)
_UPTO = sa.bindparam('upto', type_=sa.Integer)
_SIZE = sa.bindparam('size', type_=sa.Integer)
# Some providers have no valid root: old releases stored NULL as root id, and in a damaged database,
# the root may not exist or may have a parent. These providers are not searched, and a page must not
# count them as trees.
_IS_ROOT = (
    ROOTS.c.parent_provider_id.is_(None),
    ROOTS.c.root_provider_id == ROOTS.c.id,
)
_HAS_ROOT = provider_conditions.has_rows(
    sa.select(sa.literal_column('1'))
    .where(ROOTS.c.id == ROOT_ID_OF_MEMBER, *_IS_ROOT)
    .correlate(MEMBERS)
)
# The largest id that an INTEGER column can store.
MAX_ID = capacity.MAX_INT


def page(conditions: Sequence[Clause], with_aggregates: bool) -> sa.Select[Any]:
    """Return a statement that returns the trees of the next roots that satisfy the conditions.

    Roots are selected in the order of their ids. The parameters of the statement are `after`,
    `upto` and `size`.
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
    """Return a statement like `page` for trees in which a provider could serve a given slot.

    The statement first selects these providers (the members of a tree), and then groups them by
    their root.

    PERF: a statement that selects roots first has to look up the members of each root. Selecting
    members first takes a fifth to a third less time if few trees can serve the slot.

    :param slot: the slot (see `model`) that the selected providers could serve
    :param conditions: conditions on the root, with ROOT_ID_OF_MEMBER as its id. They are evaluated
        for each member, so they must be cheap: conditions on other members belong in
        `tree_conditions`
    :param tree_conditions: the conditions of the other slots. They are in a HAVING clause, so that
        they are evaluated last, in this order, and only once for each tree
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
    """Return a statement that returns the providers of the trees with these roots.

    :param excluded: the ids of providers that are not returned
    """
    few = sa.select(ROOTS.c.id).where(
        *_IS_ROOT, ROOTS.c.id.in_(provider_conditions.id_list(root_ids))
    )
    statement = _facts_of_roots(few.subquery('few'), with_aggregates=True)
    if not excluded:
        return statement
    return statement.where(_PROVIDER.c.id.not_in(provider_conditions.id_list(excluded)))


def _facts_of_roots(few: sa.Subquery, with_aggregates: bool) -> sa.Select[Any]:
    return provider_facts(with_aggregates).join_from(
        few, _PROVIDER, _PROVIDER.c.root_provider_id == few.c.id
    )


def sharing_providers(
    sharing_id: int, aggregate_ids: Collection[int] | None = None, roots: Collection[int] = ()
) -> sa.Select[Any]:
    """Return a statement that returns sharing providers.

    :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE
    :param aggregate_ids: return only sharing providers in one of these aggregates; None for all
    :param roots: return only sharing providers of the trees with these root ids; empty for all
    """
    statement = (
        provider_facts(with_aggregates=True)
        .join_from(_TRAITS, _PROVIDER, _PROVIDER.c.id == _TRAITS.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == _PROVIDER.c.root_provider_id)
        .where(_TRAITS.c.trait_id == sharing_id, *_IS_ROOT)
    )
    if roots:
        statement = statement.where(
            _PROVIDER.c.root_provider_id.in_(provider_conditions.id_list(roots))
        )
    if aggregate_ids is not None:
        link = _AGGREGATE_LINK
        statement = statement.where(
            sa.exists().where(
                link.c.resource_provider_id == _PROVIDER.c.id,
                link.c.aggregate_id.in_(provider_conditions.id_list(aggregate_ids)),
            )
        )
    return statement


def root_at(position: int) -> sa.Select[Any]:
    """Return a statement that returns the root id at a position (from 0) in the order of ids."""
    roots = sa.select(ROOTS.c.id).where(*_IS_ROOT)
    return roots.order_by(ROOTS.c.id).offset(position).limit(1)


def root_count() -> sa.Select[Any]:
    """Return a statement that returns the number of trees."""
    return sa.select(sa.func.count(ROOTS.c.id)).where(*_IS_ROOT)


def aggregates_of_trees(
    aggregate_ids: Collection[int], conditions: Iterable[Clause]
) -> sa.Select[Any]:
    """Return a statement that returns which trees have a provider in which of these aggregates.

    It returns rows (root id, aggregate id), only for roots that satisfy the conditions.
    """
    link = _AGGREGATES
    return (
        _roots_of_members(link, conditions)
        .add_columns(link.c.aggregate_id)
        .where(link.c.aggregate_id.in_(provider_conditions.id_list(aggregate_ids)))
        .distinct()
    )


def one_tree_per_aggregate(
    aggregate_ids: Collection[int], conditions: Iterable[Clause]
) -> sa.Select[Any]:
    """Return a statement that returns, for each aggregate, one tree with a provider in it.

    It returns one row (root id,) for each aggregate. The root satisfies the conditions. If no such
    tree exists, the root id is NULL.
    """
    link, aggregate = _AGGREGATES, models.placement_aggregates
    first = _roots_of_members(link, conditions).where(link.c.aggregate_id == aggregate.c.id)
    return sa.select(first.limit(1).correlate(aggregate).scalar_subquery()).where(
        aggregate.c.id.in_(provider_conditions.id_list(aggregate_ids))
    )


def _roots_of_members(link: sa.FromClause, conditions: Iterable[Clause]) -> sa.Select[Any]:
    """Return a SELECT of the roots of the providers in the table `link`.

    :param link: a table that links providers with aggregates
    :param conditions: the conditions that a root must satisfy
    """
    return (
        sa.select(ROOTS.c.id)
        .select_from(link)
        .join(MEMBERS, MEMBERS.c.id == link.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == MEMBERS.c.root_provider_id)
        .where(*_IS_ROOT, *conditions)
    )
