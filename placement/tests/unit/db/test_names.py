"""The results that follow from the unique key, without a database statement."""

from unittest import mock

from oslotest import base
import sqlalchemy as sa

from placement import exception
from placement.db import names

TABLE = sa.Table(
    't', sa.MetaData(), sa.Column('id', sa.Integer, primary_key=True), sa.Column('name', sa.String)
)


class ProofTest(base.BaseTestCase):
    """The connection is a mock without attributes, so executing a statement fails."""

    def ids(self, requested: list[str], stored: dict[str, int]) -> dict[str, int]:
        conn = mock.Mock(spec=[])
        return names.ids(conn, TABLE.c.name, requested, stored)

    def test_stored_as_written(self):
        self.assertEqual({'a': 1, 'A': 2}, self.ids(['a', 'A'], {'A': 2, 'a': 1}))

    def test_no_row(self):
        self.assertEqual({}, self.ids(['a', 'b'], {}))

    def test_one_name_and_one_row(self):
        self.assertEqual({'A': 1}, self.ids(['A'], {'a': 1}))

    def test_other_names_need_the_database(self):
        for requested, stored in (
            (['a', 'b'], {'a': 1}),  # b may equal a
            (['A', 'b'], {'a': 1, 'b': 2}),
            (['A', 'b'], {'a': 1, 'B': 2}),
        ):
            with self.subTest(requested=requested, stored=stored):
                self.assertRaises(AttributeError, self.ids, requested, stored)


class DistinctTest(base.BaseTestCase):
    def test_one_row_for_each_name(self):
        names.require_distinct({'a': 1, 'b': 2})

    def test_one_row_for_two_names(self):
        ids = {'a': 1, 'b': 2, 'A': 1}
        error = self.assertRaises(exception.AmbiguousKeys, names.require_distinct, ids)
        self.assertEqual('A', error.key)
