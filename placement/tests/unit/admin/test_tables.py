"""Tables for a terminal."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement.admin import tables
from placement.tests.properties import REPEATABLE

# Without characters that a terminal displays with the width of two.
_CELLS = st.text(st.characters(max_codepoint=0x2FF), max_size=200)


class TableTest(base.BaseTestCase):
    def test_numbers_are_aligned_to_the_right(self):
        self.assertEqual(
            '+--------+------+\n'
            '| Name   | Free |\n'
            '+--------+------+\n'
            '| host-1 |    7 |\n'
            '| host-2 |   12 |\n'
            '+--------+------+',
            tables.table(['Name', 'Free'], [['host-1', 7], ['host-2', 12]], numbers=['Free']),
        )

    @REPEATABLE
    @given(st.lists(st.lists(_CELLS, min_size=4, max_size=4), max_size=3))
    def test_lines_fit_a_terminal_and_are_printable(self, rows):
        for line in tables.table(['A', 'B', 'C', 'D'], rows).split('\n'):
            self.assertLessEqual(len(line), tables.WIDTH)
            self.assertTrue(line.isprintable(), line)

    def test_control_sequences_are_visible(self):
        self.assertEqual(r'a\x1b[31m', tables.printable('a\x1b[31m'))
        self.assertEqual('ä host', tables.printable('ä host'))
