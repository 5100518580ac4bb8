"""PUT of aggregates increments the generation of the provider before it reads the provider."""

from typing import Any
import uuid

import requests
import sqlalchemy as sa

from placement import db_api, errors
from placement.db.sqlalchemy import models
from placement.tests.functional import base


class AggregatesTest(base.TestCase):
    def setUp(self):
        super().setUp()
        self.path = f'/resource_providers/{self.make_provider("host")}/aggregates'

    def put(self, aggregates: list[str], generation: int) -> requests.Response:
        body = {'aggregates': aggregates, 'resource_provider_generation': generation}
        return self.send('PUT', self.path, body)

    def stored(self) -> Any:
        document = self.send_ok('GET', self.path)
        return sorted(document['aggregates']), document['resource_provider_generation']

    def test_stale_generations(self):
        """No database can store the large ones."""
        aggregates = [str(uuid.uuid4())]
        for generation in (1, -1, 2**31, 2**63, 10**30):
            response = self.put(aggregates, generation)
            self.assertEqual(409, response.status_code, generation)
            self.assertEqual(errors.CONCURRENT_UPDATE, response.json()['errors'][0]['code'])
        self.assertEqual(([], 0), self.stored())

    def test_known_and_new_aggregates(self):
        one, two, three, four = sorted(str(uuid.uuid4()) for _ in range(4))
        for generation, aggregates in enumerate(
            ([one], [one, two], [two, three, four], [two, four], [], [one, two, three, four])
        ):
            self.assertEqual(200, self.put(aggregates, generation).status_code)
            self.assertEqual((aggregates, generation + 1), self.stored())

    def test_rows_have_a_time_of_creation(self):
        known = str(uuid.uuid4())
        self.put([known], 0)
        self.put([known, str(uuid.uuid4())], 1)
        for table in (models.placement_aggregates, models.resource_provider_aggregates):
            query = sa.select(table.c.created_at)
            created = db_api.read(lambda conn, query=query: conn.execute(query).scalars().all())
            self.assertEqual(2, len(created))
            self.assertNotIn(None, created)
