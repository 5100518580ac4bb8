"""Decides whether a query without some of its conditions has candidates, and in how many trees."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from placement.admin.explain import conditions
from placement.admin.explain.checks import Checks, Failures, Mask
from placement.admin.explain.conditions import Condition
from placement.admin.explain.model import Trees
from placement.admin.explain.patterns import AnchorPattern
from placement.admin.progress import Advance
from placement.candidates import request, solver
from placement.candidates.backtracking import Bindings
from placement.candidates.budget import PAUSE, Budget, SearchLimit

# Trees are counted up to this number.
MAX_TREES = 1_000
# The search steps of the first turn of a pattern. Each further turn is `_TURN_GROWTH` times as
# long, so a pattern that takes long to search does not delay the others.
_FIRST_TURN = 10_000
_TURN_GROWTH = 4


@dataclass(frozen=True, slots=True)
class Judge:
    """Judges sets of relaxed conditions.

    :ivar all_conditions: the conditions of the query
    :ivar ids: the ids of all names of the query
    :ivar failures: the patterns of the cloud, grouped by the conditions that fail in them
    """

    all_conditions: Sequence[Condition]
    ids: request.Ids
    failures: dict[Failures, list[AnchorPattern]]

    def trees(
        self,
        relaxed: Collection[Condition],
        nested: bool,
        limit: SearchLimit,
        advance: Advance = lambda _count: None,
    ) -> Trees:
        """Return the number of trees that have candidates if these conditions are relaxed.

        If a proper subset of the conditions yields candidates, some trees may not be counted.

        :param nested: whether a candidate may use several providers of one tree
        :param limit: updated with the search steps
        :param advance: called with the number of patterns whose search is complete
        """
        possible = self._possible(mask_of(relaxed, self.all_conditions))
        if not possible:
            return Trees(0)
        if limit.exceeded:
            return Trees(0, more=True, cut=True)
        prepared = self._prepared(relaxed, nested)
        count = 0
        for pattern in _with_candidates(prepared, possible, limit, advance):
            count += pattern.count
            if count > MAX_TREES:
                return Trees(MAX_TREES, more=True)
        return Trees(count, more=limit.exceeded, cut=limit.exceeded)

    def _prepared(self, relaxed: Collection[Condition], nested: bool) -> solver.PreparedQuery:
        query = conditions.query_of(self.all_conditions, relaxed, nested)
        with_ids = conditions.with_presence(request.with_ids(query, self.ids))
        return solver.PreparedQuery.of(with_ids, one_per_tree=not nested)

    def _possible(self, relaxed: Mask) -> list[AnchorPattern]:
        """Return the patterns that may have candidates; see `Failures.allow`."""
        return [
            pattern
            for failures, patterns in self.failures.items()
            if failures.allow(relaxed)
            for pattern in patterns
        ]


def mask_of(some: Collection[Condition], all_conditions: Sequence[Condition]) -> Mask:
    """Return the bit mask of some conditions."""
    return sum(1 << number for number, condition in enumerate(all_conditions) if condition in some)


def by_failures(
    checks: Checks, patterns: Iterable[AnchorPattern], advance: Advance
) -> dict[Failures, list[AnchorPattern]]:
    """Return the patterns, grouped by the conditions that fail in them.

    :param advance: called with the number of checked patterns
    """
    grouped: dict[Failures, list[AnchorPattern]] = {}
    for pattern in patterns:
        grouped.setdefault(checks.failures(pattern.anchor), []).append(pattern)
        advance(1)
    return grouped


def _with_candidates(
    prepared: solver.PreparedQuery,
    patterns: Iterable[AnchorPattern],
    limit: SearchLimit,
    advance: Advance,
) -> Iterator[AnchorPattern]:
    """Yield the patterns that have a candidate, until the search limit is exceeded."""
    length = _FIRST_TURN
    searches: Iterable[_Search] = (_Search(pattern, prepared) for pattern in patterns)
    while True:
        unfinished = []
        for search in searches:
            found = search.turn(length, limit)
            if limit.exceeded:
                return
            if found is None:
                unfinished.append(search)
                continue
            advance(1)
            if found:
                yield search.pattern
        if not unfinished:
            return
        searches = unfinished
        length *= _TURN_GROWTH


class _Search:
    """The search for the first candidate of a pattern."""

    __slots__ = ('_bindings', '_budget', 'pattern')

    def __init__(self, pattern: AnchorPattern, prepared: solver.PreparedQuery) -> None:
        self.pattern = pattern
        self._budget = Budget()
        self._bindings: Bindings = solver.solve(prepared, pattern.anchor, self._budget)

    def turn(self, length: int, limit: SearchLimit) -> bool | None:
        """Continue the search.

        :param length: the maximum number of search steps
        :returns: whether the pattern has a candidate; None if the search is not finished
        """
        self._budget.grant(min(length, limit.left))
        for binding in self._bindings:
            limit.spend(self._budget.new_steps())
            return None if binding is PAUSE else True
        limit.spend(self._budget.new_steps())
        return False
