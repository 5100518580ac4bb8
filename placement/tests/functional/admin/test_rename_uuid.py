"""`placement-manage rename-uuid` moves the data of a provider to another UUID."""

import uuid

from placement.admin import rename_uuid
from placement.admin.failure import CannotProceedError
from placement.tests.functional.admin.audit import base
from placement.tests.functional.admin.audit.base import (
    ALLOCATIONS,
    CONSUMERS,
    INSTANCE,
    MIGRATION,
    PROVIDERS,
)
from placement.tests.functional.base import claim

NEW = '0a0b0c0d-0000-4000-8000-000000000009'
AGGREGATES = [str(uuid.UUID(int=number)) for number in (100, 101, 102)]


class TestCase(base.TestCase):
    """The tree of `host` has the child `node` and its child `leaf`."""

    def setUp(self) -> None:
        super().setUp()
        self.leaf = self.make_provider('leaf', parent=self.node)

    def provider(self, own: str) -> dict[str, object]:
        document = self.send_ok('GET', f'/resource_providers/{own}')
        return {key: document[key] for key in document if key != 'links'}

    def link(self, provider: str, traits: list[str], aggregates: list[str]) -> None:
        for name, values in (('traits', traits), ('aggregates', aggregates)):
            seen = self.provider(provider)['generation']
            body = {'resource_provider_generation': seen, name: values}
            self.send_ok('PUT', f'/resource_providers/{provider}/{name}', body)

    def linked(self, provider: str) -> tuple[list[str], list[str]]:
        traits = self.send_ok('GET', f'/resource_providers/{provider}/traits')['traits']
        path = f'/resource_providers/{provider}/aggregates'
        return sorted(traits), sorted(self.send_ok('GET', path)['aggregates'])

    def usages(self, provider: str) -> dict[str, int]:
        return self.send_ok('GET', f'/resource_providers/{provider}/usages')['usages']


class UnusedUuidTest(TestCase):
    def test_the_provider_gets_the_uuid(self):
        expected = self.provider(self.host) | {'uuid': NEW, 'root_provider_uuid': NEW}
        before = self.dump()
        changes = rename_uuid.rename(self.host, NEW)
        self.assertEqual(
            [rename_uuid.Change('provider', 'host', f'uuid {self.host}', f'uuid {NEW}')], changes
        )
        self.assertEqual(expected, self.provider(NEW))
        self.assertEqual(NEW, self.provider(self.leaf)['root_provider_uuid'])
        self.assertEqual({'VCPU': 2, 'DISK_GB': 10}, self.usages(NEW))
        after = self.dump()
        self.assertEqual(
            {'resource_providers'}, {key for key in after if after[key] != before[key]}
        )
        self.assertEqual((), self.findings())

    def test_the_uuid_in_upper_case(self):
        rename_uuid.rename(self.host.upper(), NEW)
        self.assertEqual('host', self.provider(NEW)['name'])


class MergeTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.new = self.make_provider('again', {'VCPU': 16, 'DISK_GB': 100})
        self.link(self.host, ['HW_CPU_X86_AVX', 'HW_CPU_X86_SSE'], AGGREGATES[:2])
        self.link(self.new, ['HW_CPU_X86_SSE', 'HW_CPU_X86_MMX'], AGGREGATES[1:])

    def test_everything_moves(self):
        before = {own: self.provider(own) for own in (self.new, self.node, self.leaf)}
        inventories = self.send_ok('GET', f'/resource_providers/{self.new}/inventories')
        rename_uuid.rename(self.host, self.new)
        self.assertEqual(404, self.send('GET', f'/resource_providers/{self.host}').status_code)
        self.assertEqual({'VCPU': 2, 'DISK_GB': 10}, self.usages(self.new))
        self.assertEqual({'VCPU': 1}, self.usages(self.node))
        self.assertEqual(
            (['HW_CPU_X86_AVX', 'HW_CPU_X86_MMX', 'HW_CPU_X86_SSE'], AGGREGATES),
            self.linked(self.new),
        )
        for own, parent in ((self.new, None), (self.node, self.new), (self.leaf, self.node)):
            generation = before[own]['generation'] + 1
            self.assertEqual(
                before[own]
                | {
                    'generation': generation,
                    'root_provider_uuid': self.new,
                    'parent_provider_uuid': parent,
                },
                self.provider(own),
            )
        inventories['resource_provider_generation'] += 1
        path = f'/resource_providers/{self.new}/inventories'
        self.assertEqual(inventories, self.send_ok('GET', path))
        self.assertEqual((), self.findings())

    def test_only_the_moved_consumers_change(self):
        before = dict(self.rows(CONSUMERS.c.uuid, CONSUMERS.c.generation))
        rename_uuid.rename(self.host, self.new)
        expected = before | {INSTANCE: before[INSTANCE] + 1}
        self.assertEqual(expected, dict(self.rows(CONSUMERS.c.uuid, CONSUMERS.c.generation)))

    def test_a_plan_lists_every_change_and_makes_none(self):
        before = self.dump()
        plan = rename_uuid.plan(self.host, self.new)
        self.assertEqual(before, self.dump())
        self.assertEqual(
            {
                'allocation': 2,
                'consumer': 1,
                'trait': 2,
                'aggregate': 2,
                'inventory': 2,
                'provider': 4,
            },
            {one.table: [two.table for two in plan].count(one.table) for one in plan},
        )
        text = rename_uuid.render(plan)
        for part in (f'{INSTANCE} VCPU 2', f'node {self.node}', 'HW_CPU_X86_SSE', 'total 8'):
            self.assertIn(part, text)
        self.assertEqual(plan, rename_uuid.rename(self.host, self.new, plan))

    def test_another_change_than_the_confirmed_one_is_refused(self):
        plan = rename_uuid.plan(self.host, self.new)
        self.put_claim(str(uuid.UUID(int=77)), {self.host: {'VCPU': 1}})
        before = self.dump()
        self.assertRefused('has changed since', self.host, self.new, plan)
        self.assertEqual(before, self.dump())

    def test_a_full_provider(self):
        self.put_claim(str(uuid.UUID(int=77)), {self.new: {'VCPU': 14}})
        rename_uuid.rename(self.host, self.new)
        self.assertEqual({'VCPU': 16, 'DISK_GB': 10}, self.usages(self.new))

    def assertRefused(self, reason: str, *arguments) -> None:
        before = self.dump()
        error = self.assertRaises(CannotProceedError, rename_uuid.rename, *arguments)
        self.assertIn(reason, str(error))
        self.assertEqual(before, self.dump())

    def test_providers_that_do_not_fit(self):
        self.assertRefused('No resource provider has the UUID', NEW, self.new)
        self.assertRefused('is not the root', self.node, self.new)
        self.assertRefused('is not the root', self.node, NEW)
        self.assertRefused('is not the root', self.new, self.node)
        self.assertRefused('is in the tree of OLD', self.host, self.leaf)

    def test_a_consumer_with_allocations_from_both(self):
        body = claim({self.host: {'VCPU': 1}, self.new: {'VCPU': 1}}, generation=1)
        self.send_ok('PUT', f'/allocations/{INSTANCE}', body)
        self.assertRefused('has allocations of VCPU from both', self.host, self.new)

    def test_a_consumer_with_different_classes_of_both(self):
        body = claim({self.host: {'VCPU': 1}, self.new: {'DISK_GB': 1}}, generation=1)
        self.send_ok('PUT', f'/allocations/{INSTANCE}', body)
        rename_uuid.rename(self.host, self.new)
        self.assertEqual({'VCPU': 1, 'DISK_GB': 1}, self.usages(self.new))

    def test_the_capacity(self):
        self.put_claim(str(uuid.UUID(int=77)), {self.new: {'VCPU': 15}})
        self.assertRefused('would have 17 VCPU in use, and its capacity is 16', self.host, self.new)

    def test_a_missing_inventory(self):
        other = self.make_provider('other', {'VCPU': 16})
        self.assertRefused('has no inventory of DISK_GB', self.host, other)

    def test_damaged_rows(self):
        self.update(PROVIDERS.c.uuid == self.new, root_provider_id=None)
        self.assertRefused('is not the root', self.host, self.new)
        self.update(PROVIDERS.c.uuid == self.new, root_provider_id=PROVIDERS.c.id)
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        self.assertRefused('Run `placement-manage audit`', self.host, self.new)

    def test_children_without_their_parent(self):
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=None)
        rename_uuid.rename(self.host, self.new)
        roots = dict(self.rows(PROVIDERS.c.uuid, PROVIDERS.c.root_provider_id))
        new = self.id_of(self.new)
        self.assertEqual({self.new: new, self.node: new, self.leaf: new}, roots)

    def test_rows_without_a_generation(self):
        self.update(PROVIDERS.c.uuid == self.new, generation=None)
        rename_uuid.rename(self.host, self.new)
        self.assertEqual(1, self.provider(self.new)['generation'])

    def test_allocations_of_children_stay(self):
        before = self.rows(ALLOCATIONS.c.id, ALLOCATIONS.c.resource_provider_id)
        rename_uuid.rename(self.host, self.new)
        node = self.id_of(self.node)
        after = dict(self.rows(ALLOCATIONS.c.id, ALLOCATIONS.c.resource_provider_id))
        self.assertEqual(
            [id_ for id_, rp in before if rp == node],
            [id_ for id_, rp in after.items() if rp == node],
        )
        self.assertEqual(
            [MIGRATION],
            [
                row[0]
                for row in self.rows(ALLOCATIONS.c.consumer_id, ALLOCATIONS.c.resource_provider_id)
                if row[1] == node
            ],
        )


class ArgumentsTest(base.TestCase):
    def test_uuids(self):
        for old, new, reason in (
            ('host', NEW, 'host is not a UUID'),
            (NEW, NEW.replace('-', ''), 'is not a UUID'),
            (NEW, NEW.upper(), 'the same UUID'),
        ):
            error = self.assertRaises(CannotProceedError, rename_uuid.check_uuids, old, new)
            self.assertIn(reason, str(error))
        rename_uuid.check_uuids(NEW.upper(), INSTANCE)
