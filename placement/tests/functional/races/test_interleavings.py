"""Single interleavings that random races rarely produce."""

from collections.abc import Callable
import datetime
import itertools
from typing import Any
from unittest import mock
import uuid

from oslo_utils import fixture as utils_fixture
import sqlalchemy as sa

from placement import db_api, errors
from placement.claims import consumer_rows, write
from placement.db import retry
from placement.db.sqlalchemy import models
from placement.objects import generation, inventory, provider_rows, trait
from placement.tests import where
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim, claim_1_27, inventories_of
from placement.tests.waiting import LONGEST


@where.not_on('sqlite', reason='On SQLite a writer has the lock from its first statement.')
@where.also_on_mysql('MySQL decides which transaction waits and which one it ends.')
class InterleavingsTest(testcase.RaceTestCase):
    def interleave(
        self, module: Any, name: str, concurrent: testcase.Call
    ) -> list[testcase.Response]:
        """Send a concurrent request, up to its response, after the first call of a function."""
        responses: list[testcase.Response] = []
        original: Callable[..., Any] = getattr(module, name)

        def interleaved(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            if not sent:
                sent.append(True)
                responses.append(testcase.start(concurrent).result(LONGEST))
            return result

        sent: list[bool] = []
        patch = mock.patch.object(module, name, interleaved)
        patch.start()
        self.addCleanup(patch.stop)
        return responses

    def test_consumer_is_created_while_it_is_released(self):
        """Allocations that are created after the lookup are not deleted without their consumer."""
        provider = self.make_provider({'VCPU': 10})
        consumer_uuid = str(uuid.uuid4())
        path = f'/allocations/{consumer_uuid}'
        concurrent = self.call('PUT', path, claim_1_27({provider: 2}), '1.27')
        responses = self.interleave(consumer_rows, 'lock', concurrent)
        self.assertIn(self.send('DELETE', path).status, (204, 404))
        self.assertEqual([204], [response.status for response in responses])
        self.audit()

    def test_provider_moves_while_it_is_renamed(self):
        """The body repeats the parent, which a concurrent request has changed."""
        first, second = self.make_provider(), self.make_provider()
        own = self.make_provider(parent=first)
        path = f'/resource_providers/{own}'
        concurrent = self.call('PUT', path, {'name': 'moved', 'parent_provider_uuid': second})
        responses = self.interleave(provider_rows, 'read', concurrent)
        renamed = self.send_ok('PUT', path, {'name': 'renamed', 'parent_provider_uuid': first})
        self.assertEqual([200], [response.status for response in responses])
        self.assertEqual(('renamed', first), (renamed['name'], renamed['parent_provider_uuid']))
        self.audit()

    def test_parent_is_deleted_while_a_child_is_created(self):
        parent = self.make_provider(parent=self.make_provider())
        responses = self.interleave(
            provider_rows, 'read', self.call('DELETE', f'/resource_providers/{parent}')
        )
        body = {'name': 'child', 'parent_provider_uuid': parent}
        self.assertEqual(400, self.send('POST', '/resource_providers', body).status)
        self.assertEqual([204], [response.status for response in responses])
        self.audit()

    def test_tree_is_moved_while_a_child_is_created(self):
        parent = self.make_provider(parent=self.make_provider())
        elsewhere = self.make_provider()
        path = f'/resource_providers/{parent}'
        concurrent = self.call('PUT', path, {'name': 'moved', 'parent_provider_uuid': elsewhere})
        responses = self.interleave(provider_rows, 'read', concurrent)
        body = {'name': 'child', 'parent_provider_uuid': parent}
        child = self.send_ok('POST', '/resource_providers', body)
        self.assertEqual([200], [response.status for response in responses])
        self.assertEqual(elsewhere, child['root_provider_uuid'])
        self.audit()

    def test_provider_is_claimed_while_its_inventories_are_replaced(self):
        """The inventories are read before the provider is locked, so the generation is compared."""
        provider = self.make_provider({'VCPU': 10})
        concurrent = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 3}))
        responses = self.interleave(inventory, 'read_of_provider', concurrent)
        path = f'/resource_providers/{provider}/inventories'
        response = self.send('PUT', path, inventories_of({'MEMORY_MB': 10}, 1))
        self.assertEqual((409, [204]), (response.status, [one.status for one in responses]))
        self.assertEqual(3, self.used(provider))
        self.audit()

    def test_provider_is_deleted_while_its_inventories_are_replaced(self):
        provider = self.make_provider({'VCPU': 10})
        path = f'/resource_providers/{provider}'
        responses = self.interleave(inventory, 'read_of_provider', self.call('DELETE', path))
        response = self.send('PUT', f'{path}/inventories', inventories_of({'MEMORY_MB': 10}, 1))
        self.assertEqual((404, [204]), (response.status, [one.status for one in responses]))
        self.audit()

    def test_class_is_replaced_while_its_first_inventory_is_added(self):
        """The new class has the id of the deleted class."""
        self.send_ok('PUT', '/resource_classes/CUSTOM_OLD')
        provider = self.make_provider({'VCPU': 10})

        def replace_class() -> testcase.Response:
            self.send_ok('DELETE', '/resource_classes/CUSTOM_OLD')
            return self.send('PUT', '/resource_classes/CUSTOM_NEW')

        responses = self.interleave(inventory, 'read_of_provider', replace_class)
        path = f'/resource_providers/{provider}/inventories'
        response = self.send('PUT', path, inventories_of({'CUSTOM_OLD': 10}, 1))
        self.assertEqual((400, [201]), (response.status, [one.status for one in responses]))
        self.assertEqual({'VCPU'}, self.send_ok('GET', path)['inventories'].keys())
        self.audit()

    def test_traits_are_replaced_by_another_client(self):
        """The traits are read before the provider is locked, so they never become a union."""
        path = f'/resource_providers/{self.make_provider()}/traits'
        first, second = (
            {'resource_provider_generation': 0, 'traits': [name]}
            for name in ('HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2')
        )
        responses = self.interleave(
            trait, '_read_requested_and_linked', self.call('PUT', path, first)
        )
        response = self.send('PUT', path, second)
        self.assertEqual((409, [200]), (response.status, [one.status for one in responses]))
        self.assertEqual(['HW_CPU_X86_AVX'], self.send_ok('GET', path)['traits'])
        self.audit()

    def test_generation_that_only_a_concurrent_request_reaches(self):
        """The UPDATE does not find the generation of the request, and the next statement does."""
        increment_given = generation.increment_given
        for deadline, status, generation_after in ((LONGEST, 200, 2), (-1.0, 409, 1)):
            path = f'/resource_providers/{self.make_provider()}'
            traits = {'resource_provider_generation': 0, 'traits': ['HW_CPU_X86_AVX']}
            responses = []

            def before_the_write(*args: Any, path=path, traits=traits, responses=responses) -> bool:
                # InnoDB keeps the lock of a row with another generation until the transaction ends.
                # On a Galera cluster, the UPDATE can precede the application of the write.
                if responses:
                    return increment_given(*args)
                concurrent = self.call('PUT', f'{path}/traits', traits)
                responses.append(testcase.start(concurrent).result(LONGEST))
                return False

            aggregates = [str(uuid.uuid4())]
            body = {'resource_provider_generation': 1, 'aggregates': aggregates}
            with (
                self.subTest(deadline=deadline),
                mock.patch.object(retry, 'DEADLINE', deadline),
                mock.patch.object(generation, 'increment_given', before_the_write),
            ):
                response = self.send('PUT', f'{path}/aggregates', body)
                self.assertEqual([200], [one.status for one in responses])
                self.assertEqual(status, response.status)
                stored = self.send_ok('GET', f'{path}/aggregates')
                self.assertEqual(generation_after, stored['resource_provider_generation'])
                if status == 200:
                    self.assertEqual(stored, response.body)
                    self.assertEqual(aggregates, stored['aggregates'])
                else:
                    self.assertEqual(errors.CONCURRENT_UPDATE, response.code)
                    self.assertEqual([], stored['aggregates'])

    def test_name_is_used_by_another_client(self):
        """The name is unused when the request starts, and the unique key rejects the INSERT."""
        parent = self.make_provider()
        body = {'name': 'one', 'parent_provider_uuid': parent}
        responses = self.interleave(
            provider_rows, 'read', self.call('POST', '/resource_providers', {'name': 'one'})
        )
        self.assertEqual(409, self.send('POST', '/resource_providers', body).status)
        self.assertEqual([200], [response.status for response in responses])
        self.audit()

    def test_consumer_is_created_by_another_client(self):
        """Since 1.28 the second claim is a conflict. Before, it replaces the first one."""
        provider = self.make_provider({'VCPU': 10})
        other = self.make_provider({'VCPU': 10})
        # The two claims do not insert the same owners.
        self.send_ok('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        for module, name, version, body, shares, status in (
            (consumer_rows, 'insert_unknown_owners', 'latest', claim, {provider: 1}, 409),
            (write, 'read_if_new', 'latest', claim, {provider: 1, other: 1}, 409),
            (consumer_rows, 'lock', '1.27', claim_1_27, {provider: 1}, 204),
        ):
            path = f'/allocations/{uuid.uuid4()}'
            concurrent = self.call('PUT', path, body({provider: 3}), version)
            responses = self.interleave(module, name, concurrent)
            response = self.send('PUT', path, body(shares), version)
            self.assertEqual((status, [204]), (response.status, [one.status for one in responses]))
            self.audit()


@where.also_on_mysql('MySQL decides which transaction waits and which one it ends.')
class TouchTest(testcase.RaceTestCase):
    def test_each_touch_changes_the_row(self):
        """Also within one second: a cluster certifies only rows that changed."""
        self.make_provider()
        table = models.resource_providers
        now = datetime.datetime(2030, 1, 1, 12, 0, 0, 250000)
        self.useFixture(utils_fixture.TimeFixture(now))
        seen = []
        for _ in range(4):
            with db_api.get_placement_engine().begin() as conn:
                ids = conn.scalars(sa.select(table.c.id)).all()
                self.assertEqual(1, generation.touch(conn, table, ids))
                seen.append(conn.scalar(sa.select(table.c.updated_at)))
        for before, after in itertools.pairwise(seen):
            self.assertNotEqual(before, after)
        for moment in seen:
            self.assertLessEqual(abs(moment - now), datetime.timedelta(seconds=1.5))
