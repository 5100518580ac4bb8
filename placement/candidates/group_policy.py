"""group_policy=isolate: different suffixed groups must use different providers.

`backtracking` rejects an option of an isolated slot if another isolated slot is bound to it. This
module returns the isolated slots. It also checks a necessary condition for all unbound slots
together: without it, the search for ten isolated groups on nine free devices would try millions of
bindings before it ends without a candidate.

`model` defines the terms slot, option and binding.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

from placement.candidates import flow, model
from placement.candidates.search_step_limit import Steps

# Slot -> its remaining options. Slots with the same options have the same list object.
RemainingOptions = Mapping[int, Sequence[int]]


def isolated_slots(query: model.Query[int], slots: Sequence[model.Slot]) -> frozenset[int]:
    """Return the slots that must be bound to different providers."""
    if not query.isolate:
        return frozenset()
    return frozenset(number for number, slot in enumerate(slots) if slot.suffixed)


def may_isolate(isolated: frozenset[int], options: RemainingOptions, steps: Steps) -> bool:
    """Return False if there are too few different providers for the isolated slots.

    :param options: the slots to check, with their options
    :param steps: updated with the search steps of this check
    """
    counts: Counter[int] = Counter()
    different = {}
    for slot, providers in options.items():
        if slot in isolated:
            counts[id(providers)] += 1
            different[id(providers)] = providers
    if any(count > len(different[key]) for key, count in counts.items()):
        return False
    demands = [(count, different[key]) for key, count in counts.items()]
    return len(demands) < 2 or flow.feasible(demands, lambda _: 1, steps)
