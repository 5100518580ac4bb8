"""Reads provider trees page by page; decides the size of each page and how it is filtered.

An *anchor* is a provider tree together with the sharing providers available to it. Each request has
its own `Cursor`, which yields pages of anchors. The search counts the candidates and search steps
of a page in `Page.progress`, and the cursor uses these counts to choose the next page:

* The first pages are *lenient*: the database evaluates only cheap conditions, because the other
  conditions cost more than they save if most trees can serve the query.
* If fewer than half of the trees of a page have a candidate, all further pages are *strict*: the
  database skips trees that cannot serve the query (see `prefilter`).
* Strict pages skip trees whose candidates all use only sharing providers, because thousands of such
  trees would yield the same candidates. Instead, one extra page contains a few trees that together
  yield all of these candidates.
* The size of the next page is computed from the number of candidates still needed and from the
  search steps spent on the last page.

This is the only module whose objects store a database connection. Other modules of the package
receive the connection as an argument.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
import random
from typing import Any

import sqlalchemy as sa

from placement.candidates import (
    facts,
    model,
    page_statements,
    prefilter,
    provider_checks,
    sharing,
    statements,
)
from placement.candidates.page_statements import PagedQuery
from placement.candidates.randomize import shuffled

# Number of trees on the first page. The first page shows whether most trees can serve the query.
FIRST_PAGE = 16
LARGEST_PAGE = 2048
# If all candidates are requested, each page is at most this many times as large as the last page.
GROWTH = 8
# Search steps to spend on a page before the next page is read. During the search, the request
# occupies a database connection and keeps a snapshot of the database open.
PAGE_STEPS = 100_000
# A slot is a part of the query that exactly one provider serves. The statement of strict pages
# first checks the slots that the fewest anchors can serve. To find these slots, at most `_SAMPLE`
# anchors are examined, and at most `_SAMPLE_CHECKS` checks are made in total. One check compares
# one provider with one slot.
_SAMPLE = 64
_SAMPLE_CHECKS = 50_000


@dataclass(slots=True)
class Progress:
    """Counts of one page, which the search updates until it requests the next page."""

    # The search steps left for this page. Negative if the search spent more.
    steps_left: int = 0
    # The number of candidates found.
    candidates: int = 0
    # The number of anchors with at least one candidate.
    fitting_anchors: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """The anchors of a page in the order in which they are searched."""

    anchors: Sequence[model.Anchor]
    progress: Progress


def next_size(
    size: int, trees: int, progress: Progress, steps_left: int, missing: int | None
) -> int:
    """Return the number of trees to request for the next page.

    :param size: the number of trees that was requested for the last page
    :param trees: the number of trees on the last page
    :param progress: the counts of the last page
    :param steps_left: PAGE_STEPS minus the search steps that were spent on the last page
    :param missing: the number of candidates still needed; None if all candidates are requested
    """
    # The number of trees that can be searched in PAGE_STEPS, if each tree takes as many steps as a
    # tree of the last page took on average.
    largest = min(LARGEST_PAGE, PAGE_STEPS * trees // max(PAGE_STEPS - steps_left, 1))
    if missing is None:
        return max(FIRST_PAGE, min(size * GROWTH, largest))
    per_tree = 1.0
    if progress.fitting_anchors:
        per_tree = max(progress.candidates / progress.fitting_anchors, 1.0)
    # Requesting 10 % more trees than necessary often avoids reading another page.
    return max(FIRST_PAGE, min(int(missing / per_tree * 1.1 + 1), largest))


class Cursor:
    """Reads the pages of one request."""

    def __init__(
        self,
        conn: sa.Connection,
        query: model.Query[int],
        sharing_id: int | None,
        target: int | None,
        rng: random.Random | None = None,
    ) -> None:
        """Create a cursor that has not read a page yet.

        :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has
            the trait
        :param target: the number of candidates to find; None for all
        :param rng: selects the first tree and shuffles the anchors of each page. Without `rng`,
            trees are read in the order of their root ids
        """
        self._reader = _Reader(conn, query, sharing_id)
        self._target = target
        self._rng = rng
        # The number of candidates found on all pages before the current one.
        self._candidates = 0

    @property
    def sharing_ids(self) -> set[int]:
        """The ids of all sharing providers read so far."""
        return self._reader.sharing_providers.ids

    def pages(self) -> Iterator[Page]:
        """Yield the pages. Each page is read when the caller requests it."""
        reader, target = self._reader, self._target
        paged = reader.paged_query()
        statement, strict = page_statements.lenient_page(paged), False
        ranges = reader.root_ranges(self._rng)
        size = FIRST_PAGE if target is None else min(target + 3, FIRST_PAGE)
        while True:
            anchors = reader.read_page(statement, ranges, size)
            page = self._page(anchors, PAGE_STEPS)
            yield page
            self._candidates += page.progress.candidates
            if not ranges:
                return
            steps_left = page.progress.steps_left
            if not strict and page.progress.fitting_anchors * 2 < len(anchors):
                statement, representatives = reader.read_for_strict_pages(paged, anchors)
                strict = True
                extra = self._page(representatives, steps_left)
                yield extra
                self._candidates += extra.progress.candidates
                steps_left = extra.progress.steps_left
            missing = None if target is None else target - self._candidates
            size = next_size(size, len(anchors), page.progress, steps_left, missing)

    def _page(self, anchors: Sequence[model.Anchor], steps: int) -> Page:
        return Page(shuffled(anchors, self._rng), Progress(steps_left=steps))


class _Reader:
    """Executes the statements of a cursor and builds anchors from the returned rows."""

    def __init__(
        self, conn: sa.Connection, query: model.Query[int], sharing_id: int | None
    ) -> None:
        self.sharing_providers = sharing.SharingProviders()
        self._conn = conn
        self._query = query
        self._sharing_id = sharing_id
        # The root ids of all trees that were read.
        self._read_roots: set[int] = set()

    def paged_query(self) -> PagedQuery:
        """Return the data that is the same for all pages.

        If suffixed groups have in_tree parameters, this method also reads the sharing providers in
        the trees that these parameters name.
        """
        roots = {
            group.in_tree
            for group in self._query.groups
            if group.suffix and group.in_tree not in (None, model.NO_SUCH_ROOT)
        }
        in_tree_aggregates: dict[int, frozenset[int]] = defaultdict(frozenset)
        if roots and self._sharing_id is not None:
            rows = self._conn.execute(statements.sharing_providers(self._sharing_id, roots=roots))
            for provider in facts.providers_of(rows):
                in_tree_aggregates[provider.root_id] |= provider.aggregates
        return PagedQuery(
            query=self._query,
            slots=model.slots_of(self._query),
            has_sharing=self._sharing_id is not None,
            in_tree_aggregates=in_tree_aggregates,
        )

    def root_ranges(self, rng: random.Random | None) -> list[tuple[int, int]]:
        """Return the ranges of root ids to read, as (after, upto) pairs in reading order."""
        # The start is selected by row position, not by id: with a random id, trees that follow a
        # gap in the ids would be selected more often.
        if rng and (count := self._conn.execute(statements.root_count()).scalar_one()):
            drawn = statements.root_at(rng.randrange(count))
            start = self._conn.execute(drawn).scalar_one()
            return [(start - 1, statements.MAX_ID), (0, start - 1)]
        return [(0, statements.MAX_ID)]

    def read_page(
        self, statement: sa.Select[Any], ranges: list[tuple[int, int]], size: int
    ) -> tuple[model.Anchor, ...]:
        """Return the next `size` anchors of the first range, or fewer if it has no more.

        :param ranges: the ranges of root ids that are still to be read; updated in place
        """
        after, upto = ranges[0]
        rows = self._conn.execute(statement, {'after': after, 'upto': upto, 'size': size})
        providers = facts.providers_of(rows)
        roots = {provider.root_id for provider in providers}
        if len(roots) < size:
            ranges.pop(0)
        else:
            ranges[0] = (max(roots), upto)
        return self._anchors(providers)

    def _anchors(self, providers: Sequence[model.Provider]) -> tuple[model.Anchor, ...]:
        """Group these providers into trees, and return an anchor for each tree not read before.

        This method also reads the sharing providers that the new anchors need.
        """
        trees: dict[int, list[model.Provider]] = defaultdict(list)
        for provider in providers:
            trees[provider.root_id].append(provider)
        if self._sharing_id is not None:
            self._read_sharing_providers(self._sharing_id, providers)
        anchors = []
        for root_id in sorted(trees.keys() - self._read_roots):
            tree = trees[root_id]
            root = tree[0] if len(tree) == 1 else _root_of(tree)
            sharing_providers = self.sharing_providers.of_tree(root_id, tree)
            anchors.append(model.Anchor(root, tuple(tree), sharing_providers))
        self._read_roots.update(trees)
        if self._query.same_subtrees:
            missing = self.sharing_providers.missing_trees(anchors)
            self.sharing_providers.add_trees(facts.trees(self._conn, missing))
            anchors = self.sharing_providers.with_trees(anchors)
        return tuple(anchors)

    def _read_sharing_providers(self, sharing_id: int, providers: Sequence[model.Provider]) -> None:
        """Read all sharing providers of the aggregates of `providers`.

        Aggregates whose sharing providers were read before are skipped.
        """
        registry = self.sharing_providers
        registry.ids.update(p.id for p in providers if sharing_id in p.traits)
        if missing := registry.missing_aggregates(providers):
            rows = self._conn.execute(statements.sharing_providers(sharing_id, missing))
            registry.add(facts.providers_of(rows), missing)

    def read_for_strict_pages(
        self, paged: PagedQuery, sample: Sequence[model.Anchor]
    ) -> tuple[sa.Select[Any], tuple[model.Anchor, ...]]:
        """Prepare strict pages: build their statement, and read the extra page.

        :param sample: the anchors to examine in order to find the slots that few anchors can serve
        :returns: the statement of strict pages, and the anchors of the extra page, which yield all
            candidates that use only sharing providers
        """
        able: sharing.AbleProviders = {}
        aggregates = None
        if self._sharing_id is not None:
            rows = self._conn.execute(statements.sharing_providers(self._sharing_id))
            providers = facts.providers_of(rows)
            self.sharing_providers.add_all(providers)
            able = sharing.able_providers(providers, paged.slots)
            aggregates = sharing.sharing_aggregates(able, self._query)
        different = {slot.kind: slot for slot in paged.slots}.values()
        slots = _scarce_first(different, _limited(sample, len(different)))
        statement = page_statements.strict_page(paged, slots, aggregates)
        if able and all(able.values()):
            return statement, self._representatives(paged, able)
        return statement, ()

    def _representatives(
        self, paged: PagedQuery, able: sharing.AbleProviders
    ) -> tuple[model.Anchor, ...]:
        """Return anchors that yield all candidates that use only sharing providers.

        If several trees have the same sharing providers, their candidates that use only sharing
        providers are the same. So one tree is returned for each distinct set of sharing providers,
        unless that tree was read before.
        """
        providers = {provider.id: provider for found in able.values() for provider in found}
        aggregates = sharing.aggregates_of(providers.values())
        if not aggregates:
            return ()
        conditions = page_statements.root_conditions(paged, prefilter.ROOT_ID)
        if len(able) == 1 or len(providers) == 1:
            rows = self._conn.execute(statements.one_tree_per_aggregate(aggregates, conditions))
            roots = {root for (root,) in rows if root is not None}
        else:
            by_root: dict[int, set[int]] = defaultdict(set)
            rows = self._conn.execute(statements.aggregates_of_trees(aggregates, conditions))
            for root, aggregate in rows:
                by_root[root].add(aggregate)
            roots = set({frozenset(found): root for root, found in by_root.items()}.values())
        return self._anchors(facts.trees(self._conn, roots - self._read_roots))


def _scarce_first(slots: Iterable[model.Slot], anchors: Sequence[model.Anchor]) -> list[model.Slot]:
    """Return the slots, sorted by the number of anchors that can serve them, lowest first."""

    def key(slot: model.Slot) -> tuple[int, int]:
        count = sum(bool(provider_checks.eligible_providers(slot, anchor)) for anchor in anchors)
        # On a tie, the slot with the largest amount is first: large amounts (for example MEMORY_MB)
        # exceed the free capacity more often than small ones (for example VCPU).
        return count, -max((amount for _, amount in slot.amounts), default=0)

    return sorted(slots, key=key)


def _limited(anchors: Sequence[model.Anchor], slots: int) -> Sequence[model.Anchor]:
    """Return as many of the first anchors as `_SAMPLE` and `_SAMPLE_CHECKS` allow.

    :param slots: the number of slots that are checked for each provider
    """
    checks = 0
    for number, anchor in enumerate(anchors[:_SAMPLE]):
        checks += slots * (len(anchor.tree) + len(anchor.sharing_providers))
        if checks > _SAMPLE_CHECKS:
            return anchors[:number]
    return anchors[:_SAMPLE]


def _root_of(tree: Iterable[model.Provider]) -> model.Provider:
    return next(provider for provider in tree if provider.id == provider.root_id)
