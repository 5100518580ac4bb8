"""Claims of a new consumer that allocate from one provider."""

from typing import Any
import uuid

import sqlalchemy as sa

from placement import db_api, errors
from placement.capacity import MAX_INT
from placement.db.sqlalchemy import models
from placement.tests import where
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import Response, claim

UNKNOWN = '00000000-0000-4000-8000-000000000000'
OWNERS = (models.projects, models.users, models.consumer_types)


@where.also_on_mysql('MySQL decides which transaction waits and which one it ends.')
class NewConsumerTest(testcase.RaceTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.target = self.make_provider({'VCPU': 10, 'MEMORY_MB': 10, 'DISK_GB': 10})

    def put(self, body: dict[str, Any], consumer: str | None = None) -> Response:
        return self.send('PUT', f'/allocations/{consumer or uuid.uuid4()}', body)

    def rows(self, *columns: sa.Column[Any]) -> list[Any]:
        with db_api.snapshot() as conn:
            return list(conn.execute(sa.select(*columns)))

    def execute(self, *statements: sa.Update | sa.Delete) -> None:
        """Change rows without the service."""
        for statement in statements:
            db_api.write(lambda conn, statement=statement: conn.execute(statement))

    def test_rows_of_the_claim(self):
        """Amounts of several classes, which are not in the order of names or ids."""
        resources = {'MEMORY_MB': 4, 'VCPU': 3, 'DISK_GB': 5}
        body, consumer = self.claim_of(self.target, resources), str(uuid.uuid4())
        with self.retries() as retries:
            self.assertEqual(204, self.put(body, consumer).status)
        self.assertEqual([], retries)
        shown = self.send_ok('GET', f'/allocations/{consumer}')
        self.assertEqual(
            {'resources': resources, 'generation': 2}, shown['allocations'][self.target]
        )
        del shown['allocations']
        expected = {name: body[name] for name in ('project_id', 'user_id', 'consumer_type')}
        self.assertEqual(expected | {'consumer_generation': 1}, shown)
        used = models.allocations.c
        self.assertEqual([4, 3, 5], [row.used for row in sorted(self.rows(used.id, used.used))])
        for table in ('projects', 'users', 'consumer_types', 'consumers', 'allocations'):
            columns = models.metadata.tables[table].c
            for created, updated in self.rows(columns.created_at, columns.updated_at):
                self.assertEqual((True, None), (created is not None, updated), table)
        self.assertNotIn((None,), self.rows(models.resource_providers.c.updated_at))
        self.audit()

    def claim_of(self, provider: str, resources: dict[str, int], **names: str) -> dict[str, Any]:
        return claim({}, **names) | {'allocations': {provider: {'resources': resources}}}

    def test_rejected_claims_write_nothing(self):
        own, vcpu = self.target, {'VCPU': 11}
        for provider, resources, status, *details in (
            (own, vcpu, 409, '11 requested or in use, capacity 10'),
            (own, {'DISK_GB': 5, 'MEMORY_MB': 11, 'VCPU': 11}, 409, "'MEMORY_MB'"),
            (own, {'VCPU': MAX_INT + 1}, 409, 'more than its max_unit'),
            (UNKNOWN, {'VCPU': 1}, 400, UNKNOWN),
            (UNKNOWN, {'CUSTOM_UNKNOWN': 1}, 400, UNKNOWN),
            (own, vcpu | {'CUSTOM_UNKNOWN': 1}, 400, 'CUSTOM_UNKNOWN'),
            (own, {'CUSTOM_UNKNOWN': 1}, 400, 'CUSTOM_UNKNOWN'),
            (own, {'VCPU': 1, 'VGPU': 1}, 409, 'VGPU', 'does not exist'),
            (own, {'VGPU': 1}, 409, 'VGPU', 'does not exist'),
        ):
            with self.subTest(provider=provider, resources=resources):
                response = self.put(self.claim_of(provider, resources))
                self.assertEqual(status, response.status, response.body)
                for detail in details:
                    self.assertIn(detail, response.detail)
                self.check_unchanged()
        with self.retries() as retries:
            self.assertEqual(204, self.put(claim({own: 10})).status)
        self.assertEqual([], retries)

    def check_unchanged(self) -> None:
        for table in (*OWNERS, models.consumers):
            self.assertEqual([], self.rows(table.c.id), table.name)
        self.assertEqual([(1,)], self.rows(models.resource_providers.c.generation))

    def test_a_provider_without_root(self):
        self.execute(sa.update(models.resource_providers).values(root_provider_id=None))
        self.assertEqual(400, self.put(claim({self.target: 1})).status)
        self.check_unchanged()

    def test_an_existing_consumer_and_an_unknown_provider(self):
        """The conflict of the consumer takes precedence, and shows the stored generation."""
        consumer = str(uuid.uuid4())
        for given in (None, 1):
            self.send_ok('PUT', f'/allocations/{consumer}', claim({self.target: 1}, given))
        for spelling in (consumer, consumer.upper()):
            with self.retries() as retries:
                response = self.put(claim({UNKNOWN: 1}, project='new'), spelling)
            self.assertEqual((409, errors.CONCURRENT_UPDATE), (response.status, response.code))
            self.assertIn('2', response.detail.replace(consumer, '').replace(spelling, ''))
            self.assertEqual([], retries)
        self.assertEqual([('project',)], self.rows(models.projects.c.external_id))

    def test_owners_that_another_program_deleted(self):
        """The next claim inserts them again."""
        for table in OWNERS:
            with self.subTest(table=table.name):
                self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', claim({self.target: 1}))
                self.execute(*map(sa.delete, (models.allocations, models.consumers, table)))
                before = self.provider(self.target)['generation']
                self.assertEqual(204, self.put(claim({self.target: 10})).status)
                self.assertEqual(before + 1, self.provider(self.target)['generation'])
                self.assertEqual(1, len(self.rows(table.c.id)))
                self.audit()
                self.execute(sa.delete(models.allocations), sa.delete(models.consumers))

    def test_allocations_without_a_consumer_row(self):
        other, consumer = self.make_provider({'VCPU': 10}), str(uuid.uuid4())
        path = f'/allocations/{consumer}'
        self.send_ok('PUT', path, claim({self.target: 8}))
        for provider, amount in ((self.target, 10), (other, 1)):
            self.execute(sa.delete(models.consumers))
            self.send_ok('PUT', path, claim({provider: amount}))
            shown = self.send_ok('GET', path)['allocations']
            self.assertEqual([provider], [*shown])
            self.assertEqual({'VCPU': amount}, shown[provider]['resources'])
        self.assertEqual(0, self.used(self.target))
        self.audit()
