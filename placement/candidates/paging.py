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

`page_reader` executes the statements. `all_pages` is for tools that need all anchors.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
import functools
import random

import sqlalchemy as sa

from placement.candidates import model, page_order, page_statements
from placement.candidates.page_reader import FirstPage, Reader
from placement.candidates.randomize import shuffled

# Number of trees on the first page. The first page shows whether most trees can serve the query.
FIRST_PAGE = 16
LARGEST_PAGE = 2048
# If all candidates are requested, each page is at most this many times as large as the last page.
GROWTH = 8
# Search steps to spend on a page before the next page is read. During the search, the request
# occupies a database connection and keeps a snapshot of the database open.
PAGE_STEPS = 100_000
# The maximum number of aggregates of which a forecast page has the sharing providers. It limits the
# memory of forecasts.
MOST_AGGREGATES = 256


@dataclass(slots=True)
class Progress:
    """Counts of one page, which the search updates until it requests the next page."""

    # The search steps left for this page. Negative if the search spent more.
    steps_left: int = 0
    # The number of candidates found.
    candidates: int = 0
    # The number of anchors whose search has begun.
    anchors: int = 0
    # The number of anchors with at least one candidate.
    fitting_anchors: int = 0


@dataclass(frozen=True, slots=True)
class OnlyPage:
    """A first page that would have had all trees that a search needed."""

    # The number of trees.
    size: int
    # The aggregates of these trees, if sharing providers exist.
    aggregates: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Page:
    """The anchors of a page in the order in which they are searched."""

    anchors: Sequence[model.Anchor]
    progress: Progress


def next_size(
    size: int,
    trees: int,
    progress: Progress,
    steps_left: int,
    missing: int | None,
    strict: bool = False,
) -> int:
    """Return the number of trees to request for the next page.

    :param size: the number of trees that was requested for the last page
    :param trees: the number of trees on the last page
    :param progress: the counts of the last page
    :param steps_left: PAGE_STEPS minus the search steps that were spent on the last page
    :param missing: the number of candidates still needed; None if all candidates are requested
    :param strict: whether the last page was strict, so that the next page is similar
    """
    # The number of trees that can be searched in PAGE_STEPS, if each tree takes as many steps as a
    # tree of the last page took on average.
    trees = max(trees, 1)
    largest = min(LARGEST_PAGE, PAGE_STEPS * trees // max(PAGE_STEPS - steps_left, 1))
    if missing is None:
        return max(FIRST_PAGE, min(size * GROWTH, largest))
    per_tree = 1.0
    if progress.fitting_anchors:
        per_tree = max(progress.candidates / progress.fitting_anchors, 1.0)
    wanted = missing / per_tree * _margin(progress.fitting_anchors, trees) + 1
    if strict:  # some trees satisfy all conditions of strict pages, but have no candidate
        wanted = min(wanted * trees / max(progress.fitting_anchors, 1), size * GROWTH)
    return max(FIRST_PAGE, min(int(wanted), largest))


def smallest_page(target: int | None) -> int:
    """Return the number of trees of the first page, if nothing is known about the trees.

    :param target: the number of candidates to find; None for all
    """
    return FIRST_PAGE if target is None else min(target + 3, FIRST_PAGE)


def sufficient_size(target: int, progress: Progress) -> int:
    """Return the number of trees in which a search like an earlier one finds `target` candidates.

    :param progress: the counts of the earlier search, which found candidates
    """
    per_anchor = progress.candidates / progress.anchors
    margin = _margin(progress.fitting_anchors, progress.anchors)
    return max(int(target / per_anchor * margin) + 1, smallest_page(target))


def _margin(fitting: int, trees: int) -> float:
    # If all trees had a candidate, 2 % more trees than necessary usually suffice. Otherwise, 10 %
    # more trees often avoid another page. PERF: the cost of a page grows with its trees.
    return 1.02 if fitting == trees else 1.1


class Cursor:
    """Reads the pages of one request."""

    def __init__(
        self,
        conn: sa.Connection,
        query: model.Query[int],
        sharing_id: int | None,
        target: int | None,
        rng: random.Random | None = None,
        first: FirstPage | None = None,
    ) -> None:
        """Create a cursor at the first page.

        :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has
            the trait
        :param target: the number of candidates to find; None for all
        :param rng: selects the trees of each page, and shuffles the anchors of each page. Without
            `rng`, trees are read in the order of their root ids
        :param first: the first page, if it was read already; only without `rng`
        """
        self._reader = Reader(conn, query, sharing_id)
        self._target = target
        self._rng = rng
        self._first = first
        # The counts of all pages so far.
        self._pages: list[Progress] = []
        self._strict = False

    @property
    def sharing_ids(self) -> set[int]:
        """The ids of all sharing providers read so far."""
        return self._reader.sharing_providers.ids

    @property
    def sharing_trees(self) -> Mapping[int, Sequence[model.Provider]]:
        """Root id -> all providers of its tree, for the trees of these sharing providers."""
        return self._reader.sharing_providers.trees

    def pages(self) -> Iterator[Page]:
        """Yield the pages. Each page is read when the caller requests it."""
        reader, target = self._reader, self._target
        paged = reader.paged_query()
        order = self._order(paged)
        size = self._first.size if self._first else smallest_page(target)
        while order.has_more():
            anchors = order.read(size)
            page = self._page(anchors, PAGE_STEPS)
            yield page
            if not order.has_more():
                return
            steps_left, was_strict = page.progress.steps_left, self._strict
            if not was_strict and page.progress.fitting_anchors * 2 < len(anchors):
                roots_of, representatives = reader.read_for_strict_pages(paged, anchors)
                order.use(roots_of, self._sum().fitting_anchors)
                self._strict = True
                extra = self._page(representatives, steps_left)
                yield extra
                steps_left = extra.progress.steps_left
            missing = None if target is None else target - self._sum().candidates
            size = next_size(size, len(anchors), page.progress, steps_left, missing, was_strict)

    def only_page(self) -> OnlyPage | None:
        """Return a first page that would have had all anchors that were searched.

        :returns: None if a search needs more than one page, or other statements
        """
        total = self._sum()
        steps = sum(PAGE_STEPS - page.steps_left for page in self._pages)
        aggregates = self._reader.sharing_providers.required
        if self._strict or steps > PAGE_STEPS or len(aggregates) > MOST_AGGREGATES:
            return None
        if total.anchors > FIRST_PAGE and total.fitting_anchors * 2 < total.anchors:
            return None  # strict pages are faster
        if self._target is not None and total.candidates >= self._target:
            size = sufficient_size(self._target, total)
        else:  # all trees were searched
            size = int(total.anchors * 1.1) + FIRST_PAGE
        return OnlyPage(size, aggregates) if size <= LARGEST_PAGE else None

    def _sum(self) -> Progress:
        """Return the sums of the counts of all pages, without their steps."""
        return Progress(
            candidates=sum(page.candidates for page in self._pages),
            anchors=sum(page.anchors for page in self._pages),
            fitting_anchors=sum(page.fitting_anchors for page in self._pages),
        )

    def _order(self, paged: page_statements.PagedQuery) -> page_order.PageOrder:
        lenient = functools.partial(page_statements.lenient_roots, paged)
        # If all candidates are requested, the order of the pages has no effect on the selection.
        if self._rng is None or self._target is None:
            return page_order.InOrder(self._reader, paged, lenient, self._first)
        return page_order.AtRandom(self._reader, paged, lenient, self._rng)

    def _page(self, anchors: Sequence[model.Anchor], steps: int) -> Page:
        page = Page(shuffled(anchors, self._rng), Progress(steps_left=steps))
        self._pages.append(page.progress)
        return page


def all_pages(
    conn: sa.Connection,
    query: model.Query[int],
    sharing_id: int | None,
    with_aggregates: bool = False,
) -> Iterator[Sequence[model.Anchor]]:
    """Yield all anchors in the order of their root ids, in pages. No anchor is left out.

    The pages are large, and do not depend on a search. Unlike a `Cursor`, this function is for
    tools that need all anchors.

    :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has the
        trait
    :param with_aggregates: whether to read the aggregates of providers in any case; otherwise, they
        are read only if the search needs them
    """
    reader = Reader(conn, query, sharing_id)
    if sharing_id is not None:
        reader.read_all_sharing_providers(sharing_id)
    needed = with_aggregates or sharing_id is not None or bool(query.aggregates)
    statement = page_statements.plain_page(page_statements.Selection.NEXT, needed)
    after, more = 0, True
    while more:
        parameters = {'after': after, 'upto': page_statements.MAX_ID, 'size': LARGEST_PAGE}
        roots, anchors = reader.read_page(statement, parameters)
        yield anchors
        after, more = max(roots, default=0), len(roots) == LARGEST_PAGE
