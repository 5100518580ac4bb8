"""Finds the places of a request: the candidates of the trees that it may move to.

A *place* is a candidate of a request in one tree. Places in the present state of the cloud depend
only on the kind of the request, so all plans share them. A plan checks them again after it claimed
candidates.

Trees are searched in one order for all kinds, the fullest tree first. The *load* of a tree is its
free capacity, each class in relation to the average inventory of that class.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
import itertools
from typing import NamedTuple

from placement import capacity
from placement.admin.drain.requests import Allocation, Cloud, Conditions, Kind, query_of
from placement.admin.headroom.free_capacity import FreeCapacity, amounts_of
from placement.candidates import eligibility, model, solver
from placement.candidates.model import InventoryKey

# The number of candidates of one tree that are compared.
_CANDIDATES = 16
# The maximum number of kinds whose places are kept.
_KINDS = 4_096


class Place(NamedTuple):
    """A candidate of a request in one tree.

    :ivar root_id: the id of the root of the tree
    :ivar amounts: what the candidate takes from each inventory
    :ivar waste: the free capacity that remains; the place with the smallest value fits best
    """

    root_id: int
    amounts: Mapping[InventoryKey, int]
    waste: float


class Finder:
    """The places of all kinds of requests in the present state of the cloud."""

    def __init__(self, cloud: Cloud, conditions: Conditions) -> None:
        self.cloud = cloud
        self._conditions = conditions
        self._kinds: dict[Kind, Places] = {}
        self._scales = _scales(cloud.anchors.values())
        permitted = [anchor for anchor in cloud.anchors.values() if self._is_permitted(anchor.root)]
        # Root id -> free capacity of the tree in the present state.
        self._free = {anchor.root.id: self.free_of(anchor) for anchor in permitted}
        permitted.sort(key=lambda anchor: (self._free[anchor.root.id], anchor.root.uuid))
        # Root id -> anchor, the fullest tree first.
        self.permitted = {anchor.root.id: anchor for anchor in permitted}
        # Root id -> resource class id -> the largest free capacity of a provider.
        self._largest = {anchor.root.id: _largest(anchor) for anchor in permitted}
        # (resource class id, power of two) pairs -> the roots of the trees with so much.
        self._with: dict[tuple[tuple[int, int], ...], list[int]] = {}
        # Id of a sharing provider -> the roots of the permitted trees that can use it.
        self.linked: dict[int, set[int]] = defaultdict(set)
        for anchor in permitted:
            for provider in anchor.sharing_providers:
                self.linked[provider.id].add(anchor.root.id)
            if cloud.sharing_id is not None:
                shared = (p.id for p in anchor.tree if cloud.sharing_id in p.traits)
                for id_ in shared:
                    self.linked[id_].add(anchor.root.id)

    def _is_permitted(self, root: model.Provider) -> bool:
        """Whether a root satisfies the conditions that are the same for all requests."""
        conditions = self._conditions
        where = conditions.where
        return (
            conditions.root_required <= root.traits
            and conditions.root_forbidden.isdisjoint(root.traits)
            and eligibility.satisfies_member_of(root, where)
            and where.forbidden_aggregates.isdisjoint(root.aggregates)
        )

    def of(self, kind: Kind) -> 'Places':
        """Return the places of a kind."""
        found = self._kinds.get(kind)
        if found is None:
            if len(self._kinds) == _KINDS:
                self._kinds.clear()
                self._with.clear()
            found = self._kinds[kind] = Places(self, kind, query_of(kind, self._conditions))
        return found

    def with_free(self, kind: Kind) -> list[int]:
        """Return the roots of the trees that may have a place, the fullest tree first.

        Trees without half of an amount are left out. PERF: with 10,000 nearly full hosts and
        amounts that differ for each consumer, a drain takes 37 ms in place of 1 s (2026-11).
        """
        amounts: dict[int, int] = {}
        for group, _ in kind.groups:
            for class_id, amount in group:
                amounts[class_id] = max(amount, amounts.get(class_id, 0))
        key = tuple(
            (class_id, 1 << amount.bit_length() - 1) for class_id, amount in sorted(amounts.items())
        )
        if key not in self._with:
            self._with[key] = [
                root_id
                for root_id, largest in self._largest.items()
                if all(largest.get(class_id, 0) >= amount for class_id, amount in key)
            ]
        return self._with[key]

    def size(self, kind: Kind) -> float:
        """Return the amounts of a request, each in relation to the average inventory."""
        scales = self._scales
        return sum(amount / scales[class_id] for class_id, amount in kind.amounts.items())

    def present_free(self, root_id: int) -> float:
        """Return the free capacity of a permitted tree in the present state."""
        return self._free[root_id]

    def free_of(self, anchor: model.Anchor) -> float:
        """Return the free capacity of a tree, each class in relation to the average inventory."""
        scales = self._scales
        return sum(
            max(0, capacity.free(inventory.used, inventory.capacity)) / scales[class_id]
            for provider in anchor.tree
            for class_id, inventory in provider.inventories.items()
        )

    def waste(
        self, anchor: model.Anchor, free: float, amounts: Mapping[InventoryKey, int]
    ) -> float:
        """Return the free capacity that a candidate leaves in its tree and in its inventories.

        :param anchor: the tree with its present usage
        :param free: the free capacity of the tree
        """
        scales = self._scales
        providers = {provider.id: provider for provider in anchor.providers}
        left = free
        for (provider_id, class_id), amount in amounts.items():
            provider = providers[provider_id]
            inventory = provider.inventories[class_id]
            after = capacity.free(inventory.used, inventory.capacity) - amount
            left += after / scales[class_id]
            if provider.root_id == anchor.root.id:
                left -= amount / scales[class_id]
        return left


class Places:
    """The places of the requests of one kind."""

    def __init__(self, finder: Finder, kind: Kind, query: model.Query[int]) -> None:
        self._finder = finder
        self._kind = kind
        self._prepared = model.PreparedQuery.of(query)
        # The sharing providers whose allocations stay. The new tree has to be linked with them.
        self._links = {
            allocation.provider_id
            for allocation in kind.kept
            if finder.cloud.shares(allocation.provider_id)
        }
        # Requests with an equal scope have the same permitted trees.
        self.scope = kind.homes, kind.aggregates, frozenset(self._links)
        self._found: list[Place] = []
        self._search = self._all()

    def permits(self, root_id: int) -> bool:
        """Whether the tree of a root satisfies all conditions besides its free capacity."""
        anchor = self._finder.permitted.get(root_id)
        homes = self._kind.homes
        return (
            anchor is not None
            and (homes is None or root_id in homes)
            and self._kind.aggregates <= anchor.root.aggregates
            and all(root_id in self._finder.linked[id_] for id_ in self._links)
        )

    def roots(self) -> Iterator[int]:
        """Yield the roots of the permitted trees."""
        homes = self._kind.homes
        return filter(self.permits, self._finder.permitted if homes is None else sorted(homes))

    def present(self) -> Iterator[Place]:
        """Yield the best place of each tree that has one in the present state of the cloud."""
        for number in itertools.count():
            if number == len(self._found):
                place = next(self._search, None)
                if place is None:
                    return
                self._found.append(place)
            yield self._found[number]

    def _all(self) -> Iterator[Place]:
        finder = self._finder
        homes = self._kind.homes
        roots = finder.with_free(self._kind) if homes is None else sorted(homes)
        for root_id in filter(self.permits, roots):
            place = self._best(finder.permitted[root_id], finder.present_free(root_id))
            if place:
                yield place

    def now(self, root_id: int, free: FreeCapacity, away: frozenset[int]) -> Place | None:
        """Return the best place of a tree after the claims of a plan; None if it has none.

        :param away: the roots of the trees whose providers must not be used
        """
        if root_id in away or not self.permits(root_id):
            return None
        anchor = free.current(self._finder.permitted[root_id])
        if any(provider.root_id in away for provider in anchor.sharing_providers):
            left = (p for p in anchor.sharing_providers if p.root_id not in away)
            anchor = anchor._replace(sharing_providers=tuple(left))
        return self._best(anchor, self._finder.free_of(anchor))

    def _best(self, anchor: model.Anchor, free: float) -> Place | None:
        prepared = self._prepared
        if self._kind.kept:
            anchor = _with_kept(anchor, self._kind.kept)
        found = itertools.islice(solver.bindings(prepared, anchor), _CANDIDATES)
        amounts = [amounts_of(prepared.slots, binding) for binding in found]
        if not amounts:
            return None
        wastes = [self._finder.waste(anchor, free, one) for one in amounts]
        waste = min(wastes)
        return Place(anchor.root.id, amounts[wastes.index(waste)], waste)


def _largest(anchor: model.Anchor) -> dict[int, int]:
    """Return, for each resource class, the largest free capacity of a provider."""
    largest: dict[int, int] = {}
    for provider in anchor.providers:
        for class_id, inventory in provider.inventories.items():
            free = capacity.free(inventory.used, inventory.capacity)
            largest[class_id] = max(free, largest.get(class_id, 0))
    return largest


def _scales(anchors: Iterable[model.Anchor]) -> Mapping[int, float]:
    """Return the average capacity of the inventories of each class; 1 for other classes."""
    sums: Counter[int] = Counter()
    counts: Counter[int] = Counter()
    for anchor in anchors:
        for provider in anchor.tree:
            for class_id, inventory in provider.inventories.items():
                sums[class_id] += max(0, int(inventory.capacity))
                counts[class_id] += 1
    scales: defaultdict[int, float] = defaultdict(lambda: 1.0)
    scales.update({id_: sums[id_] / count for id_, count in counts.items() if sums[id_]})
    return scales


def _with_kept(anchor: model.Anchor, kept: Sequence[Allocation]) -> model.Anchor:
    """Return the anchor with smaller values of max_unit where the consumer keeps an allocation.

    A new amount and a kept one of the same inventory are one allocation. The kept amount satisfies
    min_unit and step_size, so the sum does if the new amount does. The usage of the inventory
    includes the kept amount. So only max_unit limits the sum further.
    """
    limits = {(one.provider_id, one.class_id): one.amount for one in kept}
    ids = {provider_id for provider_id, _ in limits}
    if ids.isdisjoint(provider.id for provider in anchor.providers):
        return anchor

    def limited(provider: model.Provider) -> model.Provider:
        if provider.id not in ids:
            return provider
        inventories = {
            class_id: inventory._replace(
                max_unit=inventory.max_unit - limits.get((provider.id, class_id), 0)
            )
            for class_id, inventory in provider.inventories.items()
        }
        return provider._replace(inventories=inventories)

    return anchor._replace(
        root=limited(anchor.root),
        tree=tuple(map(limited, anchor.tree)),
        sharing_providers=tuple(map(limited, anchor.sharing_providers)),
    )
