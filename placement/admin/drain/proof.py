"""Proves that the consumers of drained trees cannot all move.

There are two proofs:

* A consumer has no place, even if all other consumers of the drained trees vanish.
* The sum of a class over the consumers exceeds the free capacity of the permitted trees, together
  with that of the sharing providers that are linked to them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from placement import capacity
from placement.admin.drain.places import Finder, Places
from placement.admin.drain.requests import Allocation, Kind, Request
from placement.admin.headroom.free_capacity import FreeCapacity
from placement.candidates import model
from placement.candidates.model import InventoryKey

# The maximum number of sums of free capacity that are kept. PERF: without them, a proof takes 23 ms
# in place of 1 ms (10,000 hosts, 2026-11).
_KEPT = 256


class Prover:
    """Proves of the drains of one cloud that they are impossible."""

    def __init__(self, finder: Finder) -> None:
        self._finder = finder
        self._sums: dict[frozenset[object], _FreeSums] = {}

    def nowhere(self, requests: Sequence[Request], unplaced: Iterable[Request]) -> set[Request]:
        """Return the consumers that have no place even if all others vanish.

        :param requests: all consumers of the drained trees
        :param unplaced: the consumers to check
        """
        vanishing = self._sums_of(one for r in requests for one in r.consumer.allocations)
        known: dict[tuple[Kind, frozenset[int]], bool] = {}
        result = set()
        for request in unplaced:
            key = request.kind, request.away
            if not request.is_refused and key not in known:
                known[key] = self._has_place(request, vanishing)
            if request.is_refused or not known[key]:
                result.add(request)
        return result

    def _has_place(self, request: Request, vanishing: Mapping[InventoryKey, int]) -> bool:
        places, away = self._finder.of(request.kind), request.away
        free = FreeCapacity()
        if any(places.now(place.root_id, free, away) for place in places.present()):
            return True
        own = Counter({(id_, class_id): n for id_, class_id, n in request.consumer.allocations})
        cloud, classes = self._finder.cloud, request.kind.amounts
        others = {
            key: amount
            for key, amount in (Counter(vanishing) - own).items()
            if key[1] in classes and cloud.root_of(key[0]) not in away
        }
        free.release(cloud.providers, others)
        changed = {id_ for id_, _ in others}
        roots = {cloud.providers[id_].root_id for id_ in changed}
        roots = roots.union(*(self._finder.linked.get(id_, ()) for id_ in changed))
        return any(places.now(root_id, free, away) for root_id in roots)

    def exceeds_sum(self, requests: Sequence[Request]) -> bool:
        """Whether the sum of a class over the consumers exceeds the permitted free capacity."""
        requested: Counter[int] = Counter()
        for request in requests:
            requested += request.kind.amounts
        scopes = {places.scope: places for places in (self._finder.of(r.kind) for r in requests)}
        key = frozenset(scopes)
        if key not in self._sums:
            if len(self._sums) == _KEPT:
                self._sums.clear()
            self._sums[key] = _FreeSums(self._finder, scopes.values())
        root_of = self._finder.cloud.root_of
        left = self._sums_of(
            one
            for request in requests
            for one in request.consumer.allocations
            if root_of(one.provider_id) in request.origins
        )
        away = frozenset.intersection(*(request.away for request in requests))
        free = self._sums[key].without(away, left)
        return any(amount > free[class_id] for class_id, amount in requested.items())

    def _sums_of(self, allocations: Iterable[Allocation]) -> Counter[InventoryKey]:
        """Return the sum of allocations for each existing inventory."""
        providers = self._finder.cloud.providers
        sums: Counter[InventoryKey] = Counter()
        for provider_id, class_id, amount in allocations:
            provider = providers.get(provider_id)
            if provider and class_id in provider.inventories:
                sums[provider_id, class_id] += amount
        return sums


class _FreeSums:
    """The free capacity of all trees that any of some requests may move to."""

    def __init__(self, finder: Finder, places: Iterable[Places]) -> None:
        self._cloud = finder.cloud
        roots = {root_id for one in places for root_id in one.roots()}
        # Provider id -> the number of these trees that can use it.
        self._trees = Counter(
            provider.id for root_id in roots for provider in finder.permitted[root_id].providers
        )
        self._sums: Counter[int] = Counter()
        self._roots = roots
        for id_ in self._trees:
            for class_id, inventory in self._cloud.providers[id_].inventories.items():
                self._sums[class_id] += _free(inventory)

    def without(self, away: frozenset[int], left: Mapping[InventoryKey, int]) -> Mapping[int, int]:
        """Return resource class id -> the sum of the free capacity.

        :param away: the roots of trees whose providers do not count, and whose links do not count
        :param left: allocations that the consumers leave
        """
        anchors, providers = self._cloud.anchors, self._cloud.providers
        links = Counter(
            provider.id for root_id in away & self._roots for provider in anchors[root_id].providers
        )
        gone = {id_ for id_, count in links.items() if count == self._trees[id_]}
        gone |= {provider.id for root_id in away for provider in anchors[root_id].tree}
        sums = Counter(self._sums)
        for id_ in gone & self._trees.keys():
            for class_id, inventory in providers[id_].inventories.items():
                sums[class_id] -= _free(inventory)
        for (id_, class_id), amount in left.items():
            if id_ in self._trees and id_ not in gone:
                inventory = providers[id_].inventories[class_id]
                after = inventory._replace(used=inventory.used - amount)
                sums[class_id] += _free(after) - _free(inventory)
        return sums


def _free(inventory: model.ProviderInventory) -> int:
    return max(0, capacity.free(inventory.used, inventory.capacity))
