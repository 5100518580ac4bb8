"""same_subtree: the search is split by the provider at the top of each subtree.

The providers of a same_subtree have exactly one among them that is above all others. If it is
chosen first, every slot keeps only the options of one subtree, and no candidate is found twice.

Providers are numbered in preorder, so that a subtree is a range of positions.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
import itertools
import random

from placement.candidates import model
from placement.candidates.steps import Steps

# The ids of the providers that each slot may be bound to.
Domains = list[list[int]]
# The same, as positions in preorder.
_Positions = list[list[int]]
# The slots of a same_subtree in ascending order.
Slots = tuple[int, ...]
# Whether the slots of some same_subtrees could be bound together to these options.
Viable = Callable[[Mapping[int, Sequence[int]]], bool]


@dataclass(frozen=True, slots=True)
class Forest:
    """Providers of some trees in preorder."""

    ids: Sequence[int]
    position: Mapping[int, int]
    # Position -> the position behind its subtree.
    end: Sequence[int]


def forest_of(providers: Iterable[model.Provider]) -> Forest:
    """Number providers in preorder. A provider whose parent is not among them is a root."""
    parents = {provider.id: provider.parent_id for provider in providers}
    children: dict[int, list[int]] = {}
    waiting = []
    for id_, parent in parents.items():
        if parent in parents:
            children.setdefault(parent, []).append(id_)
        else:
            waiting.append(id_)
    position: dict[int, int] = {}
    _number(waiting, children, position)
    # In a damaged database providers may be below themselves; they are below no root.
    for id_ in parents.keys() - position.keys() if len(position) < len(parents) else ():
        _number([id_], children, position)
    ids = list(position)
    end = list(range(1, len(ids) + 1))
    for at in range(len(ids) - 1, 0, -1):
        above = position.get(parents[ids[at]])  # type: ignore[arg-type]
        if above is not None and end[above] < end[at]:
            end[above] = end[at]
    return Forest(ids, position, end)


def _number(
    waiting: list[int], children: Mapping[int, Sequence[int]], position: dict[int, int]
) -> None:
    """Number providers and all below them that have no number yet."""
    while waiting:
        id_ = waiting.pop()
        if id_ not in position:
            position[id_] = len(position)
            waiting += children.get(id_, ())


def split(
    domains: Domains,
    kinds: Sequence[int],
    same_subtrees: Sequence[frozenset[int]],
    forest: Forest,
    viable: Viable,
    steps: Steps,
    rng: random.Random | None = None,
) -> Iterator[Domains | None]:
    """Yield the parts of a search, one for each way to choose the tops of all same_subtrees.

    A top is left out as soon as the slots below it cannot be bound together with those below
    the tops that were chosen before. Yields None whenever the steps of a turn are used up.

    :param kinds: slot -> a number, equal for slots that have the same options
    :param same_subtrees: sets of slots
    :param viable: a necessary condition for slots that were narrowed to subtrees
    :param rng: shuffles tops and options
    """
    return _Splitter(domains, kinds, same_subtrees, forest, viable, steps, rng).run()


class _Splitter:
    def __init__(
        self,
        domains: Domains,
        kinds: Sequence[int],
        same_subtrees: Sequence[frozenset[int]],
        forest: Forest,
        viable: Viable,
        steps: Steps,
        rng: random.Random | None,
    ):
        self._domains = domains
        self._kinds = kinds
        self._same_subtrees = [tuple(sorted(slots)) for slots in same_subtrees]
        self._slots = sorted(frozenset().union(*same_subtrees))
        self._forest = forest
        # One same_subtree alone has too few tops to be worth testing each.
        self._viable = viable if len(same_subtrees) > 1 else None
        self._steps = steps
        self._rng = rng

    def run(self) -> Iterator[Domains | None]:
        """Choose top after top, depth first. The stack is as deep as there are same_subtrees."""
        positions = self._positions()
        made: dict[tuple[int, ...], list[int]] = {}
        ordered: list[tuple[Slots, list[int]]] = []
        for slots in self._same_subtrees:
            key = tuple(sorted(self._kinds[slot] for slot in slots))
            if key not in made:
                made[key] = yield from self._tops(positions, slots)
            ordered.append((slots, made[key]))
        # Those with few tops first: they leave the least to try.
        ordered.sort(key=lambda item: len(item[1]))
        stack = [self._narrowings(positions, ordered[:1])]
        while stack:
            for narrowed in stack[-1]:
                if narrowed is None:
                    yield None
                elif len(stack) == len(ordered):
                    yield self._finished(narrowed)
                else:
                    stack.append(self._narrowings(narrowed, ordered[: len(stack) + 1]))
                    break
            else:
                stack.pop()

    def _positions(self) -> _Positions:
        """Domains as positions in ascending order; slots of one kind share a list."""
        position, made = self._forest.position, dict[int, list[int]]()
        for kind, domain in zip(self._kinds, self._domains, strict=True):
            if kind not in made:
                made[kind] = sorted(position[option] for option in domain)
                self._steps.used += len(domain) // 4
        return [made[kind] for kind in self._kinds]

    def _tops(self, positions: _Positions, slots: Slots) -> Generator[None, None, list[int]]:
        """The options of the slots of a same_subtree that could be its top, if it were alone."""
        different = {id(positions[slot]): positions[slot] for slot in slots}
        options = sorted(set().union(*different.values()))
        self._steps.used += (len(slots) + sum(map(len, different.values()))) // 8
        if self._viable is None:
            tops = options
        else:
            tops = []
        for top in options if self._viable else ():
            narrowed = self._subtree(positions, slots, top)
            if narrowed and any(self._parts(narrowed, [slots], top)):
                tops.append(top)
            if self._steps.used > self._steps.pause_at:
                yield None
        return self._rng.sample(tops, len(tops)) if self._rng else tops

    def _narrowings(
        self, positions: _Positions, chosen: Sequence[tuple[Slots, list[int]]]
    ) -> Iterator[_Positions | None]:
        """The options that are left for each choice of a top of the last same_subtree.

        :param chosen: same_subtrees, with the tops that each could have; all but the last have one
        """
        same_subtrees = [slots for slots, _ in chosen]
        for top in chosen[-1][1]:
            narrowed = self._subtree(positions, same_subtrees[-1], top)
            for part in self._parts(narrowed, same_subtrees, top) if narrowed else ():
                yield part
                if self._steps.used > self._steps.pause_at:
                    yield None
            if self._steps.used > self._steps.pause_at:
                yield None

    def _parts(
        self, narrowed: _Positions, same_subtrees: Sequence[Slots], top: int
    ) -> Iterator[_Positions]:
        """What is left below a top, for each slot that could be bound to the top.

        These parts do not overlap: of the slots that are bound to the top, one is the first.
        """
        for slot in same_subtrees[-1]:
            options = narrowed[slot]
            if options[0] != top:
                continue
            part = list(narrowed)
            part[slot] = [top]
            self._steps.used += len(part) // 16 + 1
            if self._may_be_bound(part, same_subtrees):
                yield part
            if len(options) == 1:
                return
            narrowed[slot] = options[1:]

    def _may_be_bound(self, positions: _Positions, same_subtrees: Sequence[Slots]) -> bool:
        if self._viable is None:
            return True
        return self._viable(self._options(positions, {*itertools.chain(*same_subtrees)}))

    def _subtree(self, positions: _Positions, slots: Slots, top: int) -> _Positions | None:
        """The options of the slots that are left in a subtree; None if a slot has none."""
        end = self._forest.end[top]
        self._steps.used += len(slots) // 4 + 1
        for slot in slots:
            options = positions[slot]
            first = bisect_left(options, top)
            if first == len(options) or options[first] >= end:
                return None
        narrowed, made = list(positions), dict[int, list[int]]()
        for slot in slots:
            options = positions[slot]
            below = made.get(id(options))
            if below is None:
                first = bisect_left(options, top)
                below = made[id(options)] = options[first : bisect_left(options, end, first)]
                self._steps.used += len(below) // 64
            narrowed[slot] = below
        return narrowed

    def _options(self, positions: _Positions, slots: Collection[int]) -> dict[int, Sequence[int]]:
        """The options of some slots as ids."""
        self._steps.used += len(slots) // 8
        made: dict[int, Sequence[int]] = {}
        for slot in slots:
            options = positions[slot]
            if id(options) not in made:
                # `viable` uses only the length of longer lists.
                made[id(options)] = self._ids(options) if len(options) < len(slots) else options
        return {slot: made[id(positions[slot])] for slot in slots}

    def _ids(self, positions: Sequence[int]) -> list[int]:
        self._steps.used += len(positions) // 8
        ids = self._forest.ids
        return [ids[position] for position in positions]

    def _finished(self, positions: _Positions) -> Domains:
        """Domains of ids; those of slots in no same_subtree are as they were."""
        domains, made = list(self._domains), dict[int, list[int]]()
        for slot in self._slots:
            options = positions[slot]
            if id(options) not in made:
                made[id(options)] = self._ids(options)
            found = made[id(options)]
            domains[slot] = self._rng.sample(found, len(found)) if self._rng else found
        return domains
