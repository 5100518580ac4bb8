"""The first inventories of a provider are inserted without a read of the provider."""

from typing import Any
import uuid

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional import base

SHORT = {'UPDATE': 1, 'INSERT': 1, 'all': 2}


class FirstInventoriesTest(base.TestCase):
    def setUp(self):
        super().setUp()
        self.host = self.make_provider('host')

    def put(
        self, inventories: dict[str, Any], generation: int = 0, provider: str | None = None
    ) -> Any:
        path = f'/resource_providers/{provider or self.host}/inventories'
        body = {'resource_provider_generation': generation, 'inventories': inventories}
        return self.send('PUT', path, body)

    def stored(self, provider: str | None = None) -> Any:
        return self.send_ok('GET', f'/resource_providers/{provider or self.host}/inventories')

    def damage(self, **values: Any) -> None:
        update = sa.update(models.resource_providers).values(values)
        db_api.write(lambda conn: conn.execute(update))

    def test_stored_rows_are_the_same_as_those_of_a_later_request(self):
        later = self.make_provider('later', {'DISK_GB': 1})
        inventories = {
            'VCPU': {'total': 8, 'reserved': 2, 'allocation_ratio': 16.1},
            'MEMORY_MB': {'total': 1024, 'min_unit': 64, 'max_unit': 512, 'step_size': 64},
        }
        with self.counted() as counts:
            self.assertEqual(200, self.put(inventories).status_code)
        self.assertEqual(SHORT, dict(counts))
        self.assertEqual(200, self.put(inventories, 1, later).status_code)
        self.assertEqual(self.stored(later)['inventories'], self.stored()['inventories'])
        self.assertEqual(1, self.stored()['resource_provider_generation'])
        table = models.inventories
        created = db_api.read(lambda conn: conn.execute(sa.select(table.c.created_at)).all())
        self.assertNotIn(None, {row.created_at for row in created})

    def test_inventories_of_a_provider_with_generation_0_are_replaced(self):
        """Every change of inventories increments the generation, so another program wrote these."""
        self.put({'VCPU': {'total': 8}, 'DISK_GB': {'total': 1}})
        self.damage(generation=0)
        self.assertEqual(200, self.put({'VCPU': {'total': 4}}).status_code)
        stored = self.stored()
        self.assertEqual({'VCPU': 4}, {k: v['total'] for k, v in stored['inventories'].items()})
        self.assertEqual(1, stored['resource_provider_generation'])

    def test_rejected_inventories(self):
        """The same order of errors as for other providers; nothing is stored."""
        # A standard class is unknown if the database was synchronized by an older release.
        table = models.resource_classes
        db_api.write(lambda conn: conn.execute(sa.delete(table).where(table.c.name == 'FPGA')))
        for name in ('FPGA', 'UNKNOWN'):
            response = self.put({'VCPU': {'total': 8}, name: {'total': 8}})
            self.assertEqual(400, response.status_code)
            self.assertIn(name, response.json()['errors'][0]['detail'])
        reserved = {'VCPU': {'total': 8, 'reserved': 9}}
        self.assertEqual(404, self.put(reserved, provider=str(uuid.uuid4())).status_code)
        self.assertEqual(400, self.put(reserved).status_code)
        self.assertEqual(409, self.put(reserved, 1).status_code)
        self.assertEqual({'inventories': {}, 'resource_provider_generation': 0}, self.stored())
        self.damage(root_provider_id=None)
        self.assertEqual(404, self.put({'VCPU': {'total': 8}}).status_code)
        query = sa.select(models.resource_providers.c.generation)
        self.assertEqual(0, db_api.read(lambda conn: conn.execute(query).scalar_one()))
