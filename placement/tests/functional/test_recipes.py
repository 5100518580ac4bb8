"""The programs of the user guide, with a service on a loopback port.

`before` replaces a request: a function that returns None changes the data before the request, and
a function that returns a response sends this response instead. With LOST, the connection is closed
without a response.
"""

import io
import json
import os
from pathlib import Path
import re
import runpy
import shlex
import socket
from unittest import mock
import uuid

from keystoneauth1 import adapter, session, token_endpoint
from keystoneauth1.exceptions import Conflict
import openstack
from werkzeug.wrappers import Response

import placement
from placement import errors, exception
from placement.tests import where
from placement.tests.functional import served

FOLDER = Path(placement.__file__).parents[1] / 'doc' / 'source' / 'user' / 'examples'
LOST = object()
OWNER = {'project_id': 'project', 'user_id': 'user', 'consumer_type': 'INSTANCE'}


def conflict(code, detail=''):
    """A response with 409 Conflict."""
    body = {'errors': [{'status': 409, 'detail': detail, 'code': code}]}
    return Response(json.dumps(body), 409, {'Content-Type': 'application/json'})


class RecipeTestCase(served.ServedTestCase):
    """Runs a program.

    :cvar file: the program
    """

    file = ''

    def setUp(self):
        self.requests = []
        self.before = {}
        super().setUp()
        self.api = adapter.Adapter(
            session.Session(
                token_endpoint.Token(self.url, 'admin'),
                additional_headers={'X-Roles': 'admin,service'},
            ),
            default_microversion='1.39',
            service_type='placement',
            connect_retry_delay=0.01,
        )
        self.program = runpy.run_path(str(FOLDER / self.file))

    def serve(self, environ, start_response):
        method, path = environ['REQUEST_METHOD'], environ['PATH_INFO']
        self.requests.append((method, path))
        for (sent, beginning), action in list(self.before.items()):
            if method == sent and path.startswith(beginning):
                del self.before[sent, beginning]
                response = action()
                if response is LOST:
                    environ['werkzeug.socket'].shutdown(socket.SHUT_RDWR)
                    return []
                if response is not None:
                    return response(environ, start_response)
        return super().serve(environ, start_response)

    def provider(self, name, **totals):
        """Create a provider with inventories, and return its UUID."""
        created = self.api.post('/resource_providers', json={'name': name}).json()
        self.inventories(created['uuid'], 0, totals)
        return created['uuid']

    def inventories(self, provider, generation, totals):
        body = {
            'resource_provider_generation': generation,
            'inventories': {resource: {'total': total} for resource, total in totals.items()},
        }
        self.api.put(f'/resource_providers/{provider}/inventories', json=body)

    def traits(self, provider, generation, *names):
        body = {'resource_provider_generation': generation, 'traits': names}
        self.api.put(f'/resource_providers/{provider}/traits', json=body)

    def claim(self, provider, consumer=None, owner=OWNER, generation=None, **amounts):
        """Claim amounts from a provider, and return the consumer."""
        consumer = consumer or str(uuid.uuid4())
        body = {
            'allocations': {provider: {'resources': amounts}},
            'consumer_generation': generation,
            **owner,
        }
        self.api.put(f'/allocations/{consumer}', json=body)
        return consumer

    def allocations(self, consumer):
        stored = self.api.get(f'/allocations/{consumer}').json()['allocations']
        return {provider: one['resources'] for provider, one in stored.items()}

    def writes(self):
        """The paths of the requests that are not GET."""
        return [path for method, path in self.requests if method != 'GET']

    def main(self, *arguments, file=None):
        """Run the program like a reader of the guide; return its output."""
        output = io.StringIO()
        with (
            mock.patch.dict(os.environ, self.settings),
            mock.patch('sys.argv', [file or self.file, *arguments]),
            mock.patch('sys.stdout', output),
        ):
            runpy.run_path(str(FOLDER / (file or self.file)), run_name='__main__')
        return output.getvalue()


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class PageTest(RecipeTestCase):
    """What the page states about the service of the quick start, whose token is `admin`."""

    file = 'device_agent.py'
    page = (FOLDER.parent / 'clients.rst').read_text()

    def test_the_commands_of_the_page_claim_a_device(self):
        commands = re.findall(r'bin/python doc/source/user/examples/(.+)', self.page)
        self.assertEqual(2, len(commands))
        for file, *arguments in map(shlex.split, commands):
            printed = self.main(*arguments, file=file)
        (amounts,) = self.allocations(printed.split()[0]).values()
        self.assertEqual({'VGPU': 2}, amounts)

    def test_the_line_of_the_page_permits_the_reshaper(self):
        line = r"^    cloud\.placement\.additional_headers\['X-Roles'\] = '(.+)'$"
        (roles,) = re.findall(line, self.page, re.MULTILINE)
        with mock.patch.dict(os.environ, self.settings):
            cloud = openstack.connect(placement_default_microversion='1.39')
        self.assertEqual(403, cloud.placement.post('/reshaper', json={}).status_code)
        cloud.placement.additional_headers['X-Roles'] = roles
        self.assertEqual(400, cloud.placement.post('/reshaper', json={}).status_code)


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class SchedulerTest(RecipeTestCase):
    file = 'scheduler.py'

    def setUp(self):
        super().setUp()
        self.small = self.provider('small', VCPU=4)
        self.large = self.provider('large', VCPU=8)
        self.consumer = str(uuid.uuid4())
        self.requests.clear()

    def place(self, resources='VCPU:2'):
        return self.program['place'](self.api, self.consumer, {'resources': resources}, OWNER)

    def assert_on(self, provider):
        self.assertEqual({provider: {'resources': {'VCPU': 2}}}, self.place())
        self.assertEqual({provider: {'VCPU': 2}}, self.allocations(self.consumer))

    def test_the_freest_provider_is_claimed(self):
        self.assert_on(self.large)
        self.assertEqual([f'/allocations/{self.consumer}'], self.writes())

    def test_all_values_of_a_repeated_parameter_apply(self):
        self.traits(self.small, 1, 'HW_CPU_X86_AVX2', 'HW_CPU_X86_SSE')
        self.traits(self.large, 1, 'HW_CPU_X86_SSE')
        query = 'resources=VCPU:2&required=HW_CPU_X86_AVX2&required=HW_CPU_X86_SSE'
        self.assertIn(self.small, self.main(query))

    def test_without_candidates_there_is_no_valid_host(self):
        self.assertRaises(self.program['NoValidHostError'], self.place, 'VCPU:9')
        self.assertEqual([], self.writes())

    def test_after_a_claim_took_the_capacity_the_next_candidate_is_claimed(self):
        self.before['PUT', '/allocations'] = lambda: self.claim(self.large, VCPU=8) and None
        self.assert_on(self.small)

    def test_after_too_many_concurrent_requests_the_same_candidate_is_claimed(self):
        self.before['PUT', '/allocations'] = lambda: conflict(errors.CONCURRENT_UPDATE)
        self.assert_on(self.large)

    def test_after_a_provider_was_deleted_the_next_candidate_is_claimed(self):
        self.before['PUT', '/allocations'] = lambda: (
            self.api.delete(f'/resource_providers/{self.large}').content or None
        )
        self.assert_on(self.small)

    def test_after_a_key_violation_the_program_stops(self):
        detail = str(exception.RepeatedKeyViolation())
        self.before['PUT', '/allocations'] = lambda: conflict(errors.UNDEFINED_CODE, detail)
        error = self.assertRaises(RuntimeError, self.place)
        self.assertIn(detail, str(error))
        self.assertEqual(1, len(self.writes()))

    def test_an_applied_claim_without_a_response_is_not_repeated(self):
        for lost in (Response('', 503, {'Retry-After': '0'}), LOST):

            def lose(response=lost):
                self.claim(self.large, self.consumer, VCPU=2)
                return response

            self.before['PUT', '/allocations'] = lose
            self.assert_on(self.large)
            self.api.delete(f'/allocations/{self.consumer}')

    def test_the_claim_of_another_scheduler_remains(self):
        self.claim(self.small, self.consumer, VCPU=1)
        self.assertRaises(self.program['AlreadyClaimedError'], self.place)
        self.assertEqual({self.small: {'VCPU': 1}}, self.allocations(self.consumer))

    def test_the_equal_claim_of_another_owner_is_not_taken(self):
        for changed in OWNER:
            with self.subTest(changed):
                self.consumer = str(uuid.uuid4())
                self.claim(self.large, self.consumer, {**OWNER, changed: 'OTHER'}, VCPU=2)
                self.assertRaises(self.program['AlreadyClaimedError'], self.place)
                self.api.delete(f'/allocations/{self.consumer}')


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class DeviceAgentTest(RecipeTestCase):
    file = 'device_agent.py'

    def setUp(self):
        super().setUp()
        self.pauses = mock.Mock()
        self.program['run'].__globals__['time'] = mock.Mock(sleep=self.pauses)

    def run_agent(self, *gpus):
        self.program['run'](self.api, 'host', list(gpus))

    def children(self):
        """The providers except for the host: UUIDs by name."""
        listed = self.api.get('/resource_providers').json()['resource_providers']
        return {one['name']: one['uuid'] for one in listed if one['name'] != 'host'}

    def get(self, provider, kind):
        return self.api.get(f'/resource_providers/{provider}/{kind}').json()[kind]

    def test_providers_inventories_and_traits_are_reported_once(self):
        self.run_agent('a', 'b')
        children = self.children()
        self.assertEqual({'host_a', 'host_b'}, set(children))
        for child in children.values():
            self.assertEqual(4, self.get(child, 'inventories')['VGPU']['total'])
            self.assertEqual(['CUSTOM_ACME_GPU'], self.get(child, 'traits'))
        self.requests.clear()
        self.run_agent('a', 'b')
        self.assertEqual(['/traits/CUSTOM_ACME_GPU'], self.writes())

    def test_traits_fields_and_classes_of_other_clients_remain(self):
        self.run_agent('a')
        child = self.children()['host_a']
        fields = {'total': 2, 'allocation_ratio': 2.0, 'max_unit': 1}
        inventories = {'VGPU': fields, 'VCPU': {'total': 3}}
        body = {'resource_provider_generation': 2, 'inventories': inventories}
        self.api.put(f'/resource_providers/{child}/inventories', json=body)
        self.api.put('/traits/CUSTOM_OTHER')
        self.traits(child, 3, 'CUSTOM_OTHER')
        self.run_agent('a')
        self.assertEqual(['CUSTOM_ACME_GPU', 'CUSTOM_OTHER'], sorted(self.get(child, 'traits')))
        stored = self.get(child, 'inventories')
        self.assertEqual({**fields, 'total': 4}, {name: stored['VGPU'][name] for name in fields})
        self.assertEqual(3, stored['VCPU']['total'])

    def test_after_a_conflict_the_agent_reads_again(self):
        self.run_agent('a')
        child = self.children()['host_a']
        self.inventories(child, 2, {'VGPU': 2})
        url = f'/resource_providers/{child}/inventories'
        self.before['PUT', url] = lambda: self.inventories(child, 3, {'VGPU': 3})
        self.run_agent('a')
        self.assertEqual(4, self.get(child, 'inventories')['VGPU']['total'])
        self.assertEqual(1, self.pauses.call_count)

    def test_a_provider_of_another_tree_is_not_adopted(self):
        other = self.provider('host_a')
        error = self.assertRaises(Conflict, self.run_agent, 'a')
        self.assertIn('host_a', error.details)
        self.assertEqual({}, self.get(other, 'inventories'))

    def test_the_inventory_of_the_host_moves_with_its_allocations(self):
        host = self.provider('host', VCPU=8, VGPU=8)
        amounts = {self.claim(host, VCPU=1, VGPU=3): 3, self.claim(host, VGPU=2): 2}
        other = self.claim(host, VCPU=2)
        late = str(uuid.uuid4())
        # The first request of the reshaper has a stale generation.
        self.before['POST', '/reshaper'] = lambda: self.claim(host, late, VGPU=1) and None
        self.run_agent('a', 'b')
        self.assertEqual({'VCPU'}, set(self.get(host, 'inventories')))
        children = set(self.children().values())
        for consumer, amount in {**amounts, late: 1}.items():
            stored = self.allocations(consumer)
            (child,) = children & set(stored)
            self.assertEqual({'VGPU': amount}, stored[child])
        self.assertEqual({host: {'VCPU': 2}}, self.allocations(other))

    def test_a_consumer_that_is_released_during_the_move_is_omitted(self):
        host = self.provider('host', VGPU=8)
        consumer = self.claim(host, VGPU=1)
        url = f'/allocations/{consumer}'
        self.before['GET', url] = lambda: self.api.delete(url).content or None
        self.run_agent('a', 'b')
        self.assertEqual({}, self.allocations(consumer))
        self.assertEqual({}, self.get(host, 'inventories'))

    def test_a_consumer_that_fits_no_device_stops_the_agent(self):
        host = self.provider('host', VGPU=8)
        consumer = self.claim(host, VGPU=5)
        error = self.assertRaises(Conflict, self.run_agent, 'a', 'b')
        self.assertIn('VGPU', error.details)
        self.assertEqual({host: {'VGPU': 5}}, self.allocations(consumer))

    def test_a_removed_device_is_withdrawn_when_it_is_not_in_use(self):
        self.run_agent('a', 'b')
        child = self.children()['host_b']
        consumer = self.claim(child, VGPU=1)
        self.run_agent('a')
        inventory = self.get(child, 'inventories')['VGPU']
        self.assertEqual((4, 4), (inventory['total'], inventory['reserved']))
        self.api.delete(f'/allocations/{consumer}')
        self.run_agent('a')
        self.assertEqual({'host_a'}, set(self.children()))

    def test_a_device_that_returns_is_offered_again(self):
        self.run_agent('a', 'b')
        child = self.children()['host_b']
        self.claim(child, VGPU=1)
        self.run_agent('a')
        self.run_agent('a', 'b')
        self.assertEqual(0, self.get(child, 'inventories')['VGPU']['reserved'])

    def test_children_of_other_services_remain(self):
        host = self.provider('host')
        child = {'name': 'host:Open vSwitch agent', 'parent_provider_uuid': host}
        other = self.api.post('/resource_providers', json=child).json()['uuid']
        self.inventories(other, 0, {'VCPU': 1})
        self.run_agent('a')
        self.assertEqual(0, self.get(other, 'inventories')['VCPU']['reserved'])
