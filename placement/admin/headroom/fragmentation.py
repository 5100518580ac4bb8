"""Computes the free capacity that a query cannot use: `lost`.

The *suitable* providers of a resource class have an inventory of the class, and satisfy all
conditions of a request group that requests the class, except for the amounts, min_unit, max_unit
and step_size. Their tree, or a tree that they share with, satisfies root_required, and has a
suitable provider for each part of the query and for each required trait. same_subtree and
group_policy are not considered.

The *free* capacity of a class is the sum of the free capacity of its suitable providers before the
simulated claims, and without negative values. What the claims do not take of it is *lost*.

If no suitable provider of a tree can serve the amount of a class any more, the tree lacks this
class. What the tree has left of another class is lost for lack of it.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic

from placement import capacity
from placement.admin.headroom.free_capacity import amounts_of
from placement.admin.headroom.simulation import Step
from placement.candidates import eligibility, model
from placement.candidates.model import InventoryKey, Key


@dataclass(frozen=True, slots=True)
class Fragmentation(Generic[Key]):
    """The free capacity that a query cannot use. A class is an id or a name.

    :ivar free: class -> the free capacity before the claims
    :ivar lost: class -> what the claims do not take of it
    :ivar alone: class -> the number of claims for which its free capacity is enough
    :ivar most: the class of which the largest part is lost; None if no class is enough for more
        claims than those that fit
    :ivar lack: the class for lack of which most of it is lost; None if no tree lacks a class
    """

    free: Mapping[Key, int]
    lost: Mapping[Key, int]
    alone: Mapping[Key, int]
    most: Key | None
    lack: Key | None

    def named(self, names: Mapping[Key, str]) -> 'Fragmentation[str]':
        """Return the same with names in place of ids.

        :param names: resource class id -> name
        """
        free, lost, alone = (
            {names[class_id]: amount for class_id, amount in values.items()}
            for values in (self.free, self.lost, self.alone)
        )
        most, lack = (one if one is None else names[one] for one in (self.most, self.lack))
        return Fragmentation(free, lost, alone, most, lack)


# The slots of a query, each with its suitable providers in one tree.
_Suitable = Sequence[tuple[model.Slot, Sequence[model.Provider]]]


def fragmentation(
    prepared: model.PreparedQuery, anchors: Iterable[model.Anchor], steps: Iterable[Step]
) -> Fragmentation[int]:
    """Return the free capacity that simulated claims cannot use.

    :param anchors: all anchors of the cloud, before the claims
    :param steps: the claims
    """
    trees = [suitable for anchor in anchors if (suitable := _in_tree(prepared, anchor))]
    taken: Counter[InventoryKey] = Counter()
    fits = 0
    for step in steps:
        fits += step.times
        for key, amount in amounts_of(prepared.slots, step.binding).items():
            taken[key] += amount * step.times
    amounts: Counter[int] = Counter()
    for slot in prepared.slots:
        for class_id, amount in slot.amounts:
            amounts[class_id] += amount
    inventories = _free(trees)
    free = dict.fromkeys(amounts, 0)
    for (_, class_id), amount in inventories.items():
        free[class_id] += amount
    lost = {class_id: free[class_id] - fits * amount for class_id, amount in amounts.items()}
    alone = {class_id: free[class_id] // amount for class_id, amount in amounts.items()}
    most = max(
        (class_id for class_id in amounts if alone[class_id] > fits),
        key=lambda class_id: lost[class_id] / free[class_id],
        default=None,
    )
    left = {key: max(0, amount - taken[key]) for key, amount in inventories.items()}
    lack = None if most is None else _lack(trees, left, most)
    return Fragmentation(free, lost, alone, most, lack)


def _in_tree(prepared: model.PreparedQuery, anchor: model.Anchor) -> _Suitable | None:
    """Return the suitable providers of an anchor; None if a part of the query has none."""
    if not eligibility.is_anchor(anchor.root, prepared.query):
        return None
    suitable = [
        (slot, _suitable(slot, anchor))
        for slot in (*prepared.unsuffixed.values(), *prepared.suffixed.values())
    ]
    if not all(providers for _, providers in suitable):
        return None
    if prepared.query.collective_traits:
        unsuffixed = (p for slot, found in suitable if not slot.suffixed for p in found)
        traits = frozenset().union(*(provider.traits for provider in unsuffixed))
        if any(any_set.isdisjoint(traits) for any_set in prepared.query.collective_traits):
            return None
    return suitable


def _suitable(slot: model.Slot, anchor: model.Anchor) -> list[model.Provider]:
    classes = {class_id for class_id, _ in slot.amounts}
    if slot.suffixed:
        bare = slot._replace(amounts=())
        permitted: Sequence[model.Provider] = [
            provider
            for provider in anchor.providers
            if eligibility.satisfies_suffixed_group(provider, bare)
        ]
    else:
        permitted = eligibility.permitted_providers(slot.group, anchor)
    return [provider for provider in permitted if classes <= provider.inventories.keys()]


def _free(trees: Iterable[_Suitable]) -> dict[InventoryKey, int]:
    """Return the free capacity of the inventories of suitable providers."""
    found: dict[InventoryKey, int] = {}
    for tree in trees:
        for slot, providers in tree:
            for class_id, _ in slot.amounts:
                for provider in providers:
                    inventory = provider.inventories[class_id]
                    free = capacity.free(inventory.used, inventory.capacity)
                    found[provider.id, class_id] = max(0, free)
    return found


def _lack(trees: Iterable[_Suitable], left: Mapping[InventoryKey, int], wasted: int) -> int | None:
    """Return the class for lack of which most of `wasted` is lost.

    What is left in a tree counts for each other class that the tree lacks, or for the class itself
    if the tree lacks no other one.

    :param left: the free capacity of each inventory after the claims
    """
    causes: Counter[int | None] = Counter()
    counted: set[int] = set()
    for tree in trees:
        unused = 0
        lacking: dict[int, None] = {}
        for slot, providers in tree:
            for class_id, amount in slot.amounts:
                if class_id == wasted:
                    new = {provider.id for provider in providers} - counted
                    counted |= new
                    unused += sum(left[id_, class_id] for id_ in new)
                if not any(_can_allocate(p, class_id, amount, left) for p in providers):
                    lacking[class_id] = None
        others: list[int | None] = [class_id for class_id in lacking if class_id != wasted]
        for cause in others or [*lacking] or [None]:
            causes[cause] += unused
    return causes.most_common(1)[0][0] if causes else None


def _can_allocate(
    provider: model.Provider, class_id: int, amount: int, left: Mapping[InventoryKey, int]
) -> bool:
    if left[provider.id, class_id] < amount:
        return False
    inventory = provider.inventories[class_id]
    violation = capacity.unit_violation(
        amount, inventory.min_unit, inventory.max_unit, inventory.step_size
    )
    return violation is None
