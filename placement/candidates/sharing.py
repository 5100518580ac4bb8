"""Finds the sharing providers that are available to a provider tree.

A sharing provider has the trait MISC_SHARES_VIA_AGGREGATE. It shares its resources with each tree
that has a provider in one of its aggregates.

`pages` reads the sharing providers of an aggregate when it reads the first tree in this aggregate.
For strict pages, it reads all sharing providers in one statement. It always reads them together
with all other providers of their trees, because the response describes these trees.
`SharingProviders` stores them until the end of the request. This module does not access the
database.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from placement.candidates import eligibility, model

# Slot -> the sharing providers that can serve it in candidates of trees other than their own. A
# slot is a part of the query that exactly one provider serves (see `model`).
AbleProviders = Mapping[model.Slot, Sequence[model.Provider]]


def aggregates_of(providers: Iterable[model.Provider]) -> frozenset[int]:
    """Return the ids of all aggregates that at least one of the providers is in."""
    different = {provider.aggregates for provider in providers}
    return different.pop() if len(different) == 1 else frozenset().union(*different)


class SharingProviders:
    """The sharing providers that were read for a request, and their provider trees."""

    def __init__(self, sharing_id: int | None) -> None:
        """Store no sharing provider yet.

        :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has
            the trait
        """
        # The ids of the sharing providers.
        self.ids: set[int] = set()
        # Root id -> all providers of its tree, for the trees of these sharing providers.
        self.trees: dict[int, list[model.Provider]] = {}
        self._sharing_id = sharing_id
        # The aggregates of which all sharing providers were read.
        self._read: frozenset[int] = frozenset()
        # Whether all existing sharing providers were read.
        self._is_complete = sharing_id is None
        self._by_aggregate: dict[int, list[model.Provider]] = defaultdict(list)
        # Set of aggregates -> the sharing providers in any of them. PERF: this is a cache, because
        # many trees are in the same aggregates.
        self._by_aggregates: dict[frozenset[int], tuple[model.Provider, ...]] = {}

    def unread(self, providers: Iterable[model.Provider]) -> frozenset[int]:
        """Return those aggregates of `providers` for which no sharing providers were read yet.

        The caller reads them now.
        """
        if self._is_complete:
            return frozenset()
        aggregates = aggregates_of(providers) - self._read
        self._read |= aggregates
        return aggregates

    def add_all(self, providers: Iterable[model.Provider]) -> None:
        """Add whole trees that contain all existing sharing providers."""
        self.add(providers)
        self._is_complete = True

    def add(self, providers: Iterable[model.Provider]) -> None:
        """Add the sharing providers of trees.

        :param providers: all providers of these trees. Other trees and trees that were added before
            are skipped
        """
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

    def nested_trees(self, sharing: Sequence[model.Provider]) -> tuple[model.Provider, ...]:
        """Return the trees of sharing providers that have a parent.

        Trees in which a sharing provider is the root do not affect same_subtree.

        :param sharing: the sharing providers of an anchor
        """
        roots = sorted({provider.root_id for provider in sharing if provider.parent_id is not None})
        return tuple(provider for root_id in roots for provider in self.trees[root_id])

    def able(self, slots: Sequence[model.Slot]) -> AbleProviders:
        """Return, for each slot, the sharing providers that can serve it for other trees."""
        sharing = [p for tree in self.trees.values() for p in tree if p.id in self.ids]
        by_kind = {
            kind: [p for p in sharing if eligibility.can_serve_other_trees(p, slot)]
            for kind, slot in {slot.kind: slot for slot in slots}.items()
        }
        return {slot: by_kind[slot.kind] for slot in slots}
