"""Selects the roots of each page: in the order of their ids, or at random.

`AtRandom` implements [placement] randomize_allocation_candidates. The roots of all pages together
are in random order: each order has the same probability. So each tree that has a candidate has the
same probability to be selected, wherever its id is and whichever trees have ids next to it.

* Ids are drawn at random, without repetition, between the smallest and the largest provider id. The
  statement of a page skips ids that do not exist, that are not roots, or whose trees do not satisfy
  the conditions of the page. If a page needs more trees, more ids are drawn.
* If too many ids would have to be drawn, one statement returns the ids of all roots that satisfy
  the conditions of the page. These ids are shuffled, and further pages read them in this order.
"""

import random
from typing import Protocol

from placement.candidates import model, page_statements
from placement.candidates.page_reader import FirstPage, Reader
from placement.candidates.page_statements import (
    MAX_ID,
    PagedQuery,
    RootsOf,
    Selection,
    plain_roots,
)
from placement.candidates.randomize import shuffled

# The maximum number of ids in a statement. PERF: MariaDB converts a list of 1,000 or more ids to a
# join, and reads 1,000 trees four times as slowly (2026-11).
_MAX_IDS = 900
# If a page needs more than this share of the ids that were not drawn yet, all roots are listed.
_LIST_FROM = 1 / 4


class PageOrder(Protocol):
    """The order in which the trees are read. Each tree is read at most once."""

    def has_more(self) -> bool:
        """Whether roots are left."""

    def use(self, roots_of: RootsOf, fitting: int = 0, /) -> None:
        """Read further pages with these conditions.

        :param fitting: the number of anchors so far that have a candidate
        """

    def read(self, size: int) -> tuple[model.Anchor, ...]:
        """Return the anchors of the next page, which has about `size` trees."""


def first_parameters(size: int) -> dict[str, int]:
    """Return the parameters of a statement that reads the first `size` trees."""
    return {'after': 0, 'upto': MAX_ID, 'size': size}


class InOrder:
    """Reads the roots in the order of their ids. Each page except the last has `size` trees."""

    def __init__(
        self,
        reader: Reader,
        paged: PagedQuery,
        roots_of: RootsOf,
        first: FirstPage | None = None,
    ) -> None:
        """Create an order that begins with the smallest root id.

        :param first: the first page, if it was read already
        """
        self._first = first
        self._has_more = True
        self._reader = reader
        self._paged = paged
        self._after = 0
        self.use(roots_of)

    def has_more(self) -> bool:
        """Whether roots are left."""
        return self._has_more

    def use(self, roots_of: RootsOf, _fitting: int = 0) -> None:
        """Read further pages with these conditions."""
        selection = Selection.NEXT
        self._statement = page_statements.page(self._paged, roots_of(selection), selection)

    def read(self, size: int) -> tuple[model.Anchor, ...]:
        """Return the anchors of the next page."""
        if self._first is None:
            parameters = first_parameters(size) | {'after': self._after}
            roots, anchors = self._reader.read_page(self._statement, parameters)
        else:
            roots, anchors = self._reader.page_of(self._first)
            self._first = None
        if len(roots) < size:
            self._has_more = False
        else:
            self._after = max(roots)
        return anchors


class AtRandom:
    """Reads the roots in random order. A page has about `size` trees."""

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
            self._reader.read_page(self._statement, {'roots': ids}) if ids else ([], ())
        )
        self._found += len(roots)
        return anchors

    def has_more(self) -> bool:
        """Whether roots are left."""
        return self._smallest <= self._largest and self._listed != []

    def _set_statement(self, roots_of: RootsOf) -> None:
        selection = Selection.LISTED
        self._statement = page_statements.page(self._paged, roots_of(selection), selection)

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
        parameters = first_parameters(MAX_ID)
        roots = self._reader.root_ids(self._roots_of(Selection.NEXT), parameters)
        self._set_statement(plain_roots)  # the listed roots satisfy the conditions
        return list(shuffled([root for root in roots if root not in self._seen], self._rng))
