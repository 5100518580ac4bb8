"""What `--fix` corrects: each kind of finding, made by SQL statements."""

import itertools
from unittest import mock
import uuid

from placement.admin.audit import batches
from placement.db.sqlalchemy import models
from placement.tests.functional import missing_generations
from placement.tests.functional.admin.audit import base
from placement.tests.functional.admin.audit.base import (
    AGGREGATE,
    AGGREGATE_LINKS,
    ALLOCATIONS,
    CONSUMERS,
    GONE,
    INSTANCE,
    INVENTORIES,
    LOST,
    MIGRATION,
    PROVIDERS,
    TRAIT_LINKS,
)

SECOND = str(uuid.UUID(int=9))
ZERO = str(uuid.UUID(int=0))


class FixTestCase(base.TestCase):
    def assertFixed(self, found, left=None):
        """Correct these numbers of findings; afterwards, nothing else is left.

        :param left: the numbers of notices that are left
        """
        findings = self.repair()
        fixed = {code: finding.fixed for code, finding in findings.items() if finding.fixed}
        self.assertEqual(found, fixed)
        self.assertEqual(left or {}, self.found())
        before = self.dump()
        self.assertEqual(left or {}, {code: one.left for code, one in self.repair().items()})
        self.assertEqual(before, self.dump())
        return findings

    def changes(self, finding):
        """The changed rows, without times and ids of changed rows."""
        for row in finding.rows:
            for values in (row['before'], row['after']):
                for column in ('id', 'created_at', 'updated_at'):
                    (values or {}).pop(column, None)
        return list(finding.rows)

    def links(self, *providers):
        """The parents and roots of providers, as UUIDs."""
        rows = self.rows(
            PROVIDERS.c.uuid,
            PROVIDERS.c.id,
            PROVIDERS.c.parent_provider_id,
            PROVIDERS.c.root_provider_id,
        )
        uuids = {row[1]: row[0] for row in rows} | {None: None}
        links = {row[0]: (uuids.get(row[2], row[2]), uuids[row[3]]) for row in rows}
        return [links[provider] for provider in providers]


class ProvidersTest(FixTestCase):
    def test_a_provider_without_its_parent_becomes_a_root(self):
        leaf = self.make_provider('leaf', parent=self.node)
        host, node = self.id_of(self.host), self.id_of(self.node)
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=GONE)

        findings = self.assertFixed({'parent-missing': 1, 'root-missing': 1})

        names = {'provider': 'node', 'provider_uuid': self.node}
        before = {'parent_provider_id': GONE, 'root_provider_id': host}
        after = {'parent_provider_id': None, 'root_provider_id': node}
        expected = [{**names, 'before': before, 'after': after}]
        self.assertEqual(expected, self.changes(findings['parent-missing']))
        expected = [
            {
                'provider': 'leaf',
                'provider_uuid': leaf,
                'before': {'root_provider_id': host},
                'after': {'root_provider_id': node},
            }
        ]
        self.assertEqual(expected, self.changes(findings['root-missing']))
        expected = [(None, self.host), (None, self.node), (self.node, self.node)]
        self.assertEqual(expected, self.links(self.host, self.node, leaf))

    def test_roots_are_set(self):
        leaf = self.make_provider('leaf', parent=self.node)
        other = self.make_provider('other')
        for provider, root in (
            (self.host, None),
            (self.node, None),
            (leaf, self.id_of(other)),
            (other, GONE),
        ):
            self.update(PROVIDERS.c.uuid == provider, root_provider_id=root)

        self.assertFixed({'root-missing': 4})

        expected = [(None, self.host), (self.host, self.host), (self.node, self.host)]
        self.assertEqual(expected, self.links(self.host, self.node, leaf))
        self.assertEqual([(None, other)], self.links(other))

    def test_generations_do_not_change(self):
        columns = PROVIDERS.c.uuid, PROVIDERS.c.generation
        before = self.rows(*columns)
        self.update(PROVIDERS.c.uuid == self.node, root_provider_id=None)
        self.assertFixed({'root-missing': 1})
        self.assertEqual(before, self.rows(*columns))

    def test_providers_in_a_cycle_and_below_it_are_not_changed(self):
        second = self.make_provider('second', parent=self.node)
        below = self.make_provider('below', parent=second)
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=self.id_of(second))
        self.update(PROVIDERS.c.uuid == second, root_provider_id=None)
        self.update(PROVIDERS.c.uuid == below, root_provider_id=None)
        before = self.dump()
        self.assertFixed({}, {'parent-cycle': 2})
        self.assertEqual(before, self.dump())

    def test_a_deep_tree_in_small_batches(self):
        chain = [self.make_provider(f'p{n}') for n in range(7)]
        for child, parent in itertools.pairwise(chain):
            self.update(PROVIDERS.c.uuid == child, parent_provider_id=self.id_of(parent))
        with mock.patch.object(batches, 'SIZE', 2):
            self.assertFixed({'root-missing': 6})
        self.assertEqual({chain[-1]}, {root for _, root in self.links(*chain)})

    def test_a_provider_that_moves_before_the_correction(self):
        """Its root is set in the next round."""
        other = self.make_provider('other')
        self.update(PROVIDERS.c.uuid == self.node, root_provider_id=None)
        original = batches.write
        parents = [self.id_of(other)]

        def interrupted(*arguments):
            if parents:
                parent = parents.pop()
                self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=parent)
                self.assertEqual([], original(*arguments))
                return []
            return original(*arguments)

        with mock.patch.object(batches, 'write', interrupted):
            self.assertFixed({'root-missing': 1})
        self.assertEqual([(other, other)], self.links(self.node))

    def test_roots_that_cannot_be_set(self):
        """The true root is a provider without its parent, which is corrected first."""
        leaf = self.make_provider('leaf', parent=self.node)
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=GONE)
        findings = self.repair('root-missing')
        self.assertEqual((1, 0), (findings['root-missing'].count, findings['root-missing'].fixed))
        self.assertEqual([(self.node, self.host)], self.links(leaf))


class GenerationsTest(FixTestCase):
    def setUp(self):
        super().setUp()
        missing_generations.permit_null(self)

    def test_missing_generations_become_0(self):
        other = self.make_provider('other')
        self.update(PROVIDERS.c.uuid == self.node, generation=None)
        self.update(PROVIDERS.c.uuid == other, generation=None)
        self.update(CONSUMERS.c.uuid == INSTANCE, generation=None)
        with mock.patch.object(batches, 'SIZE', 1):
            (finding,) = self.assertFixed({'null-generation': 3}).values()
        change = {'before': {'generation': None}, 'after': {'generation': 0}}
        owners = {'project': 'project', 'user': 'user', 'consumer_type': 'INSTANCE'}
        identities = [
            {'provider': 'node', 'provider_uuid': self.node},
            {'provider': 'other', 'provider_uuid': other},
            {'consumer_uuid': INSTANCE, **owners},
        ]
        self.assertCountEqual([{**one, **change} for one in identities], finding.rows)
        generations = dict(self.rows(PROVIDERS.c.uuid, PROVIDERS.c.generation))
        self.assertEqual((0, 0), (generations[self.node], generations[other]))
        self.assertEqual(
            [(INSTANCE, 0), (MIGRATION, 1)], self.rows(CONSUMERS.c.uuid, CONSUMERS.c.generation)
        )

    def test_a_generation_that_is_set_before_the_correction_is_kept(self):
        self.update(PROVIDERS.c.uuid == self.node, generation=None)
        original = batches.write

        def interrupted(code, keys, *arguments):
            if self.node in keys:
                self.put_claim(SECOND, {self.node: {'VCPU': 1}})
            return original(code, keys, *arguments)

        with mock.patch.object(batches, 'write', interrupted):
            self.assertFixed({})
        self.assertEqual(1, dict(self.rows(PROVIDERS.c.uuid, PROVIDERS.c.generation))[self.node])


class RowsOfProvidersTest(FixTestCase):
    def test_rows_of_missing_providers_are_deleted(self):
        ((trait_id, _),) = self.rows(models.traits.c.id, models.traits.c.name)[:1]
        self.insert(models.placement_aggregates, uuid=AGGREGATE)
        ((aggregate_id,),) = self.rows(models.placement_aggregates.c.id)
        links = {
            AGGREGATE_LINKS: {'aggregate_id': aggregate_id},
            TRAIT_LINKS: {'trait_id': trait_id},
        }
        clean = self.dump()
        for provider in (self.id_of(self.host), GONE, LOST):
            self.insert_allocation(resource_provider_id=provider)
            self.insert_inventory(resource_provider_id=provider, resource_class_id=3)
            for table, values in links.items():
                self.insert(table, resource_provider_id=provider, **values)
        kept = self.dump()

        with mock.patch.object(batches, 'SIZE', 1):
            findings = self.assertFixed({'orphan-provider': 8})

        left = self.dump()
        for table in ('allocations', 'inventories', *(table.name for table in links)):
            self.assertEqual(len(clean[table]) + 1, len(left[table]))
            self.assertLessEqual(set(left[table]), set(kept[table]))
        first = self.changes(findings['orphan-provider'])[0]
        self.assertEqual(
            {
                'table': 'allocations',
                'provider_id': GONE,
                'consumer_uuid': INSTANCE,
                'resource_class': 'VCPU',
                'used': 1,
                'before': {
                    'resource_provider_id': GONE,
                    'consumer_id': INSTANCE,
                    'resource_class_id': 0,
                    'used': 1,
                },
                'after': None,
            },
            first,
        )

    def test_a_consumer_that_only_used_a_missing_provider_is_deleted(self):
        self.insert_consumer(SECOND)
        self.insert_allocation(consumer_id=SECOND, resource_provider_id=GONE)
        self.assertFixed({'orphan-provider': 1, 'idle-consumer': 1})

    def test_allocations_without_consumer_and_provider_are_deleted(self):
        self.insert_allocation(consumer_id=SECOND, resource_provider_id=GONE)
        self.assertFixed({'orphan-provider': 1})
        self.assertNotIn((SECOND,), self.rows(CONSUMERS.c.uuid))

    def test_a_provider_that_is_created_before_the_deletion_keeps_its_rows(self):
        """SQLite uses the id of a deleted provider again."""
        self.insert_inventory(resource_provider_id=GONE)
        original = batches.write

        def interrupted(*arguments):
            if (GONE,) not in self.rows(PROVIDERS.c.id):
                self.insert(PROVIDERS, id=GONE, uuid=SECOND, name='new', root_provider_id=GONE)
            return original(*arguments)

        with mock.patch.object(batches, 'write', interrupted):
            self.assertEqual({}, self.repair())
        self.assertIn((GONE,), self.rows(INVENTORIES.c.resource_provider_id))


class ConsumersTest(FixTestCase):
    def test_missing_consumers_are_created(self):
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        self.delete(CONSUMERS.c.uuid == MIGRATION)

        with mock.patch.object(batches, 'SIZE', 1):
            findings = self.assertFixed(
                {'orphan-allocation': 3}, {'incomplete-consumer': 2, 'unused': 3}
            )

        (project,) = self.rows(models.projects.c.external_id, models.projects.c.id)[:1]
        (user,) = self.rows(models.users.c.external_id, models.users.c.id)[:1]
        self.assertEqual([ZERO, ZERO], [project[0], user[0]])
        after = {
            'generation': 0,
            'project_id': project[1],
            'user_id': user[1],
            'consumer_type_id': None,
        }
        expected = [
            {
                'consumer_uuid': consumer,
                'allocations': count,
                'before': None,
                'after': {'uuid': consumer, **after},
            }
            for consumer, count in ((INSTANCE, 2), (MIGRATION, 1))
        ]
        self.assertEqual(expected, self.changes(findings['orphan-allocation']))
        allocations = self.send_ok('GET', f'/allocations/{INSTANCE}')
        self.assertEqual(
            {'VCPU': 2, 'DISK_GB': 10}, allocations['allocations'][self.host]['resources']
        )
        self.assertEqual((ZERO, ZERO), (allocations['project_id'], allocations['user_id']))

    def test_no_project_is_created_if_no_consumer_is_missing(self):
        self.repair()
        self.assertEqual([('project',)], self.rows(models.projects.c.external_id))

    def test_idle_consumers_are_deleted(self):
        self.delete(ALLOCATIONS.c.consumer_id == INSTANCE)
        self.insert_consumer(SECOND)

        with mock.patch.object(batches, 'SIZE', 1):
            findings = self.assertFixed({'idle-consumer': 2})

        self.assertEqual([(MIGRATION,)], self.rows(CONSUMERS.c.uuid))
        first, second = self.changes(findings['idle-consumer'])
        owners = {'project': 'project', 'user': 'user', 'consumer_type': 'INSTANCE'}
        row = first.pop('before')
        self.assertEqual({'consumer_uuid': INSTANCE, **owners, 'after': None}, first)
        self.assertEqual((INSTANCE, 1), (row['uuid'], row['generation']))
        self.assertEqual((SECOND, None), (second['consumer_uuid'], second['consumer_type']))

    def test_consumers_that_change_before_the_correction_are_kept(self):
        """An idle consumer gets allocations, and a missing consumer is created."""
        self.insert_consumer(SECOND, generation=4)
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        original = batches.write

        def interrupted(code, *arguments):
            body = base.claim({self.host: {'VCPU': 1}}, 4 if code == 'idle-consumer' else None)
            path = SECOND if code == 'idle-consumer' else INSTANCE
            if code in ('idle-consumer', 'orphan-allocation'):
                self.send_ok('PUT', f'/allocations/{path}', body)
            return original(code, *arguments)

        with mock.patch.object(batches, 'write', interrupted):
            self.assertEqual({}, self.repair())
        expected = [(INSTANCE, 1), (MIGRATION, 1), (SECOND, 5)]
        self.assertEqual(expected, self.rows(CONSUMERS.c.uuid, CONSUMERS.c.generation))

    def test_allocations_that_are_deleted_before_the_correction(self):
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        original = batches.write

        def interrupted(*arguments):
            self.delete(ALLOCATIONS.c.consumer_id == INSTANCE)
            return original(*arguments)

        with mock.patch.object(batches, 'write', interrupted):
            self.assertEqual({}, self.repair('orphan-allocation', 'idle-consumer'))
        self.assertEqual([(MIGRATION,)], self.rows(CONSUMERS.c.uuid))


class OptionsTest(FixTestCase):
    def test_findings_without_a_safe_correction_are_reported_only(self):
        self.insert_inventory(resource_class_id=GONE)
        self.delete(INVENTORIES.c.resource_provider_id == self.id_of(self.node))
        self.update(CONSUMERS.c.uuid == INSTANCE, project_id=GONE)
        before = self.dump()
        findings = self.repair()
        expected = {'unknown-class': 0, 'no-inventory': 0, 'owner-missing': 0}
        self.assertEqual(expected, {code: finding.fixed for code, finding in findings.items()})
        self.assertEqual(before, self.dump())

    def test_only_requested_codes_are_corrected(self):
        self.insert_consumer(SECOND)
        self.update(PROVIDERS.c.uuid == self.node, root_provider_id=None)
        self.assertEqual(['idle-consumer'], list(self.repair('idle-consumer')))
        self.assertEqual({'root-missing': 1}, self.found())


class InterruptionTest(FixTestCase):
    def test_finished_transactions_remain(self):
        """The transaction that is open when the operator presses Ctrl-C is rolled back."""
        for number in range(10, 15):
            self.insert_consumer(str(uuid.UUID(int=number)))
        original = batches.engine.write
        calls = []

        def interrupted(work):
            def then_interrupt(conn):
                calls.append(work(conn))
                if len(calls) == 3:
                    raise KeyboardInterrupt
                return calls[-1]

            return original(then_interrupt)

        with (
            mock.patch.object(batches, 'SIZE', 1),
            mock.patch.object(batches.engine, 'write', interrupted),
        ):
            self.assertRaises(KeyboardInterrupt, self.repair)
        self.assertEqual({'idle-consumer': 3}, self.found())


class PurgeTest(FixTestCase):
    def insert_unused(self):
        for number in range(3):
            self.insert(models.projects, external_id=f'project-{number}')
            self.insert(models.users, external_id=f'user-{number}')
            self.insert(models.consumer_types, name=f'TYPE_{number}')
            self.insert(models.placement_aggregates, uuid=str(uuid.UUID(int=number)))

    def test_unused_rows_are_deleted(self):
        before = self.dump()
        self.insert_unused()
        with mock.patch.object(batches, 'SIZE', 2):
            findings = self.repair(purge=True)
        self.assertEqual(['unused'], list(findings))
        self.assertEqual((12, 12), (findings['unused'].count, findings['unused'].fixed))
        expected = {
            'kind': 'project',
            'name': 'project-0',
            'before': {'external_id': 'project-0'},
            'after': None,
        }
        self.assertEqual(expected, self.changes(findings['unused'])[0])
        self.assertEqual(before, self.dump())

    def test_rows_that_become_unused_by_a_correction_are_deleted(self):
        self.put_claim(SECOND, {self.host: {'VCPU': 1}}, 'second')
        self.delete(ALLOCATIONS.c.consumer_id == SECOND)
        findings = self.repair(purge=True)
        rows = [(row['kind'], row['name']) for row in findings['unused'].rows]
        self.assertEqual([('project', 'second')], rows)

    def test_unused_rows_are_kept_without_the_option(self):
        self.insert_unused()
        before = self.dump()
        self.assertEqual({'unused': 0}, {c: f.fixed for c, f in self.repair().items()})
        self.assertEqual(before, self.dump())
