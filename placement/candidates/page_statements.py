"""Builds the statements of lenient and strict pages from the conditions of `prefilter`.

A page is a set of provider trees that is read by one statement. The statement of a *lenient* page
has only cheap conditions, such as root_required and in_tree. The statement of a *strict* page also
skips trees that cannot serve the query. `paging` decides which statement to execute.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
import functools
from typing import Any

import sqlalchemy as sa

from placement.candidates import combined_prefilter, model, prefilter, rare, statements
from placement.candidates.sharing import SharingAggregates
from placement.candidates.statements import Selection, plain_roots

# A function that returns the statement for the root ids of the pages of one kind.
RootsOf = Callable[[Selection], sa.Select[Any]]


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


def page(paged: PagedQuery, roots: sa.Select[Any], selection: Selection) -> sa.Select[Any]:
    """Return the statement that returns the trees of roots.

    :param roots: a statement that returns root ids
    """
    # PERF: most queries have no conditions on the root, and their statement is built only once.
    if roots is plain_roots(selection):
        return statements.plain_page(selection, paged.with_aggregates)
    return statements.page(roots, paged.with_aggregates)


def lenient_roots(paged: PagedQuery, selection: Selection) -> sa.Select[Any]:
    """Return the statement that returns the root ids of lenient pages.

    In deployments without sharing providers, it also has the conditions on traits and aggregates of
    providers, which are cheap to evaluate.
    """
    root = prefilter.ROOT_ID
    conditions = root_conditions(paged, root)
    if not paged.has_sharing:
        conditions += prefilter.collective_trait_conditions(paged.query, None, root)
        conditions += prefilter.group_conditions(paged.slots, root)
    return statements.roots(conditions, selection) if conditions else plain_roots(selection)


def strict_roots(
    paged: PagedQuery,
    slots: Sequence[model.Slot],
    sharing: SharingAggregates | None,
    rare_classes: Collection[int],
    selection: Selection,
) -> sa.Select[Any]:
    """Return the statement that returns the root ids of strict pages.

    :param slots: the slots to check one by one; those that the fewest trees can serve are first
    :param sharing: the aggregates of all sharing providers; None if no sharing provider exists
    :param rare_classes: the classes of which few providers have an inventory
    """
    combined = functools.partial(
        combined_prefilter.combined_conditions, paged.slots, paged.query.isolate, sharing
    )
    not_shared = [slot for slot in slots if not (sharing and sharing.slots.get(slot))]
    if not_shared and not paged.query.collective_traits:
        first = not_shared[0]
        others = [slot for slot in slots if slot != first]
        root = prefilter.ROOT_ID_OF_MEMBER
        return statements.roots_by_members(
            first,
            root_conditions(paged, root),
            [*prefilter.slot_conditions(others, sharing, root), *combined(root, members_of=first)],
            selection,
            next((class_id for class_id, _ in first.amounts if class_id in rare_classes), None),
        )
    root = prefilter.ROOT_ID
    # Trait conditions are first, because they cost less than sums of allocations.
    conditions = prefilter.collective_trait_conditions(paged.query, sharing, root)
    if not not_shared:
        kinds = {slot.kind: slot for slot in paged.slots}
        conditions.append(prefilter.any_slot_condition(tuple(kinds.values()), root))
    conditions += [*prefilter.slot_conditions(slots, sharing, root), *combined(root)]
    return statements.roots(
        [*root_conditions(paged, root), prefilter.in_order(conditions)], selection
    )
