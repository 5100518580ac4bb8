"""Reads provider trees page by page; decides the size of each page and how it is filtered.

An *anchor* is a provider tree together with the sharing providers available to it. Each request has
its own `Cursor`. When the search requests the next page of anchors, it passes the counts of
candidates and search steps of all pages so far, and the cursor uses them to choose the page:

* The first pages are *lenient*: the database evaluates only cheap conditions, because the other
  conditions cost more than they save if most trees can serve the query.
* If fewer than half of the trees of a page have a candidate, all further pages are *strict*: the
  database skips trees that cannot serve the query (see `prefilter`). If sharing providers can serve
  the whole query, the pages stay lenient, because every tree that they are available to has a
  candidate.
* The size of the next page is computed from the number of candidates still needed and from the
  search steps spent on the last page.

The roots of a page are selected in the order of their ids, or at random: `AtRandom` implements
[placement] randomize_allocation_candidates. `page_reader` executes the statements. `all_pages` is
for tools that need all anchors.
"""

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
import functools
import random

import sqlalchemy as sa

from placement.candidates import model, page_statements
from placement.candidates.page_reader import Reader
from placement.candidates.page_statements import MAX_ID, PagedQuery, RootRange, RootsOf
from placement.candidates.selection import shuffled

# Number of trees on the first page. The first page shows whether most trees can serve the query.
FIRST_PAGE = 16
LARGEST_PAGE = 2048
# If all candidates are requested, each page is at most this many times as large as the last page.
GROWTH = 8
# A page has at most as many trees as can probably be searched with this number of steps.
PAGE_STEPS = 100_000
# The maximum number of ids in a statement. PERF: MariaDB converts a list of 1,000 or more ids to a
# join, and reads 1,000 trees four times as slowly (2026-11).
_MAX_IDS = 900


@dataclass(slots=True)
class PageCounts:
    """What the search of one page used and found so far."""

    # The number of search steps.
    steps: int = 0
    # The number of candidates found.
    candidates: int = 0
    # The number of anchors with at least one candidate.
    fitting_anchors: int = 0


def next_size(
    size: int, trees: int, counts: PageCounts, missing: int | None, is_similar: bool = True
) -> int:
    """Return the number of trees to request for the next page.

    :param size: the number of trees that was requested for the last page
    :param trees: the number of trees on the last page
    :param counts: the counts of the last page
    :param missing: the number of candidates still needed; None if all candidates are requested
    :param is_similar: whether the next page has the same conditions as the last page
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
    if is_similar and counts.fitting_anchors * 2 < trees:
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
    ) -> None:
        """Create a cursor at the first page.

        :param sharing_id: the id of the trait MISC_SHARES_VIA_AGGREGATE; None if no provider has
            the trait
        :param target: the number of candidates to find; None for all
        :param rng: selects the trees of each page, and shuffles the anchors of each page. Without
            `rng`, trees are read in the order of their root ids
        """
        self._reader = Reader(conn, query, sharing_id)
        # The sharing providers read so far.
        self.sharing_providers = self._reader.sharing_providers
        self._target = target
        self._rng = rng
        self._pages = self._read_pages()

    def next_page(self, counts: Sequence[PageCounts]) -> Sequence[model.Anchor] | None:
        """Return the anchors of the next page in the order of the search; None after the last one.

        :param counts: the counts of all pages so far
        """
        try:
            return self._pages.send(counts) if counts else next(self._pages)
        except StopIteration:
            return None

    def _read_pages(self) -> Generator[Sequence[model.Anchor], Sequence[PageCounts], None]:
        """Yield the pages; receive the counts of all pages so far."""
        reader, target = self._reader, self._target
        paged = reader.paged_query()
        roots_of: RootsOf = functools.partial(page_statements.lenient_roots, paged)
        order: InOrder | AtRandom
        # If all candidates are requested, the order of the pages has no effect on the selection.
        if self._rng is None or target is None:
            order = InOrder(reader, paged, roots_of)
        else:
            order = AtRandom(reader, paged, roots_of, self._rng)
        size, is_decided = smallest_page(target), False
        while order.has_more():
            anchors = order.read(size)
            counts = yield shuffled(anchors, self._rng)
            last, is_similar = counts[-1], True
            if not is_decided and last.fitting_anchors * 2 < len(anchors) and order.has_more():
                is_decided = True
                strict_roots = reader.strict_roots(paged, anchors)
                if strict_roots is not None:
                    is_similar = False
                    order.use(strict_roots)
            found = sum(page.candidates for page in counts)
            missing = None if target is None else target - found
            size = next_size(size, len(anchors), last, missing, is_similar)


class InOrder:
    """Reads the roots in the order of their ids. Each page except the last has `size` trees."""

    def __init__(self, reader: Reader, paged: PagedQuery, roots_of: RootsOf) -> None:
        """Create an order that begins with the smallest root id."""
        self._has_more = True
        self._reader = reader
        self._paged = paged
        self._after = 0
        self.use(roots_of)

    def has_more(self) -> bool:
        """Whether roots are left."""
        return self._has_more

    def use(self, roots_of: RootsOf) -> None:
        """Read further pages with these conditions."""
        root_range = RootRange.NEXT
        self._statement = page_statements.page(self._paged, roots_of(root_range), root_range)

    def read(self, size: int) -> Sequence[model.Anchor]:
        """Return the anchors of the next page."""
        parameters = {'after': self._after, 'size': size}
        roots, anchors = self._reader.read_page(self._statement, parameters)
        self._has_more = len(roots) == size
        self._after = max(roots, default=0)
        return anchors


class AtRandom:
    """Reads the roots in random order: each order has the same probability.

    One statement returns the ids of all roots that satisfy the conditions. These ids are shuffled,
    and the pages read them in this order.
    """

    def __init__(
        self, reader: Reader, paged: PagedQuery, roots_of: RootsOf, rng: random.Random
    ) -> None:
        self._reader = reader
        self._rng = rng
        root_range = RootRange.LISTED
        # The listed roots satisfy the conditions.
        plain = page_statements.plain_roots(root_range)
        self._statement = page_statements.page(paged, plain, root_range)
        self._seen: set[int] = set()
        self.use(roots_of)

    def use(self, roots_of: RootsOf) -> None:
        """Read further pages with these conditions."""
        roots = self._reader.root_ids(roots_of(RootRange.NEXT), {'after': 0, 'size': MAX_ID})
        left = [root for root in roots if root not in self._seen]
        self._left = list(shuffled(left, self._rng))

    def read(self, size: int) -> Sequence[model.Anchor]:
        """Return the anchors of the next page."""
        size = min(size, _MAX_IDS)
        ids = self._left[-size:]
        del self._left[-size:]
        self._seen.update(ids)
        return self._reader.read_page(self._statement, {'root_ids': ids})[1] if ids else ()

    def has_more(self) -> bool:
        """Whether roots are left."""
        return bool(self._left)


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
        parameters = {'after': after, 'size': LARGEST_PAGE}
        roots, anchors = reader.read_page(statement, parameters)
        yield anchors
        after, more = max(roots, default=0), len(roots) == LARGEST_PAGE
