"""Online data migrations of rows that old releases left."""

import sqlalchemy as sa

from placement.db.sqlalchemy import migration, models
from placement.objects import online_data_migrations
from placement.tests import where
from placement.tests.functional.db import base

ZEROS = '00000000-0000-0000-0000-000000000000'


def counts(outcome: online_data_migrations.Outcome) -> tuple[int, int]:
    return outcome.matched, outcome.migrated


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class RepairTest(base.TestCase):
    """Each call repairs one batch."""

    kind_of_database = base.MigratedDatabase

    def insert(self, table: sa.Table, *rows: dict[str, object]) -> None:
        with self.engine.begin() as conn:
            conn.execute(sa.insert(table), list(rows))

    def rows(self, *columns: sa.ColumnElement) -> list[tuple]:
        with self.engine.connect() as conn:
            return [tuple(row) for row in conn.execute(sa.select(*columns).order_by(columns[0]))]

    def test_roots(self):
        providers = models.resource_providers
        rows = [{'id': n, 'uuid': f'rp{n}', 'name': f'rp{n}'} for n in range(1, 7)]
        self.insert(providers, *rows[:5])
        self.insert(providers, {**rows[5], 'root_provider_id': 1, 'parent_provider_id': 1})
        outcomes = [online_data_migrations.set_root_provider_ids(self.config, 2) for _ in range(4)]

        self.assertEqual([(2, 2), (2, 2), (1, 1), (0, 0)], [counts(one) for one in outcomes])
        self.assertEqual(
            [(1, 1, 0), (2, 2, 0), (3, 3, 0), (4, 4, 0), (5, 5, 0), (6, 1, 0)],
            self.rows(providers.c.id, providers.c.root_provider_id, providers.c.generation),
        )

    def insert_incomplete_consumers(self) -> None:
        rows = [
            {'resource_provider_id': 1, 'consumer_id': one, 'resource_class_id': id_, 'used': 1}
            for one in ('a', 'b', 'c', 'existing')
            for id_ in (0, 1)
        ]
        self.insert(models.allocations, *rows)
        existing = {'uuid': 'existing', 'project_id': 77, 'user_id': 78, 'generation': 9}
        self.insert(models.consumers, existing)

    def assertOwners(self, project: str, user: str) -> None:
        self.assertEqual([(project,)], self.rows(models.projects.c.external_id))
        self.assertEqual([(user,)], self.rows(models.users.c.external_id))

    def test_incomplete_consumers(self):
        self.insert_incomplete_consumers()
        outcomes = [
            online_data_migrations.create_incomplete_consumers(self.config, 2) for _ in range(3)
        ]

        self.assertEqual([(2, 2), (1, 1), (0, 0)], [counts(one) for one in outcomes])
        ((project,),), ((user,),) = self.rows(models.projects.c.id), self.rows(models.users.c.id)
        table = models.consumers.c
        self.assertEqual(
            [(name, project, user, 0) for name in ('a', 'b', 'c')] + [('existing', 77, 78, 9)],
            self.rows(table.uuid, table.project_id, table.user_id, table.generation),
        )

    def test_project_and_user_come_from_the_options(self):
        self.insert_incomplete_consumers()
        self.config.set_override('incomplete_consumer_project_id', 'P', group='placement')
        self.config.set_override('incomplete_consumer_user_id', 'U', group='placement')
        online_data_migrations.create_incomplete_consumers(self.config, 50)
        self.assertOwners('P', 'U')

    def test_project_and_user_are_created_if_no_consumer_is_missing(self):
        for _ in range(2):
            outcome = online_data_migrations.create_incomplete_consumers(self.config, 50)
            self.assertEqual((0, 0), counts(outcome))
        self.assertOwners(ZEROS, ZEROS)


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class OldSchemaTest(base.TestCase):
    def test_repairs_work_with_an_old_schema(self):
        migration.upgrade('b4ed3a175331')
        with self.engine.begin() as conn:
            conn.execute(sa.insert(models.resource_providers).values(uuid='rp', name='rp'))
            conn.execute(
                sa.insert(models.allocations).values(
                    resource_provider_id=1, consumer_id='c', resource_class_id=0, used=1
                )
            )
        self.assertRaises(RuntimeError, migration.upgrade, 'head')
        for migrate in online_data_migrations.MIGRATIONS:
            self.assertEqual((1, 1), counts(migrate(self.config, 50)))

        migration.upgrade('head')
        self.assertEqual(1, self.count(models.consumers))
