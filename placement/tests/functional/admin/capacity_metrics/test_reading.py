"""The read of the cloud: one snapshot, a constant number of statements, and damaged rows."""

import uuid

import sqlalchemy as sa
from sqlalchemy import event

from placement import db_api
from placement.admin.capacity_metrics import model, reading
from placement.admin.capacity_metrics.model import Cloud, ProviderInventory
from placement.capacity import Inventory
from placement.db.sqlalchemy import migration, models
from placement.tests import statements
from placement.tests.functional import base, test_damaged_rows
from placement.tests.functional.base import claim
from placement.tests.functional.db import base as db_base

MISSING_ID = 99_999
CLASSES = ('DISK_GB', 'VCPU')
CONSUMER = str(uuid.UUID(int=1))


class StatementsTest(base.TestCase):
    def test_the_number_of_statements_does_not_grow_with_the_data(self):
        costs = []
        for number in range(4):
            for _ in range(2**number):
                provider = self.make_provider(str(uuid.uuid4()), {'VCPU': 8, 'DISK_GB': 9})
                body = claim({provider: {'VCPU': 1, 'DISK_GB': 1}})
                self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', body)
            with statements.recorded(db_api.get_placement_engine()) as recorded:
                cloud = reading.read()
            costs.append((cloud.providers, len(recorded)))
        self.assertEqual([(1, 5), (3, 5), (7, 5), (15, 5)], costs)
        with statements.recorded(db_api.get_placement_engine()) as recorded:
            reading.read(without=model.OPTIONAL)
        self.assertEqual(2, len(recorded))


class OrderTest(base.TestCase):
    def test_inventories_are_sorted_by_code_points_on_every_database_system(self):
        for name in ('b', 'C', 'a', 'é', 'a-1'):
            self.make_provider(name, {'VCPU': 1, 'DISK_GB': 1})
        self.assertEqual(
            [(name, class_) for name in ('C', 'a', 'a-1', 'b', 'é') for class_ in CLASSES],
            [(one.provider, one.resource_class) for one in reading.read().inventories],
        )


class SnapshotTest(db_base.TestCase):
    """A provider with an inventory and a consumer is created during the read."""

    def test_all_statements_read_the_same_state(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            insert = sa.insert(models.resource_classes)
            conn.execute(insert.values(id=1, name='MEMORY_MB'))
        self.add('first')
        expected = reading.read()
        self.assertEqual((1, 1, 1), (expected.providers, expected.consumers, expected.allocations))

        # After the first SELECT, which determines the snapshot.
        with statements.recorded(self.engine) as recorded:

            def change_after_select(*_) -> None:
                if len(recorded) == 1 and not added:
                    added.append(self.add('second'))

            added: list[None] = []
            event.listen(self.engine, 'after_cursor_execute', change_after_select)
            self.addCleanup(event.remove, self.engine, 'after_cursor_execute', change_after_select)
            self.assertEqual(expected, reading.read())
        self.assertEqual([None], added)
        self.assertEqual(2, len(reading.read().inventories))

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


class DamagedRowsTest(base.TestCase):
    """Rows that no release of this service creates."""

    def setUp(self):
        super().setUp()
        self.intact = self.make_provider('intact', {'VCPU': 8})
        self.damaged = self.make_provider('damaged', {'VCPU': 8})
        for number, provider in enumerate((self.intact, self.damaged), start=1):
            self.send_ok(
                'PUT', f'/allocations/{uuid.UUID(int=number)}', claim({provider: {'VCPU': 2}})
            )
        self.cloud = Cloud(
            (self.inventory('damaged'), self.inventory('intact')),
            providers=2,
            consumers=2,
            allocations=2,
        )
        self.assertEqual(self.cloud, reading.read(without=model.OPTIONAL))

    @staticmethod
    def inventory(name: str) -> ProviderInventory:
        # The claim has incremented the generation.
        return ProviderInventory(name, 'VCPU', Inventory(total=8), used=2, generation=2)

    def set_provider(self, **values: object) -> None:
        table = models.resource_providers
        statement = sa.update(table).where(table.c.uuid == self.damaged).values(values)
        test_damaged_rows.damage(statement)

    def listed(self) -> int:
        return len(self.send_ok('GET', '/resource_providers')['resource_providers'])

    def test_a_provider_without_a_root_is_omitted_as_in_the_api(self):
        for root in (None, MISSING_ID):
            self.set_provider(root_provider_id=root)
            cloud = reading.read()
            self.assertEqual((self.inventory('intact'),), cloud.inventories)
            self.assertEqual(1, self.listed())
            self.assertEqual((1, 1), (cloud.providers, cloud.unlisted))
            self.assertEqual(['intact'], [one.name for one in cloud.details])

    def test_inventory_of_a_missing_class_is_omitted_as_in_the_api(self):
        table = models.inventories
        test_damaged_rows.damage(
            sa.update(table)
            .where(
                table.c.resource_provider_id
                == sa.select(models.resource_providers.c.id)
                .where(models.resource_providers.c.uuid == self.damaged)
                .scalar_subquery()
            )
            .values(resource_class_id=MISSING_ID)
        )
        path = f'/resource_providers/{self.damaged}/inventories'
        self.assertEqual({}, self.send_ok('GET', path)['inventories'])
        self.assertEqual((self.inventory('intact'),), reading.read().inventories)

    def test_allocations_without_a_consumer_are_usage(self):
        table = models.consumers
        test_damaged_rows.damage(sa.delete(table).where(table.c.uuid == CONSUMER))
        cloud = reading.read()
        self.assertEqual(self.cloud.inventories, cloud.inventories)
        self.assertEqual((1, 2), (cloud.consumers, cloud.allocations))

    def test_consumers_without_allocations_are_not_counted(self):
        table = models.allocations
        test_damaged_rows.damage(sa.delete(table).where(table.c.consumer_id == CONSUMER))
        cloud = reading.read()
        self.assertEqual((1, 1), (cloud.consumers, cloud.allocations))

    def test_a_name_and_a_generation_of_null(self):
        self.set_provider(name=None, generation=None)
        cloud = reading.read()
        (first, second) = cloud.inventories
        self.assertEqual(('', 0), (first.provider, first.generation))
        self.assertEqual([('', ''), ('intact',) * 2], [(o.name, o.root) for o in cloud.details])
        self.assertEqual(self.inventory('intact'), second)
