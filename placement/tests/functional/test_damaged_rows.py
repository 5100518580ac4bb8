"""Rows that refer to missing rows. No release writes such rows, but no key forbids them."""

from typing import Any
from unittest import mock
import uuid

import os_traits
import sqlalchemy as sa

from placement import db_api
from placement.candidates import paging
from placement.db.sqlalchemy import models
from placement.tests.functional import base
from placement.tests.functional.base import claim

GONE = 99_999
INSTANCE = str(uuid.UUID(int=1))


class DamagedRowsTest(base.TestCase):
    """Responses omit the rows whose references are missing, and contain all others."""

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


def damage(statement: sa.Update | sa.Delete) -> None:
    """Execute a statement without the checks of foreign keys."""

    def work(conn: sa.Connection) -> None:
        if conn.dialect.name == 'mysql':
            conn.exec_driver_sql('SET SESSION foreign_key_checks = 0')
        elif conn.dialect.name == 'postgresql':
            conn.exec_driver_sql('SET LOCAL session_replication_role = replica')
        try:
            conn.execute(statement)
        finally:
            if conn.dialect.name == 'mysql':
                conn.exec_driver_sql('SET SESSION foreign_key_checks = 1')

    db_api.write(work)


class DamagedTreesTest(base.TestCase):
    """Every read works if the parent or the root of a provider does not exist.

    ::

        root    VCPU    aggregate           pool  DISK_GB  sharing, aggregate
          top     VGPU                        disk  DISK_GB  sharing, aggregate
            leaf    VGPU
          twin    VGPU                      intact  VCPU, VGPU
    """

    queries = (
        'resources=VCPU:1',
        'resources=VGPU:1',
        'resources=DISK_GB:1',
        'resources=VCPU:1,VGPU:1,DISK_GB:1',
        'resources=VCPU:1,DISK_GB:1&required=CUSTOM_POOL',
        'resources_1=VCPU:1&resources_2=DISK_GB:1&group_policy=none',
        'resources_1=VGPU:1&resources_2=VGPU:1&group_policy=isolate&same_subtree=_1,_2',
        'resources_1=DISK_GB:1&resources_2=DISK_GB:1&resources=VCPU:1&group_policy=none'
        '&same_subtree=_1,_2',
        'resources=VGPU:1&in_tree={top}',
        'resources_1=DISK_GB:1&in_tree_1={disk}',
    )

    def setUp(self) -> None:
        super().setUp()
        self.sure('PUT', '/traits/CUSTOM_POOL')
        self.own: dict[str, str] = {}
        self.add('root', {'VCPU': 8})
        self.add('top', {'VGPU': 4}, 'root')
        self.add('leaf', {'VGPU': 4}, 'top')
        self.add('twin', {'VGPU': 4}, 'root')
        self.add('pool', {'DISK_GB': 100})
        self.add('disk', {'DISK_GB': 100}, 'pool')
        self.add('intact', {'VCPU': 8, 'VGPU': 8})
        traits = ['CUSTOM_POOL', os_traits.MISC_SHARES_VIA_AGGREGATE]
        for name in ('pool', 'disk'):
            self.put(name, 'traits', 1, {'traits': traits})
        aggregate = str(uuid.uuid4())
        for name, generation in (('root', 1), ('pool', 2), ('disk', 2)):
            self.put(name, 'aggregates', generation, {'aggregates': [aggregate]})

    def add(self, name: str, inventory: dict[str, int], parent: str | None = None) -> None:
        self.own[name] = self.make_provider(name, inventory, parent and self.own[parent])

    def put(self, name: str, kind: str, generation: int, body: dict[str, Any]) -> None:
        body = {'resource_provider_generation': generation, **body}
        self.sure('PUT', f'/resource_providers/{self.own[name]}/{kind}', body)

    def relate(self, name: str, **ids: int | None) -> None:
        """Set `root_provider_id` or `parent_provider_id` of a provider."""
        table = models.resource_providers
        damage(sa.update(table).where(table.c.uuid == self.own[name]).values(ids))

    def listed(self, query: str = '') -> set[str]:
        found = self.sure('GET', f'/resource_providers{query}')['resource_providers']
        return {provider['name'] for provider in found}

    def check_reads(self) -> None:
        """Check that no read fails, for different sizes of the first page of trees."""
        paths = [
            f'/resource_providers/{own}{below}'
            for own in self.own.values()
            for below in ('', '/inventories', '/usages', '/traits', '/aggregates', '/allocations')
        ]
        paths += [f'/resource_providers?in_tree={own}' for own in self.own.values()]
        paths += [f'/allocation_candidates?{query.format(**self.own)}' for query in self.queries]
        for path in paths:
            for first_page in (1, paging.FIRST_PAGE):
                with mock.patch.object(paging, 'FIRST_PAGE', first_page), self.subTest(path):
                    self.assertIn(self.ask('GET', path).status_code, (200, 404))
        # The intact provider is found.
        self.assertIn('intact', self.listed('?resources=VCPU:1,VGPU:1'))
        found = self.sure('GET', '/allocation_candidates?resources=VCPU:8')
        self.assertIn(self.own['intact'], found['provider_summaries'])

    def test_parent_does_not_exist(self):
        self.relate('top', parent_provider_id=GONE)
        self.check_reads()
        self.assertEqual(set(self.own), self.listed())
        found = self.sure('GET', '/allocation_candidates?resources=VGPU:3')
        self.assertIsNone(found['provider_summaries'][self.own['top']]['parent_provider_uuid'])

    def test_root_does_not_exist(self):
        for name in ('top', 'leaf', 'twin'):
            self.relate(name, root_provider_id=GONE)
        self.check_reads()
        shown = {'root', 'pool', 'disk', 'intact'}
        self.assertEqual(shown, self.listed())
        self.assertEqual({'intact'}, self.listed('?resources=VGPU:1'))
        self.assertEqual(404, self.ask('GET', f'/resource_providers/{self.own["top"]}').status_code)
        found = self.sure('GET', '/allocation_candidates?resources=VGPU:1')
        self.assertEqual({self.own['intact']}, set(found['provider_summaries']))

    def test_root_of_a_sharing_provider_does_not_exist(self):
        for name in ('pool', 'disk'):
            self.relate(name, root_provider_id=GONE)
        self.check_reads()
        found = self.sure('GET', '/allocation_candidates?resources=VCPU:1,DISK_GB:1')
        self.assertEqual([], found['allocation_requests'])

    def test_sharing_provider_without_root(self):
        for name in ('pool', 'disk'):
            self.relate(name, root_provider_id=None)
        self.check_reads()

    def test_root_without_root(self):
        """The children are listed, because they have a root. Only the root itself is not listed."""
        self.relate('root', root_provider_id=None)
        self.check_reads()
        self.assertEqual(set(self.own) - {'root'}, self.listed())

    def test_root_in_another_tree(self):
        other = sa.select(models.resource_providers.c.id).where(
            models.resource_providers.c.uuid == self.own['intact']
        )
        with db_api.reader() as conn:
            other_id = conn.scalar(other)
        self.relate('root', root_provider_id=other_id)
        self.check_reads()

    def test_trait_does_not_exist(self):
        damage(sa.delete(models.traits).where(models.traits.c.name == 'CUSTOM_POOL'))
        self.queries = tuple(query for query in self.queries if 'CUSTOM_POOL' not in query)
        self.check_reads()
        found = self.sure('GET', '/allocation_candidates?resources=DISK_GB:1')
        self.assertEqual(
            [os_traits.MISC_SHARES_VIA_AGGREGATE],
            found['provider_summaries'][self.own['pool']]['traits'],
        )
