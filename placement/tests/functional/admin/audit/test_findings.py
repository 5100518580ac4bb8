"""What the audit finds: each kind of finding, made by SQL statements."""

import json
import pathlib
import uuid

import fixtures
import sqlalchemy as sa

from placement import db_api
from placement.admin import audit
from placement.admin.audit import model, repair
from placement.admin.failure import CannotProceedError
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.tests import statements, where
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
from placement.tests.functional.base import claim

SECOND = str(uuid.UUID(int=9))


class FindingsTestCase(base.TestCase):
    def assertFound(self, code, *rows, severity='error'):
        """The audit finds these rows, and no others."""
        findings = {finding.code: finding for finding in self.findings()}
        self.assertEqual({code}, findings.keys())
        expected = (code, severity, len(rows), 0)
        found = findings[code]
        self.assertEqual(expected, (found.code, found.severity, found.count, found.fixed))
        self.assertEqual(list(rows), list(found.rows))

    def names(self, provider='host'):
        return {'provider': provider, 'provider_uuid': getattr(self, provider)}


class ReferencesTest(FindingsTestCase):
    def test_a_sound_cloud(self):
        self.assertEqual((), self.findings())

    def test_orphan_allocation(self):
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        row = {'consumer_uuid': INSTANCE, **self.names()}
        self.assertFound(
            'orphan-allocation',
            {**row, 'resource_class': 'VCPU', 'used': 2},
            {**row, 'resource_class': 'DISK_GB', 'used': 10},
        )

    def test_orphan_provider(self):
        trait_id = self.rows(models.traits.c.id, models.traits.c.name)[0]
        self.insert(models.placement_aggregates, uuid=AGGREGATE)
        ((aggregate_id,),) = self.rows(models.placement_aggregates.c.id)
        self.insert_allocation(resource_provider_id=GONE)
        self.insert_inventory(resource_provider_id=GONE)
        self.insert(TRAIT_LINKS, resource_provider_id=LOST, trait_id=trait_id[0])
        self.insert(AGGREGATE_LINKS, resource_provider_id=LOST, aggregate_id=aggregate_id)
        used = {'consumer_uuid': INSTANCE, 'resource_class': 'VCPU', 'used': 1}
        self.assertFound(
            'orphan-provider',
            {'table': 'allocations', 'provider_id': GONE, **used},
            {
                'table': 'inventories',
                'provider_id': GONE,
                'resource_class': 'MEMORY_MB',
                'total': 5,
            },
            {'table': 'resource_provider_traits', 'provider_id': LOST, 'trait': trait_id[1]},
            {
                'table': 'resource_provider_aggregates',
                'provider_id': LOST,
                'aggregate_uuid': AGGREGATE,
            },
        )

    def test_unknown_class(self):
        self.insert_inventory(resource_class_id=GONE)
        self.insert_allocation(resource_class_id=GONE)
        row = {**self.names(), 'resource_class_id': GONE}
        self.assertFound(
            'unknown-class',
            {'table': 'allocations', 'consumer_uuid': INSTANCE, **row, 'used': 1},
            {'table': 'inventories', **row, 'total': 5},
        )

    def test_no_inventory(self):
        self.delete(INVENTORIES.c.resource_provider_id == self.id_of(self.node))
        self.assertFound(
            'no-inventory',
            {
                'consumer_uuid': MIGRATION,
                **self.names('node'),
                'resource_class': 'VCPU',
                'used': 1,
            },
        )

    def test_over_capacity(self):
        self.update(
            INVENTORIES.c.resource_provider_id == self.id_of(self.host),
            reserved=2,
            total=3,
            allocation_ratio=1.5,
        )
        row = {**self.names(), 'capacity': 1}
        self.assertFound(
            'over-capacity',
            {**row, 'resource_class': 'DISK_GB', 'used': 10},
            {**row, 'resource_class': 'VCPU', 'used': 2},
            severity='notice',
        )

    def test_a_full_inventory_is_not_over_capacity(self):
        host = self.id_of(self.host)
        self.update(INVENTORIES.c.resource_provider_id == host, total=24, reserved=4)
        self.insert_allocation(used=18)
        self.assertEqual({}, self.found())
        self.insert_allocation(used=1)
        self.assertEqual({'over-capacity': 1}, self.found())


class ConsumersTest(FindingsTestCase):
    owners = {'project': 'project', 'user': 'user', 'consumer_type': 'INSTANCE'}

    def test_idle_consumer(self):
        self.delete(ALLOCATIONS.c.consumer_id == MIGRATION)
        self.assertFound('idle-consumer', {'consumer_uuid': MIGRATION, **self.owners})

    def test_incomplete_consumer(self):
        body = {
            'allocations': [{'resource_provider': {'uuid': self.host}, 'resources': {'VCPU': 1}}]
        }
        self.send_ok('PUT', f'/allocations/{SECOND}', body, version='1.7')
        zero = str(uuid.UUID(int=0))
        self.assertFound(
            'incomplete-consumer',
            {'consumer_uuid': SECOND, 'project': zero, 'user': zero, 'consumer_type': None},
            severity='notice',
        )
        self.assertEqual((), self.findings(incomplete_project='another'))

    def test_owner_missing(self):
        second = str(uuid.UUID(int=4))
        for consumer in (SECOND, second):
            self.put_claim(consumer, {self.host: {'VCPU': 1}})
        self.update(CONSUMERS.c.uuid == INSTANCE, project_id=GONE)
        self.update(CONSUMERS.c.uuid == MIGRATION, user_id=GONE)
        self.update(CONSUMERS.c.uuid == SECOND, consumer_type_id=GONE)
        self.update(CONSUMERS.c.uuid == second, consumer_type_id=None)
        self.assertFound(
            'owner-missing',
            {
                'consumer_uuid': INSTANCE,
                'project_id': GONE,
                'user': 'user',
                'consumer_type': 'INSTANCE',
            },
            {
                'consumer_uuid': MIGRATION,
                'project': 'project',
                'user_id': GONE,
                'consumer_type': 'INSTANCE',
            },
            {
                'consumer_uuid': SECOND,
                'project': 'project',
                'user': 'user',
                'consumer_type_id': GONE,
            },
        )

    def test_unused(self):
        self.insert(models.projects, external_id='project-2')
        self.insert(models.users, external_id='user-2')
        self.insert(models.consumer_types, name='TYPE_2')
        self.insert(models.placement_aggregates, uuid=AGGREGATE)
        self.assertFound(
            'unused',
            {'kind': 'project', 'name': 'project-2'},
            {'kind': 'user', 'name': 'user-2'},
            {'kind': 'consumer type', 'name': 'TYPE_2'},
            {'kind': 'aggregate', 'name': AGGREGATE},
            severity='notice',
        )


class TreesOfConsumersTest(FindingsTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.other = self.make_provider('other', {'VCPU': 8, 'DISK_GB': 100})

    def row(self, **values):
        return {
            'consumer_uuid': SECOND,
            'project': 'project',
            'user': 'user',
            'consumer_type': 'INSTANCE',
            'trees': 2,
            'first_tree': 'host',
            'last_tree': 'other',
        } | values

    def test_several_trees(self):
        self.put_claim(SECOND, {self.host: {'VCPU': 2, 'DISK_GB': 1}, self.other: {'VCPU': 2}})
        self.assertFound('several-trees', self.row(), severity='notice')

    def test_three_trees_and_several_classes(self):
        third = self.make_provider('third', {'VCPU': 8, 'DISK_GB': 100})
        both = {'VCPU': 2, 'DISK_GB': 1}
        self.put_claim(SECOND, {self.host: {'VCPU': 2}, self.other: both, third: both})
        row = self.row(trees=3, last_tree='third')
        self.assertFound('several-trees', row, severity='notice')

    def test_one_tree(self):
        self.put_claim(SECOND, {self.host: {'VCPU': 2}, self.node: {'VCPU': 2}})
        self.assertEqual((), self.findings())

    def test_each_class_in_one_tree(self):
        self.put_claim(SECOND, {self.host: {'VCPU': 2}, self.other: {'DISK_GB': 2}})
        self.assertEqual((), self.findings())

    def test_sharing_providers_do_not_count(self):
        shares = {'resource_provider_generation': 1, 'traits': ['MISC_SHARES_VIA_AGGREGATE']}
        self.send_ok('PUT', f'/resource_providers/{self.other}/traits', shares)
        self.put_claim(SECOND, {self.host: {'VCPU': 2}, self.other: {'VCPU': 2}})
        self.assertEqual((), self.findings())

    def test_types(self):
        amounts = {self.host: {'VCPU': 2}, self.other: {'VCPU': 2}}
        self.put_claim(SECOND, amounts)
        self.update(CONSUMERS.c.uuid == SECOND, consumer_type_id=None)
        row = self.row(consumer_type=None)
        self.assertFound('several-trees', row, severity='notice')
        self.set_type(SECOND, 'MIGRATION')
        self.assertEqual((), self.findings())

    def set_type(self, consumer, name):
        """Let another consumer create a type, and set it."""
        body = claim({self.host: {'VCPU': 1}}, consumer_type=name)
        self.send_ok('PUT', f'/allocations/{uuid.UUID(int=5)}', body)
        types = dict(self.rows(models.consumer_types.c.name, models.consumer_types.c.id))
        self.update(CONSUMERS.c.uuid == consumer, consumer_type_id=types[name])

    def audit_servers(self, *listed):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path) / 'servers.json'
        path.write_text(json.dumps(listed))
        config = self.service.conf_fixture.conf
        options = repair.Options([model.NO_SERVER], servers=str(path))
        return {finding.code: finding for finding in repair.run(config, options)}

    def test_no_server(self):
        found = self.audit_servers({'ID': INSTANCE, 'Name': 'a'})['no-server']
        self.assertEqual(('notice', 1), (found.severity, found.count))
        self.assertEqual([MIGRATION], [row['consumer_uuid'] for row in found.rows])

    def test_servers_and_migrations(self):
        self.set_type(MIGRATION, 'MIGRATION')
        for listed, expected in (
            ({'UUID': 1, 'ID': INSTANCE.upper()}, set()),
            ({'uuid': INSTANCE.replace('-', '')}, set()),
            ({'ID': AGGREGATE}, {'no-server'}),
        ):
            self.assertEqual(expected, set(self.audit_servers(listed)), listed)

    def test_files_that_are_no_lists_of_servers(self):
        for listed in (({'ID': 1},), ({'Name': INSTANCE},), ([INSTANCE],), (INSTANCE,)):
            error = self.assertRaises(CannotProceedError, self.audit_servers, *listed)
            self.assertIn('openstack server list --all-projects --limit -1', str(error))

    def test_the_code_needs_the_servers(self):
        config = self.service.conf_fixture.conf
        for options in (
            repair.Options([model.NO_SERVER]),
            repair.Options([model.UNUSED], servers='servers.json'),
        ):
            self.assertRaises(CannotProceedError, repair.run, config, options)
        self.assertNotIn(model.NO_SERVER, self.found())


class ProvidersTest(FindingsTestCase):
    def test_root_missing(self):
        for number, (root, names) in enumerate(
            (
                (None, {'root_provider_uuid': None}),
                (self.id_of(self.node), {'root_provider_uuid': self.node}),
                (GONE, {'root_provider_id': GONE}),
            )
        ):
            with self.subTest(number=number):
                self.update(PROVIDERS.c.uuid == self.node, root_provider_id=root)
                true = {'true_root_provider_uuid': self.host}
                self.assertFound('root-missing', {**self.names('node'), **names, **true})

    def test_parent_missing(self):
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=GONE)
        self.assertFound('parent-missing', {**self.names('node'), 'parent_provider_id': GONE})

    def test_parent_cycle(self):
        """The roots of the providers in the cycle are not a finding."""
        leaf = self.make_provider('leaf', parent=self.node)
        self.update(PROVIDERS.c.uuid == self.node, parent_provider_id=self.id_of(leaf))
        self.update(PROVIDERS.c.uuid == leaf, root_provider_id=None)
        self.assertFound(
            'parent-cycle',
            {**self.names('node'), 'parent_provider_uuid': leaf},
            {'provider': 'leaf', 'provider_uuid': leaf, 'parent_provider_uuid': self.node},
        )

    def test_null_generation(self):
        missing_generations.permit_null(self)
        self.update(PROVIDERS.c.uuid == self.node, generation=None)
        self.update(CONSUMERS.c.uuid == INSTANCE, generation=None)
        owners = {'project': 'project', 'user': 'user', 'consumer_type': 'INSTANCE'}
        self.assertFound(
            'null-generation', self.names('node'), {'consumer_uuid': INSTANCE, **owners}
        )

    def test_duplicate_name(self):
        with engine.snapshot() as conn:
            if conn.scalar(sa.select(sa.literal('straße') == 'STRASSE')):
                self.skipTest('names that differ in letter case cannot be stored')
        self.make_provider('Straße')
        self.make_provider('STRASSE')
        self.make_provider('Other')
        self.assertFound(
            'duplicate-name',
            {'kind': 'provider name', 'names': ['STRASSE', 'Straße']},
            severity='notice',
        )


class OptionsTest(FindingsTestCase):
    def setUp(self):
        super().setUp()
        self.delete(CONSUMERS.c.uuid == INSTANCE)
        self.insert_consumer(SECOND)

    def test_only_requested_codes_are_checked(self):
        self.assertEqual({'orphan-allocation': 2, 'idle-consumer': 1}, self.found())
        self.assertEqual({'idle-consumer': 1}, self.found(['idle-consumer', 'unused']))
        self.assertRaises(CannotProceedError, self.found, ['nonsense'])

    def test_the_number_of_rows_is_limited(self):
        (finding,) = self.findings(['orphan-allocation'], row_limit=1)
        self.assertEqual((2, 1), (finding.count, len(finding.rows)))
        (finding,) = self.findings(['orphan-allocation'], row_limit=0)
        self.assertEqual((2, 0), (finding.count, len(finding.rows)))


class CostTest(FindingsTestCase):
    def test_the_number_of_statements_does_not_depend_on_the_data(self):
        first = self.count_statements()
        for number in range(3):
            root = self.make_provider(f'root-{number}', {'VCPU': 8})
            leaf = self.make_provider(f'leaf-{number}', {'VCPU': 8}, parent=root)
            self.put_claim(str(uuid.uuid4()), {root: {'VCPU': 1}, leaf: {'VCPU': 1}})
        self.assertEqual(first, self.count_statements())
        self.assertLess(first, 40)

    def count_statements(self):
        with statements.recorded(db_api.get_placement_engine()) as recorded:
            self.assertEqual((), self.findings())
        return len(recorded)

    @where.not_on('sqlite', reason='The in-memory database has one connection.')
    def test_all_checks_use_one_snapshot(self):
        """A change between two checks is not visible to the second check."""
        with engine.snapshot() as conn:
            self.assertEqual((), audit.findings(conn, ['idle-consumer']))
            self.insert_consumer(SECOND)
            self.assertEqual((), audit.findings(conn, ['idle-consumer']))
        self.assertEqual({'idle-consumer': 1}, self.found())
