"""The fields of each kind of lines match the columns of the tables."""

import datetime

from oslotest import base

from placement.admin.transfer import model
from placement.db.sqlalchemy import models
from placement.tests.unit.admin.transfer import documents

# The database assigns the ids; the root of a provider follows from its parents.
_NOT_EXPORTED = {'id', 'root_provider_id'}


class KindsTest(base.BaseTestCase):
    def test_the_kinds_are_those_of_the_documented_format(self):
        fields = {kind.name: tuple(kind.fields)[:-2] for kind in model.KINDS}
        self.assertEqual(documents.FIELDS, fields)
        for kind in model.KINDS:
            self.assertEqual(kind.key, tuple(kind.fields)[: len(kind.key)])
            self.assertEqual(('created_at', 'updated_at'), tuple(kind.fields)[-2:])

    def test_every_table_and_every_column_is_exported(self):
        exported = sorted(len(kind.fields) for kind in model.KINDS)
        columns = [set(table.columns.keys()) for table in models.metadata.tables.values()]
        self.assertEqual(exported, sorted(len(names - _NOT_EXPORTED) for names in columns))


class ValuesTest(base.BaseTestCase):
    def test_ratios_have_six_significant_digits(self):
        for ratio, written in (
            (1, '1.0'),
            (16.0, '16.0'),
            (0.7, '0.7'),
            (1.23456789, '1.23457'),
            (-0.1, '-0.1'),
            (1234567.0, '1234570.0'),
            (1e-45, '0.0'),
            (-0.0, '0.0'),
        ):
            self.assertEqual(written, repr(model.Ratio().write(ratio)))

    def test_a_time(self):
        time = datetime.datetime(2026, 11, 30, 23, 59, 59, 999_999)
        self.assertEqual('2026-11-30T23:59:59Z', model.Time().write(time))
        self.assertIsNone(model.Time().write(None))
