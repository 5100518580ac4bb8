"""What a combination of providers has to keep to.

*Monotone* rules, once broken, are broken for every extension of a combination: room left,
isolation, one provider of a tree for clients that know no nesting. The solver has those in
its state and checks them at every step. *Terminal* rules may become true later: they are
objects of this module, and are asked when the last slot that they speak of is bound.

`can_flow` is neither: it tells, before and during a search, that there is nothing to find.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from placement.candidates import model

# Gives the provider's id that a slot is bound to.
Bound = Sequence[int]


class Terminal(Protocol):
    """A rule that is asked when `slots` are bound."""

    @property
    def slots(self) -> frozenset[int]: ...

    def holds(self, bound: Bound) -> bool: ...


@dataclass(frozen=True, slots=True)
class OneOf:
    """At least one of the slots is bound to one of the providers.

    So it is with a trait that the group without suffix requires: any provider that contributes
    to it may have the trait. And with same_subtree, once the top of the subtree is picked.
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

    A rule speaks only of the slots that could help, so it is asked as early as can be; a rule
    without slots cannot hold.
    """
    rules = []
    for any_set in query.collective_traits:
        helpful = {
            number: {p.id for p in servers[number] if not any_set.isdisjoint(p.traits)}
            for number, slot in enumerate(slots)
            if not slot.granular
        }
        rules.append(
            OneOf(
                frozenset(number for number, found in helpful.items() if found),
                frozenset().union(*helpful.values()),
            )
        )
    return rules


def lines_of(providers: Iterable[model.Provider]) -> dict[int, frozenset[int]]:
    """The providers that each one is below, itself included, as far as they are given."""
    by_id = {provider.id: provider for provider in providers}
    lines: dict[int, frozenset[int]] = {}

    def line(id_: int) -> frozenset[int]:
        if id_ not in lines:
            parent = by_id[id_].parent_id
            above = line(parent) if parent in by_id else frozenset()
            lines[id_] = above | {id_}
        return lines[id_]

    for id_ in by_id:
        line(id_)
    return lines


def can_flow(
    wants: Sequence[tuple[int, Collection[int]]], room: Callable[[int], int] | Mapping[int, int]
) -> bool:
    """Whether all that is wanted can be spread over the bins that each may use.

    A maximum flow in whole units. Slots want whole pieces, so this is necessary and not
    sufficient; where everybody wants one unit (isolation, single devices) it is exact.

    :param wants: (amount, bins) for each group of slots that may use the same bins
    :param room: what fits into each bin
    """
    get = room.__getitem__ if isinstance(room, Mapping) else room
    left = {bin_: get(bin_) for _, bins in wants for bin_ in bins}
    given: list[dict[int, int]] = [{} for _ in wants]
    for number, (amount, bins) in enumerate(wants):
        for bin_ in bins:
            if amount <= 0:
                break
            piece = min(amount, left[bin_])
            if piece > 0:
                given[number][bin_] = piece
                left[bin_] -= piece
                amount -= piece
        while amount > 0:
            moved = _make_way(number, amount, wants, given, left)
            if not moved:
                return False
            amount -= moved
    return True


def _make_way(
    number: int,
    amount: int,
    wants: Sequence[tuple[int, Collection[int]]],
    given: list[dict[int, int]],
    left: dict[int, int],
) -> int:
    """Move what others have to their other bins until `number` gets more; tell how much."""
    came_from: dict[int, tuple[int, int | None]] = {}  # bin -> (who would use it, their old bin)
    queue: list[tuple[int, int | None]] = [(number, None)]
    visited = {number}
    for who, old in queue:
        for bin_ in wants[who][1]:
            if bin_ in came_from:
                continue
            came_from[bin_] = (who, old)
            if left[bin_] > 0:
                return _shift(bin_, amount, came_from, given, left)
            for other, pieces in enumerate(given):
                if other not in visited and pieces.get(bin_):
                    visited.add(other)
                    queue.append((other, bin_))
    return 0


def _shift(
    bin_: int,
    amount: int,
    came_from: Mapping[int, tuple[int, int | None]],
    given: list[dict[int, int]],
    left: dict[int, int],
) -> int:
    path = []
    moved, at = min(amount, left[bin_]), bin_
    while True:
        who, old = came_from[at]
        path.append((who, at, old))
        if old is None:
            break
        moved = min(moved, given[who][old])
        at = old
    left[bin_] -= moved
    for who, new, old in path:
        given[who][new] = given[who].get(new, 0) + moved
        if old is not None:
            given[who][old] -= moved
    return moved
