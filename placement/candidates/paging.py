"""Reads provider trees page by page; decides the size of each page and how it is filtered.

An *anchor* is a provider tree together with the sharing providers available to it. Each request has
its own `Cursor`. When the search requests the next page of anchors, it passes the counts of
candidates and search steps of all pages so far, and the cursor uses them to choose the page:

* The first pages are *lenient*: the database evaluates only cheap conditions, because the other
  conditions cost more than they save if most trees can serve the query.
* If fewer than half of the trees of a page have a candidate, all further pages are *strict*: the
  database skips trees that cannot serve the query (see `prefilter`).
* Strict pages skip trees whose candidates all use only sharing providers, because thousands of such
  trees would yield the same candidates. Instead, one extra page contains a few trees that together
  yield all of these candidates.
* The size of the next page is computed from the number of candidates still needed and from the
  search steps spent on the last page.

The roots of a page are selected in the order of their ids, or at random: `AtRandom` implements
[placement] randomize_allocation_candidates. `page_reader` executes the statements. `all_pages` is
for tools that need all anchors.

Trees may have been read ahead, together with the ids of the query. This does not change the pages:
the position of the extra page, and so the order of the candidates, depends on their sizes.
"""

from collections.abc import Generator, Iterator, Sequence
import dataclasses
from dataclasses import dataclass
import functools
import random

import sqlalchemy as sa

from placement.candidates import model, page_statements
from placement.candidates.page_reader import FirstPage, Reader
from placement.candidates.page_statements import MAX_ID, PagedQuery, RootRange, RootsOf
from placement.candidates.selection import shuffled

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
# The maximum number of ids in a statement. PERF: MariaDB converts a list of 1,000 or more ids to a
# join, and reads 1,000 trees four times as slowly (2026-11).
_MAX_IDS = 900
# If a page needs more than this share of the ids that were not drawn yet, all roots are listed.
_LIST_FROM = 1 / 4


@dataclass(slots=True)
class PageCounts:
    """What the search of one page used and found so far."""

    # The number of search steps.
    steps: int = 0
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
    # The search steps to spend on this page before the next page is read.
    steps: int = PAGE_STEPS


def next_size(
    size: int, trees: int, counts: PageCounts, missing: int | None, strict: bool = False
) -> int:
    """Return the number of trees to request for the next page.

    :param size: the number of trees that was requested for the last page
    :param trees: the number of trees on the last page
    :param counts: the counts of the last page
    :param missing: the number of candidates still needed; None if all candidates are requested
    :param strict: whether the last page was strict, so that the next page is similar
    """
    # The number of trees that can be searched in PAGE_STEPS, if each tree takes as many steps as a
    # tree of the last page took on average.
    trees = max(trees, 1)
    largest = min(LARGEST_PAGE, PAGE_STEPS * trees // max(counts.steps, 1))
    if missing is None:
        return max(FIRST_PAGE, min(size * GROWTH, largest))
    per_tree = 1.0
    if counts.fitting_anchors:
        per_tree = max(counts.candidates / counts.fitting_anchors, 1.0)
    wanted = missing / per_tree * _margin(counts.fitting_anchors, trees) + 1
    if strict:  # some trees satisfy all conditions of strict pages, but have no candidate
        wanted = min(wanted * trees / max(counts.fitting_anchors, 1), size * GROWTH)
    return max(FIRST_PAGE, min(int(wanted), largest))


def smallest_page(target: int | None) -> int:
    """Return the number of trees of the first page, if nothing is known about the trees.

    :param target: the number of candidates to find; None for all
    """
    return FIRST_PAGE if target is None else min(target + 3, FIRST_PAGE)


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

        :param conn: a connection. If it is closed, only `first` can be read
        :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has
            the trait
        :param target: the number of candidates to find; None for all
        :param rng: selects the trees of each page, and shuffles the anchors of each page. Without
            `rng`, trees are read in the order of their root ids
        :param first: trees that were read already; only without `rng`. If the connection is open,
            they are the first page
        """
        # Whether the cursor ended because it needs a statement, and the connection is closed.
        self.needs_connection = False
        self._reader = Reader(conn, query, sharing_id)
        # The sharing providers read so far.
        self.sharing_providers = self._reader.sharing_providers
        self._target = target
        self._rng = rng
        self._first = first
        self._strict = False
        self._pages = self._read_pages()

    def next_page(self, counts: Sequence[PageCounts]) -> Page | None:
        """Return the next page, or None after the last one.

        :param counts: the counts of all pages so far
        """
        try:
            return self._pages.send(counts) if counts else next(self._pages)
        except StopIteration as end:
            self.needs_connection = end.value
            return None

    def _read_pages(self) -> Generator[Page, Sequence[PageCounts], bool]:
        """Yield the pages; receive the counts of all pages so far.

        :returns: whether the next page needs a statement, and the connection is closed
        """
        reader, target = self._reader, self._target
        paged = reader.paged_query()
        lenient = functools.partial(page_statements.lenient_roots, paged)
        order: InOrder | AtRandom
        # If all candidates are requested, the order of the pages has no effect on the selection.
        if self._rng is None or target is None:
            ahead = reader.anchors_of(self._first) if self._first else ()
            if ahead is None:
                return True
            is_last = self._first is not None and len(ahead) < self._first.size
            order = InOrder(reader, paged, lenient, ahead, is_last)
        else:
            order = AtRandom(reader, paged, lenient, self._rng)
        size = smallest_page(target)
        while order.has_more():
            anchors = order.read(size)
            if anchors is None:
                return True
            counts = yield Page(shuffled(anchors, self._rng))
            if not order.has_more():
                break
            last, was_strict = counts[-1], self._strict
            if not was_strict and last.fitting_anchors * 2 < len(anchors):
                if reader.is_closed:
                    return True
                roots_of, representatives = reader.read_for_strict_pages(paged, anchors)
                order.use(roots_of, sum(page.fitting_anchors for page in counts))
                self._strict = True
                left = PAGE_STEPS - last.steps
                counts = yield Page(shuffled(representatives, self._rng), left)
                last = dataclasses.replace(last, steps=last.steps + counts[-1].steps)
            found = sum(page.candidates for page in counts)
            missing = None if target is None else target - found
            size = next_size(size, len(anchors), last, missing, was_strict)
        return False

    def only_page(self, counts: Sequence[PageCounts]) -> OnlyPage | None:
        """Return a first page that would have had all anchors that were searched.

        :param counts: the counts of all pages
        :returns: None if a search needs more than one page, or other statements
        """
        candidates = sum(page.candidates for page in counts)
        anchors = sum(page.anchors for page in counts)
        fitting = sum(page.fitting_anchors for page in counts)
        steps = sum(page.steps for page in counts)
        aggregates = self.sharing_providers.required
        if self._strict or steps > PAGE_STEPS or len(aggregates) > MOST_AGGREGATES:
            return None
        if anchors > FIRST_PAGE and fitting * 2 < anchors:
            return None  # strict pages are faster
        if self._target is not None and candidates >= self._target:
            # The number of trees in which a search like this one finds enough candidates.
            needed = self._target / (candidates / anchors) * _margin(fitting, anchors)
            size = max(int(needed) + 1, smallest_page(self._target))
        else:  # all trees were searched
            size = int(anchors * 1.1) + FIRST_PAGE
        return OnlyPage(size, aggregates) if size <= LARGEST_PAGE else None


class InOrder:
    """Reads the roots in the order of their ids. Each page except the last has `size` trees."""

    def __init__(
        self,
        reader: Reader,
        paged: PagedQuery,
        roots_of: RootsOf,
        ahead: Sequence[model.Anchor] = (),
        is_last: bool = False,
    ) -> None:
        """Create an order that begins with the smallest root id.

        :param ahead: the first anchors, if they were read already
        :param is_last: whether no other anchors exist
        """
        self._ahead = ahead
        self._has_more = not is_last
        self._reader = reader
        self._paged = paged
        self._after = ahead[-1].root.id if ahead else 0
        self.use(roots_of)

    def has_more(self) -> bool:
        """Whether roots are left."""
        return self._has_more or bool(self._ahead)

    def use(self, roots_of: RootsOf, _fitting: int = 0) -> None:
        """Read further pages with these conditions."""
        root_range = RootRange.NEXT
        self._statement = page_statements.page(self._paged, roots_of(root_range), root_range)

    def read(self, size: int) -> Sequence[model.Anchor] | None:
        """Return the anchors of the next page.

        :returns: None if the page needs a statement, and the connection is closed
        """
        if self._ahead:
            ahead, self._ahead = self._ahead[:size], self._ahead[size:]
            return ahead
        if self._reader.is_closed:
            return None
        parameters = page_statements.first_parameters(size) | {'after': self._after}
        roots, anchors = self._reader.read_page(self._statement, parameters)
        self._has_more = len(roots) == size
        self._after = max(roots, default=0)
        return anchors


class AtRandom:
    """Reads the roots in random order. A page has about `size` trees.

    The roots of all pages together are in random order: each order has the same probability. So
    each tree that has a candidate has the same probability to be selected, wherever its id is and
    whichever trees have ids next to it.

    * Ids are drawn at random, without repetition, between the smallest and the largest provider id.
      The statement of a page skips ids that do not exist, that are not roots, or whose trees do not
      satisfy the conditions of the page. If a page needs more trees, more ids are drawn.
    * If too many ids would have to be drawn, one statement returns the ids of all roots that
      satisfy the conditions of the page. These ids are shuffled, and further pages read them in
      this order.
    """

    def __init__(
        self, reader: Reader, paged: PagedQuery, roots_of: RootsOf, rng: random.Random
    ) -> None:
        self._reader = reader
        self._paged = paged
        self._rng = rng
        self._smallest, self._largest = reader.id_range()
        # The ids that were drawn, and those of all roots that were read.
        self._seen: set[int] = set()
        # The number of roots among them that satisfy the conditions of the pages.
        self._found = 0
        # The roots that are left, if all roots were listed; otherwise None.
        self._listed: list[int] | None = None
        self.use(roots_of)

    def use(self, roots_of: RootsOf, fitting: int = 0) -> None:
        """Read further pages with these conditions."""
        self._roots_of = roots_of
        self._found = fitting
        if self._listed is None:
            self._set_statement(roots_of)
        else:
            self._listed = self._list()

    def read(self, size: int) -> tuple[model.Anchor, ...]:
        """Return the anchors of the next page, which may be empty."""
        ids = self._next_ids(size)
        self._seen.update(ids)
        roots, anchors = (
            self._reader.read_page(self._statement, {'root_ids': ids}) if ids else ([], ())
        )
        self._found += len(roots)
        return anchors

    def has_more(self) -> bool:
        """Whether roots are left."""
        return self._smallest <= self._largest and self._listed != []

    def _set_statement(self, roots_of: RootsOf) -> None:
        root_range = RootRange.LISTED
        self._statement = page_statements.page(self._paged, roots_of(root_range), root_range)

    def _next_ids(self, size: int) -> list[int]:
        if self._listed is None:
            needed = size * len(self._seen) / max(self._found, 0.5) if self._seen else size
            left = self._largest - self._smallest + 1 - len(self._seen)
            if needed <= left * _LIST_FROM:
                return self._draw(min(int(needed), _MAX_IDS))
            self._listed = self._list()
        size = min(size, _MAX_IDS)
        ids = self._listed[-size:]
        del self._listed[-size:]
        return ids

    def _draw(self, count: int) -> list[int]:
        """Return this number of ids that were not drawn before."""
        ids: set[int] = set()
        while len(ids) < count:
            id_ = self._rng.randint(self._smallest, self._largest)
            if id_ not in self._seen:
                ids.add(id_)
        return list(ids)

    def _list(self) -> list[int]:
        """Return all roots that satisfy the conditions and were not seen, in random order."""
        parameters = page_statements.first_parameters(MAX_ID)
        roots = self._reader.root_ids(self._roots_of(RootRange.NEXT), parameters)
        self._set_statement(page_statements.plain_roots)  # the listed roots satisfy the conditions
        return list(shuffled([root for root in roots if root not in self._seen], self._rng))


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
    statement = page_statements.plain_page(page_statements.RootRange.NEXT, needed)
    after, more = 0, True
    while more:
        parameters = {'after': after, 'upto': MAX_ID, 'size': LARGEST_PAGE}
        roots, anchors = reader.read_page(statement, parameters)
        yield anchors
        after, more = max(roots, default=0), len(roots) == LARGEST_PAGE
