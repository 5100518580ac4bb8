"""Checks `required` of the unsuffixed group.

The traits are a collective condition: the providers that serve the unsuffixed group must have all
required traits together, but no single provider needs to have all of them. While slots are still
unbound, a missing trait does not violate the condition, because a provider for a later slot may
have the trait. `backtracking` therefore checks the condition when the last slot is bound that could
satisfy it. (Capacity is different: once exceeded, it stays exceeded. See `contention`.)

`model` defines the terms slot, binding, option and any-set.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placement.candidates import model
from placement.candidates.search_step_limit import Steps

# Slot -> the id of the provider that it is bound to. The value is valid only for bound slots.
PartialBinding = Sequence[int]


@dataclass(frozen=True, slots=True)
class CollectiveTrait:
    """The condition that at least one of `slots` is bound to one of `providers`.

    There is one such condition for each any-set of required traits.
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


def conditions(
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


def may_be_satisfied(
    traits: Iterable[CollectiveTrait],
    binding: PartialBinding,
    options: Mapping[int, Sequence[int]],
    steps: Steps,
) -> bool:
    """Return False if a condition cannot be satisfied, however the remaining slots are bound.

    :param options: remaining slot -> its options
    :param steps: updated with the search steps of this check
    """
    for trait in traits:
        steps.used += 1 + len(trait.slots) // 8
        if not _may_be_satisfied(trait, binding, options, steps):
            return False
    return True


def _may_be_satisfied(
    trait: CollectiveTrait,
    binding: PartialBinding,
    options: Mapping[int, Sequence[int]],
    steps: Steps,
) -> bool:
    # Slots with the same options have the same list object, which is checked only once.
    checked: set[int] = set()
    for slot in trait.slots:
        if slot not in options:
            if binding[slot] in trait.providers:
                return True
            continue
        providers = options[slot]
        if id(providers) in checked:
            continue
        checked.add(id(providers))
        steps.used += len(providers) // 16
        if not trait.providers.isdisjoint(providers):
            return True
    return False
