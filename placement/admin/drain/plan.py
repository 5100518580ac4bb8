"""Plans the moves of all consumers of drained trees by simulated claims; proves that none exist.

The heuristic is best fit, with the largest consumers first:

* Of the trees with a place for a consumer, it takes the one in which the least free capacity
  remains. So large free capacities stay available for large consumers, and trees with classes that
  the consumer does not need, for example devices, are avoided. To bound the work, it compares
  `_COMPARED` trees, the fullest ones of those that fit, and all trees with earlier claims.
* If consumers have no place, the next plan claims for them first, and for the others in the same
  order as before. If this order was tried before, the next order is random. After `_FIRST_PLANS`
  plans, this continues only if a plan had at most `_FEW` consumers without a place, and ends after
  `_PLANS` plans.

Each plan takes a number of steps that is proportional to the number of consumers, and no plan has a
search limit. PERF: the plans of 1,000 small random worlds were compared with an exact
search (2026-11). With one plan, 197 of 198 possible drains of ordinary worlds are found, and 149 of
200 that leave hardly any free capacity; with 7 plans, 198 and 192; with 100 plans, 198 and 199.

There are two proofs that the consumers cannot all move:

* A consumer has no place, even if all other consumers of the drained trees vanish.
* The sum of a class over the consumers exceeds the free capacity of the permitted trees, together
  with that of the sharing providers that are linked to them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
import itertools
import random
from typing import NamedTuple

from placement import capacity
from placement.admin.drain.places import Finder, Place, Places
from placement.admin.drain.requests import Allocation, Kind, Request
from placement.admin.headroom.free_capacity import FreeCapacity
from placement.candidates import model
from placement.candidates.model import InventoryKey

_COMPARED = 16
_FIRST_PLANS = 6
_FEW = 2
_PLANS = 100
# The maximum number of sums of free capacity that are kept. PERF: without them, a proof takes 23 ms
# in place of 1 ms (10,000 hosts, 2026-11).
_KEPT = 256


class Move(NamedTuple):
    """A consumer and its new place."""

    request: Request
    place: Place


class Plan:
    """Simulated claims of consumers, one after another.

    :ivar moves: the claims in their order
    :ivar unplaced: the consumers without a place
    """

    def __init__(self, finder: Finder, requests: Iterable[Request]) -> None:
        self._finder = finder
        self._free = FreeCapacity()
        # Root id of each tree with a claim -> its best place after the claims, for each kind and
        # each set of trees that must not be used.
        self._changed: dict[int, dict[tuple[Places, frozenset[int]], Place | None]] = {}
        self.moves: list[Move] = []
        self.unplaced: list[Request] = []
        for request in requests:
            place = None if request.is_refused else self._best(request)
            if place is None:
                self.unplaced.append(request)
            else:
                self._free.take(finder.cloud.providers, place.amounts, at_most=1)
                self._changed[place.root_id] = {}
                self.moves.append(Move(request, place))

    def shortages(self) -> Counter[int]:
        """Return the amounts that the consumers without a place lack, by class id.

        Of each consumer, these are the classes without whose amount it would have a place after the
        moves; if there is no such class, all of its classes.
        """
        known: dict[tuple[Kind, frozenset[int]], Counter[int]] = {}
        sums: Counter[int] = Counter()
        for request in self.unplaced:
            key = request.kind, request.away
            if request.is_refused:
                sums += request.kind.amounts
                continue
            if key not in known:
                known[key] = self._short(request)
            sums += known[key]
        return sums

    def _short(self, request: Request) -> Counter[int]:
        amounts = request.kind.amounts
        if len(amounts) == 1:
            return amounts
        kinds = {class_id: request.kind.without(class_id) for class_id in amounts}
        short = {
            class_id: amounts[class_id]
            for class_id, kind in kinds.items()
            if any(self._in_others(request._replace(kind=kind)))
            or any(self._in_changed(request._replace(kind=kind)))
        }
        return Counter(short) or amounts

    def _best(self, request: Request) -> Place | None:
        """Return the place of a request in which the least free capacity remains."""
        others = itertools.islice(self._in_others(request), _COMPARED)
        found = itertools.chain(self._in_changed(request), others)
        return min(found, key=lambda place: place.waste, default=None)

    def _in_changed(self, request: Request) -> Iterator[Place]:
        """Yield the best place of each tree with a claim."""
        places, away = self._finder.of(request.kind), request.away
        for root_id, known in self._changed.items():
            key = places, away
            place = known.get(key)
            if key not in known or (place and not self._free.fits(place.amounts)):
                place = known[key] = places.now(root_id, self._free, away)
            if place:
                yield place

    def _in_others(self, request: Request) -> Iterator[Place]:
        """Yield the best place of each tree without a claim, the fullest tree first."""
        places, away = self._finder.of(request.kind), request.away
        for place in places.present():
            if place.root_id in self._changed or place.root_id in away:
                continue
            if found := self._checked(place, places, away):
                yield found

    def _checked(self, place: Place, places: Places, away: frozenset[int]) -> Place | None:
        """Return a place of a tree without claims. Its sharing providers can have claims."""
        cloud = self._finder.cloud
        if cloud.sharing_id is None or (
            self._free.fits(place.amounts)
            and all(cloud.providers[id_].root_id not in away for id_, _ in place.amounts)
        ):
            return place
        return places.now(place.root_id, self._free, away)


def plans(finder: Finder, requests: Sequence[Request]) -> Iterator[Plan]:
    """Yield plans of different orders of the consumers; the last one if all have a place.

    The caller stops if it proves that no plan can have places for all consumers.
    """
    sizes = {kind: finder.size(kind) for kind in {request.kind for request in requests}}
    order = sorted(requests, key=lambda r: (-sizes[r.kind], r.consumer.uuid))
    # The same numbers for the same cloud: the result of a command can be repeated.
    rng = random.Random(len(order))  # noqa: S311 (not for cryptography)
    tried: set[tuple[str, ...]] = set()
    fewest = len(order)
    for number in range(_PLANS):
        tried.add(tuple(request.consumer.uuid for request in order))
        yield (plan := Plan(finder, order))
        fewest = min(fewest, len(plan.unplaced))
        if not plan.unplaced or not plan.moves or (number >= _FIRST_PLANS and fewest > _FEW):
            return
        first = {request.consumer.uuid for request in plan.unplaced}
        order = [*plan.unplaced, *(r for r in order if r.consumer.uuid not in first)]
        if tuple(request.consumer.uuid for request in order) in tried:
            rng.shuffle(order)


# Proofs ------------------------------------------------------------------------


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
