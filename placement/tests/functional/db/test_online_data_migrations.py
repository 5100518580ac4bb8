"""Online data migrations of rows that old releases left."""

import sqlalchemy as sa

from placement.db.sqlalchemy import migration, models
from placement.objects import online_data_migrations
from placement.tests import where
from placement.tests.functional.db import base


def counts(outcome: online_data_migrations.Outcome) -> tuple[int, int]:
    return outcome.matched, outcome.migrated


class RepairTest(base.TestCase):
    kind_of_database = base.MigratedDatabase

    def insert(self, table: sa.Table, *rows: dict[str, object]) -> None:
        with self.engine.begin() as conn:
            conn.execute(sa.insert(table), list(rows))

    def rows(self, *columns: sa.ColumnElement) -> list[tuple]:
        with self.engine.connect() as conn:
            return [tuple(row) for row in conn.execute(sa.select(*columns).order_by(columns[0]))]


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class RootProvidersTest(RepairTest):
    def setUp(self):
        super().setUp()
        self.insert(
            models.resource_providers,
            *({'id': n, 'uuid': f'rp{n}', 'name': f'rp{n}'} for n in range(1, 6)),
        )
        self.insert(
            models.resource_providers,
            {
                'id': 6,
                'uuid': 'rp6',
                'name': 'rp6',
                'root_provider_id': 1,
                'parent_provider_id': 1,
            },
        )

    def roots(self) -> list[tuple]:
        return self.rows(
            models.resource_providers.c.id, models.resource_providers.c.root_provider_id
        )

    def test_each_call_repairs_one_batch(self):
        outcomes = [online_data_migrations.set_root_provider_ids(self.config, 2) for _ in range(4)]

        self.assertEqual([(2, 2), (2, 2), (1, 1), (0, 0)], [counts(one) for one in outcomes])
        self.assertEqual([(1, 1), (2, 2), (3, 3), (4, 4), (5, 5), (6, 1)], self.roots())
        generation = models.resource_providers.c.generation
        self.assertEqual([(0,)] * 6, self.rows(generation))


@where.also_on_mysql('Statements and variables differ from those of MariaDB.')
class IncompleteConsumersTest(RepairTest):
    def setUp(self):
        super().setUp()
        self.insert(
            models.allocations,
            *(
                {
                    'resource_provider_id': 1,
                    'consumer_id': consumer,
                    'resource_class_id': resource_class,
                    'used': 1,
                }
                for consumer in ('a', 'b', 'c', 'existing')
                for resource_class in (0, 1)
            ),
        )
        self.insert(
            models.consumers, {'uuid': 'existing', 'project_id': 77, 'user_id': 78, 'generation': 9}
        )

    def test_each_call_repairs_one_batch(self):
        outcomes = [
            online_data_migrations.create_incomplete_consumers(self.config, 2) for _ in range(3)
        ]

        self.assertEqual([(2, 2), (1, 1), (0, 0)], [counts(one) for one in outcomes])
        ((project,),) = self.rows(models.projects.c.id)
        ((user,),) = self.rows(models.users.c.id)
        table = models.consumers.c
        self.assertEqual(
            [(name, project, user, 0) for name in ('a', 'b', 'c')] + [('existing', 77, 78, 9)],
            self.rows(table.uuid, table.project_id, table.user_id, table.generation),
        )

    def test_project_and_user_come_from_the_options(self):
        self.config.set_override('incomplete_consumer_project_id', 'P', group='placement')
        self.config.set_override('incomplete_consumer_user_id', 'U', group='placement')
        online_data_migrations.create_incomplete_consumers(self.config, 50)

        self.assertEqual([('P',)], self.rows(models.projects.c.external_id))
        self.assertEqual([('U',)], self.rows(models.users.c.external_id))

    def test_project_and_user_are_created_if_no_consumer_is_missing(self):
        with self.engine.begin() as conn:
            conn.execute(sa.delete(models.allocations))
        for _ in range(2):
            outcome = online_data_migrations.create_incomplete_consumers(self.config, 50)

        self.assertEqual((0, 0), counts(outcome))
        default = [('00000000-0000-0000-0000-000000000000',)]
        self.assertEqual(default, self.rows(models.projects.c.external_id))
        self.assertEqual(default, self.rows(models.users.c.external_id))


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
