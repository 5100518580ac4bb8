"""The revisions of the schema, and upgrades from each of them."""

from alembic import config as alembic_config
from alembic import script, util
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

    def test_an_empty_database_is_rejected(self):
        self.assertRejected('none')

    def test_each_older_revision_is_rejected(self):
        for revision in CHAIN[:-1]:
            migration.upgrade(revision)
            self.assertRejected(revision)

    def test_the_newest_revision_is_accepted(self):
        migration.upgrade('head')
        self.start()
        self.assertEqual(len(os_traits.get_traits()), self.count(models.traits))

    def test_all_tables_without_a_revision_are_accepted(self):
        migration.create_schema()
        self.start()
        self.assertEqual(len(os_traits.get_traits()), self.count(models.traits))

    def test_some_tables_without_a_revision_are_rejected(self):
        migration.create_schema()
        with self.engine.begin() as conn:
            models.consumers.drop(conn)
            models.consumer_types.drop(conn)
        self.assertRejected('none')

    def test_an_empty_table_of_revisions_counts_as_no_revision(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            conn.execute(sa.text('DELETE FROM alembic_version'))
        self.start()
        self.assertIsNone(migration.version())
        self.assertEqual(len(os_traits.get_traits()), self.count(models.traits))

    def test_a_revision_of_a_newer_release_is_accepted(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            conn.execute(sa.text("UPDATE alembic_version SET version_num = 'deadbeef0000'"))
        self.start()
        self.assertEqual('deadbeef0000', migration.version())
        self.assertEqual(len(os_traits.get_traits()), self.count(models.traits))

    def test_sync_on_startup_migrates(self):
        migration.upgrade(CHAIN[0])
        self.config.set_override('sync_on_startup', True, group='placement_database')
        self.start()
        self.assertEqual(CHAIN[-1], migration.version())


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class ChainTest(base.TestCase):
    def test_the_chain_has_no_branch(self):
        directory = script.ScriptDirectory.from_config(alembic_config.Config(str(migration._INI)))
        revisions = [revision.revision for revision in directory.walk_revisions()]

        self.assertEqual(list(reversed(CHAIN)), revisions)
        self.assertEqual([CHAIN[-1]], directory.get_heads())

    def test_step_by_step(self):
        self.assertIsNone(migration.version())
        for revision in CHAIN:
            migration.upgrade(revision)
            self.assertEqual(revision, migration.version())

    def test_upgrading_twice_changes_nothing(self):
        migration.upgrade('head')
        before = schema.describe(self.engine)
        migration.upgrade('head')

        self.assertEqual(CHAIN[-1], migration.version())
        self.assertEqual(before, schema.describe(self.engine))

    def test_stamping_changes_no_table(self):
        migration.upgrade(CHAIN[0])
        before = schema.describe(self.engine)
        migration.stamp(CHAIN[2])

        self.assertEqual(CHAIN[2], migration.version())
        self.assertEqual(before, schema.describe(self.engine))
        migration.stamp('head')
        self.assertEqual(CHAIN[-1], migration.version())

    def test_an_unknown_revision_cannot_be_stamped(self):
        migration.upgrade('head')

        self.assertRaises(util.CommandError, migration.stamp, 'deadbeef0000')
        self.assertEqual(CHAIN[-1], migration.version())


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class SchemaTest(base.TestCase):
    def indexes(self) -> set[str]:
        tables = schema.describe(self.engine).values()
        return {name for table in tables for name, _, _ in table['indexes']}

    def test_the_first_revision(self):
        migration.upgrade(CHAIN[0])
        tables = schema.describe(self.engine)

        self.assertNotIn('consumer_types', tables)
        self.assertNotIn('consumer_type_id', tables['consumers']['columns'])
        self.assertEqual(REDUNDANT, REDUNDANT & self.indexes())

    def test_the_last_revision_drops_redundant_indexes(self):
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

    def test_a_provider_without_root_blocks_the_upgrade(self):
        self.insert_allocation()

        error = self.assertRaises(RuntimeError, migration.upgrade, 'head')
        self.assertIn('placement-manage db online_data_migrations', str(error))
        self.assertEqual(CHAIN[0], migration.version())
        self.set_root()
        migration.upgrade(CHAIN[1])
        self.assertEqual(CHAIN[1], migration.version())

    def test_a_missing_consumer_blocks_the_upgrade(self):
        self.insert_allocation()
        self.set_root()

        error = self.assertRaises(RuntimeError, migration.upgrade, 'head')
        self.assertIn('placement-manage db online_data_migrations', str(error))
        self.insert('consumers', uuid='c', project_id=1, user_id=1)
        migration.upgrade('head')
        self.assertEqual(CHAIN[-1], migration.version())

    def test_data_is_preserved(self):
        self.insert_allocation()
        self.set_root()
        self.insert('consumers', uuid='c', project_id=5, user_id=6, generation=7)
        migration.upgrade('head')

        with self.engine.connect() as conn:
            consumer = conn.execute(sa.select(models.consumers)).mappings().one()
            provider = conn.execute(sa.select(models.resource_providers)).mappings().one()
            used = conn.scalars(sa.select(models.allocations.c.used)).all()
        self.assertLessEqual(
            {
                'uuid': 'c',
                'project_id': 5,
                'user_id': 6,
                'generation': 7,
                'consumer_type_id': None,
            }.items(),
            dict(consumer).items(),
        )
        self.assertLessEqual(
            {'uuid': 'rp', 'generation': 3, 'root_provider_id': 1}.items(), dict(provider).items()
        )
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
