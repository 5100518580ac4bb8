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
millions of bindings before it ends without a candidate.

`model` defines the terms slot, option, binding and any-set.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
import functools

from placement import capacity
from placement.candidates import max_flow, model
from placement.candidates.budget import Budget

# (provider id, resource class id)
InventoryKey = tuple[int, int]
# Resource class id -> provider id -> free capacity.
FreeCapacity = Mapping[int, Mapping[int, int]]
# Slot -> its remaining options. Slots with the same options have the same list object.
RemainingOptions = Mapping[int, Sequence[int]]
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
        return self._may_isolate(few, budget) and self._may_supply(few, free, budget)

    def _may_isolate(self, options: RemainingOptions, budget: Budget) -> bool:
        """Return False if there are too few different providers for the isolated slots."""
        counts: Counter[int] = Counter()
        different = {}
        for slot, providers in options.items():
            if slot in self.isolated:
                counts[id(providers)] += 1
                different[id(providers)] = providers
        if any(count > len(different[key]) for key, count in counts.items()):
            return False
        demands = [(count, different[key]) for key, count in counts.items()]
        return len(demands) < 2 or max_flow.feasible(demands, lambda _: 1, budget)

    def _may_supply(self, options: RemainingOptions, free: FreeCapacity, budget: Budget) -> bool:
        """Return False if, for any class, the free capacity is too small for all of the slots."""
        requested: dict[int, dict[int, int]] = defaultdict(lambda: defaultdict(int))
        different = {id(providers): providers for providers in options.values()}
        for slot, providers in options.items():
            for class_id, amount in self.amounts[slot]:
                requested[class_id][id(providers)] += amount
        for class_id, sums in requested.items():
            demands = [(amount, different[key]) for key, amount in sums.items()]
            capacity_of_provider = functools.partial(_capacity, free[class_id])
            if not max_flow.feasible(demands, capacity_of_provider, budget):
                return False
        return True


def _capacity(free: Mapping[int, int], provider_id: int) -> int:
    return free.get(provider_id, capacity.MAX_INT + 1)  # not contended


def joint_conditions(
    slots: Sequence[model.Slot],
    kinds: Sequence[int],
    isolated: frozenset[int],
    eligible: Sequence[Sequence[model.Provider]],
    traits: Sequence[CollectiveTrait],
    one_per_tree: bool,
) -> JointConditions:
    """Return the conditions that the slots must satisfy together in an anchor.

    :param kinds: slot -> a number that is equal for slots with the same amounts and conditions
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
        tuple((class_id, amount) for class_id, amount in slot.amounts if class_id in contended)
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
