"""Builds the statements of a search for pages of trees and for sharing providers.

A page of trees is read by one statement, which selects the roots and returns one row for each
provider of their trees. In this row, the traits, aggregates and inventories of the provider are
JSON arrays that the database builds. This is faster than one row for each trait, aggregate and
inventory. `prefilter` builds the conditions that select roots. `facts` and `page_reader` execute
the statements.
"""

from collections.abc import Collection, Iterable, Sequence
import enum
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
    inventory_alias,
)
from placement.db import capacity_sql, json_sql, portable_sql, provider_conditions
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


class Selection(enum.Enum):
    """The parameters that select the roots of a page, in addition to its conditions."""

    # At most `size` roots with after < id <= upto, in the order of their ids.
    NEXT = 'next'
    # All roots whose ids are in the list `roots`.
    LISTED = 'listed'


_AFTER = sa.bindparam('after', type_=sa.Integer)
_UPTO = sa.bindparam('upto', type_=sa.Integer)
_SIZE = sa.bindparam('size', type_=sa.Integer)


def _id_list(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.Integer, expanding=True, literal_execute=True)


_LISTED_ROOTS = _id_list('roots')
_SHARING_ID = sa.bindparam('sharing_id', type_=sa.Integer)
_SHARED_AGGREGATES = _id_list('aggregates')
_EXCLUDED = _id_list('excluded')
# Some providers have no valid root: old releases stored NULL as root id, and in a damaged database,
# the root may not exist or may have a parent. These providers are not searched, and a page must not
# count them as trees.
IS_ROOT = (
    portable_sql.IsNull(ROOTS.c.parent_provider_id),
    ROOTS.c.root_provider_id == ROOTS.c.id,
)
_HAS_ROOT = provider_conditions.has_rows(
    sa.select(sa.literal_column('1'))
    .where(ROOTS.c.id == ROOT_ID_OF_MEMBER, *IS_ROOT)
    .correlate(MEMBERS)
)
# The largest id that an INTEGER column can store.
MAX_ID = capacity.MAX_INT


@functools.cache
def plain_roots(selection: Selection) -> sa.Select[Any]:
    """Return a statement like `roots` without conditions."""
    return roots((), selection)


@functools.cache
def plain_page(selection: Selection, with_aggregates: bool) -> sa.Select[Any]:
    """Return a statement like `page` for roots without conditions."""
    return page(plain_roots(selection), with_aggregates)


def page(roots: sa.Select[Any] | sa.CompoundSelect[Any], with_aggregates: bool) -> sa.Select[Any]:
    """Return a statement that returns the trees of the roots that a statement returns."""
    few = roots.subquery('few')
    return provider_facts(with_aggregates).join_from(
        few, _PROVIDER, _PROVIDER.c.root_provider_id == few.c.id
    )


def roots(conditions: Iterable[Clause], selection: Selection) -> sa.Select[Any]:
    """Return a statement that returns the ids of the roots that satisfy the conditions."""
    few = sa.select(ROOTS.c.id).where(*IS_ROOT, *_selected(ROOTS.c.id, selection), *conditions)
    return few if selection is Selection.LISTED else few.order_by(ROOTS.c.id).limit(_SIZE)


def _selected(root: sa.ColumnElement[int], selection: Selection) -> tuple[Clause, ...]:
    if selection is Selection.LISTED:
        return (root.in_(_LISTED_ROOTS),)
    return root > _AFTER, root <= _UPTO


def roots_by_members(
    slot: model.Slot,
    conditions: Iterable[Clause],
    tree_conditions: Sequence[Clause],
    selection: Selection,
    by_class: int | None = None,
) -> sa.Select[Any]:
    """Return a statement like `roots` for trees in which a provider could serve a given slot.

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
    :param by_class: a class of the slot of which few providers have an inventory. The statement
        then starts with these inventories, and does not look up the other members of wide trees
    """
    root = ROOT_ID_OF_MEMBER
    few = (
        sa.select(root.label('id'))
        .where(*_selected(root, selection), *conditions, can_serve(slot, by_class))
        .group_by(root)
        .having(in_order([*tree_conditions, _HAS_ROOT]))
    )
    if by_class is not None:
        inventory = inventory_alias(1)
        few = few.join_from(MEMBERS, inventory, inventory.c.resource_provider_id == MEMBERS.c.id)
        few = few.where(inventory.c.resource_class_id == by_class)
    return few if selection is Selection.LISTED else few.order_by(root).limit(_SIZE)


def trees(root_ids: Collection[int], trait_id: int | None = None) -> sa.Select[Any]:
    """Return a statement that returns the providers of the trees with these roots.

    :param trait_id: only providers with this trait; None for all
    """
    few = sa.select(ROOTS.c.id).where(
        *IS_ROOT, ROOTS.c.id.in_(provider_conditions.id_list(root_ids))
    )
    statement = page(few, with_aggregates=True)
    if trait_id is None:
        return statement
    return statement.where(provider_conditions.has_any_trait(_PROVIDER.c.id, [trait_id]))


@functools.cache
def sharing_trees(of_all: bool) -> sa.Select[Any]:
    """Return a statement that returns the trees of sharing providers.

    Its parameters are `excluded`, a list of the root ids of trees that are not returned, and those
    of `roots_of_sharing_providers`.
    """
    few = roots_of_sharing_providers(of_all).where(ROOTS.c.id.not_in(_EXCLUDED))
    return page(few, with_aggregates=True)


def roots_of_sharing_providers(of_all: bool) -> sa.Select[Any]:
    """Return a statement that returns the root ids of the trees of sharing providers.

    Its parameters are `sharing_id`, which is the id of the trait MISC_SHARES_VIA_AGGREGATE, and
    `aggregates`.

    :param of_all: whether to return the trees of all sharing providers. Otherwise, only those of
        the sharing providers in at least one of the aggregates are returned
    """
    link = _AGGREGATE_LINK
    statement = (
        sa.select(ROOTS.c.id)
        .join_from(_TRAITS, MEMBERS, MEMBERS.c.id == _TRAITS.c.resource_provider_id)
        .join(ROOTS, ROOTS.c.id == MEMBERS.c.root_provider_id)
        .where(_TRAITS.c.trait_id == _SHARING_ID, *IS_ROOT)
        .distinct()
    )
    if of_all:
        return statement
    return statement.where(
        sa.exists().where(
            link.c.resource_provider_id == MEMBERS.c.id, link.c.aggregate_id.in_(_SHARED_AGGREGATES)
        )
    )


def with_sharing_providers(roots: sa.Select[Any]) -> sa.CompoundSelect[Any]:
    """Return a statement that also returns the roots of `roots_of_sharing_providers`.

    :param roots: a statement that returns root ids
    """
    page = sa.select(roots.subquery('page').c.id)  # SQLite permits no LIMIT in a part of a UNION
    return page.union(roots_of_sharing_providers(of_all=False))


def id_range() -> sa.Select[Any]:
    """Return a statement that returns the smallest and the largest provider id."""
    return sa.select(sa.func.min(_PROVIDERS.c.id), sa.func.max(_PROVIDERS.c.id))
