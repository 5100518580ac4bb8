"""The fields of each kind of lines match the columns of the tables."""

import datetime

from oslotest import base

from placement.admin.transfer.kinds import KINDS
from placement.db.sqlalchemy import models
from placement.tests.unit.admin.transfer import documents


class KindsTest(base.BaseTestCase):
    def test_the_kinds_are_those_of_the_documented_format(self):
        fields = {name: tuple(kind.fields)[:-2] for name, kind in KINDS.items()}
        self.assertEqual(documents.FIELDS, fields)
        tables = {kind.table for kind in KINDS.values()}
        self.assertEqual(set(models.metadata.tables.values()), tables)
        for kind in KINDS.values():
            self.assertEqual(kind.key, tuple(kind.fields)[: len(kind.key)])
            self.assertEqual(('created_at', 'updated_at'), tuple(kind.fields)[-2:])

    def test_ratios_have_six_significant_digits(self):
        ratio = KINDS['inventory'].fields['allocation_ratio']
        for value, written in (
            (1, '1.0'),
            (1.23456789, '1.23457'),
            (-0.1, '-0.1'),
            (1234567.0, '1234570.0'),
            (1e-45, '0.0'),
            (-0.0, '0.0'),
        ):
            self.assertEqual(written, repr(ratio.write(value)))

    def test_fractions_of_a_second_are_truncated(self):
        time = datetime.datetime(2026, 11, 30, 23, 59, 59, 999_999)
        field = KINDS['trait'].fields['created_at']
        self.assertEqual('2026-11-30T23:59:59Z', field.write(time))
        self.assertIsNone(field.write(None))
