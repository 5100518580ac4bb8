"""What the slots of a query must not use twice: providers (group_policy=isolate) and capacity.

With group_policy=isolate, different suffixed groups use different providers. With either policy,
the amounts that several slots take from one inventory count together. Clients before microversion
1.29 also need candidates with at most one provider of each tree.

These conditions are monotone: once a binding violates one, so does every extension of it.
`backtracking` checks them for each option that it tries. This module prepares the data for that,
and has conditions that are necessary for the slots that are not bound yet. Without these, ten
isolated groups on nine free devices would be tried in millions of ways before the search fails.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
import functools

from placement import capacity
from placement.candidates import flow, model
from placement.candidates.search_steps import Steps

# Provider id and resource class id.
InventoryKey = tuple[int, int]
# The amounts that a slot would take from contended inventories.
Demands = tuple[tuple[InventoryKey, int], ...]
# Inventory -> free capacity.
FreeCapacity = Mapping[InventoryKey, int]
# Slot -> the providers that it may still be bound to. Slots with the same options share a list.
RemainingOptions = Mapping[int, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Contention:
    """The inventories and providers of an anchor for which several slots compete.

    An inventory is contended if more than one slot may take from it.
    """

    # Slot -> provider -> the amounts that the slot would take from its contended inventories.
    demands: tuple[Mapping[int, Demands], ...]
    # Slot -> its (class, amount) pairs, of the classes with a contended inventory.
    amounts: tuple[tuple[tuple[int, int], ...], ...]
    # The free capacity of each contended inventory.
    free: FreeCapacity
    # The slots that must be bound to different providers.
    isolated: frozenset[int]
    # How many pairs `amounts` has.
    size: int
    # Provider -> root; empty if several providers of one tree may be bound.
    roots: Mapping[int, int]

    @property
    def is_empty(self) -> bool:
        """Whether every slot may be bound to each of its options, whatever the others are."""
        return not (self.free or self.isolated or self.roots)

    def may_bind(self, options: RemainingOptions, free: FreeCapacity, steps: Steps) -> bool:
        """Whether all these slots could be bound together, as far as necessary conditions show.

        A slot with as many options as there are slots is not checked: the other slots leave at
        least one of its options unused, whatever they are bound to.

        :param free: the free capacity that bound slots leave
        """
        steps.used += (len(options) + self.size) // 8 + 1
        few = {slot: ids for slot, ids in options.items() if len(ids) < len(options)}
        return self._may_isolate(few, steps) and self._may_supply(few, free, steps)

    def _may_isolate(self, options: RemainingOptions, steps: Steps) -> bool:
        """Whether there are enough different providers for the isolated slots."""
        counts: Counter[int] = Counter()
        different = {}
        for slot, providers in options.items():
            if slot in self.isolated:
                counts[id(providers)] += 1
                different[id(providers)] = providers
        if any(count > len(different[key]) for key, count in counts.items()):
            return False
        demands = [(count, different[key]) for key, count in counts.items()]
        return len(demands) < 2 or flow.feasible(demands, lambda _: 1, steps)

    def _may_supply(self, options: RemainingOptions, free: FreeCapacity, steps: Steps) -> bool:
        """Whether there is enough free capacity for the sums of the amounts of each class."""
        requested: dict[int, Counter[int]] = {}
        different = {id(providers): providers for providers in options.values()}
        for slot, providers in options.items():
            for class_id, amount in self.amounts[slot]:
                requested.setdefault(class_id, Counter())[id(providers)] += amount
        for class_id, sums in requested.items():
            demands = [(amount, different[key]) for key, amount in sums.items()]
            capacity_of_provider = functools.partial(_capacity, free, class_id)
            if not flow.feasible(demands, capacity_of_provider, steps):
                return False
        return True


def _capacity(free: FreeCapacity, class_id: int, provider_id: int) -> int:
    # Only one slot may take from an inventory that is not contended, and its amount fits.
    return free.get((provider_id, class_id), capacity.MAX_INT + 1)


def contention_of(
    query: model.Query[int],
    slots: Sequence[model.Slot],
    kinds: Sequence[int],
    eligible: Sequence[Sequence[model.Provider]],
    one_per_tree: bool,
) -> Contention:
    """Return what the slots compete for.

    :param kinds: slot -> a number, equal for slots with the same amounts and conditions
    :param eligible: slot -> its eligible providers
    :param one_per_tree: whether at most one provider of each tree may be bound
    """
    isolated = frozenset(
        number for number, slot in enumerate(slots) if slot.suffixed and query.isolate
    )
    contended = _contended(slots, kinds, isolated, eligible)
    classes = {class_id for _, class_id in contended}
    different = (
        {id(found): found for found in eligible}.values() if contended or one_per_tree else ()
    )
    providers = {provider.id: provider for found in different for provider in found}
    demands: dict[int, dict[int, Demands]] = {}
    for number, kind in enumerate(kinds):
        if kind not in demands:
            demands[kind] = _demands(slots[number], eligible[number], contended)
    amounts = tuple(
        tuple((class_id, amount) for class_id, amount in slot.amounts if class_id in classes)
        for slot in slots
    )
    return Contention(
        demands=tuple(demands[kind] for kind in kinds),
        amounts=amounts,
        free={key: free_capacity(providers[key[0]], key[1]) for key in contended},
        isolated=isolated,
        size=sum(map(len, amounts)),
        roots={id_: p.root_id for id_, p in providers.items()} if one_per_tree else {},
    )


def _contended(
    slots: Sequence[model.Slot],
    kinds: Sequence[int],
    isolated: frozenset[int],
    eligible: Sequence[Sequence[model.Provider]],
) -> set[InventoryKey]:
    """Return the inventories that more than one slot may take from."""
    requests = Counter(class_id for slot in slots for class_id, _ in slot.amounts)
    if len(requests) == requests.total():
        return set()
    takers: Counter[InventoryKey] = Counter()
    isolated_takers: set[InventoryKey] = set()
    contended: set[InventoryKey] = set()
    seen: set[int] = set()
    for number, slot in enumerate(slots):
        repeated = kinds[number] in seen
        seen.add(kinds[number])
        for class_id, _ in slot.amounts:
            if requests[class_id] == 1 or (repeated and number in isolated):
                continue
            keys = [(provider.id, class_id) for provider in eligible[number]]
            if number in isolated:  # at most one of all isolated slots is bound to a provider
                isolated_takers.update(keys)
            elif repeated:
                contended.update(keys)
            else:
                takers.update(keys)
    takers.update(isolated_takers)
    contended.update(key for key, count in takers.items() if count > 1)
    return contended


def _demands(
    slot: model.Slot, eligible: Iterable[model.Provider], contended: set[InventoryKey]
) -> dict[int, Demands]:
    """Return the demands of a slot on each of its eligible providers."""
    if not contended:
        return dict.fromkeys((provider.id for provider in eligible), ())
    return {
        provider.id: tuple(
            ((provider.id, class_id), amount)
            for class_id, amount in slot.amounts
            if (provider.id, class_id) in contended
        )
        for provider in eligible
    }


def free_capacity(provider: model.Provider, class_id: int) -> int:
    """Return the amount of a class that one consumer may allocate from a provider in total."""
    inventory = provider.inventories[class_id]
    return min(int(inventory.capacity) - inventory.used, inventory.max_unit)
