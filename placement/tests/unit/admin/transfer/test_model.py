"""The fields of each kind of lines match the columns of the tables."""

import datetime

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement.admin.transfer import model, tables
from placement.db.sqlalchemy import models
from placement.tests.properties import REPEATABLE
from placement.tests.unit.admin.transfer import documents

# The database assigns the ids; the root of a provider follows from its parents.
_NOT_EXPORTED = {'id', 'root_provider_id'}
_RATIOS = st.floats(-3.4e38, 3.4e38)


class ColumnsTest(base.BaseTestCase):
    def test_every_table_and_every_column_is_exported(self):
        exported = {
            (tables.of(kind).table.name, tables.of(kind).column(name).name)
            for kind in model.KINDS
            for name in kind.fields
        }
        columns = {
            (table.name, column.name)
            for table in models.metadata.sorted_tables
            for column in table.columns
            if column.name not in _NOT_EXPORTED
        }
        self.assertEqual(columns, exported)

    def test_texts_are_as_long_as_their_columns(self):
        for kind in model.KINDS:
            for name, type_ in kind.fields.items():
                if isinstance(type_, model.Text) and type_.refers_to is None:
                    column = tables.of(kind).column(name)
                    with self.subTest(str(column)):
                        self.assertEqual(column.type.length, type_.longest)

    def test_references_are_as_long_as_the_keys(self):
        for kind in model.KINDS:
            for name, referred in kind.references.items():
                with self.subTest(f'{kind.name}.{name}'):
                    key = tables.BY_KIND[referred].key
                    self.assertEqual(key.type.length, kind.fields[name].longest)
                    self.assertEqual(
                        tables.of(kind).column(name).nullable, kind.fields[name].nullable
                    )

    def test_lines_refer_to_earlier_kinds(self):
        seen = set()
        for kind in model.KINDS:
            seen.add(kind.name)
            self.assertLessEqual(set(kind.references.values()), seen)

    def test_the_kinds_are_those_of_the_documented_format(self):
        self.assertEqual(documents.KINDS, tuple(kind.name for kind in model.KINDS))
        for kind in model.KINDS:
            self.assertEqual(kind.key, tuple(kind.fields)[: len(kind.key)])


class ValuesTest(base.BaseTestCase):
    @REPEATABLE
    @given(_RATIOS)
    def test_a_ratio_is_the_same_after_an_import_and_an_export(self, ratio):
        written = model.Ratio().write(ratio)
        self.assertEqual(written, model.Ratio().write(model.Ratio().read(written)))
        self.assertLessEqual(abs(written - ratio), abs(ratio) * 5.1e-6 + 1.2e-38)

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

    @REPEATABLE
    @given(st.datetimes())
    def test_times_are_truncated_to_seconds(self, time):
        written = model.Time().write(time)
        self.assertEqual(time.replace(microsecond=0), model.Time().read(written))

    def test_a_time(self):
        time = datetime.datetime(2026, 11, 30, 23, 59, 59, 999_999)
        self.assertEqual('2026-11-30T23:59:59Z', model.Time().write(time))
        self.assertIsNone(model.Time().write(None))
