"""`placement-manage rename-uuid` moves the data of a provider to another UUID."""

import collections
import uuid

from placement.admin import rename_uuid
from placement.admin.console import CannotProceedError
from placement.tests.functional.admin.audit import base
from placement.tests.functional.admin.audit.base import (
    ALLOCATIONS,
    CONSUMERS,
    INSTANCE,
    PROVIDERS,
)
from placement.tests.functional.base import claim

NEW = '0a0b0c0d-0000-4000-8000-000000000009'
THIRD = str(uuid.UUID(int=77))
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


class RenameTest(TestCase):
    def test_an_unused_uuid(self):
        """Only the row of the provider changes."""
        expected = self.provider(self.host) | {'uuid': NEW, 'root_provider_uuid': NEW}
        before = self.dump()
        self.assertEqual(
            [
                f'host gets the UUID {NEW}. Nothing else changes.',
                f'provider host: uuid {self.host} -> uuid {NEW}',
            ],
            rename_uuid.rename(self.host, NEW),
        )
        self.assertEqual(expected, self.provider(NEW))
        self.assertEqual(NEW, self.provider(self.leaf)['root_provider_uuid'])
        self.assertEqual({'VCPU': 2, 'DISK_GB': 10}, self.usages(NEW))
        after = self.dump()
        changed = {key for key in after if after[key] != before[key]}
        self.assertEqual({'resource_providers'}, changed)
        self.assertEqual((), self.findings())

    def test_names_and_forms_of_uuids(self):
        again = self.make_provider('again', {'VCPU': 16, 'DISK_GB': 100})
        for old, new, expected in (
            ('host', NEW, NEW),
            ('host', 'again', again),
            (self.host.upper(), NEW.upper(), NEW),
            (self.host.replace('-', ''), NEW.replace('-', ''), NEW),
        ):
            plan = rename_uuid.plan(old, new)
            self.assertTrue(any(self.host in one for one in plan), plan)
            self.assertTrue(any(expected in one for one in plan), plan)

    def test_arguments(self):
        for old, new, reason in (
            ('hosts', NEW, "has the name or the UUID 'hosts'"),
            (NEW, self.host, f"has the name or the UUID '{NEW}'"),
            ('host', 'again', "'again' is neither a UUID nor the name of a resource provider"),
            ('host', self.host.upper(), 'the same UUID'),
        ):
            error = self.assertRaises(CannotProceedError, rename_uuid.plan, old, new)
            self.assertIn(reason, str(error))


class MergeTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.new = self.make_provider('again', {'VCPU': 16, 'DISK_GB': 100})
        self.link(self.host, ['HW_CPU_X86_AVX', 'HW_CPU_X86_SSE'], AGGREGATES[:2])
        self.link(self.new, ['HW_CPU_X86_SSE', 'HW_CPU_X86_MMX'], AGGREGATES[1:])

    def test_everything_moves(self):
        """The children and their allocations stay, and the inventories of the new provider."""
        before = {own: self.provider(own) for own in (self.new, self.node, self.leaf)}
        path = f'/resource_providers/{self.new}/inventories'
        inventories = self.send_ok('GET', path)
        columns = CONSUMERS.c.uuid, CONSUMERS.c.generation
        consumers = dict(self.rows(*columns))
        rename_uuid.rename(self.host, self.new)
        self.assertEqual(404, self.send('GET', f'/resource_providers/{self.host}').status_code)
        self.assertEqual({'VCPU': 2, 'DISK_GB': 10}, self.usages(self.new))
        self.assertEqual({'VCPU': 1}, self.usages(self.node))
        traits = ['HW_CPU_X86_AVX', 'HW_CPU_X86_MMX', 'HW_CPU_X86_SSE']
        self.assertEqual((traits, AGGREGATES), self.linked(self.new))
        for own, parent in ((self.new, None), (self.node, self.new), (self.leaf, self.node)):
            changed = {'root_provider_uuid': self.new, 'parent_provider_uuid': parent}
            changed['generation'] = before[own]['generation'] + 1
            self.assertEqual(before[own] | changed, self.provider(own))
        inventories['resource_provider_generation'] += 1
        self.assertEqual(inventories, self.send_ok('GET', path))
        # Only the moved consumer changes.
        moved = {INSTANCE: consumers[INSTANCE] + 1}
        self.assertEqual(consumers | moved, dict(self.rows(*columns)))
        self.assertEqual((), self.findings())

    def test_a_plan_lists_every_change_and_makes_none(self):
        before = self.dump()
        verdict, *rows = plan = rename_uuid.plan(self.host, self.new)
        self.assertEqual(before, self.dump())
        self.assertEqual(
            '2 allocations of host (OLD) will be from again (NEW), and OLD is deleted.', verdict
        )
        both = ('allocation', 'inventory', 'trait', 'aggregate')
        self.assertEqual(
            {'provider': 4, 'consumer': 1, **dict.fromkeys(both, 2)},
            collections.Counter(one.partition(' ')[0] for one in rows),
        )
        for part in (f'{INSTANCE} VCPU 2', f'node {self.node}', 'HW_CPU_X86_SSE', 'total 8'):
            self.assertIn(part, '\n'.join(rows))
        self.assertEqual(plan, rename_uuid.rename(self.host, self.new, plan))

    def assertRefused(self, reason: str, *arguments) -> None:
        before = self.dump()
        error = self.assertRaises(CannotProceedError, rename_uuid.rename, *arguments)
        self.assertIn(reason, str(error))
        self.assertEqual(before, self.dump())

    def test_another_change_than_the_confirmed_one_is_refused(self):
        plan = rename_uuid.plan(self.host, self.new)
        self.put_claim(THIRD, {self.host: {'VCPU': 1}})
        self.assertRefused('has changed since', self.host, self.new, plan)

    def test_providers_that_do_not_fit(self):
        other = self.make_provider('other', {'VCPU': 16})
        for reason, *uuids in (
            ('is not the root', self.node, self.new),
            ('is not the root', self.node, NEW),
            ('is not the root', self.new, self.node),
            ('is not the root', self.host, self.leaf),
            ('has no inventory of DISK_GB', self.host, other),
        ):
            self.assertRefused(reason, *uuids)

    def test_a_consumer_with_allocations_from_both(self):
        path = f'/allocations/{INSTANCE}'
        body = claim({self.host: {'VCPU': 1}, self.new: {'VCPU': 1}}, generation=1)
        self.send_ok('PUT', path, body)
        self.assertRefused('has allocations of VCPU from both', self.host, self.new)
        body = claim({self.host: {'VCPU': 1}, self.new: {'DISK_GB': 1}}, generation=2)
        self.send_ok('PUT', path, body)
        rename_uuid.rename(self.host, self.new)
        self.assertEqual({'VCPU': 1, 'DISK_GB': 1}, self.usages(self.new))

    def test_the_capacity(self):
        self.put_claim(THIRD, {self.new: {'VCPU': 15}})
        self.assertRefused('would have 17 VCPU in use, and its capacity is 16', self.host, self.new)
        self.update(ALLOCATIONS.c.consumer_id == THIRD, used=14)
        rename_uuid.rename(self.host, self.new)
        self.assertEqual({'VCPU': 16, 'DISK_GB': 10}, self.usages(self.new))

    def test_damaged_rows(self):
        new = PROVIDERS.c.uuid == self.new
        self.update(new, root_provider_id=None)
        self.assertRefused('is not the root', self.host, self.new)
        self.update(new, root_provider_id=PROVIDERS.c.id)
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        self.assertRefused('Run `placement-manage audit`', self.host, self.new)

    def test_old_rows(self):
        """A child has no parent, and a provider has no generation."""
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=None)
        self.update(PROVIDERS.c.uuid == self.new, generation=None)
        rename_uuid.rename(self.host, self.new)
        roots = dict(self.rows(PROVIDERS.c.uuid, PROVIDERS.c.root_provider_id))
        new = self.id_of(self.new)
        self.assertEqual({self.new: new, self.node: new, self.leaf: new}, roots)
        self.assertEqual(1, self.provider(self.new)['generation'])
