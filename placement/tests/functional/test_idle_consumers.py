"""Usages ignore rows of consumers that have no allocations.

This release deletes a consumer together with its last allocation. Databases of other releases can
have rows of such consumers.
"""

import uuid

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional import base
from placement.tests.functional.base import claim

INSTANCE, MIGRATION, SECOND_INSTANCE = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


class ConsumersWithoutAllocationsTest(base.TestCase):
    def setUp(self):
        super().setUp()
        self.host = self.make_provider('host', {'VCPU': 8, 'MEMORY_MB': 1024})
        for consumer, name in ((INSTANCE, 'INSTANCE'), (MIGRATION, 'MIGRATION')):
            body = claim({self.host: {'VCPU': 1, 'MEMORY_MB': 64}}, consumer_type=name)
            self.send_ok('PUT', f'/allocations/{consumer}', body)
        self.usage = {'VCPU': 1, 'MEMORY_MB': 64, 'consumer_count': 1}

    def usages(self, query=''):
        return self.send_ok('GET', f'/usages?project_id=project{query}')['usages']

    def delete_allocations(self, *consumers):
        """Delete the allocations of consumers, but not the rows of the consumers."""
        allocations = models.allocations

        def work(conn: sa.Connection) -> None:
            conn.execute(sa.delete(allocations).where(allocations.c.consumer_id.in_(consumers)))

        db_api.write(work)

    def test_a_consumer_without_allocations_is_not_counted(self):
        self.send_ok('PUT', f'/allocations/{SECOND_INSTANCE}', claim({self.host: {'VCPU': 2}}))
        self.delete_allocations(SECOND_INSTANCE)
        expected = {'INSTANCE': self.usage, 'MIGRATION': self.usage}
        self.assertEqual(expected, self.usages())
        self.delete_allocations(MIGRATION)
        self.assertEqual({'INSTANCE': self.usage}, self.usages())
        self.assertEqual({'all': self.usage}, self.usages('&consumer_type=all'))
        self.assertEqual({}, self.usages('&consumer_type=MIGRATION'))
        self.delete_allocations(INSTANCE)
        self.assertEqual({}, self.usages())
        self.assertEqual({}, self.usages('&consumer_type=all'))


class NoConsumerTypesTest(base.TestCase):
    def test_usages_of_consumers_without_a_type(self):
        """Before microversion 1.38, clients send no types, so the table of types can be empty."""
        host = self.make_provider('host', {'VCPU': 8})
        body = claim({host: {'VCPU': 2}})
        del body['consumer_type']
        self.send_ok('PUT', f'/allocations/{INSTANCE}', body, version='1.37')
        for query, name in (('', 'unknown'), ('&consumer_type=all', 'all')):
            usages = self.send_ok('GET', f'/usages?project_id=project{query}')['usages']
            self.assertEqual({name: {'VCPU': 2, 'consumer_count': 1}}, usages)
