"""The sizes of pages."""

from oslotest import base

from placement.candidates import paging
from placement.candidates.paging import PAGE_STEPS, PageCounts


class NextSizeTest(base.BaseTestCase):
    """The number of trees of the next page."""

    def test_all_candidates(self):
        """Pages grow until they have the maximum size."""
        size = paging.next_size(16, 16, PageCounts(), missing=None)
        self.assertEqual(16 * paging.GROWTH, size)
        size = paging.next_size(1024, 1024, PageCounts(), missing=None)
        self.assertEqual(paging.LARGEST_PAGE, size)

    def test_missing_candidates(self):
        """With one candidate per tree, the page has a tenth more trees than missing candidates."""
        counts = PageCounts(candidates=15, fitting_anchors=15)
        self.assertEqual(111, paging.next_size(16, 16, counts, missing=100))

    def test_all_trees_had_a_candidate(self):
        """The page has 2 % more trees than missing candidates."""
        counts = PageCounts(candidates=16, fitting_anchors=16)
        self.assertEqual(103, paging.next_size(16, 16, counts, missing=100))

    def test_several_candidates_per_tree(self):
        counts = PageCounts(candidates=60, fitting_anchors=15)
        self.assertEqual(28, paging.next_size(16, 16, counts, missing=100))

    def test_no_candidates(self):
        """If the last page had no candidates, the next page assumes one candidate per tree."""
        self.assertEqual(111, paging.next_size(16, 16, PageCounts(), missing=100))

    def test_strict_pages_grow_if_few_of_their_trees_have_candidates(self):
        counts = PageCounts(candidates=4, fitting_anchors=4)
        size = paging.next_size(16, 16, counts, missing=10, strict=True)
        self.assertEqual(48, size)
        for missing in (10, 100):
            size = paging.next_size(16, 16, PageCounts(), missing, strict=True)
            self.assertEqual(16 * paging.GROWTH, size)

    def test_no_page_is_smaller_than_the_first(self):
        counts = PageCounts(candidates=16, fitting_anchors=16)
        self.assertEqual(paging.FIRST_PAGE, paging.next_size(16, 16, counts, missing=1))

    def test_long_searches(self):
        """The next page has as many trees as a search of PAGE_STEPS can process."""
        self.assertEqual(200, paging.next_size(100, 100, PageCounts(PAGE_STEPS // 2), None))
        self.assertEqual(50, paging.next_size(100, 100, PageCounts(2 * PAGE_STEPS), None))
