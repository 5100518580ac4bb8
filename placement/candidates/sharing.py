"""Sharing providers: which of them serve which provider trees.

A provider with the trait MISC_SHARES_VIA_AGGREGATE shares its resources with all trees that have a
provider in one of its aggregates. Sharing providers are read when a page has a tree in one of their
aggregates for the first time, or all together. `SharingProviders` keeps them for the rest of the
request. This module is pure; `paging` reads the rows.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from placement.candidates import model, provider_checks

# Slot -> the sharing providers that can serve it for anchors of other trees.
AbleProviders = Mapping[model.Slot, Sequence[model.Provider]]


@dataclass(frozen=True, slots=True)
class SharingAggregates:
    """The aggregates through which the sharing providers of all trees serve a query."""

    # Slot -> aggregates of the sharing providers that can serve it.
    slots: Mapping[model.Slot, frozenset[int]]
    # Any-set of traits of the unsuffixed group -> aggregates of the sharing providers with such a
    # trait that can serve the group.
    traits: Mapping[frozenset[int], frozenset[int]]


def aggregates_of(providers: Iterable[model.Provider]) -> frozenset[int]:
    """Return all aggregates of some providers."""
    different = {provider.aggregates for provider in providers}
    return different.pop() if len(different) == 1 else frozenset().union(*different)


def able_providers(
    sharing_providers: Collection[model.Provider], slots: Iterable[model.Slot]
) -> AbleProviders:
    """Return which sharing providers can serve each slot for anchors of other trees."""
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
    """The sharing providers that a request has read, and the trees of those."""

    def __init__(self) -> None:
        # The ids of all sharing providers that were read, as such or as part of a tree.
        self.ids: set[int] = set()
        self._by_aggregate: dict[int, list[model.Provider]] = {}
        # Many trees are in the same aggregates.
        self._by_aggregates: dict[frozenset[int], tuple[model.Provider, ...]] = {}
        self._trees: dict[int, list[model.Provider]] = {}
        # Whether the sharing providers of all aggregates were added.
        self._complete = False

    def missing_aggregates(self, providers: Iterable[model.Provider]) -> frozenset[int]:
        """Return the providers' aggregates whose sharing providers were not read yet."""
        if self._complete:
            return frozenset()
        return aggregates_of(providers) - self._by_aggregate.keys()

    def add_all(self, providers: Collection[model.Provider]) -> None:
        """Add all sharing providers that exist."""
        self.add(providers, aggregates_of(providers))
        self._complete = True

    def add(self, providers: Iterable[model.Provider], aggregates: Iterable[int]) -> None:
        """Add all sharing providers of some aggregates.

        :param aggregates: those without any sharing provider, too
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
        """Return the sharing providers of other trees that share with a tree, sorted by id."""
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
        """Return the roots of nested sharing providers whose trees were not read yet."""
        nested = {
            provider.root_id
            for anchor in anchors
            for provider in anchor.sharing_providers
            if provider.parent_id is not None
        }
        return nested - self._trees.keys()

    def add_trees(self, providers: Iterable[model.Provider]) -> None:
        """Add all providers of some trees of sharing providers."""
        trees = defaultdict(list)
        for provider in providers:
            trees[provider.root_id].append(provider)
        self._trees.update(trees)

    def with_trees(self, anchors: Iterable[model.Anchor]) -> list[model.Anchor]:
        """Return the anchors with the trees of their nested sharing providers."""
        # Anchors with the same sharing providers share one tuple.
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
