"""SQL functions whose form depends on the database system."""

from oslotest import base
import sqlalchemy as sa
from sqlalchemy.dialects import mysql, postgresql, sqlite

from placement.db import sql


class IsNullTest(base.BaseTestCase):
    def test_only_mysql_cannot_use_an_index(self):
        column: sa.Column[int] = sa.Column('parent', sa.Integer)
        for dialect, expected in (
            (mysql.dialect(), 'parent + 0 IS NULL'),
            (postgresql.dialect(), 'parent IS NULL'),
            (sqlite.dialect(), 'parent IS NULL'),
        ):
            compiled = sql.IsNull(column).compile(dialect=dialect)
            self.assertEqual(expected, str(compiled))
