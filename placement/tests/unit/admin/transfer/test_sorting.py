"""Sorting in bounded memory."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement.admin.transfer import sorting
from placement.tests.properties import REPEATABLE

_ROWS = st.lists(st.tuples(st.integers(0, 9), st.text()))


class SortingTest(base.BaseTestCase):
    @REPEATABLE
    @given(_ROWS, st.integers(1, 5))
    def test_all_rows_are_sorted(self, rows, size):
        expected = sorted(rows, key=lambda row: row[1])
        self.assertEqual(expected, list(sorting.everything(rows, lambda row: row[1], size)))

    def test_parts_are_stored_while_rows_are_read(self):
        rows = iter(range(100, 0, -1))
        self.assertEqual(1, next(sorting.everything(rows, lambda row: row, 7)))
        self.assertEqual([], list(rows))

    @REPEATABLE
    @given(_ROWS)
    def test_groups_keep_their_order(self, rows):
        rows.sort(key=lambda row: -row[0])
        expected = sorted(rows, key=lambda row: (-row[0], row[1]))
        grouped = sorting.within_groups(rows, lambda row: row[0], lambda row: row[1])
        self.assertEqual(expected, list(grouped))
