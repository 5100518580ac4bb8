"""Implements same_subtree: divides a search into parts, with one part for each possible subtree.

A *slot* is a part of the query that exactly one provider serves. The *options* of a slot are the
ids of the providers that the search tries for it (see `model`).

One of the providers that serve the groups of a same_subtree must be an ancestor of all the others.
It is called the *top* of the subtree. In each part of the search, the top is fixed, and the options
of each slot of the same_subtree are reduced to the subtree below the top, including the top itself.
A candidate has exactly one top, so no candidate is found in two parts.

The providers of all trees, together called the *forest*, are numbered in preorder. So each subtree
is a range of positions, and if the options of a slot are in preorder, those in a subtree are a
range, too. Slots with the same options have the same tuple object.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import random

from placement.candidates import model
from placement.candidates.model import SlotOptions
from placement.candidates.selection import Budget, shuffled

# The slots of one same_subtree parameter in ascending order.
_Slots = tuple[int, ...]
# A function that takes the options of some slots, and returns False if necessary conditions prove
# that these slots cannot be bound together.
Viable = Callable[[Mapping[int, Sequence[int]]], bool]


@dataclass(frozen=True, slots=True)
class Forest:
    """The providers of several trees, numbered in preorder: each provider before its children."""

    # Provider id -> position.
    position: Mapping[int, int]
    # Provider id -> the first position after its subtree.
    end: Mapping[int, int]


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
    end = {id_: at + 1 for id_, at in position.items()}
    for id_ in reversed(position):
        parent = parents[id_]
        if parent in end:
            end[parent] = max(end[parent], end[id_])
    return Forest(position, end)


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
        same_subtrees: Sequence[frozenset[int]],
        forest: Forest,
        viable: Viable,
        budget: Budget,
        rng: random.Random | None = None,
    ) -> None:
        self._options = options
        self._same_subtrees = sorted(tuple(sorted(slots)) for slots in same_subtrees)
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
        options = self._in_preorder()
        tops = [(slots, self._tops(options, slots)) for slots in self._same_subtrees]
        # The same_subtrees with the fewest tops are first, so that few combinations are tried.
        tops.sort(key=lambda item: len(item[1]))
        stack = [self._choices(options, tops[:1])]
        while stack:
            for remaining in stack[-1]:
                if len(stack) == len(tops):
                    yield remaining
                else:
                    stack.append(self._choices(remaining, tops[: len(stack) + 1]))
                    break
            else:
                stack.pop()

    def _in_preorder(self) -> SlotOptions:
        """Return the options of all slots in the order of their positions in the forest."""
        different = {id(ids): ids for ids in self._options}
        self._budget.spend(sum(map(len, different.values())) // 4)
        ordered = {key: self._sorted(ids) for key, ids in different.items()}
        return [ordered[id(ids)] for ids in self._options]

    def _sorted(self, ids: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted(ids, key=self._forest.position.__getitem__))

    def _tops(self, options: SlotOptions, slots: _Slots) -> Sequence[int]:
        """Return the possible tops of one same_subtree.

        The other same_subtrees are not considered.
        """
        different = {id(options[slot]): options[slot] for slot in slots}
        possible = self._sorted(set().union(*different.values()))
        self._budget.spend((len(slots) + sum(map(len, different.values()))) // 8)
        return shuffled(possible, self._rng)

    def _choices(
        self, options: SlotOptions, tops: Sequence[tuple[_Slots, Sequence[int]]]
    ) -> Iterator[SlotOptions]:
        """Yield the options that remain for each top of the last same_subtree.

        The method ends when the budget is spent.

        :param options: the options that remain for the fixed tops of the other same_subtrees
        :param tops: the same_subtrees up to the current one, each with its possible tops
        """
        same_subtrees = [slots for slots, _ in tops]
        for top in tops[-1][1]:
            remaining = self._in_subtree(options, same_subtrees[-1], top)
            for part in self._bound_to_top(remaining, same_subtrees, top) if remaining else ():
                yield part
                if self._budget.is_spent:
                    return
            if self._budget.is_spent:
                return

    def _bound_to_top(
        self, remaining: list[tuple[int, ...]], same_subtrees: Sequence[_Slots], top: int
    ) -> Iterator[SlotOptions]:
        """Yield the options that remain if the provider at the top serves a slot.

        At least one slot of the last same_subtree must be bound to the top. The method yields one
        part for each slot that can be the first such slot, so that no two parts overlap.
        """
        only_top = (top,)
        for slot in same_subtrees[-1]:
            options = remaining[slot]
            if options[0] != top:
                continue
            part = list(remaining)
            part[slot] = only_top
            self._budget.spend(len(part) // 16 + 1)
            if self._may_bind(part, same_subtrees):
                yield part
            if len(options) == 1:
                return
            remaining[slot] = options[1:]

    def _may_bind(self, options: SlotOptions, same_subtrees: Sequence[_Slots]) -> bool:
        """Return False if the slots of these same_subtrees cannot be bound together."""
        if self._viable is None:
            return True
        slots = {*itertools.chain(*same_subtrees)}
        self._budget.spend(len(slots) // 4)
        return self._viable({slot: options[slot] for slot in slots})

    def _in_subtree(
        self, options: SlotOptions, slots: _Slots, top: int
    ) -> list[tuple[int, ...]] | None:
        """Reduce the options of the slots to the subtree of a top.

        :returns: the options of all slots; None if a slot has no option in the subtree
        """
        position, end = self._forest.position, self._forest.end[top]
        self._budget.spend(len(slots) // 4 + 1)
        remaining = list(options)
        reduced: dict[int, tuple[int, ...]] = {}
        for slot in slots:
            ids = options[slot]
            below = reduced.get(id(ids))
            if below is None:
                first = bisect_left(ids, position[top], key=position.__getitem__)
                last = bisect_left(ids, end, first, key=position.__getitem__)
                below = reduced[id(ids)] = ids[first:last]
                self._budget.spend(1 + len(below) // 64)
            if not below:
                return None
            remaining[slot] = below
        return remaining
