"""Consumers that hold nothing: this release leaves none, but it may find some."""

import uuid

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional import base
from placement.tests.functional.base import claim

INSTANCE, MIGRATION, SECOND = (str(uuid.UUID(int=number)) for number in (1, 2, 3))


class IdleConsumersTest(base.TestCase):
    def setUp(self):
        super().setUp()
        self.host = self.make_provider('host', {'VCPU': 8, 'MEMORY_MB': 1024})
        for consumer, name in ((INSTANCE, 'INSTANCE'), (MIGRATION, 'MIGRATION')):
            body = claim({self.host: {'VCPU': 1, 'MEMORY_MB': 64}}, consumer_type=name)
            self.sure('PUT', f'/allocations/{consumer}', body)
        self.busy = {'VCPU': 1, 'MEMORY_MB': 64, 'consumer_count': 1}

    def usages(self, query=''):
        return self.sure('GET', f'/usages?project_id=project{query}')['usages']

    def forsake(self, *consumers):
        """Take from consumers what they hold, and nothing else."""
        held = models.allocations

        def work(conn: sa.Connection) -> None:
            conn.execute(sa.delete(held).where(held.c.consumer_id.in_(consumers)))

        db_api.write(work)

    def test_they_do_not_count(self):
        self.forsake(MIGRATION)
        self.assertEqual({'INSTANCE': self.busy}, self.usages())
        self.assertEqual({'all': self.busy}, self.usages('&consumer_type=all'))
        self.assertEqual({}, self.usages('&consumer_type=MIGRATION'))

    def test_beside_others_of_the_type(self):
        self.sure('PUT', f'/allocations/{SECOND}', claim({self.host: {'VCPU': 2}}))
        self.forsake(SECOND)
        expected = {'INSTANCE': self.busy, 'MIGRATION': self.busy}
        self.assertEqual(expected, self.usages())

    def test_nobody_else(self):
        self.forsake(INSTANCE, MIGRATION)
        self.assertEqual({}, self.usages())
        self.assertEqual({}, self.usages('&consumer_type=all'))


class NoTypesTest(base.TestCase):
    def test_all_are_unknown(self):
        """Clients from before microversion 1.38 name no types, and so there may be none at all."""
        host = self.make_provider('host', {'VCPU': 8})
        body = claim({host: {'VCPU': 2}})
        del body['consumer_type']
        self.sure('PUT', f'/allocations/{INSTANCE}', body, version='1.37')
        for query, name in (('', 'unknown'), ('&consumer_type=all', 'all')):
            usages = self.sure('GET', f'/usages?project_id=project{query}')['usages']
            self.assertEqual({name: {'VCPU': 2, 'consumer_count': 1}}, usages)
