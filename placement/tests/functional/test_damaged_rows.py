"""Rows that refer to rows that do not exist.

No release leaves such rows, but the schema has no foreign key that prevents all of them.
"""

import uuid

import os_traits
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests import worlds
from placement.tests.functional import base
from placement.tests.functional.base import claim
from placement.tests.worlds import rows

MISSING_ID = 99_999
INSTANCE = str(uuid.UUID(int=1))


class DamagedRowsTest(base.TestCase):
    """Responses omit the damaged rows and have all other rows."""

    def setUp(self):
        super().setUp()
        self.host = self.make_provider('host', {'VCPU': 8, 'MEMORY_MB': 1024})
        body = claim({self.host: {'VCPU': 1, 'MEMORY_MB': 64}})
        self.send_ok('PUT', f'/allocations/{INSTANCE}', body)

    def replace(self, column: sa.Column, old: object, new: object) -> None:
        update = sa.update(column.table).where(column == old).values({column.name: new})
        db_api.write(lambda conn: conn.execute(update))

    def read(self, path: str):
        """Return the document at a path below the provider."""
        return self.send_ok('GET', f'/resource_providers/{self.host}/{path}')

    def test_rows_of_a_missing_class_are_omitted(self):
        for table in (models.allocations, models.inventories):
            self.replace(table.c.resource_class_id, 0, MISSING_ID)
        allocations = self.read('allocations')['allocations']
        self.assertEqual({'MEMORY_MB': 64}, allocations[INSTANCE]['resources'])
        expected = {'INSTANCE': {'MEMORY_MB': 64, 'consumer_count': 1}}
        self.assertEqual(expected, self.send_ok('GET', '/usages?project_id=project')['usages'])
        self.assertEqual(['MEMORY_MB'], [*self.read('inventories')['inventories']])
        self.assertEqual({'MEMORY_MB': 64}, self.read('usages')['usages'])
        # The allocations are deleted together with the others.
        self.send_ok('PUT', f'/allocations/{INSTANCE}', claim({self.host: {'MEMORY_MB': 4}}, 1))
        with db_api.snapshot() as conn:
            self.assertEqual([4], conn.scalars(sa.select(models.allocations.c.used)).all())

    def test_allocations_of_a_missing_consumer_are_omitted(self):
        self.replace(models.allocations.c.consumer_id, INSTANCE, str(uuid.UUID(int=2)))
        self.assertEqual({}, self.read('allocations')['allocations'])


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


DRAWING = """
root[V:8] @A
  top[VGPU:4]
    leaf[VGPU:4]
  twin[VGPU:4]
pool[D:100] {SHARE POOL} @A
  disk[D:100] {SHARE POOL} @A
intact[V:8, VGPU:8]
"""


class DamagedTreesTest(base.TestCase):
    """No read fails if the parent, the root or a trait of a provider does not exist.

    :cvar others: the number of trees without inventory before the trees of the drawing. If no tree
        of the first page has a candidate, the database evaluates the trees of the further pages
    """

    others = 0

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
        others = '\n'.join(f'other{number}' for number in range(self.others))
        rows.fill(db_api.get_placement_engine(), worlds.World.of(others + DRAWING))
        names = [line.split('[')[0].strip() for line in DRAWING.split('\n')]
        self.uuids = {name: worlds.uuid_of(name) for name in names if name}

    def relate(self, *names: str, **ids: int | None) -> None:
        """Set `root_provider_id` or `parent_provider_id` of providers."""
        table = models.resource_providers
        damage(sa.update(table).where(table.c.name.in_(names)).values(ids))

    def id_of(self, name: str) -> int:
        table = models.resource_providers
        with db_api.snapshot() as conn:
            return conn.scalar(sa.select(table.c.id).where(table.c.name == name))

    def listed(self, query: str = '') -> set[str]:
        """Return the names of the providers in the response to GET /resource_providers."""
        providers = self.send_ok('GET', f'/resource_providers{query}')['resource_providers']
        return {one['name'] for one in providers if not one['name'].startswith('other')}

    def check_reads(self) -> None:
        """Require that no read fails, and that the intact provider is listed and is a candidate."""
        paths = [
            f'/resource_providers/{uuid_}{suffix}'
            for uuid_ in self.uuids.values()
            for suffix in ('', '/inventories', '/usages', '/traits', '/aggregates', '/allocations')
        ]
        paths += [f'/resource_providers?in_tree={uuid_}' for uuid_ in self.uuids.values()]
        paths += [f'/allocation_candidates?{query.format(**self.uuids)}' for query in self.queries]
        for path in paths:
            with self.subTest(path):
                self.assertIn(self.send('GET', path).status_code, (200, 404))
        self.assertIn('intact', self.listed('?resources=VCPU:1,VGPU:1'))
        body = self.send_ok('GET', '/allocation_candidates?resources=VCPU:8')
        self.assertIn(self.uuids['intact'], body['provider_summaries'])

    def test_a_missing_parent_is_shown_as_none(self):
        self.relate('top', parent_provider_id=MISSING_ID)
        self.check_reads()
        self.assertEqual(set(self.uuids), self.listed())
        body = self.send_ok('GET', '/allocation_candidates?resources=VGPU:3')
        self.assertIsNone(body['provider_summaries'][self.uuids['top']]['parent_provider_uuid'])

    def test_providers_with_a_missing_root_are_omitted(self):
        self.relate('top', 'leaf', 'twin', root_provider_id=MISSING_ID)
        self.check_reads()
        self.assertEqual({'root', 'pool', 'disk', 'intact'}, self.listed())
        self.assertEqual({'intact'}, self.listed('?resources=VGPU:1'))
        response = self.send('GET', f'/resource_providers/{self.uuids["top"]}')
        self.assertEqual(404, response.status_code)
        body = self.send_ok('GET', '/allocation_candidates?resources=VGPU:1')
        self.assertEqual({self.uuids['intact']}, set(body['provider_summaries']))

    def test_sharing_providers_with_a_missing_root_are_not_used(self):
        for missing in (MISSING_ID, None):
            self.relate('pool', 'disk', root_provider_id=missing)
            self.check_reads()
            body = self.send_ok('GET', '/allocation_candidates?resources=VCPU:1,DISK_GB:1')
            self.assertEqual([], body['allocation_requests'])

    def test_a_wrong_root_of_a_root_provider(self):
        """Without a root, it is omitted. Its descendants are listed, because their root exists."""
        self.relate('root', root_provider_id=None)
        self.check_reads()
        self.assertEqual(set(self.uuids) - {'root'}, self.listed())
        self.relate('root', root_provider_id=self.id_of('intact'))
        self.check_reads()

    def test_moves_of_trees_with_a_provider_without_root(self):
        self.relate('top', root_provider_id=None)
        for parent, status in (('leaf', 400), ('intact', 200)):
            body = {'name': 'root', 'parent_provider_uuid': self.uuids[parent]}
            path = f'/resource_providers/{self.uuids["root"]}'
            self.assertEqual(status, self.send('PUT', path, body).status_code)
        leaf = self.send_ok('GET', f'/resource_providers/{self.uuids["leaf"]}')
        self.assertEqual(self.uuids['intact'], leaf['root_provider_uuid'])

    def test_a_provider_is_its_own_ancestor(self):
        self.relate('root', parent_provider_id=self.id_of('leaf'))
        self.check_reads()
        body = {'name': 'root', 'parent_provider_uuid': self.uuids['top']}
        path = f'/resource_providers/{self.uuids["root"]}'
        self.assertEqual(400, self.send('PUT', path, body).status_code)

    def test_a_missing_trait_is_omitted(self):
        damage(sa.delete(models.traits).where(models.traits.c.name == 'CUSTOM_POOL'))
        self.queries = tuple(query for query in self.queries if 'CUSTOM_POOL' not in query)
        self.check_reads()
        body = self.send_ok('GET', '/allocation_candidates?resources=DISK_GB:1')
        self.assertEqual(
            [os_traits.MISC_SHARES_VIA_AGGREGATE],
            body['provider_summaries'][self.uuids['pool']]['traits'],
        )


class DamagedTreesOnLaterPagesTest(DamagedTreesTest):
    others = 20
