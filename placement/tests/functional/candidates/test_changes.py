"""Searches after a name or UUID of the query got another id, or its first one."""

from typing import Any
import uuid

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.functional import base


class ChangedIdTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.first = self.make_provider('first', {'VCPU': 8})
        self.second = self.make_provider('second', {'VCPU': 8})
        self.child = str(uuid.uuid4())
        self.aggregates = [str(uuid.uuid4()) for _ in range(2)]

    def check(self, query: str, *expected: str) -> None:
        """Require the UUIDs of the providers of all candidates, in each of several searches."""
        for _ in range(4):
            body = self.send_ok('GET', f'/allocation_candidates?{query}')
            used = {uuid_ for one in body['allocation_requests'] for uuid_ in one['allocations']}
            self.assertEqual(set(expected), used, query)

    def create_child(self, parent: str) -> None:
        body = {'name': 'child', 'uuid': self.child, 'parent_provider_uuid': parent}
        self.send_ok('POST', '/resource_providers', body)

    def move_child(self, parent: str | None) -> None:
        body = {'name': 'child', 'parent_provider_uuid': parent}
        self.send_ok('PUT', f'/resource_providers/{self.child}', body)

    def put(self, host: str, kind: str, value: Any) -> None:
        """Replace the inventories, traits or aggregates of a provider."""
        path = f'/resource_providers/{host}'
        generation = self.send_ok('GET', path)['generation']
        body = {'resource_provider_generation': generation, kind: value}
        self.send_ok('PUT', f'{path}/{kind}', body)

    def test_the_tree_of_a_provider(self) -> None:
        query, suffixed = (f'resources{n}=VCPU:1&in_tree{n}={self.child}' for n in ('', '_A'))
        for one in (query, suffixed):
            self.check(one)
        self.create_child(self.first)
        for one in (query, suffixed):
            self.check(one, self.first)
        self.move_child(self.second)
        for one in (query, suffixed):
            self.check(one, self.second)
        self.send_ok('DELETE', f'/resource_providers/{self.child}')
        self.create_child(self.first)
        self.check(query, self.first)
        self.move_child(None)
        for one in (query, suffixed):
            self.check(one)

    def test_a_name_is_deleted_and_created_again(self) -> None:
        """Another name gets the id of the deleted name."""
        total = {'total': 4}
        for names, kind, query in (
            ('resource_classes', 'inventories', 'resources=CUSTOM_OLD:1'),
            ('traits', 'traits', 'resources=VCPU:1&required=CUSTOM_OLD'),
        ):
            old, other = (
                [name] if kind == 'traits' else {name: total, 'VCPU': total}
                for name in ('CUSTOM_OLD', 'CUSTOM_OTHER')
            )
            self.send_ok('PUT', f'/{names}/CUSTOM_OLD')
            self.put(self.first, kind, old)
            self.check(query, self.first)
            self.put(self.first, kind, type(old)())
            self.send_ok('DELETE', f'/{names}/CUSTOM_OLD')
            for name in ('CUSTOM_OTHER', 'CUSTOM_OLD'):
                self.send_ok('PUT', f'/{names}/{name}')
            self.put(self.first, kind, other)
            self.check(query)
            self.put(self.second, kind, old)
            self.check(query, self.second)

    def test_an_unknown_aggregate_is_created(self) -> None:
        query = f'resources=VCPU:1&member_of={self.aggregates[0]}'
        forbidden = query.replace('member_of=', 'member_of=!')
        self.check(query)
        self.check(forbidden, self.first, self.second)
        self.put(self.first, 'aggregates', self.aggregates[:1])
        self.check(query, self.first)
        self.check(forbidden, self.second)

    def test_aggregates_exchange_their_ids(self) -> None:
        """The rows were deleted and loaded again while the process ran."""
        for host, aggregate in zip((self.first, self.second), self.aggregates, strict=True):
            self.put(host, 'aggregates', [aggregate])
        query = f'resources=VCPU:1&member_of={self.aggregates[0]}'
        self.check(query, self.first)

        def exchange(conn: sa.Connection) -> None:
            table = models.placement_aggregates
            ids = dict(conn.execute(sa.select(table.c.uuid, table.c.id)).all())
            conn.execute(sa.update(table).values(uuid=None))
            for old, new in zip(self.aggregates, reversed(self.aggregates), strict=True):
                conn.execute(sa.update(table).where(table.c.id == ids[old]).values(uuid=new))

        db_api.write(exchange)
        self.check(query, self.second)

    def test_a_sharing_provider_appears(self) -> None:
        query = 'resources=VCPU:1,DISK_GB:1'
        self.put(self.first, 'aggregates', self.aggregates[:1])
        self.check(query)
        pool = self.make_provider('pool', {'DISK_GB': 8})
        self.put(pool, 'aggregates', self.aggregates)
        self.check(query)
        self.put(pool, 'traits', ['MISC_SHARES_VIA_AGGREGATE'])
        self.check(query, self.first, pool)
        self.put(self.second, 'aggregates', self.aggregates[1:])
        self.check(query, self.first, self.second, pool)
