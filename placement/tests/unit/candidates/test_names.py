"""Which names a search reads in advance."""

import json
from typing import Any
from unittest import mock

from oslotest import base

from placement.candidates import names

CLASS, TRAIT = names.CLASS, names.TRAIT


class NamesTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        patch = mock.patch.object(names, '_expected', {CLASS: frozenset(), TRAIT: frozenset()})
        patch.start()
        self.addCleanup(patch.stop)
        self.statements = 0

    def execute(self, _statement: Any, parameters: dict[str, list[int]]) -> list[Any]:
        self.statements += 1
        return [
            (kind, json.dumps([(f'{kind} {id_}', id_) for id_ in ids]))
            for kind, ids in parameters.items()
        ]

    def search(self, class_ids: set[int], trait_ids: set[int]) -> int:
        """Read the names of a response, and return the number of statements at the end."""
        self.statements = 0
        found = names.Names()
        for kind, ids in names.expected().items():
            found.add(kind, {id_: f'{kind} {id_}' for id_ in ids})
        classes, traits = found.read(
            mock.Mock(execute=self.execute, closed=False), class_ids, trait_ids
        )
        self.assertEqual(
            [f'{CLASS} {id_}' for id_ in class_ids], [classes[id_] for id_ in class_ids]
        )
        self.assertEqual(
            [f'{TRAIT} {id_}' for id_ in trait_ids], [traits[id_] for id_ in trait_ids]
        )
        return self.statements

    def test_the_first_search_reads_the_names_at_its_end(self):
        self.assertEqual(1, self.search({1, 2}, {3}))

    def test_the_names_of_an_earlier_response_are_expected(self):
        self.search({1, 2}, {3})
        for class_ids, trait_ids in (({1, 2}, {3}), ({2}, set()), (set(), set())):
            self.assertEqual(0, self.search(class_ids, trait_ids))

    def test_one_unexpected_name_needs_a_statement(self):
        self.search({1}, {3})
        self.assertEqual(1, self.search({1}, {3, 4}))
        self.assertEqual(0, self.search({1}, {3, 4}))

    def test_an_unexpected_name_cannot_be_read_with_a_closed_connection(self):
        conn = mock.Mock(execute=self.execute, closed=True)
        self.assertIsNone(names.Names().read(conn, {1}, {3}))
        self.assertEqual(0, self.statements)

    def test_different_responses_are_expected_together(self):
        self.search({1}, {3})
        self.search({2}, {4})
        self.assertEqual(0, self.search({1}, {3}))
        self.assertEqual({CLASS: {1, 2}, TRAIT: {3, 4}}, names.expected())

    def test_the_number_of_ids_from_older_responses_is_limited(self):
        self.search({1}, set(range(names._MOST_FROM_OLDER_RESPONSES)))
        self.search({2}, {9000})
        self.assertEqual({CLASS: {2}, TRAIT: {9000}}, names.expected())

    def test_the_number_of_ids_is_limited(self):
        large = set(range(names._MOST + 1))
        for _ in range(2):
            self.assertEqual(1, self.search({1}, large))
        self.assertEqual({CLASS: set(), TRAIT: set()}, names.expected())
