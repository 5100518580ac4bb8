"""Rules that a combination of providers has to keep.

*Monotone* rules, once broken, are broken for every extension of a combination: free capacity,
isolation, one provider of a tree for clients before microversion 1.29. The solver has those in
its state and checks them at every step. *Terminal* rules may become true later: they are
objects of this module, and are checked when the last slot that they mention is bound.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from placement.candidates import model

# Gives the provider's id that a slot is bound to.
Bound = Sequence[int]


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one of the slots is bound to one of the providers.

    So it is with a trait that the group without suffix requires: any provider that contributes
    to it may have the trait. And with same_subtree, once the top of the subtree is chosen.
    """

    slots: frozenset[int]
    providers: frozenset[int]

    def holds(self, bound: Bound) -> bool:
        for slot in self.slots:
            if bound[slot] in self.providers:
                return True
        return False


def collective_traits(
    query: model.Query[int],
    slots: Sequence[model.Slot],
    servers: Sequence[Sequence[model.Provider]],
) -> list[OneOf]:
    """One rule for every any-set of traits that the group without suffix requires.

    A rule mentions only the slots that could help, so it is checked as early as possible; a rule
    without slots cannot hold.
    """
    loose = {
        number: frozenset(provider.id for provider in servers[number])
        for number, slot in enumerate(slots)
        if not slot.granular and query.collective_traits
    }
    providers = {provider.id: provider for number in loose for provider in servers[number]}
    rules = []
    for any_set in query.collective_traits:
        helpful = frozenset(
            id_ for id_, provider in providers.items() if not any_set.isdisjoint(provider.traits)
        )
        rules.append(
            OneOf(
                frozenset(number for number, ids in loose.items() if not helpful.isdisjoint(ids)),
                helpful,
            )
        )
    return rules
