"""Prepares the conditions that several slots must satisfy together.

* If several slots take from one inventory, the sum of their amounts must not exceed its free
  capacity. This applies with each group_policy.
* With group_policy=isolate, different suffixed groups must use different providers.
* Before microversion 1.29, a candidate must use at most one provider of each tree.
* The providers that serve the unsuffixed group must have all of its required traits together, but
  no single provider needs to have all of them.

If an incomplete binding violates one of the first three conditions, binding more slots cannot
repair it. So `backtracking` checks them for each option that it tries. The last condition is
different: while slots are unbound, a missing trait does not violate it, because a provider for a
later slot may have the trait. So `backtracking` checks it when the last slot is bound that could
satisfy it.

This module computes the data for these checks. It also checks necessary conditions for all unbound
slots together: without them, the search for ten isolated groups on nine free devices would try
many bindings before it ends without a candidate.

`model` defines the terms slot, option, binding and any-set.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from placement import capacity
from placement.candidates import model
from placement.candidates.budget import Budget

# (provider id, resource class id)
InventoryKey = tuple[int, int]
# Resource class id -> provider id -> free capacity.
FreeCapacity = Mapping[int, Mapping[int, int]]
# Slot -> its remaining options. Slots with the same options have the same list object.
RemainingOptions = Mapping[int, Sequence[int]]
# Providers -> the amounts that slots with these options request from them.
_Demands = dict[frozenset[int], list[int]]
# Slot -> the id of the provider that it is bound to. The value is valid only for bound slots.
PartialBinding = Sequence[int]


@dataclass(frozen=True, slots=True)
class CollectiveTrait:
    """The condition that at least one of `slots` is bound to one of `providers`.

    There is one such condition for each any-set of required traits of the unsuffixed group.
    """

    # The slots that could be bound to one of `providers`.
    slots: frozenset[int]
    # The ids of the eligible providers that have a trait of the any-set.
    providers: frozenset[int]

    def is_satisfied(self, binding: PartialBinding) -> bool:
        """Whether the binding satisfies the condition. All slots of the condition must be bound."""
        for slot in self.slots:
            if binding[slot] in self.providers:
                return True
        return False

    def may_be_satisfied(
        self, binding: PartialBinding, options: RemainingOptions, budget: Budget
    ) -> bool:
        """Return False if the condition cannot be satisfied, however other slots are bound.

        :param options: remaining slot -> its options
        :param budget: receives the search steps of this check
        """
        budget.spend(1 + len(self.slots) // 8)
        checked: set[int] = set()
        for slot in self.slots:
            if slot not in options:
                if binding[slot] in self.providers:
                    return True
                continue
            providers = options[slot]
            if id(providers) in checked:
                continue
            checked.add(id(providers))
            budget.spend(len(providers) // 16)
            if not self.providers.isdisjoint(providers):
                return True
        return False


def collective_traits(
    query: model.Query[int],
    slots: Sequence[model.Slot],
    eligible: Sequence[Sequence[model.Provider]],
) -> list[CollectiveTrait]:
    """Return one condition for each any-set of traits that the unsuffixed group requires.

    If a condition has no slots, the anchor has no candidate.

    :param eligible: slot -> its eligible providers
    """
    ids = {
        number: frozenset(provider.id for provider in eligible[number])
        for number, slot in enumerate(slots)
        if not slot.suffixed and query.collective_traits
    }
    providers = {provider.id: provider for number in ids for provider in eligible[number]}
    result = []
    for any_set in query.collective_traits:
        having = frozenset(
            id_ for id_, provider in providers.items() if not any_set.isdisjoint(provider.traits)
        )
        contributing = (number for number, of_slot in ids.items() if not having.isdisjoint(of_slot))
        result.append(CollectiveTrait(frozenset(contributing), having))
    return result


@dataclass(frozen=True, slots=True)
class JointConditions:
    """The conditions that the slots of a query must satisfy together in one anchor.

    An inventory is *contended* if at least two slots could take from it.
    """

    # Slot -> its (class id, amount) pairs, limited to classes with a contended inventory.
    amounts: tuple[tuple[tuple[int, int], ...], ...]
    # The free capacity of the contended inventories. Other inventories are used by at most one
    # slot, and the amount of this slot fits: otherwise the provider would not be eligible.
    free: FreeCapacity
    # group_policy=isolate: the slots that must be bound to different providers.
    isolated: frozenset[int]
    # The total number of pairs in `amounts`.
    size: int
    # Slot -> a number that is equal for slots with the same amounts and conditions.
    kinds: Sequence[int]
    # Slot -> how large its amounts are; see `PreparedQuery.sizes`.
    sizes: Sequence[float]
    # Provider id -> root id, if at most one provider of each tree may be used; otherwise empty.
    roots: Mapping[int, int]
    # The required traits of the unsuffixed group.
    traits: Sequence[CollectiveTrait]

    @property
    def is_empty(self) -> bool:
        """Whether each slot can be bound to each of its options, independently of other slots."""
        return not (self.free or self.isolated or self.roots or self.traits)

    def may_bind(self, options: RemainingOptions, free: FreeCapacity, budget: Budget) -> bool:
        """Return False if necessary conditions prove that these slots cannot be bound together.

        A slot that has at least as many options as there are slots is not checked: the other slots
        cannot use all of its options.

        :param options: the slots to check, with their options
        :param free: the free capacity minus the reservations of the bound slots
        :param budget: receives the search steps of this check
        """
        budget.spend(len(options) // 2 + self.size // 8 + 1)
        few = {slot: ids for slot, ids in options.items() if len(ids) < len(options)}
        different = {id(ids): ids for ids in few.values()}
        sets = {key: frozenset(ids) for key, ids in different.items()}
        budget.spend(sum(map(len, sets.values())) // 16)
        demands: dict[int, _Demands] = defaultdict(lambda: defaultdict(list))
        isolated: _Demands = defaultdict(list)
        for slot, ids in few.items():
            if slot in self.isolated:
                isolated[sets[id(ids)]].append(1)
            for class_id, amount in self.amounts[slot]:
                demands[class_id][sets[id(ids)]].append(amount)
        return _may_supply(isolated, {}, 1, budget) and all(
            # If an inventory is not contended, the amount of its only slot fits.
            _may_supply(of_class, free[class_id], capacity.MAX_INT + 1, budget)
            for class_id, of_class in demands.items()
        )


def _may_supply(demands: _Demands, free: Mapping[int, int], otherwise: int, budget: Budget) -> bool:
    """Return False if some providers have too little free capacity for the demands on them.

    If several amounts fit into a free capacity, their quotients by any unit, rounded down, fit into
    its quotient, too. The unit 1 compares the sums of the amounts. With the unit 600, a provider
    with a free capacity of 1,000 has the quotient 1, so it can serve only one amount of 600.

    :param otherwise: the free capacity of the providers that are not in `free`
    """
    size = sum(map(len, demands))
    union: frozenset[int] = frozenset()
    for options in sorted(demands, key=len):
        union = union | options if union else options
        for providers in {options, union}:
            amounts = [n for ids, some in demands.items() if ids <= providers for n in some]
            supply = [free.get(id_, otherwise) for id_ in providers]
            units = {1, *amounts}
            budget.spend((size + len(units) * (len(amounts) + len(supply))) // 16 + 1)
            for unit in units:
                if sum([n // unit for n in amounts]) > sum([n // unit for n in supply]):
                    return False
    return True


def joint_conditions(
    slots: Sequence[model.Slot],
    kinds: Sequence[int],
    sizes: Sequence[float],
    isolated: frozenset[int],
    eligible: Sequence[Sequence[model.Provider]],
    traits: Sequence[CollectiveTrait],
    one_per_tree: bool,
) -> JointConditions:
    """Return the conditions that the slots must satisfy together in an anchor.

    :param kinds: slot -> a number that is equal for slots with the same amounts and conditions
    :param sizes: slot -> how large its amounts are
    :param isolated: the slots that must be bound to different providers
    :param eligible: slot -> its eligible providers
    :param traits: the conditions of `collective_traits`
    :param one_per_tree: whether a candidate may use at most one provider of each tree
    """
    contended = _contended(slots, kinds, isolated, eligible)
    different = (
        {id(found): found for found in eligible}.values() if contended or one_per_tree else ()
    )
    providers = {provider.id: provider for found in different for provider in found}
    amounts = tuple(
        tuple([(class_id, amount) for class_id, amount in slot.amounts if class_id in contended])
        for slot in slots
    )
    return JointConditions(
        amounts=amounts,
        free={
            class_id: {id_: free_capacity_of(providers[id_].inventories[class_id]) for id_ in ids}
            for class_id, ids in contended.items()
        },
        isolated=isolated,
        size=sum(map(len, amounts)),
        kinds=kinds,
        sizes=sizes,
        roots={id_: p.root_id for id_, p in providers.items()} if one_per_tree else {},
        traits=traits,
    )


def _contended(
    slots: Sequence[model.Slot],
    kinds: Sequence[int],
    isolated: frozenset[int],
    eligible: Sequence[Sequence[model.Provider]],
) -> dict[int, set[int]]:
    """Return the inventories that at least two slots could take from.

    :returns: resource class id -> the ids of the providers
    """
    requests = Counter(class_id for slot in slots for class_id, _ in slot.amounts)
    if len(requests) == requests.total():
        return {}
    takers: dict[int, _Takers] = defaultdict(_Takers)
    seen: set[int] = set()
    for number, slot in enumerate(slots):
        repeated = kinds[number] in seen
        seen.add(kinds[number])
        if repeated and number in isolated:
            continue
        classes = [class_id for class_id, _ in slot.amounts if requests[class_id] > 1]
        ids = [provider.id for provider in eligible[number]] if classes else []
        for class_id in classes:
            takers[class_id].add(ids, repeated, number in isolated)
    return {class_id: several for class_id, one in takers.items() if (several := one.contended())}


class _Takers:
    """The providers from which slots could take a resource class."""

    def __init__(self) -> None:
        # The providers from which one slot could take the class, and those of several slots.
        self._once: set[int] = set()
        self._several: set[int] = set()
        # The providers from which isolated slots could take the class.
        self._isolated: set[int] = set()

    def add(self, ids: Sequence[int], repeated: bool, is_isolated: bool) -> None:
        """Add a slot, and the ids of its eligible providers.

        :param repeated: whether a slot of the same kind was added before
        """
        if is_isolated:  # a provider is used by at most one isolated slot
            self._isolated.update(ids)
        elif repeated:
            self._several.update(ids)
        else:
            self._several.update(self._once.intersection(ids))
            self._once.update(ids)

    def contended(self) -> set[int]:
        """Return the providers from which at least two slots could take the class."""
        return self._several | (self._once & self._isolated)


def free_capacity_of(inventory: model.ProviderInventory) -> int:
    """Return the largest amount that a consumer can allocate from an inventory.

    :returns: the free capacity, but not more than max_unit
    """
    return min(capacity.free(inventory.used, inventory.capacity), inventory.max_unit)
