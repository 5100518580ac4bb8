"""The read of the cloud: one snapshot, and a constant number of statements."""

import uuid

import sqlalchemy as sa
from sqlalchemy import event

from placement import db_api
from placement.admin import exporter
from placement.db.sqlalchemy import migration, models
from placement.tests import statements
from placement.tests.functional import base
from placement.tests.functional.db import base as db_base

CLASSES = ('DISK_GB', 'VCPU')


class StatementsTest(base.TestCase):
    def test_the_number_of_statements_does_not_grow_with_the_data(self):
        costs = []
        for number in range(4):
            for _ in range(2**number):
                provider = self.make_provider(str(uuid.uuid4()), {'VCPU': 8, 'DISK_GB': 9})
                body = base.claim({provider: {'VCPU': 1, 'DISK_GB': 1}})
                self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', body)
            with statements.recorded(db_api.get_placement_engine()) as recorded:
                found = exporter.read()
            costs.append((len(found.providers), len(recorded)))
        self.assertEqual([(1, 5), (3, 5), (7, 5), (15, 5)], costs)


class OrderTest(base.TestCase):
    def test_inventories_are_sorted_by_code_points_on_every_database_system(self):
        for name in ('b', 'C', 'a', 'é', 'a-1'):
            self.make_provider(name, {'VCPU': 1, 'DISK_GB': 1})
        families = exporter.Collector(exporter.State(exporter.read(), {})).collect()
        found = next(one for one in families if one.name == 'placement_resource_capacity')
        self.assertEqual(
            [(name, class_) for name in ('C', 'a', 'a-1', 'b', 'é') for class_ in CLASSES],
            [tuple(sample.labels.values()) for sample in found.samples],
        )


class SnapshotTest(db_base.TestCase):
    """A provider with an inventory and a consumer is created during the read."""

    def test_all_statements_read_the_same_state(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            insert = sa.insert(models.resource_classes)
            conn.execute(insert.values(id=1, name='MEMORY_MB'))
        self.add('first')
        expected = exporter.read()
        self.assertEqual((1, 1), (expected.consumers, expected.allocations))

        # After the first SELECT, which determines the snapshot.
        with statements.recorded(self.engine) as recorded:

            def change_after_select(*_) -> None:
                if len(recorded) == 1 and not added:
                    added.append(self.add('second'))

            added: list[None] = []
            listener = (sa.Engine, 'after_cursor_execute', change_after_select)
            event.listen(*listener)
            self.addCleanup(event.remove, *listener)
            self.assertEqual(expected, exporter.read())
        self.assertEqual([None], added)
        self.assertEqual(2, len(exporter.read().providers))

    def add(self, name: str) -> None:
        """Insert a provider with an inventory, a consumer and an allocation."""
        other = sa.create_engine(self.engine.url, poolclass=sa.NullPool)
        consumer = str(uuid.uuid4())
        with other.begin() as conn:
            providers = models.resource_providers
            row = {'uuid': str(uuid.uuid4()), 'name': name, 'generation': 1}
            conn.execute(sa.insert(providers).values(row))
            conn.execute(
                sa.update(providers)
                .where(providers.c.name == name)
                .values(root_provider_id=providers.c.id)
            )
            id_ = conn.scalar(sa.select(providers.c.id).where(providers.c.name == name))
            row = {'resource_provider_id': id_, 'resource_class_id': 1}
            limits = {'min_unit': 1, 'max_unit': 9, 'step_size': 1, 'allocation_ratio': 1.0}
            conn.execute(
                sa.insert(models.inventories).values(row | limits | {'total': 9, 'reserved': 0})
            )
            conn.execute(
                sa.insert(models.consumers).values(
                    uuid=consumer, project_id=1, user_id=1, generation=1
                )
            )
            conn.execute(
                sa.insert(models.allocations).values({**row, 'consumer_id': consumer, 'used': 1})
            )
