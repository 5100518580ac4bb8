"""Decides whether a query without some of its conditions has candidates, and in how many trees."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from placement.admin.explain import conditions
from placement.admin.explain.checks import Checks, Failures, Mask
from placement.admin.explain.conditions import Condition
from placement.admin.explain.model import Trees
from placement.admin.explain.patterns import AnchorPattern
from placement.admin.progress import Advance
from placement.candidates import model, request, solver
from placement.candidates.selection import Budget

# Trees are counted up to this number.
MAX_TREES = 1_000
# The search steps of the first search of a pattern. If they are not enough, the pattern is searched
# again after all others, with `_GROWTH` times as many steps. So a pattern that takes long to search
# does not delay the others.
_FIRST_SHARE = 10_000
_GROWTH = 4


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
        limit: Budget,
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
        if limit.is_exceeded:
            return Trees(0, more=True, cut=True)
        prepared = self._prepared(relaxed, nested)
        found: list[int] = []
        for pattern in _with_candidates(prepared, possible, limit, advance):
            found += pattern.root_ids
            if len(found) > MAX_TREES:
                return Trees(MAX_TREES, more=True, root_ids=tuple(found[:MAX_TREES]))
        exceeded = limit.is_exceeded
        return Trees(len(found), more=exceeded, cut=exceeded, root_ids=tuple(found))

    def _prepared(self, relaxed: Collection[Condition], nested: bool) -> model.PreparedQuery:
        query = conditions.query_of(self.all_conditions, relaxed, nested)
        with_ids = conditions.with_presence(request.with_ids(query, self.ids))
        return model.PreparedQuery.of(with_ids, one_per_tree=not nested)

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
    prepared: model.PreparedQuery,
    patterns: Iterable[AnchorPattern],
    limit: Budget,
    advance: Advance,
) -> Iterator[AnchorPattern]:
    """Yield the patterns that have a candidate, until the search limit is exceeded."""
    share = _FIRST_SHARE
    while True:
        cut = []
        for pattern in patterns:
            bindings = solver.solve(prepared, pattern.anchor, limit)
            limit.grant(share)
            found = next(iter(bindings), None)
            if limit.is_exceeded:
                return
            if found is None and limit.is_spent:
                cut.append(pattern)
                continue
            advance(1)
            if found is not None:
                yield pattern
        if not cut:
            return
        patterns = cut
        share *= _GROWTH
