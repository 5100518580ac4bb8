"""Finds the sharing providers that are available to a provider tree.

A sharing provider has the trait MISC_SHARES_VIA_AGGREGATE. It shares its resources with each tree
that has a provider in one of its aggregates.

`page_reader` reads the sharing providers of an aggregate when it reads the first tree in this
aggregate. For strict pages (see `paging`), it reads all sharing providers in one statement. It
always reads them together with all other providers of their trees, because the response describes
these trees. `SharingProviders` stores them until the end of the request. This module does not
access the database.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from placement.candidates import model, provider_checks

# Slot -> the sharing providers that can serve it in candidates of trees other than their own. A
# slot is a part of the query that exactly one provider serves (see `model`).
AbleProviders = Mapping[model.Slot, Sequence[model.Provider]]


@dataclass(frozen=True, slots=True)
class SharingAggregates:
    """The aggregates of all sharing providers that can serve a part of a query."""

    # Slot -> the aggregates of the sharing providers that can serve it.
    slots: Mapping[model.Slot, frozenset[int]]
    # Any-set of required traits of the unsuffixed group (at least one of the traits is required) ->
    # the aggregates of the sharing providers that have one of these traits and can serve a slot of
    # this group.
    traits: Mapping[frozenset[int], frozenset[int]]


def aggregates_of(providers: Iterable[model.Provider]) -> frozenset[int]:
    """Return the ids of all aggregates that at least one of the providers is in."""
    different = {provider.aggregates for provider in providers}
    return different.pop() if len(different) == 1 else frozenset().union(*different)


def able_providers(
    sharing_providers: Collection[model.Provider], slots: Iterable[model.Slot]
) -> AbleProviders:
    """Return, for each slot, the sharing providers that can serve it for other trees."""
    by_kind: dict[tuple[object, ...], list[model.Provider]] = {}
    able = {}
    for slot in slots:
        kind = slot.kind
        if kind not in by_kind:
            by_kind[kind] = [
                provider
                for provider in sharing_providers
                if provider_checks.can_serve_other_trees(provider, slot)
            ]
        able[slot] = by_kind[kind]
    return able


def sharing_aggregates(able: AbleProviders, query: model.Query[int]) -> SharingAggregates:
    """Return the aggregates of the sharing providers that can serve a query."""
    unsuffixed = [
        provider for slot, providers in able.items() if not slot.suffixed for provider in providers
    ]
    return SharingAggregates(
        slots={slot: aggregates_of(providers) for slot, providers in able.items()},
        traits={
            any_set: aggregates_of(p for p in unsuffixed if any_set & p.traits)
            for any_set in query.collective_traits
        },
    )


class SharingProviders:
    """The sharing providers that were read for a request, and their provider trees."""

    def __init__(self, sharing_id: int | None) -> None:
        """Create a registry without sharing providers.

        :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has
            the trait
        """
        # The ids of all sharing providers that were read.
        self.ids: set[int] = set()
        # Root id -> all providers of its tree, for the trees of these sharing providers.
        self.trees: dict[int, list[model.Provider]] = {}
        # The aggregates of all trees so far, if sharing providers exist.
        self.required: frozenset[int] = frozenset()
        # The aggregates of which all sharing providers were read.
        self._read: frozenset[int] = frozenset()
        self._sharing_id = sharing_id
        # Whether all existing sharing providers were read.
        self._is_complete = sharing_id is None
        self._by_aggregate: dict[int, list[model.Provider]] = defaultdict(list)
        # Set of aggregates -> the sharing providers in any of them. PERF: this is a cache, because
        # many trees are in the same aggregates.
        self._by_aggregates: dict[frozenset[int], tuple[model.Provider, ...]] = {}

    def require(self, providers: Iterable[model.Provider]) -> frozenset[int]:
        """Return those aggregates of `providers` for which no sharing providers were read yet."""
        if self._is_complete:
            return frozenset()
        aggregates = aggregates_of(providers)
        self.required |= aggregates
        return aggregates - self._read

    def add_all(self, providers: Iterable[model.Provider]) -> None:
        """Add whole trees that contain all existing sharing providers."""
        self.add(providers)
        self._is_complete = True

    def add(
        self, providers: Iterable[model.Provider], aggregates: frozenset[int] = frozenset()
    ) -> None:
        """Add the sharing providers of trees.

        :param providers: all providers of these trees. Other trees and trees that were added before
            are skipped
        :param aggregates: the aggregates of which all sharing providers have now been read
        """
        self._read |= aggregates
        if self._sharing_id is None:
            return
        sharing = [provider for provider in providers if self._sharing_id in provider.traits]
        new = {provider.root_id for provider in sharing} - self.trees.keys()
        if not new:
            return
        self._by_aggregates.clear()
        self.trees.update({root_id: [] for root_id in new})
        for provider in providers:
            if provider.root_id in new:
                self.trees[provider.root_id].append(provider)
        for provider in sharing:
            if provider.root_id in new:
                self.ids.add(provider.id)
                for aggregate in provider.aggregates:
                    self._by_aggregate[aggregate].append(provider)

    def of_tree(self, root_id: int, tree: Sequence[model.Provider]) -> tuple[model.Provider, ...]:
        """Return the sharing providers that are available to a tree, sorted by id.

        Sharing providers that are a part of the tree itself are not returned.
        """
        if not self._by_aggregate:
            return ()
        aggregates = tree[0].aggregates if len(tree) == 1 else aggregates_of(tree)
        providers = self._by_aggregates.get(aggregates)
        if providers is None:
            found = {
                provider.id: provider
                for aggregate in aggregates
                for provider in self._by_aggregate.get(aggregate, ())
            }
            providers = self._by_aggregates[aggregates] = tuple(found[id_] for id_ in sorted(found))
        if root_id not in self.trees:
            return providers
        return tuple(provider for provider in providers if provider.root_id != root_id)

    def with_trees(self, anchors: Iterable[model.Anchor]) -> list[model.Anchor]:
        """Return copies of the anchors, with `sharing_trees` set.

        `sharing_trees` contains only trees in which a sharing provider is not the root. The other
        trees do not affect same_subtree.
        """
        # Anchors with the same sharing providers use the same tuple object.
        by_roots: dict[tuple[int, ...], tuple[model.Provider, ...]] = {(): ()}
        result = []
        for anchor in anchors:
            nested = {p.root_id for p in anchor.sharing_providers if p.parent_id is not None}
            roots = tuple(sorted(nested))
            if roots not in by_roots:
                by_roots[roots] = tuple(
                    provider for root_id in roots for provider in self.trees[root_id]
                )
            result.append(anchor._replace(sharing_trees=by_roots[roots]))
        return result
