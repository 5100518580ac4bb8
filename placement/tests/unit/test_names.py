"""What is proven about names without the database."""

from unittest import mock

from oslotest import base
import sqlalchemy as sa

from placement import exception
from placement.db import names

TABLE = sa.Table(
    't', sa.MetaData(), sa.Column('id', sa.Integer, primary_key=True), sa.Column('name', sa.String)
)


class ProofTest(base.BaseTestCase):
    """The connection fails whoever uses it."""

    def ids(self, requested: list[str], found: dict[str, int]) -> dict[str, int]:
        conn = mock.Mock(spec=[])
        return names.ids(conn, TABLE.c.name, requested, found)

    def test_stored_as_written(self):
        self.assertEqual({'a': 1, 'A': 2}, self.ids(['a', 'A'], {'A': 2, 'a': 1}))

    def test_nothing_is_found(self):
        self.assertEqual({}, self.ids(['a', 'b'], {}))

    def test_one_name_and_one_row(self):
        self.assertEqual({'A': 1}, self.ids(['A'], {'a': 1}))

    def test_anything_else_is_for_the_database(self):
        for requested, found in (
            (['a', 'b'], {'a': 1}),  # b may equal a
            (['A', 'b'], {'a': 1, 'b': 2}),
            (['A', 'b'], {'a': 1, 'B': 2}),
        ):
            with self.subTest(requested=requested, found=found):
                self.assertRaises(AttributeError, self.ids, requested, found)


class DistinctTest(base.BaseTestCase):
    def test_rows_of_their_own(self):
        names.require_distinct({'a': 1, 'b': 2})

    def test_one_row(self):
        found = {'a': 1, 'b': 2, 'A': 1}
        refused = self.assertRaises(exception.AmbiguousKeys, names.require_distinct, found)
        self.assertEqual('A', refused.key)
