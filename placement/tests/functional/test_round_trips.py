"""The number of round trips between the service and the database server, for each request.

In production, the database is a network hop away, and the number of round trips decides how long a
request takes. The numbers are exact, so a change that saves a round trip also changes this file.
"""

from collections.abc import Callable
import functools
from typing import Any
import uuid

from placement.tests import where
from placement.tests.functional import proxied
from placement.tests.functional.races.testcase import Call, Response, claim, inventories_of

# Enough trees for a second page (see placement/candidates/paging.py). More trees have no effect on
# the number of pages, because the second page has room for 1,000 candidates.
TREES = 20
UNKNOWN = '00000000-0000-4000-8000-000000000000'

# The round trips of each request, which are the same for all database servers and drivers.
READS = {
    'GET /resource_providers/{uuid}': 1,
    'GET /resource_providers/{uuid}, which does not exist': 1,
    'GET /resource_providers/{uuid}/inventories': 1,
    'GET /resource_providers/{uuid}/inventories/{class}': 1,
    'GET /resource_providers/{uuid}/traits': 1,
    'GET /resource_providers/{uuid}/aggregates': 1,
    'GET /resource_providers/{uuid}/usages': 1,
    'GET /resource_providers/{uuid}/allocations': 1,
    'GET /allocations/{consumer}': 1,
    'GET /allocations/{consumer}, which does not exist': 1,
    'GET /resource_providers': 1,
    'GET /resource_providers?name=': 1,
    'GET /resource_providers?resources=': 2,
    'GET /traits': 1,
    'GET /traits/{name}': 1,
    'GET /resource_classes': 1,
    'GET /resource_classes/{name}': 1,
    'GET /usages?project_id=, 1.37': 1,
    'GET /usages?project_id=': 1,
}
SEARCHES = {
    'limit=10': 1,
    'limit=1000': 1,
    'nothing fits': 4,
    'limit=10, with a sharing provider': 1,
}
CLAIMS = {
    'PUT, a new consumer of a known project': 4,
    'PUT, a new consumer of a new project': 5,
    'PUT, a new consumer, several providers': 7,
    'PUT, an existing consumer': 9,
    'PUT, an existing consumer as a new one: 409': 3,
    'PUT, beyond the capacity: 409': 5,
    'PUT, an unknown provider: 400': 3,
    'POST, a move to another consumer': 10,
    'DELETE': 4,
    'DELETE, an unknown consumer: 404': 4,
}
PROVIDER_WRITES = {
    'POST': 3,
    'POST, a child': 5,
    'DELETE': 10,
    'PUT inventories, the first ones': 3,
    'PUT inventories': 4,
    'PUT inventories, unchanged': 3,
    'PUT traits': 4,
    'PUT aggregates': 4,
    'PUT aggregates, a new one': 5,
    'PUT aggregates, a new and a known one instead of another one': 6,
    'PUT aggregates, unchanged': 3,
    'PUT aggregates, 1.18': 5,
    'PUT inventories, an unknown class: 400': 2,
    'PUT inventories, a stale generation: 409': 2,
    'PUT inventories, an unknown provider: 404': 3,
    'PUT traits, a stale generation: 409': 2,
    'PUT traits, an unknown provider: 404': 2,
    'PUT aggregates, a stale generation: 409': 3,
    'PUT aggregates, an unknown provider: 404': 3,
}


class RoundTripsTest(proxied.ProxiedTestCase):
    """Each request is sent once before the round trips of another one like it are counted.

    The first request opens the connection and compiles the statements.
    """

    def setUp(self):
        super().setUp()
        self.measured: dict[str, int] = {}

    def measure(self, name: str, prepare: Callable[[], Call], status: int = 200) -> None:
        """Count the round trips of a request.

        :param prepare: creates what the request needs, and returns a function that sends it
        """
        # When a connection executes a statement for the sixth time, psycopg prepares it in a round
        # trip of its own. On a new connection, no statement is executed that often.
        self.proxy.cut()
        self.assertEqual(status, prepare()().status, name)
        call = prepare()
        before = self.proxy.trips
        response = call()
        self.measured[name] = self.proxy.trips - before
        self.assertEqual(status, response.status, name)

    def assertTrips(self, expected: dict[str, int]) -> None:
        self.assertEqual(expected, self.measured)

    def make_claim(self, provider: str, **options: Any) -> str:
        consumer = str(uuid.uuid4())
        self.send_ok('PUT', f'/allocations/{consumer}', claim({provider: 1}, **options))
        return consumer

    def test_reads(self):
        provider = self.make_provider({'VCPU': 10, 'MEMORY_MB': 10})
        consumer = self.make_claim(provider)
        own = f'/resource_providers/{provider}'
        read = self.measure_read
        read('GET /resource_providers/{uuid}', own)
        read(
            'GET /resource_providers/{uuid}, which does not exist',
            provider_path(UNKNOWN),
            status=404,
        )
        read('GET /resource_providers/{uuid}/inventories', f'{own}/inventories')
        read('GET /resource_providers/{uuid}/inventories/{class}', f'{own}/inventories/VCPU')
        read('GET /resource_providers/{uuid}/traits', f'{own}/traits')
        read('GET /resource_providers/{uuid}/aggregates', f'{own}/aggregates')
        read('GET /resource_providers/{uuid}/usages', f'{own}/usages')
        read('GET /resource_providers/{uuid}/allocations', f'{own}/allocations')
        read('GET /allocations/{consumer}', f'/allocations/{consumer}')
        unknown = f'/allocations/{uuid.uuid4()}'
        read('GET /allocations/{consumer}, which does not exist', unknown)
        read('GET /resource_providers', '/resource_providers')
        read('GET /resource_providers?name=', f'/resource_providers?name=provider-{provider}')
        read('GET /resource_providers?resources=', '/resource_providers?resources=VCPU:1')
        read('GET /traits', '/traits')
        read('GET /traits/{name}', '/traits/HW_CPU_X86_AVX', status=204)
        read('GET /resource_classes', '/resource_classes')
        read('GET /resource_classes/{name}', '/resource_classes/VCPU')
        read('GET /usages?project_id=, 1.37', '/usages?project_id=project', version='1.37')
        read('GET /usages?project_id=', '/usages?project_id=project')
        self.assertTrips(READS)

    def measure_read(
        self, name: str, path: str, status: int = 200, version: str = 'latest'
    ) -> None:
        self.measure(name, lambda: self.call('GET', path, version=version), status)

    def test_searches(self):
        inventory = {'VCPU': 8, 'MEMORY_MB': 1024}
        providers = [self.make_provider(inventory) for _ in range(TREES)]
        search = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:512'
        self.measure_read('limit=10', f'{search}&limit=10')
        self.measure_read('limit=1000', f'{search}&limit=1000')
        self.measure_read('nothing fits', '/allocation_candidates?resources=VCPU:9')
        self.share_disks(providers)
        shared = '/allocation_candidates?resources=VCPU:1,DISK_GB:1&limit=10'
        self.measure_read('limit=10, with a sharing provider', shared)
        self.assertTrips(SEARCHES)

    def share_disks(self, providers: list[str]) -> None:
        """Create a disk pool that shares its inventory with these providers."""
        pool = self.make_provider({'DISK_GB': 1000})
        traits = {'traits': ['MISC_SHARES_VIA_AGGREGATE'], 'resource_provider_generation': 1}
        self.send_ok('PUT', f'{provider_path(pool)}/traits', traits)
        aggregates = [str(uuid.uuid4())]
        for provider in (*providers, pool):
            # Before microversion 1.19, the request needs no generation.
            self.send_ok('PUT', f'{provider_path(provider)}/aggregates', aggregates, '1.18')

    def test_claims(self):
        provider, other = (self.make_provider({'VCPU': 1000}) for _ in range(2))

        def put_shares(shares: dict[str, int], consumer: str | None = None, **options):
            path = f'/allocations/{consumer or uuid.uuid4()}'
            return self.call('PUT', path, claim(shares, **options))

        def put(consumer: str | None = None, target: str = provider, amount: int = 1, **options):
            return put_shares({target: amount}, consumer, **options)

        def put_existing(**options):
            return put(self.make_claim(provider), **options)

        def move() -> Call:
            body = {
                self.make_claim(provider): claim({}, generation=1),
                str(uuid.uuid4()): claim({other: 1}),
            }
            return self.call('POST', '/allocations', body)

        def delete(consumer: str) -> Call:
            return self.call('DELETE', f'/allocations/{consumer}')

        def unknown() -> str:
            return str(uuid.uuid4())

        measure = self.measure
        measure('PUT, a new consumer of a known project', put, 204)
        measure('PUT, a new consumer of a new project', lambda: put(project=unknown()), 204)
        both = functools.partial(put_shares, {provider: 1, other: 1})
        measure('PUT, a new consumer, several providers', both, 204)
        measure('PUT, an existing consumer', lambda: put_existing(amount=2, generation=1), 204)
        measure('PUT, an existing consumer as a new one: 409', put_existing, 409)
        measure('PUT, beyond the capacity: 409', lambda: put(amount=1001), 409)
        measure('PUT, an unknown provider: 400', lambda: put(target=unknown()), 400)
        measure('POST, a move to another consumer', move, 204)
        measure('DELETE', lambda: delete(self.make_claim(provider)), 204)
        measure('DELETE, an unknown consumer: 404', lambda: delete(unknown()), 404)
        self.assertTrips(CLAIMS)

    def test_requests_of_different_kinds(self):
        """No request costs more because the one before it was of another kind."""
        provider = self.make_provider({'VCPU': 1000})
        read = self.call('GET', provider_path(provider))
        search = self.call('GET', '/allocation_candidates?resources=VCPU:1')

        def write() -> Response:
            return self.send('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))

        def trips(*calls: Call) -> int:
            before = self.proxy.trips
            for call in calls:
                self.assertLess(call().status, 300)
            return self.proxy.trips - before

        alone = {}
        for call in (read, search, write):
            trips(call)
            alone[call] = trips(call)
        # Each kind follows each other kind.
        calls = (read, search, write, read, write, search, read)
        self.assertEqual(sum(alone[call] for call in calls), trips(*calls))

    def test_provider_writes(self):
        parent = self.make_provider({'VCPU': 1})

        def post(**more: str) -> Call:
            body = {'name': f'host-{uuid.uuid4()}', 'uuid': str(uuid.uuid4()), **more}
            return self.call('POST', '/resource_providers', body)

        def put(what: str, value: Any, generation: int = 0, own: str | None = None) -> Call:
            own = own or self.make_provider()
            body = {'resource_provider_generation': generation, what: value}
            return self.call('PUT', f'/resource_providers/{own}/{what}', body)

        def put_again(before: int) -> Call:
            own = self.make_provider({'VCPU': before, 'MEMORY_MB': before})
            return put('inventories', totals, 1, own)

        totals = inventories_of({'VCPU': 8, 'MEMORY_MB': 8}, 0)['inventories']
        traits, aggregates = ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2'], [str(uuid.uuid4())]
        measure = self.measure
        measure('POST', post)
        measure('POST, a child', lambda: post(parent_provider_uuid=parent))
        measure('DELETE', lambda: self.call('DELETE', provider_path(self.make_provider())), 204)
        unknown_class = inventories_of({'UNKNOWN': 8}, 0)['inventories']
        name = 'PUT inventories, an unknown class: 400'
        measure('PUT inventories, the first ones', lambda: put('inventories', totals))
        measure(name, lambda: put('inventories', unknown_class), 400)
        measure('PUT inventories', lambda: put_again(9))
        measure('PUT inventories, unchanged', lambda: put_again(8))
        measure('PUT traits', lambda: put('traits', traits))
        measure('PUT aggregates', lambda: put('aggregates', aggregates))
        for what, value in (
            ('inventories', totals),
            ('traits', traits),
            ('aggregates', aggregates),
        ):
            stale = functools.partial(put, what, value, generation=7)
            measure(f'PUT {what}, a stale generation: 409', stale, 409)
            unknown = functools.partial(put, what, value, own=UNKNOWN)
            measure(f'PUT {what}, an unknown provider: 404', unknown, 404)
        self.measure_aggregates(aggregates)
        self.assertTrips(PROVIDER_WRITES)

    def measure_aggregates(self, known: list[str]) -> None:
        def put(uuids: list[str], before: list[str] | None = None, version: str = 'latest') -> Call:
            path = f'{provider_path(self.make_provider())}/aggregates'
            if before:
                self.send_ok('PUT', path, before, '1.18')
            if version == '1.18':
                return self.call('PUT', path, uuids, version)
            return self.call('PUT', path, {'resource_provider_generation': 0, 'aggregates': uuids})

        def new() -> list[str]:
            return [str(uuid.uuid4())]

        name = 'PUT aggregates, a new and a known one instead of another one'
        self.measure('PUT aggregates, a new one', lambda: put(new()))
        self.measure(name, lambda: put([*new(), *known], before=new()))
        self.measure('PUT aggregates, unchanged', lambda: put(known, before=known))
        self.measure('PUT aggregates, 1.18', lambda: put(known, version='1.18'))

    @where.not_on('postgresql', reason='The count depends on the timing of messages.')
    def test_a_provider_name_in_use(self):
        """The key violation aborts the transaction, and another one reads the provider."""
        body = {'name': f'provider-{self.make_provider()}'}
        name = 'POST, an existing name: 409'
        self.measure(name, lambda: self.call('POST', '/resource_providers', body), 409)
        self.assertTrips({name: 4})


def provider_path(provider: str) -> str:
    return f'/resource_providers/{provider}'
