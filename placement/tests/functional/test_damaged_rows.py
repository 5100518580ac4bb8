"""Rows that refer to what is not there: no release leaves them, but no key forbids them."""

import uuid

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional import base
from placement.tests.functional.base import claim

GONE = 99_999
INSTANCE = str(uuid.UUID(int=1))


class DamagedRowsTest(base.TestCase):
    """What cannot be shown is left out, and everything else is shown."""

    def setUp(self):
        super().setUp()
        self.host = self.make_provider('host', {'VCPU': 8, 'MEMORY_MB': 1024})
        body = claim({self.host: {'VCPU': 1, 'MEMORY_MB': 64}})
        self.sure('PUT', f'/allocations/{INSTANCE}', body)

    def damage(self, table: sa.Table, column: str, old: object, new: object) -> None:
        rows = sa.update(table).where(table.c[column] == old).values({column: new})
        db_api.write(lambda conn: conn.execute(rows))

    def read(self, what: str):
        return self.sure('GET', f'/resource_providers/{self.host}/{what}')

    def test_allocations_of_a_class_that_is_gone(self):
        self.damage(models.allocations, 'resource_class_id', 0, GONE)
        held = self.read('allocations')['allocations']
        self.assertEqual({'MEMORY_MB': 64}, held[INSTANCE]['resources'])

    def test_allocations_of_a_consumer_that_is_gone(self):
        self.damage(models.allocations, 'consumer_id', INSTANCE, str(uuid.UUID(int=2)))
        self.assertEqual({}, self.read('allocations')['allocations'])

    def test_inventory_of_a_class_that_is_gone(self):
        self.damage(models.inventories, 'resource_class_id', 0, GONE)
        self.assertEqual(['MEMORY_MB'], [*self.read('inventories')['inventories']])
        self.assertEqual({'MEMORY_MB': 64}, self.read('usages')['usages'])
