"""The revisions of the schema, and upgrades from each of them."""

from alembic import util
import os_traits
import sqlalchemy as sa

from placement import deploy, exception
from placement.db.sqlalchemy import migration, models
from placement.tests import schema, where
from placement.tests.functional.db import base

# Databases of earlier releases have these revisions.
CHAIN = ('b4ed3a175331', '611cd6dffd7b', 'b5c396305c25', '422ece571366', 'a082b8bb98d0')
REDUNDANT = {
    'inventories_resource_provider_id_idx',
    'inventories_resource_provider_resource_class_idx',
    'ix_placement_aggregates_uuid',
    'resource_providers_name_idx',
    'resource_providers_uuid_idx',
}


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class StartTest(base.TestCase):
    """The schema that the service requires if it does not migrate at its start."""

    def start(self) -> None:
        deploy.update_database(self.config)

    def assertRejected(self, revision: str) -> None:
        error = self.assertRaises(exception.UnsuitableDatabase, self.start)
        self.assertIn(
            f'at revision {revision}, but this release needs revision {CHAIN[-1]}', str(error)
        )
        self.assertIn('placement-manage db sync', str(error))
        self.assertNotIn('SELECT', str(error))
        self.assertIsNone(error.__cause__)

    def assertAccepted(self, version: str | None) -> None:
        self.start()
        self.assertEqual(version, migration.version())
        self.assertEqual(len(os_traits.get_traits()), self.count(models.traits))

    def test_each_revision(self):
        self.assertRejected('none')
        for revision in CHAIN[:-1]:
            migration.upgrade(revision)
            self.assertEqual(revision, migration.version())
            self.assertRejected(revision)
        migration.upgrade('head')
        self.assertAccepted(CHAIN[-1])
        # A revision of a newer release, and none.
        for statement, version in (
            ("UPDATE alembic_version SET version_num = 'deadbeef0000'", 'deadbeef0000'),
            ('DELETE FROM alembic_version', None),
        ):
            with self.engine.begin() as conn:
                conn.execute(sa.text(statement))
            self.assertAccepted(version)

    def test_tables_without_a_revision(self):
        migration.create_schema()
        self.assertAccepted(None)
        with self.engine.begin() as conn:
            models.consumers.drop(conn)
            models.consumer_types.drop(conn)
        self.assertRejected('none')


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class StampTest(base.TestCase):
    def test_stamping_changes_no_table(self):
        migration.upgrade(CHAIN[0])
        before = schema.describe(self.engine)
        migration.stamp(CHAIN[2])

        self.assertEqual(CHAIN[2], migration.version())
        self.assertEqual(before, schema.describe(self.engine))
        migration.stamp('head')
        self.assertEqual(CHAIN[-1], migration.version())
        self.assertRaises(util.CommandError, migration.stamp, 'deadbeef0000')
        self.assertEqual(CHAIN[-1], migration.version())


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class SchemaTest(base.TestCase):
    def indexes(self) -> set[str]:
        tables = schema.describe(self.engine).values()
        return {name for table in tables for name, _, _ in table['indexes']}

    def test_redundant_indexes(self):
        """The last revision drops them."""
        migration.upgrade(CHAIN[0])
        tables = schema.describe(self.engine)
        self.assertNotIn('consumer_types', tables)
        self.assertNotIn('consumer_type_id', tables['consumers']['columns'])
        self.assertEqual(REDUNDANT, REDUNDANT & self.indexes())
        migration.upgrade(CHAIN[3])
        before = self.indexes()
        migration.upgrade(CHAIN[4])
        self.assertEqual(REDUNDANT, before - self.indexes())

    def test_migrations_create_the_tables_of_the_model(self):
        migration.upgrade('head')
        migrated = schema.describe(self.engine)
        migrated.pop('alembic_version')
        other = self.useFixture(base.EmptyDatabase())
        migration.create_schema(other.engine)
        modeled = schema.describe(other.engine)

        # The migrations leave the names of some foreign keys to the engine.
        for tables in (migrated, modeled):
            for table in tables.values():
                table['foreign keys'] = sorted(key[1:] for key in table['foreign keys'])
        self.assertEqual(modeled, migrated)
        # Galera requires a primary key.
        self.assertNotIn((), [table['primary key'][1] for table in migrated.values()])
        self.assertEqual({table.name for table in models.metadata.sorted_tables}, set(modeled))


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class OldDataTest(base.TestCase):
    """An upgrade preserves data, and fails if a revision does not allow the data."""

    def setUp(self):
        super().setUp()
        migration.upgrade(CHAIN[0])
        self.metadata = sa.MetaData()
        self.metadata.reflect(self.engine)

    def insert(self, table: str, **values) -> None:
        with self.engine.begin() as conn:
            conn.execute(sa.insert(self.metadata.tables[table]).values(**values))

    def insert_allocation(self) -> None:
        self.insert('resource_providers', id=1, uuid='rp', name='rp', generation=3)
        self.insert(
            'allocations', resource_provider_id=1, consumer_id='c', resource_class_id=0, used=2
        )

    def set_root(self) -> None:
        providers = self.metadata.tables['resource_providers']
        with self.engine.begin() as conn:
            conn.execute(sa.update(providers).values(root_provider_id=providers.c.id))

    def assertBlocked(self, version: str) -> None:
        error = self.assertRaises(RuntimeError, migration.upgrade, 'head')
        self.assertIn('placement-manage db online_data_migrations', str(error))
        self.assertEqual(version, migration.version())

    def test_incomplete_data_blocks_the_upgrade(self):
        """A provider has no root, and an allocation has no consumer; the data is preserved."""
        self.insert_allocation()
        self.assertBlocked(CHAIN[0])
        self.set_root()
        migration.upgrade(CHAIN[1])
        self.assertBlocked(CHAIN[1])
        self.insert('consumers', uuid='c', project_id=5, user_id=6, generation=7)
        migration.upgrade('head')
        self.assertEqual(CHAIN[-1], migration.version())

        with self.engine.connect() as conn:
            consumer = conn.execute(sa.select(models.consumers)).mappings().one()
            provider = conn.execute(sa.select(models.resource_providers)).mappings().one()
            used = conn.scalars(sa.select(models.allocations.c.used)).all()
        columns = ('uuid', 'project_id', 'user_id', 'generation', 'consumer_type_id')
        self.assertEqual(['c', 5, 6, 7, None], [consumer[name] for name in columns])
        columns = ('uuid', 'generation', 'root_provider_id')
        self.assertEqual(['rp', 3, 1], [provider[name] for name in columns])
        self.assertEqual([2], used)

    def test_upgrade_from_each_revision(self):
        expected = None
        for revision in CHAIN:
            with self.subTest(revision):
                database = self.useFixture(base.EmptyDatabase())
                migration.upgrade(revision)
                migration.upgrade('head')
                tables = schema.describe(database.engine)
                expected = expected or tables
                self.assertEqual(expected, tables)
