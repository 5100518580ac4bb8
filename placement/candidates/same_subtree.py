"""same_subtree: divides the search by the provider at the top of each subtree.

Exactly one of the providers that serve the groups of a same_subtree is an ancestor of all others:
the top. If the search chooses the top first, each slot keeps only the options in the subtree of
that top, and no candidate is found twice.

Providers are numbered in preorder, so that a subtree is a range of positions. All functions of
the class `Division` work with positions; options of slots are lists of positions in ascending
order, and slots with the same options share one list.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import random

from placement.candidates import model
from placement.candidates.randomize import shuffled
from placement.candidates.search_steps import Steps

# The ids of the providers that each slot may be bound to.
SlotOptions = list[Sequence[int]]
# The same as positions in preorder.
_Positions = list[Sequence[int]]
# The slots of one same_subtree in ascending order.
_Slots = tuple[int, ...]
# Whether the slots of some same_subtrees could be bound together to the given options.
Viable = Callable[[Mapping[int, Sequence[int]]], bool]


@dataclass(frozen=True, slots=True)
class Forest:
    """Providers of some trees in preorder."""

    # Position -> provider id.
    ids: Sequence[int]
    # Provider id -> position.
    position: Mapping[int, int]
    # Position -> the position after the last provider of its subtree.
    end: Sequence[int]


def forest_of(providers: Iterable[model.Provider]) -> Forest:
    """Number providers in preorder. A provider whose parent is not among them is a root."""
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
    # In a damaged database a provider may be its own ancestor; no root is above it.
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
    """Number the providers on the stack and all their descendants that have no number yet."""
    while stack:
        id_ = stack.pop()
        if id_ not in position:
            position[id_] = len(position)
            stack += children.get(id_, ())


class Division:
    """Divides a search into parts: one part for each choice of all tops.

    :param options: the options of each slot
    :param kinds: slot -> a number, equal for slots that have the same options
    :param same_subtrees: sets of slots
    :param viable: a necessary condition for slots whose options were reduced to subtrees
    :param rng: shuffles tops and options
    """

    def __init__(
        self,
        options: SlotOptions,
        kinds: Sequence[int],
        same_subtrees: Sequence[frozenset[int]],
        forest: Forest,
        viable: Viable,
        steps: Steps,
        rng: random.Random | None = None,
    ) -> None:
        self._all_options = options
        self._kinds = kinds
        self._same_subtrees = [tuple(sorted(slots)) for slots in same_subtrees]
        self._slots = sorted(frozenset().union(*same_subtrees))
        self._forest = forest
        # A single same_subtree has too few tops for a check of each to pay off.
        self._viable = viable if len(same_subtrees) > 1 else None
        self._steps = steps
        self._rng = rng

    def parts(self) -> Iterator[SlotOptions | None]:
        """Yield the options of each part of the search, or None to pause.

        A top is left out as soon as the slots in its subtree cannot be bound together with those
        in the subtrees of the tops that were chosen before.

        The method chooses one top after another, depth first.

        Level n of the stack chooses the top of same_subtree n; each level iterates over the
        options that remain for each choice. The stack is as deep as there are same_subtrees.
        """
        positions = self._positions()
        found: dict[tuple[int, ...], Sequence[int]] = {}
        tops: list[tuple[_Slots, Sequence[int]]] = []
        for slots in self._same_subtrees:
            key = tuple(sorted(self._kinds[slot] for slot in slots))
            if key not in found:
                found[key] = yield from self._tops(positions, slots)
            tops.append((slots, found[key]))
        # Same_subtrees with few tops first: they leave the fewest combinations.
        tops.sort(key=lambda item: len(item[1]))
        stack = [self._choices(positions, tops[:1])]
        while stack:
            for remaining in stack[-1]:
                if remaining is None:
                    yield None
                elif len(stack) == len(tops):
                    yield self._options_of_part(remaining)
                else:
                    stack.append(self._choices(remaining, tops[: len(stack) + 1]))
                    break
            else:
                stack.pop()

    def _positions(self) -> _Positions:
        """Return the options of all slots as positions."""
        position = self._forest.position
        by_kind: dict[int, list[int]] = {}
        for kind, options in zip(self._kinds, self._all_options, strict=True):
            if kind not in by_kind:
                by_kind[kind] = sorted(position[option] for option in options)
                self._steps.used += len(options) // 4
        return [by_kind[kind] for kind in self._kinds]

    def _tops(self, positions: _Positions, slots: _Slots) -> Generator[None, None, Sequence[int]]:
        """Return the positions that could be the top of a same_subtree if it were the only one."""
        different = {id(positions[slot]): positions[slot] for slot in slots}
        options = sorted(set().union(*different.values()))
        self._steps.used += (len(slots) + sum(map(len, different.values()))) // 8
        if self._viable is None:
            return shuffled(options, self._rng)
        tops = []
        for top in options:
            remaining = self._in_subtree(positions, slots, top)
            if remaining and any(self._bound_to_top(remaining, [slots], top)):
                tops.append(top)
            if self._steps.used > self._steps.pause_at:
                yield None
        return shuffled(tops, self._rng)

    def _choices(
        self, positions: _Positions, tops: Sequence[tuple[_Slots, Sequence[int]]]
    ) -> Iterator[_Positions | None]:
        """Yield the options that remain for each top of the last same_subtree.

        :param tops: the same_subtrees up to this one, with their tops
        """
        same_subtrees = [slots for slots, _ in tops]
        for top in tops[-1][1]:
            remaining = self._in_subtree(positions, same_subtrees[-1], top)
            for part in self._bound_to_top(remaining, same_subtrees, top) if remaining else ():
                yield part
                if self._steps.used > self._steps.pause_at:
                    yield None
            if self._steps.used > self._steps.pause_at:
                yield None

    def _bound_to_top(
        self, remaining: _Positions, same_subtrees: Sequence[_Slots], top: int
    ) -> Iterator[_Positions]:
        """Yield the options that remain for each slot that could be bound to the top.

        The parts do not overlap: in each of them another slot is the first that is bound to the
        top.
        """
        for slot in same_subtrees[-1]:
            options = remaining[slot]
            if options[0] != top:
                continue
            part = list(remaining)
            part[slot] = [top]
            self._steps.used += len(part) // 16 + 1
            if self._may_bind(part, same_subtrees):
                yield part
            if len(options) == 1:
                return
            remaining[slot] = options[1:]

    def _may_bind(self, positions: _Positions, same_subtrees: Sequence[_Slots]) -> bool:
        """Whether the slots of these same_subtrees could be bound together."""
        if self._viable is None:
            return True
        return self._viable(self._ids_of_slots(positions, {*itertools.chain(*same_subtrees)}))

    def _in_subtree(self, positions: _Positions, slots: _Slots, top: int) -> _Positions | None:
        """Reduce the options of the slots to a subtree; return None if a slot keeps none."""
        end = self._forest.end[top]
        self._steps.used += len(slots) // 4 + 1
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
                self._steps.used += len(below) // 64
            remaining[slot] = below
        return remaining

    def _ids_of_slots(
        self, positions: _Positions, slots: Collection[int]
    ) -> dict[int, Sequence[int]]:
        """Return the options of some slots as provider ids."""
        self._steps.used += len(slots) // 8
        converted: dict[int, Sequence[int]] = {}
        for slot in slots:
            options = positions[slot]
            if id(options) not in converted:
                # `viable` uses only the length of longer lists.
                converted[id(options)] = (
                    self._ids(options) if len(options) < len(slots) else options
                )
        return {slot: converted[id(positions[slot])] for slot in slots}

    def _ids(self, positions: Sequence[int]) -> list[int]:
        self._steps.used += len(positions) // 8
        ids = self._forest.ids
        return [ids[position] for position in positions]

    def _options_of_part(self, positions: _Positions) -> SlotOptions:
        """Return the options of all slots; those of slots without same_subtree are unchanged."""
        result = list(self._all_options)
        converted: dict[int, list[int]] = {}
        for slot in self._slots:
            positions_of_slot = positions[slot]
            if id(positions_of_slot) not in converted:
                converted[id(positions_of_slot)] = self._ids(positions_of_slot)
            result[slot] = shuffled(converted[id(positions_of_slot)], self._rng)
        return result
