"""Matching rows to the texts that they were asked for by."""

import collections
from unittest import mock

from oslotest import base

from placement import exception
from placement.objects import keys

Row = collections.namedtuple('Row', 'id uuid')


def on(dialect: str) -> mock.Mock:
    connection = mock.Mock()
    connection.dialect.name = dialect
    return connection


class MatchTest(base.BaseTestCase):
    def test_rows_are_found_by_their_exact_text(self):
        rows = [Row(1, 'a'), Row(2, 'b')]
        found = keys.match(on('postgresql'), ['b', 'a', 'c'], rows, 'uuid')
        self.assertEqual({'a': rows[0], 'b': rows[1]}, found)

    def test_a_database_that_tells_case_apart_finds_nothing_else(self):
        found = keys.match(on('postgresql'), ['A', 'b'], [Row(2, 'b')], 'uuid')
        self.assertEqual(['b'], list(found))

    def test_the_one_row_left_belongs_to_the_one_key_left(self):
        """However the collation came to think so."""
        row = Row(1, 'strasse')
        self.assertEqual(
            {'stra\N{LATIN SMALL LETTER SHARP S}e': row},
            keys.match(on('mysql'), ['stra\N{LATIN SMALL LETTER SHARP S}e'], [row], 'uuid'),
        )

    def test_case_accents_and_trailing_blanks_do_not_matter_to_mysql(self):
        rows = [Row(1, 'a'), Row(2, 'e')]
        found = keys.match(on('mysql'), ['A ', '\N{LATIN SMALL LETTER E WITH ACUTE}'], rows, 'uuid')
        self.assertEqual([1, 2], [row.id for row in found.values()])

    def test_two_spellings_of_one_key_are_refused_where_they_are_one_record(self):
        keys.require_one_spelling(on('sqlite'), ['a', 'A'])
        keys.require_one_spelling(on('mysql'), ['a', 'b'])
        self.assertRaises(
            exception.AmbiguousKeys, keys.require_one_spelling, on('mysql'), ['a', 'A']
        )
