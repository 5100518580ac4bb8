"""Implements same_subtree: divides a search into parts, with one part for each possible subtree.

A *slot* is a part of the query that exactly one provider serves. The *options* of a slot are the
ids of the providers that the search tries for it (see `model`).

One of the providers that serve the groups of a same_subtree must be an ancestor of all the others.
It is called the *top* of the subtree. In each part of the search, the top is fixed, and the options
of each slot of the same_subtree are reduced to the subtree below the top, including the top itself.
A candidate has exactly one top, so no candidate is found in two parts.

The providers of all trees, together called the *forest*, are numbered in preorder. So each subtree
is a range of positions. The methods of `Division` represent options as ascending lists of
positions. Slots with the same options have the same list object.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import random

from placement.candidates import model
from placement.candidates.budget import Budget
from placement.candidates.selection import shuffled

# Slot -> its options as provider ids.
SlotOptions = list[Sequence[int]]
# Slot -> its options as positions in preorder.
_Positions = list[Sequence[int]]
# The slots of one same_subtree parameter in ascending order.
_Slots = tuple[int, ...]
# A function that takes the options of some slots, and returns False if necessary conditions prove
# that these slots cannot be bound together.
Viable = Callable[[Mapping[int, Sequence[int]]], bool]


@dataclass(frozen=True, slots=True)
class Forest:
    """The providers of several trees, numbered in preorder: each provider before its children."""

    # Position -> provider id.
    ids: Sequence[int]
    # Provider id -> position.
    position: Mapping[int, int]
    # Position of a provider -> the first position after its subtree.
    end: Sequence[int]


def forest_of(providers: Iterable[model.Provider]) -> Forest:
    """Return the forest of these providers.

    If the parent of a provider is not among these providers, the provider is treated as a root.
    """
    parents = {provider.id: provider.parent_id for provider in providers}
    children: dict[int, list[int]] = {}
    roots = []
    for id_, parent in parents.items():
        if parent in parents:
            children.setdefault(parent, []).append(id_)
        else:
            roots.append(id_)
    position: dict[int, int] = {}
    _number(roots, children, position)
    # In a damaged database, a provider may be its own ancestor, so that it has no root.
    for id_ in parents.keys() - position.keys() if len(position) < len(parents) else ():
        _number([id_], children, position)
    ids = list(position)
    end = list(range(1, len(ids) + 1))
    for at in range(len(ids) - 1, 0, -1):
        parent = parents[ids[at]]
        above = None if parent is None else position.get(parent)
        if above is not None and end[above] < end[at]:
            end[above] = end[at]
    return Forest(ids, position, end)


def _number(
    stack: list[int], children: Mapping[int, Sequence[int]], position: dict[int, int]
) -> None:
    """Number the providers on the stack and their descendants, unless they have a number."""
    while stack:
        id_ = stack.pop()
        if id_ not in position:
            position[id_] = len(position)
            stack += children.get(id_, ())


class Division:
    """Divides a search into parts, in each of which the top of every same_subtree is fixed.

    :param options: slot -> its options
    :param kinds: slot -> a number that is equal for slots with the same options
    :param same_subtrees: for each same_subtree parameter, the set of its slots
    :param forest: the providers of the anchor, including those of its `sharing_trees`
    :param viable: called with options that are reduced to subtrees. If it returns False, these
        options cannot yield a candidate and are skipped
    :param budget: receives the search steps of this division
    :param rng: shuffles tops; None for a fixed order
    """

    def __init__(
        self,
        options: SlotOptions,
        kinds: Sequence[int],
        same_subtrees: Sequence[frozenset[int]],
        forest: Forest,
        viable: Viable,
        budget: Budget,
        rng: random.Random | None = None,
    ) -> None:
        self._all_options = options
        self._kinds = kinds
        self._same_subtrees = sorted(tuple(sorted(slots)) for slots in same_subtrees)
        self._slots = sorted(frozenset().union(*same_subtrees))
        self._forest = forest
        # With a single same_subtree, the checks would cost more than they save.
        self._viable = viable if len(same_subtrees) > 1 else None
        self._budget = budget
        self._rng = rng

    def parts(self) -> Iterator[SlotOptions]:
        """Yield the options of each part of the search, until the budget is spent.

        The method fixes the top of one same_subtree after another, depth-first. Level n of the
        stack iterates over the tops of same_subtree n, and yields the options that remain for each
        top. A top is skipped if the options that remain for the slots of the same_subtrees up to
        level n cannot yield a candidate.
        """
        positions = self._positions()
        found: dict[tuple[int, ...], Sequence[int]] = {}
        tops: list[tuple[_Slots, Sequence[int]]] = []
        for slots in self._same_subtrees:
            key = tuple(sorted(self._kinds[slot] for slot in slots))
            if key not in found:
                found[key] = self._tops(positions, slots)
            tops.append((slots, found[key]))
        # The same_subtrees with the fewest tops are first, so that few combinations are tried.
        tops.sort(key=lambda item: len(item[1]))
        stack = [self._choices(positions, tops[:1])]
        while stack:
            for remaining in stack[-1]:
                if len(stack) == len(tops):
                    yield self._options_of_part(remaining)
                else:
                    stack.append(self._choices(remaining, tops[: len(stack) + 1]))
                    break
            else:
                stack.pop()

    def _positions(self) -> _Positions:
        """Return the options of all slots as positions in the forest."""
        position = self._forest.position
        by_kind: dict[int, list[int]] = {}
        for kind, options in zip(self._kinds, self._all_options, strict=True):
            if kind not in by_kind:
                by_kind[kind] = sorted(position[option] for option in options)
                self._budget.spend(len(options) // 4)
        return [by_kind[kind] for kind in self._kinds]

    def _tops(self, positions: _Positions, slots: _Slots) -> Sequence[int]:
        """Return the positions of the possible tops of one same_subtree.

        The other same_subtrees are not considered. If the budget is spent, some tops are missing.
        """
        different = {id(positions[slot]): positions[slot] for slot in slots}
        options = sorted(set().union(*different.values()))
        self._budget.spend((len(slots) + sum(map(len, different.values()))) // 8)
        if self._viable is None:
            return shuffled(options, self._rng)
        tops = []
        for top in options:
            remaining = self._in_subtree(positions, slots, top)
            if remaining and any(self._bound_to_top(remaining, [slots], top)):
                tops.append(top)
            if self._budget.left < 0:
                break
        return shuffled(tops, self._rng)

    def _choices(
        self, positions: _Positions, tops: Sequence[tuple[_Slots, Sequence[int]]]
    ) -> Iterator[_Positions]:
        """Yield the options that remain for each top of the last same_subtree.

        The method ends when the budget is spent.

        :param positions: the options that remain for the fixed tops of the other same_subtrees
        :param tops: the same_subtrees up to the current one, each with its possible tops
        """
        same_subtrees = [slots for slots, _ in tops]
        for top in tops[-1][1]:
            remaining = self._in_subtree(positions, same_subtrees[-1], top)
            for part in self._bound_to_top(remaining, same_subtrees, top) if remaining else ():
                yield part
                if self._budget.left < 0:
                    return
            if self._budget.left < 0:
                return

    def _bound_to_top(
        self, remaining: _Positions, same_subtrees: Sequence[_Slots], top: int
    ) -> Iterator[_Positions]:
        """Yield the options that remain if the provider at the top serves a slot.

        At least one slot of the last same_subtree must be bound to the top. The method yields one
        part for each slot that can be the first such slot, so that no two parts overlap.
        """
        for slot in same_subtrees[-1]:
            options = remaining[slot]
            if options[0] != top:
                continue
            part = list(remaining)
            part[slot] = [top]
            self._budget.spend(len(part) // 16 + 1)
            if self._may_bind(part, same_subtrees):
                yield part
            if len(options) == 1:
                return
            remaining[slot] = options[1:]

    def _may_bind(self, positions: _Positions, same_subtrees: Sequence[_Slots]) -> bool:
        """Return False if the slots of these same_subtrees cannot be bound together."""
        if self._viable is None:
            return True
        return self._viable(self._ids_of_slots(positions, {*itertools.chain(*same_subtrees)}))

    def _in_subtree(self, positions: _Positions, slots: _Slots, top: int) -> _Positions | None:
        """Reduce the options of the slots to the subtree of a top.

        :returns: the options of all slots; None if a slot has no option in the subtree
        """
        end = self._forest.end[top]
        self._budget.spend(len(slots) // 4 + 1)
        for slot in slots:
            options = positions[slot]
            first = bisect_left(options, top)
            if first == len(options) or options[first] >= end:
                return None
        remaining = list(positions)
        reduced: dict[int, Sequence[int]] = {}
        for slot in slots:
            options = positions[slot]
            below = reduced.get(id(options))
            if below is None:
                first = bisect_left(options, top)
                below = reduced[id(options)] = options[first : bisect_left(options, end, first)]
                self._budget.spend(len(below) // 64)
            remaining[slot] = below
        return remaining

    def _ids_of_slots(
        self, positions: _Positions, slots: Collection[int]
    ) -> dict[int, Sequence[int]]:
        """Return the options of some slots as provider ids, for a call of `viable`."""
        self._budget.spend(len(slots) // 4)
        converted: dict[int, Sequence[int]] = {}
        for slot in slots:
            options = positions[slot]
            if id(options) not in converted:
                # Of a list with at least as many options as there are slots, `viable` uses only
                # the length, so the positions are not converted to ids.
                converted[id(options)] = (
                    self._ids(options) if len(options) < len(slots) else options
                )
        return {slot: converted[id(positions[slot])] for slot in slots}

    def _ids(self, positions: Sequence[int]) -> list[int]:
        self._budget.spend(len(positions) // 8 + 1)
        ids = self._forest.ids
        return [ids[position] for position in positions]

    def _options_of_part(self, positions: _Positions) -> SlotOptions:
        """Return the options of all slots as provider ids.

        Slots that are in no same_subtree keep all of their options.
        """
        result = list(self._all_options)
        converted: dict[int, list[int]] = {}
        for slot in self._slots:
            positions_of_slot = positions[slot]
            if id(positions_of_slot) not in converted:
                converted[id(positions_of_slot)] = self._ids(positions_of_slot)
            result[slot] = converted[id(positions_of_slot)]
        return result
