"""Finds the sharing providers that are available to a provider tree.

A sharing provider has the trait MISC_SHARES_VIA_AGGREGATE. It shares its resources with each tree
that has a provider in one of its aggregates.

`paging` reads the sharing providers of an aggregate when it reads the first tree in this aggregate.
For strict pages (see `paging`), it reads all sharing providers in one statement. `SharingProviders`
stores them until the end of the request. This module does not access the database.
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

    def __init__(self) -> None:
        # The ids of all sharing providers that were read. This includes sharing providers that were
        # read only as members of a tree; `_by_aggregate` does not contain those.
        self.ids: set[int] = set()
        self._by_aggregate: dict[int, list[model.Provider]] = {}
        # Set of aggregates -> the sharing providers in any of them. PERF: this is a cache, because
        # many trees are in the same aggregates.
        self._by_aggregates: dict[frozenset[int], tuple[model.Provider, ...]] = {}
        self._trees: dict[int, list[model.Provider]] = {}
        # Whether all existing sharing providers were added.
        self._complete = False

    def missing_aggregates(self, providers: Iterable[model.Provider]) -> frozenset[int]:
        """Return those aggregates of `providers` for which no sharing providers were read yet."""
        if self._complete:
            return frozenset()
        return aggregates_of(providers) - self._by_aggregate.keys()

    def add_all(self, providers: Collection[model.Provider]) -> None:
        """Add all existing sharing providers. After that, no aggregate is missing."""
        self.add(providers, aggregates_of(providers))
        self._complete = True

    def add(self, providers: Iterable[model.Provider], aggregates: Iterable[int]) -> None:
        """Add all sharing providers of some aggregates.

        :param aggregates: the aggregates, including those without a sharing provider
        """
        added: dict[int, list[model.Provider]] = {aggregate: [] for aggregate in aggregates}
        for provider in providers:
            self.ids.add(provider.id)
            for aggregate in provider.aggregates:
                if aggregate in added:
                    added[aggregate].append(provider)
        self._by_aggregate.update(added)
        self._by_aggregates.clear()

    def of_tree(self, root_id: int, tree: Iterable[model.Provider]) -> tuple[model.Provider, ...]:
        """Return the sharing providers that are available to a tree, sorted by id.

        Sharing providers that are a part of the tree itself are not returned.
        """
        if not self._by_aggregate:
            return ()
        aggregates = aggregates_of(tree)
        providers = self._by_aggregates.get(aggregates)
        if providers is None:
            found = {
                provider.id: provider
                for aggregate in aggregates
                for provider in self._by_aggregate.get(aggregate, ())
            }
            providers = self._by_aggregates[aggregates] = tuple(found[id_] for id_ in sorted(found))
        return tuple(provider for provider in providers if provider.root_id != root_id)

    def missing_trees(self, anchors: Iterable[model.Anchor]) -> set[int]:
        """Return the root ids of sharing providers that have a parent and whose tree is missing."""
        nested = {
            provider.root_id
            for anchor in anchors
            for provider in anchor.sharing_providers
            if provider.parent_id is not None
        }
        return nested - self._trees.keys()

    def add_trees(self, providers: Iterable[model.Provider]) -> None:
        """Add trees of sharing providers.

        :param providers: all providers of these trees
        """
        trees = defaultdict(list)
        for provider in providers:
            trees[provider.root_id].append(provider)
        self._trees.update(trees)

    def with_trees(self, anchors: Iterable[model.Anchor]) -> list[model.Anchor]:
        """Return copies of the anchors, with `sharing_trees` set.

        `sharing_trees` contains only trees in which a sharing provider is not the root. The other
        trees do not affect same_subtree.
        """
        # Anchors with the same sharing providers use the same tuple object.
        by_roots: dict[tuple[int, ...], tuple[model.Provider, ...]] = {(): ()}
        result = []
        for anchor in anchors:
            roots = tuple(sorted({provider.root_id for provider in anchor.sharing_providers}))
            if roots not in by_roots:
                by_roots[roots] = tuple(
                    provider for root_id in roots for provider in self._trees.get(root_id, ())
                )
            result.append(anchor._replace(sharing_trees=by_roots[roots]))
        return result
