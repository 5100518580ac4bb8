"""A generation that is NULL, as in rows of old releases, counts as 0."""

import uuid

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional import base, missing_generations
from placement.tests.functional.base import claim

CONSUMER, AGGREGATE = (str(uuid.UUID(int=number)) for number in (1, 2))
INVENTORY = {'total': 8}


class MissingGenerationsTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        missing_generations.permit_null(self)
        self.host = self.make_provider('host', {'VCPU': 8})
        self.send_ok('PUT', f'/allocations/{CONSUMER}', claim({self.host: {'VCPU': 1}}))
        missing_generations.remove()
        self.path = f'/resource_providers/{self.host}'

    def generations(self) -> list[int | None]:
        """Return the stored generations of the provider and of its consumers."""
        with db_api.get_placement_engine().connect() as conn:
            return [
                generation
                for table in (models.resource_providers, models.consumers)
                for generation in conn.scalars(sa.select(table.c.generation).order_by(table.c.id))
            ]

    def test_responses(self) -> None:
        for path in ('/inventories', '/inventories/VCPU', '/traits', '/aggregates', '/usages'):
            document = self.send_ok('GET', self.path + path)
            self.assertEqual(0, document['resource_provider_generation'], path)
        self.assertEqual(0, self.send_ok('GET', self.path)['generation'])
        for query in ('', f'?uuid={self.host}', '?resources=VCPU:1', f'?in_tree={self.host}'):
            (provider,) = self.send_ok('GET', f'/resource_providers{query}')['resource_providers']
            self.assertEqual(0, provider['generation'], query)
        document = self.send_ok('GET', f'{self.path}/allocations')
        self.assertEqual(0, document['resource_provider_generation'])
        self.assertEqual(0, document['allocations'][CONSUMER]['consumer_generation'])
        document = self.send_ok('GET', f'/allocations/{CONSUMER}')
        self.assertEqual(0, document['consumer_generation'])
        self.assertEqual(0, document['allocations'][self.host]['generation'])
        self.assertEqual([None, None], self.generations())

    def test_requests_with_a_generation(self) -> None:
        """The generation 0 is accepted, and another one is stale. A reshape writes twice."""
        inventories = {'inventories': {'VCPU': INVENTORY}}
        for path, body, writes in (
            ('inventories', inventories, 1),
            ('inventories/VCPU', INVENTORY, 1),
            ('traits', {'traits': ['HW_CPU_X86_AVX2']}, 1),
            ('aggregates', {'aggregates': [AGGREGATE]}, 1),
            ('reshaper', inventories, 2),
        ):
            for given, expected in ((1, None), (0, writes)):
                with self.subTest(path, given=given):
                    line = ('PUT', f'{self.path}/{path}')
                    sent: dict[str, object] = {**body, 'resource_provider_generation': given}
                    if path == 'reshaper':
                        line = ('POST', '/reshaper')
                        sent = {'inventories': {self.host: sent}, 'allocations': {}}
                    self.assertEqual(given == 1, self.send(*line, sent).status_code == 409)
                    self.assertEqual([expected, None], self.generations())
            missing_generations.remove()

    def test_first_inventories(self) -> None:
        new = self.make_provider('new')
        missing_generations.remove()
        body = {'resource_provider_generation': 0, 'inventories': {'VCPU': INVENTORY}}
        document = self.send_ok('PUT', f'/resource_providers/{new}/inventories', body)
        self.assertEqual(1, document['resource_provider_generation'])
        self.assertEqual([None, 1, None], self.generations())

    def test_claims_of_an_existing_consumer(self) -> None:
        path, amounts = f'/allocations/{CONSUMER}', {self.host: {'VCPU': 2}}
        for given in (None, 1):
            response = self.send('PUT', path, claim(amounts, generation=given))
            self.assertEqual(409, response.status_code)
            self.assertIn('consumer generation conflict - expected 0', response.text)
            self.assertEqual([None, None], self.generations())
        self.send_ok('PUT', path, claim(amounts, generation=0))
        self.assertEqual([1, 1], self.generations())
