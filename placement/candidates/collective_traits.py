"""The required traits of the unsuffixed group.

The providers that serve the unsuffixed group must have the required traits together; each of them
need not have all. So an incomplete binding that lacks a trait may still get it from a later slot.
The solver checks such a condition when the last slot that could contribute is bound. (Conditions
that stay violated, like capacity, are checked at each step: see `group_policy`.)
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from placement.candidates import model
from placement.candidates.search_steps import Steps

# The id of the provider that each slot is bound to. Valid only for slots that are bound.
PartialBinding = Sequence[int]


@dataclass(frozen=True, slots=True)
class CollectiveTrait:
    """One any-set of traits: at least one of the slots is bound to one of the providers."""

    # The slots that an eligible provider with such a trait could serve.
    slots: frozenset[int]
    # The eligible providers that have such a trait.
    providers: frozenset[int]

    def is_satisfied(self, binding: PartialBinding) -> bool:
        """Whether the condition is true. All its slots must be bound."""
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

    A condition without slots cannot be satisfied.

    :param eligible: the eligible providers of each slot
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
    """Whether each condition is satisfied, or could be once the remaining slots are bound.

    :param options: the options of the slots that are not bound yet
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
    # Slots with the same options share one list.
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
