"""Finds the relaxations: the minimal sets of conditions without which the query has candidates.

All relaxations of one condition are found. If there is none, all of two conditions are.

Most trees cannot have candidates without some conditions, because other conditions fail there, too.
So each condition is first checked alone.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
import itertools
from typing import Any, NamedTuple

from placement.admin.console import Advance, Progress
from placement.admin.explain import conditions
from placement.admin.explain.conditions import REQUIRED, Condition, Conditions
from placement.candidates import eligibility, model, solver
from placement.candidates.selection import Budget

# Trees are counted up to this number.
MAX_TREES = 1_000
# Pairs are judged for queries with at most this number of conditions.
MAX_CONDITIONS_FOR_PAIRS = 40
# The search steps of the first search of a tree. If they are not enough, the tree is searched again
# after all others, with `_GROWTH` times as many steps. So a tree that takes long to search does not
# delay the others.
_FIRST_SHARE = 10_000
_GROWTH = 4

# A part of the JSON document.
Json = dict[str, Any]


class Trees(NamedTuple):
    """The trees that have candidates.

    :ivar anchors: at most `MAX_TREES` of these trees
    :ivar more: whether there are, or may be, more trees
    :ivar cut: whether the search reached the search limit before it was complete
    """

    anchors: Sequence[model.Anchor] = ()
    more: bool = False
    cut: bool = False

    @property
    def document(self) -> Json:
        """The form in the JSON document."""
        cut = {'cut': True} if self.cut else {}
        return {'trees': len(self.anchors), 'more': self.more} | cut


# A set of conditions without which the query has candidates, and the trees that have them. The
# search of such a set may also have reached the search limit.
Relaxation = tuple[Conditions, Trees]


@dataclass(frozen=True, slots=True)
class Search:
    """The search of a cloud without some of the conditions of a query.

    :ivar nested: whether a candidate may use several providers of one tree
    :ivar anchors: the anchors of the cloud, each with the keys of the conditions that no provider
        in reach satisfies
    """

    conditions: Conditions
    nested: bool
    anchors: Sequence[tuple[frozenset[str], model.Anchor]]

    def trees(
        self,
        relaxed: Conditions,
        limit: Budget,
        advance: Advance = lambda _count: None,
    ) -> Trees:
        """Return the trees that have candidates if these conditions are relaxed.

        If a group would not have any condition, the result is empty.

        :param limit: updated with the search steps
        :param advance: called with the number of trees whose search is complete
        """
        keys = {one.key for one in relaxed}
        possible = [anchor for failing, anchor in self.anchors if failing <= keys]
        parts = [one.relaxed if one.key in keys else one.part for one in self.conditions]
        query = conditions.query_of(parts, self.nested)
        groups = {condition.suffix for condition in self.conditions} - {None}
        if len(query.groups) < len(groups):
            return Trees()
        prepared = model.PreparedQuery.of(query, one_per_tree=not query.nested)
        with_candidates = _with_candidates(prepared, possible, limit, advance)
        found = list(itertools.islice(with_candidates, MAX_TREES + 1))
        cut = bool(possible) and limit.is_exceeded
        return Trees(found[:MAX_TREES], more=cut or len(found) > MAX_TREES, cut=cut)

    def count(self, some: Conditions) -> int:
        """Return the number of anchors in which none of these conditions fails."""
        keys = {one.key for one in some}
        return sum(failing.isdisjoint(keys) for failing, _ in self.anchors)

    def relaxations(self, max_steps: int, progress: Progress) -> tuple[list[Relaxation], bool]:
        """Return the relaxations of a query that has no candidates.

        :param max_steps: the search limit of each condition, and of all pairs together
        :returns: also whether pairs are needed, but not judged, because the query has too many
            conditions
        """
        sets = [((one,), Budget(max_steps)) for one in self.conditions]
        singles = self._judged('one condition', sets, progress)
        if not all(trees.cut for _, trees in singles):
            return singles, False
        if len(self.conditions) > MAX_CONDITIONS_FOR_PAIRS:
            return singles, True
        # Without one of the others, there may be candidates, because the search was cut.
        decided = [one for one in self.conditions if all((one,) != cut for cut, _ in singles)]
        limit = Budget(max_steps)
        pairs = [(pair, limit) for pair in itertools.combinations(decided, 2)]
        return singles + self._judged('two conditions', pairs, progress), False

    def _judged(
        self, what: str, sets: Sequence[tuple[Conditions, Budget]], progress: Progress
    ) -> list[Relaxation]:
        """Return the sets without which the query has candidates, or whose search was cut.

        :param sets: the sets, each with its search limit
        """
        found = []
        with progress(f'Leaving out {what}', len(sets)) as advance:
            for without, limit in sets:
                trees = self.trees(without, limit)
                if trees.anchors or trees.cut:
                    found.append((without, trees))
                advance(1)
        return found


def _with_candidates(
    prepared: model.PreparedQuery,
    anchors: Iterable[model.Anchor],
    limit: Budget,
    advance: Advance,
) -> Iterator[model.Anchor]:
    """Yield the anchors that have a candidate, until the search limit is exceeded."""
    waiting = [(anchor, _FIRST_SHARE) for anchor in anchors]
    # The list becomes longer in the loop.
    for anchor, share in waiting:
        bindings = solver.solve(prepared, anchor, limit)
        limit.grant(share)
        found = next(iter(bindings), None)
        if limit.is_exceeded:
            return
        if found is None and limit.is_spent:
            waiting.append((anchor, share * _GROWTH))
            continue
        advance(1)
        if found is not None:
            yield anchor


# Checks of each condition -----------------------------------------------------


def search_of(
    every: Conditions, nested: bool, anchors: Collection[model.Anchor], progress: Progress
) -> Search:
    """Return the search of all anchors of a cloud for a query with these conditions."""
    found = []
    with progress('Checking conditions', len(anchors)) as advance:
        for anchor in anchors:
            failing = frozenset(one.key for one in every if _fails(one, anchor))
            found.append((failing, anchor))
            advance(1)
    return Search(every, nested, found)


def satisfying(group: model.Group[int], anchor: model.Anchor) -> Sequence[model.Provider]:
    """Return the providers of an anchor that satisfy a group.

    The required traits of the unsuffixed group are not checked: all of its providers satisfy them
    together.

    :param group: if it is the unsuffixed group, it has at most one amount
    """
    if group.suffix or group.amounts:
        return eligibility.eligible_providers(model.Slot(group, group.amounts), anchor)
    return eligibility.permitted_providers(group, anchor)


def _fails(condition: Condition, anchor: model.Anchor) -> bool:
    """Whether no provider in reach of the root satisfies the condition alone."""
    if condition.suffix is None:
        return not eligibility.is_anchor(anchor.root, condition.part)
    (group,) = condition.part.groups
    if condition.kind == REQUIRED:
        return not any(eligibility.satisfies_required(p.traits, group) for p in anchor.providers)
    return not satisfying(group, anchor)
