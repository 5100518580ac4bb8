"""Each code of the audit: what it finds, and what `--fix` corrects."""

import json
import pathlib
from typing import Any
import uuid

import fixtures
import sqlalchemy as sa

from placement.admin.audit import model
from placement.admin.console import CannotProceedError
from placement.db import engine
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
    SECOND,
    TRAIT_LINKS,
)
from placement.tests.functional.base import claim

ZERO = str(uuid.UUID(int=0))
OWNERS = {'project': 'project', 'user': 'user', 'consumer_type': 'INSTANCE'}
# Columns whose values differ from run to run.
_VARIABLE = {'id', 'created_at', 'updated_at'}


class TestCase(base.TestCase):
    def assertFound(self, code: str, *rows: dict[str, Any], severity: str = 'error') -> None:
        """The audit finds these rows, and no others."""
        findings = {finding.code: finding for finding in self.findings()}
        self.assertEqual({code}, findings.keys())
        expected = (code, severity, len(rows), 0)
        found = findings[code]
        self.assertEqual(expected, (found.code, found.severity, found.count, found.fixed))
        self.assertEqual(list(rows), list(found.rows))

    def assertNotice(self, code: str, *rows: dict[str, Any]) -> None:
        """The audit finds these rows, which are legal and not corrected."""
        self.assertFound(code, *rows, severity='notice')
        self.assertFixed({}, left={code: len(rows)})

    def assertFixed(
        self, fixed: dict[str, int], left: dict[str, int] | None = None, purge: bool = False
    ) -> dict[str, list[Any]]:
        """Correct these numbers of findings; afterwards, nothing else is left.

        :param left: the numbers of findings that are left
        :returns: the changed rows by code, without variable columns
        """
        before = self.dump()
        findings = self.repair(purge=purge)
        done = {code: finding.fixed for code, finding in findings.items() if finding.fixed}
        self.assertEqual(fixed, done)
        self.assertEqual(left or {}, self.found())
        after = self.dump()
        if not fixed:
            self.assertEqual(before, after)
        self.assertEqual(left or {}, {c: one.left for c, one in self.repair(purge=purge).items()})
        self.assertEqual(after, self.dump())
        changes: dict[str, list[Any]] = {}
        for code, finding in findings.items():
            for row in finding.rows:
                if 'before' in row:
                    changes.setdefault(code, []).append({k: _constant(v) for k, v in row.items()})
        return changes

    def names(self, provider: str = 'host') -> dict[str, str]:
        return {'provider': provider, 'provider_uuid': getattr(self, provider)}

    def links(self, *providers: str) -> list[tuple[str | None, str | None]]:
        """The parents and roots of providers, as UUIDs."""
        columns = PROVIDERS.c.parent_provider_id, PROVIDERS.c.root_provider_id
        rows = self.rows(PROVIDERS.c.uuid, PROVIDERS.c.id, *columns)
        uuids = {row[1]: row[0] for row in rows} | {None: None}
        links = {row[0]: (uuids.get(row[2], row[2]), uuids[row[3]]) for row in rows}
        return [links[provider] for provider in providers]


def _constant(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: one for name, one in value.items() if name not in _VARIABLE}
    return value


class CodesTest(TestCase):
    """A test for each code: its name contains the code."""

    def test_each_code_has_a_test(self):
        for code in model.CODES:
            name = f'test_{code.replace("-", "_")}'
            tests = {*dir(CodesTest), *dir(SeveralTreesTest)}
            self.assertTrue(any(test.startswith(name) for test in tests), name)

    def test_a_sound_cloud(self):
        self.assertEqual((), self.findings())
        self.assertFixed({})

    def test_orphan_allocation(self):
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        row = {'consumer_uuid': INSTANCE, **self.names()}
        self.assertFound(
            'orphan-allocation',
            {**row, 'resource_class': 'VCPU', 'used': 2},
            {**row, 'resource_class': 'DISK_GB', 'used': 10},
        )
        self.delete(CONSUMERS.c.uuid == MIGRATION)
        with self.batches_of(1):
            left = {'incomplete-consumer': 2, 'unused': 3}
            changes = self.assertFixed({'orphan-allocation': 3}, left)
        ((_, project),) = self.rows(models.projects.c.external_id, models.projects.c.id)[:1]
        ((_, user),) = self.rows(models.users.c.external_id, models.users.c.id)[:1]
        owners = {'project_id': project, 'user_id': user, 'consumer_type_id': None}
        expected = [
            {
                'consumer_uuid': consumer,
                'allocations': count,
                'before': None,
                'after': {'uuid': consumer, 'generation': 0, **owners},
            }
            for consumer, count in ((INSTANCE, 2), (MIGRATION, 1))
        ]
        self.assertEqual({'orphan-allocation': expected}, changes)
        found = self.send_ok('GET', f'/allocations/{INSTANCE}')
        self.assertEqual({'VCPU': 2, 'DISK_GB': 10}, found['allocations'][self.host]['resources'])
        self.assertEqual((ZERO, ZERO), (found['project_id'], found['user_id']))

    def test_orphan_provider(self):
        trait_id, trait = self.rows(models.traits.c.id, models.traits.c.name)[0]
        self.insert(models.placement_aggregates, uuid=AGGREGATE)
        ((aggregate_id,),) = self.rows(models.placement_aggregates.c.id)
        self.insert(
            AGGREGATE_LINKS, resource_provider_id=self.id_of(self.host), aggregate_id=aggregate_id
        )
        sound = self.dump()
        self.insert_allocation(resource_provider_id=GONE)
        self.insert_inventory(resource_provider_id=GONE)
        self.insert(TRAIT_LINKS, resource_provider_id=LOST, trait_id=trait_id)
        self.insert(AGGREGATE_LINKS, resource_provider_id=LOST, aggregate_id=aggregate_id)
        used = {'consumer_uuid': INSTANCE, 'resource_class': 'VCPU', 'used': 1}
        memory = {'resource_class': 'MEMORY_MB', 'total': 5}
        rows = (
            {'table': 'allocations', 'provider_id': GONE, **used},
            {'table': 'inventories', 'provider_id': GONE, **memory},
            {'table': 'resource_provider_traits', 'provider_id': LOST, 'trait': trait},
            {
                'table': 'resource_provider_aggregates',
                'provider_id': LOST,
                'aggregate_uuid': AGGREGATE,
            },
        )
        self.assertFound('orphan-provider', *rows)
        with self.batches_of(1):
            changes = self.assertFixed({'orphan-provider': 4})['orphan-provider']
        self.assertEqual(sound, self.dump())
        before = {'resource_provider_id': GONE, 'consumer_id': INSTANCE, 'resource_class_id': 0}
        first = {**rows[0], 'before': {**before, 'used': 1}, 'after': None}
        self.assertEqual(first, changes[0])

    def test_orphan_provider_and_its_consumers(self):
        """A consumer without other allocations is deleted, and a missing one is not created."""
        third = str(uuid.UUID(int=10))
        self.insert_consumer(SECOND)
        for consumer in (SECOND, third):
            self.insert_allocation(consumer_id=consumer, resource_provider_id=GONE)
        self.assertFixed({'orphan-provider': 2, 'idle-consumer': 1})
        self.assertEqual([(INSTANCE,), (MIGRATION,)], self.rows(CONSUMERS.c.uuid))

    def test_unknown_class(self):
        self.insert_inventory(resource_class_id=GONE)
        self.insert_allocation(resource_class_id=GONE)
        row = {**self.names(), 'resource_class_id': GONE}
        self.assertFound(
            'unknown-class',
            {'table': 'allocations', 'consumer_uuid': INSTANCE, **row, 'used': 1},
            {'table': 'inventories', **row, 'total': 5},
        )
        self.assertFixed({}, {'unknown-class': 2})

    def test_no_inventory(self):
        self.delete(INVENTORIES.c.resource_provider_id == self.id_of(self.node))
        row = {'consumer_uuid': MIGRATION, **self.names('node')}
        self.assertFound('no-inventory', {**row, 'resource_class': 'VCPU', 'used': 1})
        self.assertFixed({}, {'no-inventory': 1})

    def test_over_capacity(self):
        host = INVENTORIES.c.resource_provider_id == self.id_of(self.host)
        self.update(host, reserved=2, total=3, allocation_ratio=1.5)
        row = {**self.names(), 'capacity': 1}
        self.assertNotice(
            'over-capacity',
            {**row, 'resource_class': 'DISK_GB', 'used': 10},
            {**row, 'resource_class': 'VCPU', 'used': 2},
        )
        # A full inventory is not over its capacity: 20 times 1.5 is 30.
        self.update(host, total=24, reserved=4)
        self.insert_allocation(used=28)
        self.assertEqual({}, self.found())
        self.insert_allocation(used=1)
        self.assertEqual({'over-capacity': 1}, self.found())

    def test_idle_consumer(self):
        self.delete(ALLOCATIONS.c.consumer_id == INSTANCE)
        self.insert_consumer(SECOND)
        untyped = {**OWNERS, 'consumer_type': None}
        rows = {'consumer_uuid': INSTANCE, **OWNERS}, {'consumer_uuid': SECOND, **untyped}
        self.assertFound('idle-consumer', *rows)
        with self.batches_of(1):
            first, second = self.assertFixed({'idle-consumer': 2})['idle-consumer']
        self.assertEqual([(MIGRATION,)], self.rows(CONSUMERS.c.uuid))
        stored = first['before']
        self.assertEqual((INSTANCE, 1), (stored['uuid'], stored['generation']))
        self.assertEqual({**rows[0], 'before': stored, 'after': None}, first)
        self.assertEqual({**rows[1], 'before': second['before'], 'after': None}, second)

    def test_incomplete_consumer(self):
        resources = [{'resource_provider': {'uuid': self.host}, 'resources': {'VCPU': 1}}]
        self.send_ok('PUT', f'/allocations/{SECOND}', {'allocations': resources}, version='1.7')
        owners = {'project': ZERO, 'user': ZERO, 'consumer_type': None}
        self.assertNotice('incomplete-consumer', {'consumer_uuid': SECOND, **owners})
        self.assertEqual((), self.findings(incomplete_project='another'))

    def test_owner_missing(self):
        fourth = str(uuid.UUID(int=4))
        for consumer in (SECOND, fourth):
            self.put_claim(consumer, {self.host: {'VCPU': 1}})
        self.update(CONSUMERS.c.uuid == INSTANCE, project_id=GONE)
        self.update(CONSUMERS.c.uuid == MIGRATION, user_id=GONE)
        self.update(CONSUMERS.c.uuid == SECOND, consumer_type_id=GONE)
        self.update(CONSUMERS.c.uuid == fourth, consumer_type_id=None)
        project, user, type_ = ({key: value} for key, value in OWNERS.items())
        self.assertFound(
            'owner-missing',
            {'consumer_uuid': INSTANCE, 'project_id': GONE, **user, **type_},
            {'consumer_uuid': MIGRATION, **project, 'user_id': GONE, **type_},
            {'consumer_uuid': SECOND, **project, **user, 'consumer_type_id': GONE},
        )
        self.assertFixed({}, {'owner-missing': 3})

    def test_root_missing(self):
        leaf = self.make_provider('leaf', parent=self.node)
        other = self.make_provider('other')
        for root, names in (
            (None, {'root_provider_uuid': None}),
            (self.id_of(self.node), {'root_provider_uuid': self.node}),
            (GONE, {'root_provider_id': GONE}),
        ):
            self.update(PROVIDERS.c.uuid == self.node, root_provider_id=root)
            true = {'true_root_provider_uuid': self.host}
            self.assertFound('root-missing', {**self.names('node'), **names, **true})
        generations = self.rows(PROVIDERS.c.uuid, PROVIDERS.c.generation)
        for provider, root in ((self.host, None), (leaf, self.id_of(other)), (other, GONE)):
            self.update(PROVIDERS.c.uuid == provider, root_provider_id=root)
        with self.batches_of(1):
            changes = self.assertFixed({'root-missing': 4})['root-missing']
        after = {'root_provider_id': self.id_of(self.host)}
        expected = {**self.names('node'), 'before': {'root_provider_id': GONE}, 'after': after}
        self.assertIn(expected, changes)
        expected = [
            (None, self.host),
            (self.host, self.host),
            (self.node, self.host),
            (None, other),
        ]
        self.assertEqual(expected, self.links(self.host, self.node, leaf, other))
        self.assertEqual(generations, self.rows(PROVIDERS.c.uuid, PROVIDERS.c.generation))

    def test_parent_missing(self):
        """The provider becomes a root, and then the root of its children."""
        leaf = self.make_provider('leaf', parent=self.node)
        host, node = self.id_of(self.host), self.id_of(self.node)
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=GONE)
        self.assertEqual({'parent-missing': 1, 'root-missing': 1}, self.found())
        (found,) = self.findings(['parent-missing'])
        self.assertEqual(({**self.names('node'), 'parent_provider_id': GONE},), found.rows)
        # The root of the leaf cannot be set before.
        self.assertEqual(0, self.repair('root-missing')['root-missing'].fixed)
        self.assertEqual([(self.node, self.host)], self.links(leaf))

        before = {'parent_provider_id': GONE, 'root_provider_id': host}
        after = {'parent_provider_id': None, 'root_provider_id': node}
        roots = {'before': {'root_provider_id': host}, 'after': {'root_provider_id': node}}
        self.assertEqual(
            {
                'parent-missing': [{**self.names('node'), 'before': before, 'after': after}],
                'root-missing': [{'provider': 'leaf', 'provider_uuid': leaf, **roots}],
            },
            self.assertFixed({'parent-missing': 1, 'root-missing': 1}),
        )
        expected = [(None, self.host), (None, self.node), (self.node, self.node)]
        self.assertEqual(expected, self.links(self.host, self.node, leaf))

    def test_parent_cycle(self):
        """The roots of the providers in the cycle and below it are not a finding."""
        leaf = self.make_provider('leaf', parent=self.node)
        below = self.make_provider('below', parent=leaf)
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=self.id_of(leaf))
        for provider in (leaf, below):
            self.update(PROVIDERS.c.uuid == provider, root_provider_id=None)
        self.assertFound(
            'parent-cycle',
            {**self.names('node'), 'parent_provider_uuid': leaf},
            {'provider': 'leaf', 'provider_uuid': leaf, 'parent_provider_uuid': self.node},
        )
        self.assertFixed({}, {'parent-cycle': 2})

    def test_null_generation(self):
        missing_generations.permit_null(self)
        self.update(PROVIDERS.c.uuid == self.node, generation=None)
        self.update(CONSUMERS.c.uuid == INSTANCE, generation=None)
        rows = self.names('node'), {'consumer_uuid': INSTANCE, **OWNERS}
        self.assertFound('null-generation', *rows)
        with self.batches_of(1):
            changes = self.assertFixed({'null-generation': 2})['null-generation']
        change = {'before': {'generation': None}, 'after': {'generation': 0}}
        self.assertEqual([{**row, **change} for row in rows], changes)
        providers = dict(self.rows(PROVIDERS.c.uuid, PROVIDERS.c.generation))
        consumers = dict(self.rows(CONSUMERS.c.uuid, CONSUMERS.c.generation))
        self.assertEqual(0, providers[self.node])
        self.assertEqual({INSTANCE: 0, MIGRATION: 1}, consumers)

    def test_duplicate_name(self):
        with engine.snapshot() as conn:
            if conn.scalar(sa.select(sa.literal('straße') == 'STRASSE')):
                self.skipTest('names that differ in letter case cannot be stored')
        for name in ('Straße', 'STRASSE', 'Other'):
            self.make_provider(name)
        self.assertNotice(
            'duplicate-name',
            {'kind': 'provider name', 'names': ['STRASSE', 'Straße']},
        )

    def test_unused(self):
        before = self.dump()
        rows = []
        for kind, column, texts in (
            ('project', models.projects.c.external_id, ('p-1', 'p-2', 'p-3')),
            ('user', models.users.c.external_id, ('u-1',)),
            ('consumer type', models.consumer_types.c.name, ('TYPE_2',)),
            ('aggregate', models.placement_aggregates.c.uuid, (AGGREGATE,)),
        ):
            for text in texts:
                self.insert(column.table, **{column.name: text})
                rows.append({'kind': kind, 'name': text})
        self.assertNotice('unused', *rows)
        # --purge deletes them, and those that become unused by a correction.
        self.put_claim(SECOND, {self.host: {'VCPU': 1}}, 'second')
        self.delete(ALLOCATIONS.c.consumer_id == SECOND)
        with self.batches_of(2):
            changes = self.assertFixed({'idle-consumer': 1, 'unused': 7}, purge=True)['unused']
        self.assertEqual(before, self.dump() | {'resource_providers': before['resource_providers']})
        first = {**rows[0], 'before': {'external_id': 'p-1'}, 'after': None}
        self.assertEqual(first, changes[0])
        self.assertEqual('second', changes[3]['name'])


class SeveralTreesTest(TestCase):
    """The codes about instances."""

    def setUp(self) -> None:
        super().setUp()
        self.other = self.make_provider('other', {'VCPU': 8, 'DISK_GB': 100})

    def assertTrees(self, trees: int, last: str, own: str, **values: Any) -> None:
        row = {'consumer_uuid': SECOND, **OWNERS, 'trees': trees}
        row |= {'first_tree': 'host', 'first_tree_uuid': self.host}
        row |= {'last_tree': last, 'last_tree_uuid': own, **values}
        self.assertNotice('several-trees', row)

    def test_several_trees(self):
        both = {'VCPU': 2, 'DISK_GB': 1}
        self.put_claim(SECOND, {self.host: both, self.other: {'VCPU': 2}})
        self.assertTrees(2, 'other', self.other)
        # An instance without a type, and another consumer.
        self.update(CONSUMERS.c.uuid == SECOND, consumer_type_id=None)
        self.assertTrees(2, 'other', self.other, consumer_type=None)
        self.set_type(SECOND, 'MIGRATION')
        self.assertEqual((), self.findings())

    def test_several_trees_for_several_classes(self):
        third = self.make_provider('third', {'VCPU': 8, 'DISK_GB': 100})
        both = {'VCPU': 2, 'DISK_GB': 1}
        self.put_claim(SECOND, {self.host: {'VCPU': 2}, self.other: both, third: both})
        self.assertTrees(3, 'third', third)

    def test_one_tree_for_each_class(self):
        amounts = {self.host: {'VCPU': 1}, self.node: {'VCPU': 1}, self.other: {'DISK_GB': 2}}
        self.put_claim(SECOND, amounts)
        self.assertEqual((), self.findings())

    def test_sharing_providers_do_not_count(self):
        shares = {'resource_provider_generation': 1, 'traits': ['MISC_SHARES_VIA_AGGREGATE']}
        self.send_ok('PUT', f'/resource_providers/{self.other}/traits', shares)
        self.put_claim(SECOND, {self.host: {'VCPU': 2}, self.other: {'VCPU': 2}})
        self.assertEqual((), self.findings())

    def set_type(self, consumer: str, name: str) -> None:
        """Let another consumer create a type, and set it."""
        body = claim({self.host: {'VCPU': 1}}, consumer_type=name)
        self.send_ok('PUT', f'/allocations/{uuid.UUID(int=5)}', body)
        types = dict(self.rows(models.consumer_types.c.name, models.consumer_types.c.id))
        self.update(CONSUMERS.c.uuid == consumer, consumer_type_id=types[name])

    def audit_servers(self, code: str, *listed: Any) -> list[Any]:
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'servers.json'
        path.write_text(json.dumps(listed))
        found = self.repair(code, fix=False, servers=str(path))
        self.assertLessEqual({one.severity for one in found.values()}, {'notice'})
        return [row for one in found.values() for row in one.rows]

    def without_server(self, *listed: Any) -> list[Any]:
        return [row['consumer_uuid'] for row in self.audit_servers('no-server', *listed)]

    def test_no_server(self):
        self.assertEqual([MIGRATION], self.without_server({'ID': INSTANCE, 'Name': 'a'}))
        self.set_type(MIGRATION, 'MIGRATION')
        another = str(uuid.UUID(int=5))
        self.update(CONSUMERS.c.uuid == another, consumer_type_id=None)
        for listed, expected in (
            ({'UUID': 1, 'ID': INSTANCE.upper()}, [another]),
            ({'uuid': INSTANCE.replace('-', '')}, [another]),
            ({'ID': AGGREGATE}, [INSTANCE, another]),
        ):
            self.assertEqual(expected, sorted(self.without_server(listed)), listed)
        for wrong in (({'ID': 1},), ({'Name': INSTANCE},), ([INSTANCE],), (INSTANCE,)):
            error = self.assertRaises(CannotProceedError, self.without_server, *wrong)
            self.assertIn('openstack server list --all-projects --limit -1', str(error))

    def test_no_allocations(self):
        """A consumer without allocations does not count, nor a server that uses no host."""
        idle, upper = str(uuid.UUID(int=6)), {'ID': MIGRATION.upper(), 'Status': 'ACTIVE'}
        self.insert_consumer(idle)
        servers = [{'ID': INSTANCE, 'Name': 'a', 'Status': 'ACTIVE'}, upper]
        self.assertEqual([], self.audit_servers('no-allocations', *servers))
        servers.append({'ID': idle, 'Name': 'b', 'Status': 'ACTIVE'})
        servers.append({'ID': AGGREGATE, 'Name': 'c', 'Status': 'SHELVED_OFFLOADED'})
        servers.append({'ID': SECOND.upper()})
        expected = [
            {'server': 'b', 'server_uuid': idle, 'status': 'ACTIVE'},
            {'server': None, 'server_uuid': SECOND, 'status': None},
        ]
        self.assertEqual(expected, self.audit_servers('no-allocations', *servers))
