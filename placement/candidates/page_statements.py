"""The statements that read provider trees, page by page.

A page is a set of provider trees that is read by one statement, which selects the roots and returns
one row of `tree_rows` for each provider of their trees. The statement of a *lenient* page has only
cheap conditions, such as root_required and in_tree. The statement of a *strict* page also skips
trees that cannot serve the query. `prefilter` builds the conditions. `paging` decides which
statement to execute.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
import enum
import functools
from typing import Any

import sqlalchemy as sa

from placement import capacity
from placement.candidates import model, prefilter, rare, tree_rows
from placement.candidates.prefilter import MEMBERS, ROOT_ID_OF_MEMBER, ROOTS, Clause
from placement.candidates.sharing import SharingAggregates
from placement.candidates.tree_rows import PROVIDER
from placement.db import provider_conditions, sql
from placement.db.sqlalchemy import models

_TRAITS = models.resource_provider_traits
_AGGREGATES = models.resource_provider_aggregates
_AGGREGATE_LINK = _AGGREGATES.alias('aggregate_link')


class RootRange(enum.Enum):
    """The parameters that select the roots of a page, in addition to its conditions."""

    # At most `size` roots with an id after `after`, in the order of their ids.
    NEXT = 'next'
    # All roots whose ids are in the list `root_ids`.
    LISTED = 'listed'


# The largest id that an INTEGER column can store.
MAX_ID = capacity.MAX_INT

_AFTER = sa.bindparam('after', type_=sa.Integer)
_SIZE = sa.bindparam('size', type_=sa.Integer)


def _id_list(name: str) -> sa.BindParameter[int]:
    return sa.bindparam(name, type_=sa.Integer, expanding=True, literal_execute=True)


_LISTED_ROOTS = _id_list('root_ids')
_SHARING_ID = sa.bindparam('sharing_id', type_=sa.Integer)
_SHARED_AGGREGATES = _id_list('aggregates')
_EXCLUDED = _id_list('excluded')
# Some providers have no valid root: old releases stored NULL as root id, and in a damaged database,
# the root may not exist or may have a parent. These providers are not searched, and a page must not
# count them as trees.
_IS_ROOT = (
    sql.IsNull(ROOTS.c.parent_provider_id),
    ROOTS.c.root_provider_id == ROOTS.c.id,
)
_HAS_ROOT = provider_conditions.has_rows(
    sa.select(sa.literal_column('1'))
    .where(ROOTS.c.id == ROOT_ID_OF_MEMBER, *_IS_ROOT)
    .correlate(MEMBERS)
)


@functools.cache
def plain_roots(root_range: RootRange) -> sa.Select[Any]:
    """Return a statement like `_roots_by_conditions` without conditions."""
    return _roots_by_conditions((), root_range)


@functools.cache
def plain_page(root_range: RootRange, with_aggregates: bool) -> sa.Select[Any]:
    """Return a statement like `trees_of` for roots without conditions."""
    return trees_of(plain_roots(root_range), with_aggregates)


def trees_of(
    root_select: sa.Select[Any] | sa.CompoundSelect[Any], with_aggregates: bool
) -> sa.Select[Any]:
    """Return a statement that returns the trees of the roots that a statement returns."""
    few = root_select.subquery('few')
    return tree_rows.columns(with_aggregates).join_from(
        few, PROVIDER, PROVIDER.c.root_provider_id == few.c.id
    )


def _roots_by_conditions(conditions: Iterable[Clause], root_range: RootRange) -> sa.Select[Any]:
    """Return a statement that returns the ids of the roots that satisfy the conditions."""
    few = sa.select(ROOTS.c.id).where(*_IS_ROOT, *_selected(ROOTS.c.id, root_range), *conditions)
    return few if root_range is RootRange.LISTED else few.order_by(ROOTS.c.id).limit(_SIZE)


def _selected(root: sa.ColumnElement[int], root_range: RootRange) -> tuple[Clause, ...]:
    if root_range is RootRange.LISTED:
        return (root.in_(_LISTED_ROOTS),)
    return (root > _AFTER,)


def _roots_by_members(
    slot: model.Slot,
    conditions: Iterable[Clause],
    tree_conditions: Sequence[Clause],
    root_range: RootRange,
    by_class: int | None = None,
) -> sa.Select[Any]:
    """Return a statement that returns the root ids of trees in which a provider could serve a slot.

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
        .where(*_selected(root, root_range), *conditions, prefilter.can_serve(slot, by_class))
        .group_by(root)
        .having(prefilter.in_order([*tree_conditions, _HAS_ROOT]))
    )
    if by_class is not None:
        inventory = prefilter.inventory_alias(1)
        few = few.join_from(MEMBERS, inventory, inventory.c.resource_provider_id == MEMBERS.c.id)
        few = few.where(inventory.c.resource_class_id == by_class)
    return few if root_range is RootRange.LISTED else few.order_by(root).limit(_SIZE)


def trees(root_ids: Collection[int], trait_id: int | None = None) -> sa.Select[Any]:
    """Return a statement that returns the providers of the trees with these roots.

    :param trait_id: only providers with this trait; None for all
    """
    few = sa.select(ROOTS.c.id).where(
        *_IS_ROOT, ROOTS.c.id.in_(provider_conditions.id_list(root_ids))
    )
    statement = trees_of(few, with_aggregates=True)
    if trait_id is None:
        return statement
    return statement.where(provider_conditions.has_any_trait(PROVIDER.c.id, [trait_id]))


@functools.cache
def sharing_trees(of_all: bool) -> sa.Select[Any]:
    """Return a statement that returns the trees of sharing providers.

    Its parameters are `excluded`, a list of the root ids of trees that are not returned, and those
    of `roots_of_sharing_providers`.
    """
    few = roots_of_sharing_providers(of_all).where(ROOTS.c.id.not_in(_EXCLUDED))
    return trees_of(few, with_aggregates=True)


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
        .where(_TRAITS.c.trait_id == _SHARING_ID, *_IS_ROOT)
        .distinct()
    )
    if of_all:
        return statement
    return statement.where(
        sa.exists().where(
            link.c.resource_provider_id == MEMBERS.c.id, link.c.aggregate_id.in_(_SHARED_AGGREGATES)
        )
    )


# A function that returns the statement for the root ids of the pages of one kind.
RootsOf = Callable[[RootRange], sa.Select[Any]]


@dataclass(frozen=True, slots=True)
class PagedQuery:
    """A query with the data that is the same for all of its pages."""

    query: model.Query[int]
    slots: tuple[model.Slot, ...]
    # Whether any provider has the trait MISC_SHARES_VIA_AGGREGATE.
    has_sharing: bool
    # Root id of a tree named by the in_tree of a suffixed group -> the aggregates of the sharing
    # providers of this tree.
    in_tree_aggregates: Mapping[int, Collection[int]]

    @property
    def with_aggregates(self) -> bool:
        """Whether the search needs the aggregates of providers."""
        return self.has_sharing or bool(self.query.aggregates)


def root_conditions(paged: PagedQuery, root: prefilter.RootId) -> list[prefilter.Clause]:
    """Return the conditions on the root that lenient and strict pages have in common."""
    return [
        *rare.root_conditions(paged.query, paged.has_sharing, root),
        *prefilter.root_conditions(paged.query, root),
        *prefilter.in_tree_conditions(paged.query, paged.in_tree_aggregates, root),
    ]


def page(paged: PagedQuery, root_select: sa.Select[Any], root_range: RootRange) -> sa.Select[Any]:
    """Return the statement that returns the trees of roots.

    :param root_select: a statement that returns root ids
    """
    # PERF: most queries have no conditions on the root, and their statement is built only once.
    if root_select is plain_roots(root_range):
        return plain_page(root_range, paged.with_aggregates)
    return trees_of(root_select, paged.with_aggregates)


def lenient_roots(paged: PagedQuery, root_range: RootRange) -> sa.Select[Any]:
    """Return the statement that returns the root ids of lenient pages.

    In deployments without sharing providers, it also has the conditions on traits and aggregates of
    providers, which are cheap to evaluate.
    """
    root = prefilter.ROOT_ID
    conditions = root_conditions(paged, root)
    if not paged.has_sharing:
        conditions += prefilter.collective_trait_conditions(paged.query, None, root)
        conditions += prefilter.group_conditions(paged.slots, root)
    return _roots_by_conditions(conditions, root_range) if conditions else plain_roots(root_range)


def strict_roots(
    paged: PagedQuery,
    slots: Sequence[model.Slot],
    sharing: SharingAggregates | None,
    rare_classes: Collection[int],
    root_range: RootRange,
) -> sa.Select[Any]:
    """Return the statement that returns the root ids of strict pages.

    :param slots: the slots to check one by one; those that the fewest trees can serve are first
    :param sharing: the aggregates of all sharing providers; None if no sharing provider exists
    :param rare_classes: the classes of which few providers have an inventory
    """
    combined = functools.partial(
        prefilter.combined_conditions, paged.slots, paged.query.isolate, sharing
    )
    not_shared = [slot for slot in slots if not (sharing and sharing.slots.get(slot))]
    if not_shared and not paged.query.collective_traits:
        first = not_shared[0]
        others = [slot for slot in slots if slot != first]
        root = prefilter.ROOT_ID_OF_MEMBER
        return _roots_by_members(
            first,
            root_conditions(paged, root),
            [*prefilter.slot_conditions(others, sharing, root), *combined(root, members_of=first)],
            root_range,
            next((class_id for class_id, _ in first.amounts if class_id in rare_classes), None),
        )
    root = prefilter.ROOT_ID
    # Trait conditions are first, because they cost less than sums of allocations.
    conditions = prefilter.collective_trait_conditions(paged.query, sharing, root)
    conditions += [*prefilter.slot_conditions(slots, sharing, root), *combined(root)]
    return _roots_by_conditions(
        [*root_conditions(paged, root), prefilter.in_order(conditions)], root_range
    )
