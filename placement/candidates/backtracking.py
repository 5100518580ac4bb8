"""The depth-first search for bindings: bind one slot after the other, and undo what fails.

Slots are bound in a fixed order; slots with few options come first. The position in this order is
the depth. There is one generator for each depth, `_Search._bind(depth)`:

* Each step of it binds its slot to the next permitted option, reserves what this option takes, and
  yields True.
* The next step first releases what was reserved, and then tries further options.
* After the last option it yields False, with everything released. The step after that begins with
  the first option again.

`_Search.bindings()` advances the generator of the current depth. After True, the next depth is the
current one, or the binding is complete and is yielded. After False, the previous depth is the
current one. The generators of all depths before the current one keep their reservations, so
together they are the stack of the search.

Example: slots A and B are isolated, and both have the options 1 and 2.

    depth 0 (A)    depth 1 (B)                     result
    True: A=1      1 is in use; True: B=2          (1, 2)
                   False
    True: A=2      True: B=1                       (2, 1)
                   2 is in use; False
    False                                          the search is complete

If many options were tried since the last candidate, the search checks necessary conditions for the
remaining slots before it continues with the next depth (`_may_bind_from`). The search is not
recursive: recursion would limit the number of groups, and a pause would have to pass through every
level.
"""

from collections.abc import Iterator, Sequence
import math

from placement.candidates import collective_traits, model
from placement.candidates.collective_traits import CollectiveTrait
from placement.candidates.group_policy import Contention, Demands, FreeCapacity
from placement.candidates.same_subtree import SlotOptions
from placement.candidates.search_steps import Steps

# The number of options that are tried without a candidate, in addition to one for each option of
# each slot, before the search checks necessary conditions at each step.
CHECK_AFTER = 200
# The search steps of a candidate for each of its slots: it takes memory and must be rendered.
CANDIDATE_COST = 4

# A slot that is not bound.
_UNBOUND = -1

# Bindings, or None for a pause.
Bindings = Iterator[model.Binding | None]


def bindings(
    contention: Contention,
    options: SlotOptions,
    traits: Sequence[CollectiveTrait],
    trial_costs: Sequence[int],
    steps: Steps,
) -> Bindings:
    """Yield every binding of the slots to their options that violates no condition.

    :param contention: the conditions among the slots that are checked at each step
    :param traits: the conditions that are checked when the last of their slots is bound
    :param trial_costs: slot -> the search steps for trying one option
    """
    return _Search(contention, options, traits, trial_costs, steps).bindings()


class _Search:
    """The state of one depth-first search."""

    def __init__(
        self,
        contention: Contention,
        options: SlotOptions,
        traits: Sequence[CollectiveTrait],
        trial_costs: Sequence[int],
        steps: Steps,
    ) -> None:
        self._contention = contention
        self._options = options
        self._traits = traits
        self._trial_costs = trial_costs
        self._steps = steps
        # Depth -> slot.
        self._order = sorted(range(len(options)), key=lambda slot: len(options[slot]))
        self._binding = [_UNBOUND] * len(options)
        # The free capacity that the bound slots leave.
        self._free = dict(contention.free)
        # The providers that isolated slots are bound to.
        self._isolated: set[int] = set()
        # Root -> the providers of its tree that are bound; only for `contention.roots`.
        self._bound_in_tree: dict[int, list[int]] = {}
        # Options that were tried since the last candidate.
        self._fruitless = 0
        # Depth -> the conditions to check there, and the search steps for that.
        self._due = self._due_traits()
        self._due_costs = [sum(1 + len(trait.slots) // 8 for trait in due) for due in self._due]
        # Depth -> pairs of an option of its slot and the demands of that option.
        self._choices = [
            [(option, contention.demands[slot][option]) for option in options[slot]]
            for slot in self._order
        ]
        steps.used += len(options) + sum(map(len, options)) // 8

    def _due_traits(self) -> list[list[CollectiveTrait]]:
        """Return, for each depth, the conditions whose last slot is bound there."""
        depth_of = {slot: depth for depth, slot in enumerate(self._order)}
        due: list[list[CollectiveTrait]] = [[] for _ in self._order]
        for trait in self._traits:
            due[max(depth_of[slot] for slot in trait.slots)].append(trait)
        return due

    def bindings(self) -> Bindings:
        """Yield all bindings; the module's docstring explains how."""
        steps, binding = self._steps, self._binding
        counts = [len(options) for options in self._options]
        if math.prod(counts) > CHECK_AFTER and not self._may_bind_from(0):
            return
        check_after = CHECK_AFTER and CHECK_AFTER + sum(counts)  # 0 in tests: always check
        last, cost = len(binding) - 1, CANDIDATE_COST * len(binding)
        levels = [self._bind(depth) for depth in range(len(binding))]
        depth = 0
        while depth >= 0:
            if steps.used > steps.pause_at:
                yield None
            for is_bound in levels[depth]:
                if not is_bound:
                    depth -= 1
                    break
                if depth == last:
                    steps.used += cost
                    self._fruitless = 0
                    yield tuple(binding)
                elif self._fruitless <= check_after or self._may_bind_from(depth + 1):
                    depth += 1
                    break
                elif steps.used > steps.pause_at:
                    yield None

    def _bind(self, depth: int) -> Iterator[bool]:
        """Bind the slot at this depth to one permitted option after the other, and repeat that.

        PERF: long searches spend their time in this loop, so the common conditions are not calls,
        and trials are counted in a local variable until something else may read the counters.
        """
        slot, last, steps = self._order[depth], depth == len(self._order) - 1, self._steps
        binding, isolated, free = self._binding, self._isolated, self._free
        roots, is_isolated = self._contention.roots, slot in self._contention.isolated
        choices, due, cost = self._choices[depth], self._due[depth], self._trial_costs[slot]
        tried = 0
        while True:
            for option, demands in choices:
                tried += 1
                if (
                    (is_isolated and option in isolated)
                    or (demands and not _fits(free, demands))
                    or (roots and self._has_sibling(option))
                ):
                    continue
                binding[slot] = option
                if due and not self._are_satisfied(depth):
                    continue
                steps.used += tried * cost
                self._fruitless += tried
                tried = 0
                if last:  # no further slot competes
                    yield True
                    continue
                if is_isolated:
                    isolated.add(option)
                if demands or roots:
                    self._reserve(option, demands)
                yield True
                if is_isolated:
                    isolated.discard(option)
                if demands or roots:
                    self._release(option, demands)
            steps.used += tried * cost
            self._fruitless += tried
            tried = 0
            yield False

    def _reserve(self, option: int, demands: Demands) -> None:
        for key, amount in demands:
            self._free[key] -= amount
        if self._contention.roots:
            self._bound_in_tree.setdefault(self._contention.roots[option], []).append(option)

    def _release(self, option: int, demands: Demands) -> None:
        for key, amount in demands:
            self._free[key] += amount
        if self._contention.roots:
            self._bound_in_tree[self._contention.roots[option]].pop()

    def _has_sibling(self, option: int) -> bool:
        """Whether another provider of the option's tree is bound."""
        bound = self._bound_in_tree.get(self._contention.roots[option])
        return bound is not None and bound[:1] not in ([], [option])

    def _are_satisfied(self, depth: int) -> bool:
        """Whether the conditions to check at this depth are satisfied."""
        self._steps.used += self._due_costs[depth]
        for trait in self._due[depth]:
            if not trait.is_satisfied(self._binding):
                return False
        return True

    def _may_bind_from(self, depth: int) -> bool:
        """Whether the slots from a depth on could be bound, as far as necessary conditions show."""
        remaining = self._remaining_options(depth)
        return (
            remaining is not None
            and collective_traits.may_be_satisfied(
                self._traits, self._binding, remaining, self._steps
            )
            and self._contention.may_bind(remaining, self._free, self._steps)
        )

    def _remaining_options(self, depth: int) -> dict[int, list[int]] | None:
        """Return the options that the slots from a depth on still have; None if one has none."""
        remaining: dict[int, list[int]] = {}
        shared: dict[tuple[int, int, bool], list[int]] = {}
        for slot in self._order[depth:]:
            options, demands = self._options[slot], self._contention.demands[slot]
            isolated = slot in self._contention.isolated
            key = id(options), id(demands), isolated
            if key not in shared:
                self._steps.used += len(options) * self._trial_costs[slot] // 2 + 1
                shared[key] = [
                    option
                    for option in options
                    if not (isolated and option in self._isolated)
                    and _fits(self._free, demands[option])
                ]
            if not shared[key]:
                return None
            remaining[slot] = shared[key]
        return remaining


def _fits(free: FreeCapacity, demands: Demands) -> bool:
    for key, amount in demands:
        if free[key] < amount:
            return False
    return True
