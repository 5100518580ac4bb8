"""Searches depth-first for bindings: binds one slot after another, and backtracks.

A *slot* is a part of the query that exactly one provider serves. The *options* of a slot are the
ids of the providers that the search tries for it. A *binding* assigns one option to each slot.

The conditions that several slots must satisfy together are:

* If several slots take from one inventory, the sum of their amounts must not exceed its free
  capacity. This applies with each group_policy.
* With group_policy=isolate, different suffixed groups must use different providers.
* Before microversion 1.29, a candidate must use at most one provider of each tree.
* The providers that serve the unsuffixed group must have all of its required traits together, but
  no single provider needs to have all of them.

If an incomplete binding violates one of the first three conditions, binding more slots cannot
repair it. So they are checked for each option that is tried. The last condition is different: while
slots are unbound, a missing trait does not violate it, because a provider for a later slot may have
the trait. So it is checked when the last slot is bound that could satisfy it.

Slots are bound in a fixed order: the slots with the fewest options are first, and among these the
slots with the largest amounts. The position of a slot in this order is its depth. For each depth,
there is one generator, `_Search._bind(depth)`:

* Each `next()` call binds the slot to the next permitted option, reserves the capacity that the
  option uses, and yields True.
* The following `next()` call first releases this reservation, and then tries the next options.
* After the last option, the generator yields False. At this point it has no reservation. The
  following `next()` call starts again with the first option.

`_Search.bindings()` advances the generator of the current depth. After True, the search moves to
the next depth, or yields the binding if it is complete. After False, it returns to the previous
depth. The generators of the previous depths are paused with their reservations in place: together
they are the stack of the search. The search is not recursive: Python's recursion limit would limit
the number of groups, and each candidate would have to pass through all recursion levels.

Example: group_policy=isolate requires different providers for the slots A and B. Both slots have
the options 1 and 2.

    depth 0 (A)    depth 1 (B)                     result
    True: A=1      1 is in use; True: B=2          (1, 2)
                   False
    True: A=2      True: B=1                       (2, 1)
                   2 is in use; False
    False                                          the search is complete

If a binding leads to no candidate, the search skips bindings that can lead to none either:

* Two options are in the same *state* if they are options of the same slots, and have the same free
  capacity. If a slot cannot be bound to one of them, it cannot be bound to the other one.
* Two consecutive slots are *alike* if they are of the same kind. If the first one cannot be bound
  to an option, the second one cannot be bound to it either: if a candidate existed, exchanging the
  two providers would yield a candidate in which the first slot is bound to this option.

If the search has tried many options since the last candidate, it checks necessary conditions for
the unbound slots before it moves to the next depth (`_may_bind_from`).
"""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import functools
from itertools import pairwise
import math
import random

from placement.candidates import model
from placement.candidates.model import SlotOptions
from placement.candidates.selection import Budget, shuffled

# After (this number + the total number of options) trials without a candidate, the search checks
# necessary conditions before it moves to the next depth.
CHECK_AFTER = 200
# Search steps charged for each slot of a found candidate, because a candidate uses memory and must
# be rendered.
CANDIDATE_COST = 4

# The placeholder in a binding for a slot that is not bound yet.
_UNBOUND = -1

# Resource class id -> provider id -> free capacity.
FreeCapacity = Mapping[int, Mapping[int, int]]
# (free capacity of a resource class by provider id, requested amount) pairs of a slot.
_Demands = tuple[tuple[dict[int, int], int], ...]
# Providers -> the amounts that slots with these options request from them.
_Requests = dict[frozenset[int], list[int]]


@dataclass(frozen=True, slots=True)
class CollectiveTrait:
    """The condition that at least one of `slots` is bound to one of `providers`.

    There is one such condition for each any-set of required traits of the unsuffixed group.
    """

    # The slots that could be bound to one of `providers`.
    slots: frozenset[int]
    # The ids of the providers that have a trait of the any-set.
    providers: frozenset[int]

    def is_satisfied(self, binding: Sequence[int]) -> bool:
        """Whether the binding satisfies the condition. All slots of the condition must be bound."""
        for slot in self.slots:
            if binding[slot] in self.providers:
                return True
        return False


@dataclass(frozen=True, slots=True)
class JointConditions:
    """The conditions that the slots of a query must satisfy together in one anchor."""

    prepared: model.PreparedQuery
    # The free capacity of the inventories that at least two slots could use.
    free: FreeCapacity
    # Provider id -> root id, if at most one provider of each tree may be used; otherwise empty.
    roots: Mapping[int, int]
    # The required traits of the unsuffixed group.
    traits: Sequence[CollectiveTrait]

    def may_bind(
        self, options: Mapping[int, Sequence[int]], free: FreeCapacity, budget: Budget
    ) -> bool:
        """Return False if necessary conditions prove that these slots cannot be bound together.

        A slot that has at least as many options as there are slots is not checked: the other slots
        cannot use all of its options.

        :param options: the slots to check, with their options. Slots with the same options have the
            same object
        :param free: the free capacity minus the reservations of the bound slots
        :param budget: receives the search steps of this check
        """
        few = {slot: ids for slot, ids in options.items() if len(ids) < len(options)}
        sets = {id(ids): frozenset(ids) for ids in few.values()}
        budget.spend(len(options) // 2 + sum(map(len, sets.values())) // 16 + 1)
        requests: dict[int, _Requests] = defaultdict(lambda: defaultdict(list))
        isolated: _Requests = defaultdict(list)
        for slot, ids in few.items():
            if slot in self.prepared.isolated:
                isolated[sets[id(ids)]].append(1)
            for class_id, amount in self.prepared.contended[slot]:
                requests[class_id][sets[id(ids)]].append(amount)
        # A provider serves at most one isolated slot.
        return _may_supply(isolated, lambda _: 1, budget) and all(
            _may_supply(of_class, free[class_id].__getitem__, budget)
            for class_id, of_class in requests.items()
        )


def _may_supply(requests: _Requests, free: Callable[[int], int], budget: Budget) -> bool:
    """Return False if some providers have too little free capacity for the requested amounts.

    If several amounts fit into a free capacity, their quotients by any unit, rounded down, fit into
    its quotient, too. The unit 1 compares the sums of the amounts. With the unit 600, a provider
    with a free capacity of 1,000 has the quotient 1, so it can serve only one amount of 600.

    :param free: returns the free capacity of a provider
    """
    size = sum(map(len, requests))
    union: frozenset[int] = frozenset()
    for options in sorted(requests, key=len):
        union = union | options if union else options
        for providers in {options, union}:
            amounts = [n for ids, some in requests.items() if ids <= providers for n in some]
            supply = [free(id_) for id_ in providers]
            units = {1, *amounts}
            budget.spend((size + len(units) * (len(amounts) + len(supply))) // 16 + 1)
            for unit in units:
                if sum([n // unit for n in amounts]) > sum([n // unit for n in supply]):
                    return False
    return True


def bindings(
    conditions: JointConditions,
    options: SlotOptions,
    budget: Budget,
    rng: random.Random | None = None,
) -> Iterator[model.Binding]:
    """Return an iterator over all bindings that satisfy the conditions, until the budget is spent.

    :param rng: shuffles the options of each slot; None to keep their order
    """
    return _Search(conditions, options, budget, rng).bindings()


class _Search:
    """The state of one depth-first search."""

    def __init__(
        self,
        conditions: JointConditions,
        options: SlotOptions,
        budget: Budget,
        rng: random.Random | None,
    ) -> None:
        self._conditions = conditions
        self._isolated_slots = conditions.prepared.isolated
        self._options = options
        self._budget = budget
        self._rng = rng
        # Depth -> slot.
        kinds, sizes = conditions.prepared.kinds, conditions.prepared.sizes
        self._order = sorted(
            range(len(options)),
            key=lambda slot: (len(options[slot]), -sizes[slot], options[slot], kinds[slot]),
        )
        # Depth -> whether its slot and the previous one are alike.
        self._repeats = [False] + [
            kinds[slot] == kinds[previous] and options[slot] is options[previous]
            for previous, slot in pairwise(self._order)
        ]
        # Depth -> the options that lead to no candidate with the bindings of the previous depths.
        self._failed: list[set[int]] = [set() for _ in options]
        self._binding = [_UNBOUND] * len(options)
        # The free capacity minus the reservations of the bound slots.
        self._free = {class_id: dict(free) for class_id, free in conditions.free.items()}
        # group_policy=isolate: the providers of the suffixed groups that are bound.
        self._isolated: set[int] = set()
        # The number of options tried so far, and at the time when the last candidate was found.
        self._tried = self._found_at = 0
        # Depth -> the trait conditions to check at this depth.
        self._due = self._due_traits()
        # Slot -> its demands. Slots with the same amounts have the same object.
        demands = {
            amounts: tuple([(self._free[class_id], amount) for class_id, amount in amounts])
            for amounts in {*conditions.prepared.contended}
        }
        self._demands = [demands[amounts] for amounts in conditions.prepared.contended]
        budget.spend(len(options) + sum(map(len, conditions.free.values())) // 8)

    def _due_traits(self) -> list[list[CollectiveTrait]]:
        """Return, for each depth, the trait conditions whose last slot is bound at this depth."""
        depth_of = {slot: depth for depth, slot in enumerate(self._order)}
        due: list[list[CollectiveTrait]] = [[] for _ in self._order]
        for trait in self._conditions.traits:
            due[max(depth_of[slot] for slot in trait.slots)].append(trait)
        return due

    def bindings(self) -> Iterator[model.Binding]:
        """Yield all bindings. The docstring of the module explains the algorithm."""
        budget, binding = self._budget, self._binding
        counts = [len(options) for options in self._options]
        if math.prod(counts) > CHECK_AFTER and not self._may_bind_from(0):
            return
        check_after = CHECK_AFTER and CHECK_AFTER + sum(counts)  # tests set 0: always check
        last, cost = len(binding) - 1, CANDIDATE_COST * len(binding)
        levels = [self._bind(depth) for depth in range(len(binding))]
        depth = 0
        while depth >= 0 and budget.left >= budget.end:
            for is_bound in levels[depth]:
                if not is_bound:
                    depth -= 1
                    break
                if depth == last:
                    budget.left -= cost
                    self._found_at = self._tried
                    yield tuple(binding)
                elif self._tried - self._found_at <= check_after or self._may_bind_from(depth + 1):
                    depth += 1
                    break
                elif budget.is_spent:
                    return

    def _bind(self, depth: int) -> Iterator[bool]:
        """Bind the slot at this depth to each permitted option in turn.

        Yields True for each permitted option and False after the last one, and then starts again.

        PERF: this is the hot loop of long searches. The common conditions and `Budget.spend` are
        inlined, and trials are counted in a local variable that is counted before each yield. With
        calls of `spend`, a search would take up to 1.2 times as long (2026-11).
        """
        slot, last, budget = self._order[depth], depth == len(self._order) - 1, self._budget
        binding, isolated = self._binding, self._isolated
        roots, is_isolated = self._conditions.roots, slot in self._isolated_slots
        options, demands = shuffled(self._options[slot], self._rng), self._demands[slot]
        due, cost = self._due[depth], 1 + len(demands) // 4
        # After the last slot, no slot remains that a reservation could affect.
        isolates, reserves = is_isolated and not last, demands and not last
        states: set[Hashable] = set()
        inherited = self._failed[depth - 1] if self._repeats[depth] else ()
        tried, failed = 0, self._failed[depth]
        while True:
            if failed or inherited:
                states.clear()
                failed.clear()
                failed.update(inherited)
            for option in options:
                tried += 1
                if (
                    # group_policy=isolate: another suffixed group uses this provider
                    (is_isolated and option in isolated)
                    # the other bound slots do not leave enough free capacity
                    or (demands and not _fits(option, demands))
                    # before microversion 1.29: another provider of this tree is in use
                    or (roots and self._has_sibling(depth, option))
                    # this option, or another one in the same state, leads to no candidate
                    or (failed and (option in failed or self._state(option) in states))
                    or (due and not self._are_satisfied(depth, option))
                ):
                    continue
                binding[slot] = option
                budget.left -= tried * cost
                self._tried = so_far = self._tried + tried
                tried = 0
                if isolates:
                    isolated.add(option)
                if reserves:
                    _reserve(option, demands, 1)
                yield True
                if isolates:
                    isolated.discard(option)
                if reserves:
                    _reserve(option, demands, -1)
                if self._found_at < so_far:
                    failed.add(option)
                    states.add(self._state(option))
            budget.left -= tried * cost
            self._tried += tried
            tried = 0
            yield False

    def _state(self, option: int) -> Hashable:
        """Return a value that is equal for options that can replace each other from now on."""
        self._budget.spend(len(self._free) // 8)
        free = (of_class.get(option) for of_class in self._free.values())
        return self._roles[option], option in self._isolated, *free

    @functools.cached_property
    def _roles(self) -> dict[int, Hashable]:
        """Option -> a value that is equal for options of the same slots."""
        different = {id(options): options for options in self._options}
        sets = [*different.values(), *(trait.providers for trait in self._conditions.traits)]
        self._budget.spend(sum(map(len, sets)) // 8)
        numbers: dict[int, list[int]] = defaultdict(list)
        for number, ids in enumerate(sets):
            for id_ in ids:
                numbers[id_].append(number)
        roots = self._conditions.roots
        return {id_: (tuple(of_id), roots.get(id_)) for id_, of_id in numbers.items()}

    def _has_sibling(self, depth: int, option: int) -> bool:
        """Whether a previous slot is bound to another provider of the same tree."""
        roots = self._conditions.roots
        self._budget.spend(depth // 8)
        bound = [self._binding[slot] for slot in self._order[:depth]]
        return any(other != option and roots[other] == roots[option] for other in bound)

    def _are_satisfied(self, depth: int, option: int) -> bool:
        """Whether the binding with this option satisfies the trait conditions of this depth."""
        self._binding[self._order[depth]] = option
        for trait in self._due[depth]:
            self._budget.spend(1 + len(trait.slots) // 8)
            if not trait.is_satisfied(self._binding):
                return False
        return True

    def _may_bind_from(self, depth: int) -> bool:
        """Return False if necessary conditions prove that the remaining slots cannot be bound.

        :param depth: the depth of the first remaining slot
        """
        remaining: dict[int, list[int]] = {}
        shared: dict[tuple[int, int, bool], list[int]] = {}
        for slot in self._order[depth:]:
            options, demands = self._options[slot], self._demands[slot]
            isolated = slot in self._isolated_slots
            key = id(options), id(demands), isolated
            if key not in shared:
                self._budget.spend(len(options) * (2 + len(demands)) // 4 + 1)
                shared[key] = [
                    option
                    for option in options
                    if not (isolated and option in self._isolated) and _fits(option, demands)
                ]
            if not shared[key]:
                return False
            remaining[slot] = shared[key]
        return self._conditions.may_bind(remaining, self._free, self._budget)


def _fits(option: int, demands: _Demands) -> bool:
    for free, amount in demands:
        if free[option] < amount:
            return False
    return True


def _reserve(option: int, demands: _Demands, times: int) -> None:
    """Reserve the capacity that an option uses; release it if `times` is -1."""
    for free, amount in demands:
        free[option] -= amount * times
