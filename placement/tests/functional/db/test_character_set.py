"""The commands of doc/source/admin/databases.rst that convert a database to utf8mb4."""

from pathlib import Path
import uuid

import fixtures
from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement.db.sqlalchemy import migration, models
from placement.tests import schema, servers, where
from placement.tests.functional.db import base, runbook
from placement.tests.functional.web import commands

_NAME = 'host \N{GRINNING FACE}'


@where.only_on('mariadb', 'mysql', reason='Only MySQL and MariaDB have character sets of tables.')
@where.also_on_mysql('MySQL has collations of its own.')
class ConversionTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        commands.program('mariadb')
        self.execute(f'ALTER DATABASE {self.engine.url.database} CHARACTER SET utf8')
        migration.upgrade('head')
        # Old servers created tables in this format.
        self.execute('ALTER TABLE resource_providers ROW_FORMAT = COMPACT')

    def execute(self, statement: str) -> None:
        with self.engine.begin() as conn:
            conn.exec_driver_sql(statement)

    def add_provider(self, name: str) -> None:
        row = {'uuid': str(uuid.uuid4()), 'name': name, 'generation': 0}
        with self.engine.begin() as conn:
            conn.execute(sa.insert(models.resource_providers), row)

    def convert(self) -> None:
        """Execute the commands of the page for the database of this test."""
        (block,) = runbook.blocks('admin/databases.rst', 'Character sets')
        shell = runbook.Shell(Path(self.useFixture(fixtures.TempDir()).path), self.database.url)
        self.engine.dispose()
        shell.run(block, {' placement': f' {self.engine.url.database}'})

    def test_converted_schema_equals_a_new_one(self):
        self.add_provider('host \N{LATIN SMALL LETTER E WITH ACUTE}')
        self.assertEqual({'utf8mb3'}, character_sets(self.engine))
        self.assertRaises(db_exc.DBError, self.add_provider, _NAME)

        self.convert()
        self.add_provider(_NAME)
        with self.engine.connect() as conn:
            names = set(conn.scalars(sa.select(models.resource_providers.c.name)))
        self.assertEqual({'host \N{LATIN SMALL LETTER E WITH ACUTE}', _NAME}, names)

        converted = schema.describe(self.engine)
        migration.upgrade('head')
        self.assertEqual(converted, schema.describe(self.engine))
        self.assertEqual(converted, self.describe_new())
        self.assertEqual({'utf8mb4'}, character_sets(self.engine))

    def describe_new(self) -> schema.Description:
        """Return the schema of a new database with utf8mb4."""
        self.execute(f'DROP DATABASE {self.engine.url.database}')
        servers.create_database(servers.admin_url(), str(self.engine.url.database))
        # The collation of the page, which is not the default of MySQL.
        name, collation = self.engine.url.database, 'utf8mb4_general_ci'
        self.execute(f'ALTER DATABASE {name} CHARACTER SET utf8mb4 COLLATE {collation}')
        self.engine.dispose()
        migration.upgrade('head')
        return schema.describe(self.engine)


def character_sets(engine: sa.Engine) -> set[str]:
    """Return the character sets of all columns."""
    with engine.connect() as conn:
        query = (
            'SELECT DISTINCT character_set_name FROM information_schema.columns '
            'WHERE table_schema = database() AND character_set_name IS NOT NULL'
        )
        return set(conn.exec_driver_sql(query).scalars())
