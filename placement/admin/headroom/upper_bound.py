"""A number of claims that no order of claims can exceed.

Each claim takes one unit of each *demand* of the query. A demand is either a kind of slot (slots
with the same amounts and conditions), or a resource class. What the eligible providers can serve of
a demand, if they serve nothing else, limits the number of claims. The smallest limit of all demands
is the bound of a set of providers.

* Without sharing providers, the bound of the cloud is the sum of the bounds of its trees.
* Trees that can use the same sharing providers are a *component*. Its bound is the smaller one of
  two numbers: the sum of the bounds of its trees, each with all sharing providers for itself, and
  the bound of all providers of the component together.

If the query has one group, and a tree has no sharing provider in reach and at most one provider
with each class, then the tree has at most one candidate, and its bound is the number of claims.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from placement import capacity
from placement.candidates import eligibility, model

# Kind of slot -> its eligible providers.
_Eligible = Mapping[int, Sequence[model.Provider]]


class _Tree(NamedTuple):
    """A tree with eligible sharing providers."""

    bound: int
    eligible: _Eligible
    sharing_ids: frozenset[int]


class UpperBound:
    """Adds the bounds of the trees of a cloud."""

    def __init__(self, prepared: model.PreparedQuery, sharing_id: int | None) -> None:
        self._prepared = prepared
        self._sharing_id = sharing_id
        self._total = 0
        self._linked: list[_Tree] = []
        slots = dict(zip(prepared.kinds, prepared.slots, strict=True))
        # Kind -> its slot and the number of slots of this kind, without slots without resources.
        self._kinds = {
            kind: (slots[kind], count)
            for kind, count in Counter(prepared.kinds).items()
            if slots[kind].amounts
        }
        self._classes = _classes_of_several_kinds(self._kinds)

    def add_exactly(self, count: int) -> None:
        """Add a tree of a single provider, of which the number of claims is known."""
        self._total += count

    def add(self, anchor: model.Anchor, has_candidate: bool) -> None:
        """Add a tree with its usage before the simulation.

        :param has_candidate: False if the tree had no candidate before the simulation
        """
        if not has_candidate:
            return
        eligible = self._eligible(anchor)
        if not all(eligible.values()):
            return
        bound = self._bound(eligible)
        sharing_ids = frozenset(
            provider.id
            for providers in eligible.values()
            for provider in providers
            if self._sharing_id in provider.traits
        )
        if sharing_ids:
            self._linked.append(_Tree(bound, eligible, sharing_ids))
        else:
            self._total += bound

    def total(self) -> int:
        """Return the bound of all added trees."""
        return self._total + sum(map(self._bound_of_component, _components(self._linked)))

    def _eligible(self, anchor: model.Anchor) -> _Eligible:
        prepared = self._prepared
        eligible: dict[int, Sequence[model.Provider]] = {}
        if prepared.unsuffixed:
            slots = tuple(prepared.unsuffixed.values())
            found = eligibility.eligible_for_classes(slots, anchor) or [[] for _ in slots]
            eligible.update(zip(prepared.unsuffixed, found, strict=True))
        for kind, slot in prepared.suffixed.items():
            if kind in self._kinds:
                eligible[kind] = eligibility.eligible_providers(slot, anchor)
        return eligible

    def _bound_of_component(self, trees: Sequence[_Tree]) -> int:
        together = {
            kind: list({p.id: p for tree in trees for p in tree.eligible[kind]}.values())
            for kind in self._kinds
        }
        return min(sum(tree.bound for tree in trees), self._bound(together))

    def _bound(self, eligible: _Eligible) -> int:
        """Return the bound of a set of providers."""
        of_kinds = [
            self._bound_of_kind(slot, count, eligible[kind])
            for kind, (slot, count) in self._kinds.items()
        ]
        of_classes = []
        for class_id, (amount, kinds) in self._classes.items():
            providers = {p.id: p for kind in kinds for p in eligible[kind]}.values()
            of_classes.append(sum(_free(p, class_id) for p in providers) // amount)
        return min(of_kinds + of_classes)

    def _bound_of_kind(
        self, slot: model.Slot, count: int, providers: Iterable[model.Provider]
    ) -> int:
        """Return how often the providers can serve `count` slots like this one."""
        times = [_times(provider, slot.amounts) for provider in providers]
        bound = sum(times) // count
        if not (self._prepared.query.isolate and slot.suffixed):
            return bound
        # Each claim uses `count` different providers. So of n claims, a provider serves at most n
        # slots, and all providers together must serve `count` times n slots.
        while (smaller := sum(min(served, bound) for served in times) // count) < bound:
            bound = smaller
        return bound


def _classes_of_several_kinds(
    kinds: Mapping[int, tuple[model.Slot, int]],
) -> dict[int, tuple[int, list[int]]]:
    """Return class id -> the amount of a claim, and the kinds that request the class.

    A class of one kind is left out, because the bound of the kind is not larger.
    """
    amounts: Counter[int] = Counter()
    by_class: dict[int, list[int]] = defaultdict(list)
    for kind, (slot, count) in kinds.items():
        for class_id, amount in slot.amounts:
            amounts[class_id] += amount * count
            by_class[class_id].append(kind)
    return {
        class_id: (amounts[class_id], found)
        for class_id, found in by_class.items()
        if len(found) > 1
    }


def _times(provider: model.Provider, amounts: Iterable[tuple[int, int]]) -> int:
    """Return how often a provider can serve these amounts if it serves nothing else."""
    return min(_free(provider, class_id) // amount for class_id, amount in amounts)


def _free(provider: model.Provider, class_id: int) -> int:
    inventory = provider.inventories[class_id]
    return capacity.free(inventory.used, inventory.capacity)


def _components(trees: Iterable[_Tree]) -> Iterable[list[_Tree]]:
    """Return the trees in groups. Trees that use the same sharing provider are in one group."""
    above: dict[int, int] = {}

    def top(id_: int) -> int:
        while (parent := above.setdefault(id_, id_)) != id_:
            above[id_] = above[parent]
            id_ = parent
        return id_

    grouped: dict[int, list[_Tree]] = defaultdict(list)
    for tree in (trees := list(trees)):
        first, *others = tree.sharing_ids
        for other in others:
            above[top(other)] = top(first)
    for tree in trees:
        grouped[top(next(iter(tree.sharing_ids)))].append(tree)
    return grouped.values()
