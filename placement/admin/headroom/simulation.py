"""Claims one candidate after another until no candidate is left.

Usage only grows, and more usage never adds a candidate. Two rules follow:

* An anchor without a candidate stays without one, so one pass over the anchors is enough.
* A search that began before a claim yields every candidate that is left after the claim, besides
  candidates that do not fit any more. So the search of an anchor continues after a claim, and the
  amounts of each further candidate are checked. If too many candidates do not fit, a new search
  with the present usage begins: with eight devices for eight groups, the old one would have 40,320
  candidates.

The anchors are visited in the order of the UUIDs of their roots. Several anchors can have the same
candidate if it uses only sharing providers. This order assigns it to the smallest UUID, because all
earlier anchors have no candidate left.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from placement import capacity
from placement.admin.headroom.free_capacity import FreeCapacity, amounts_of
from placement.admin.headroom.upper_bound import UpperBound
from placement.candidates import model, solver
from placement.candidates.selection import Budget

# A new search begins if the old one takes this many times the steps of its first candidate without
# a candidate that fits.
RESTART_AFTER = 1
# The simulation reports its progress once for this many anchors.
_REPORTED = 256


class Step(NamedTuple):
    """Identical claims of one candidate."""

    # The root of the anchor of the candidate.
    root: model.Provider
    binding: model.Binding
    # The number of claims, at least 1.
    times: int


@dataclass(frozen=True, slots=True)
class Simulation:
    """The simulated claims of a query."""

    steps: Sequence[Step]
    at_most: int

    @property
    def fits(self) -> int:
        """The number of claims."""
        return sum(step.times for step in self.steps)


def simulate(
    prepared: model.PreparedQuery,
    anchors: Iterable[model.Anchor],
    sharing_id: int | None,
    advance: Callable[[int], object] = lambda _: None,
) -> Simulation:
    """Claim candidates of the anchors until no candidate is left.

    :param anchors: all anchors of the cloud
    :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has the
        trait
    :param advance: called with numbers of anchors that are done
    """
    free, bound = FreeCapacity(), UpperBound(prepared, sharing_id)
    steps: list[Step] = []
    number = 0
    for number, anchor in enumerate(sorted(anchors, key=lambda anchor: anchor.root.uuid), 1):
        current = free.current(anchor)
        before = len(steps)
        if solver.is_single_provider(prepared, current) and sharing_id not in anchor.root.traits:
            # PERF: in most deployments, most trees have only one provider, which is in no other
            # anchor. So its usage need not be kept. The general case takes six times as long.
            if count := _times_alone(prepared, current):
                steps.append(Step(anchor.root, solver.binding_of_root(prepared, current), count))
                bound.add_exactly(count)
        else:
            for binding, count in _claims(prepared, current, free):
                steps.append(Step(anchor.root, binding, count))
            bound.add(anchor, has_candidate=len(steps) > before or current is not anchor)
        if number % _REPORTED == 0:
            advance(_REPORTED)
    advance(number % _REPORTED)
    return Simulation(steps, bound.total())


def _times_alone(prepared: model.PreparedQuery, anchor: model.Anchor) -> int:
    """Return how often an anchor with a single provider can serve the query."""
    if not solver.can_serve_alone(prepared, anchor):
        return 0
    inventories = anchor.root.inventories
    return min(
        capacity.free(inventories[class_id].used, inventories[class_id].capacity) // amount
        for slot in prepared.slots
        for class_id, amount in slot.amounts
    )


def _claims(
    prepared: model.PreparedQuery, anchor: model.Anchor, free: FreeCapacity
) -> Iterator[tuple[model.Binding, int]]:
    """Claim the candidates of an anchor; yield each with the number of its claims.

    :param free: updated with each claim
    """
    is_exhausted = False
    while not is_exhausted:
        current, budget = free.current(anchor), Budget()
        providers = {provider.id: provider for provider in current.providers}
        is_exhausted, cost, restart_at = True, 0, 0
        for binding in solver.solve(prepared, current, budget):
            cost = cost or budget.used
            if count := free.take(providers, amounts_of(prepared.slots, binding)):
                yield binding, count
                restart_at = budget.used + RESTART_AFTER * cost
            elif budget.used > restart_at:
                is_exhausted = False
                break
