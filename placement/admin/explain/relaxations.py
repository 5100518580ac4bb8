"""Finds the relaxations: the minimal sets of conditions without which the query has candidates.

All relaxations of one condition are found. If there is none, all of two conditions are.
"""

from dataclasses import dataclass
import itertools

from placement.admin.explain import conditions
from placement.admin.explain.conditions import Condition
from placement.admin.explain.judge import Judge
from placement.admin.explain.model import Trees
from placement.admin.progress import Progress
from placement.candidates.selection import Budget

# Pairs are judged for queries with at most this number of conditions.
MAX_CONDITIONS_FOR_PAIRS = 40

Set = tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A relaxation, or a set of conditions whose search reached the search limit."""

    without: Set
    trees: Trees


@dataclass(frozen=True, slots=True)
class Found:
    """The result of the search for relaxations.

    :ivar pairs_omitted: whether pairs were needed, but not judged
    """

    relaxations: tuple[Relaxed, ...]
    pairs_omitted: bool = False


def find(judge: Judge, nested: bool, max_steps: int, progress: Progress) -> Found:
    """Return the relaxations of a query that has no candidates.

    :param nested: whether a candidate may use several providers of one tree
    :param max_steps: the search limit of each condition, and of all pairs together
    """
    every = judge.all_conditions
    singles = []
    with progress('Leaving out one condition', len(every)) as advance:
        for condition in every:
            singles += _judged((condition,), judge, nested, Budget(max_steps))
            advance(1)
    if any(not relaxed.trees.cut for relaxed in singles):
        return Found(tuple(singles))
    if len(every) > MAX_CONDITIONS_FOR_PAIRS:
        return Found(tuple(singles), pairs_omitted=True)
    pairs = list(itertools.combinations(every, 2))
    limit = Budget(max_steps)
    undecided = {relaxed.without[0] for relaxed in singles}
    found = []
    with progress('Leaving out two conditions', len(pairs)) as advance:
        for pair in pairs:
            # If the search without one of the conditions was cut, it may have candidates too.
            if undecided.isdisjoint(pair):
                found += _judged(pair, judge, nested, limit)
            else:
                found.append(Relaxed(pair, Trees(0, cut=True)))
            advance(1)
    return Found((*singles, *found))


def _judged(without: Set, judge: Judge, nested: bool, limit: Budget) -> list[Relaxed]:
    """Return the set, if the query has candidates without it or if the search was cut."""
    if not conditions.may_be_relaxed(without, judge.all_conditions):
        return []
    trees = judge.trees(without, nested, limit)
    return [Relaxed(without, trees)] if trees.count or trees.cut else []
