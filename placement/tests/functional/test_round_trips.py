"""The number of round trips between the service and the database server, for each request.

In production, the database is a network hop away, and the number of round trips decides how long a
request takes. The numbers are exact, so a change that saves a round trip also changes this file.
"""

from collections.abc import Callable
import functools
from typing import Any
import uuid

from placement.tests import servers
from placement.tests.functional import proxied
from placement.tests.functional.races.testcase import Call, Response, claim, inventories_of

# Enough trees for a second page (see placement/candidates/pages.py). More trees have no effect on
# the number of pages, because the second page has room for 1,000 candidates.
TREES = 20


class RoundTripsTest(proxied.ProxiedTestCase):
    """The round trips of each request, which are the same for all drivers of a database server.

    Each request is sent once before the round trips of another one like it are counted. The first
    request opens the connection and compiles the statements.
    """

    def measure(
        self,
        trips: int,
        name: str,
        prepare: Callable[[], Call],
        status: int = 200,
        transactions: int = 1,
    ) -> None:
        """Compare the round trips of a request with the expected number.

        :param trips: the number on MariaDB. The drivers of PostgreSQL send BEGIN on its own
        :param prepare: creates what the request needs, and returns a function that sends it
        :param transactions: the number of write transactions
        """
        trips += transactions * (servers.engine() == 'postgresql')
        # When a connection executes a statement for the sixth time, psycopg prepares it in a round
        # trip of its own. On a new connection, no statement is executed that often.
        self.proxy.cut()
        with self.subTest(name):
            self.assertEqual(status, prepare()().status)
            call = prepare()
            before = self.proxy.trips
            response = call()
            self.assertEqual(trips, self.proxy.trips - before)
            self.assertEqual(status, response.status)

    def measure_read(
        self, trips: int, path: str, status: int = 200, version: str = 'latest'
    ) -> None:
        call = functools.partial(self.call, 'GET', path, version=version)
        self.measure(trips, f'GET {path}', call, status, transactions=0)

    def make_claim(self, provider: str) -> str:
        consumer = str(uuid.uuid4())
        self.send_ok('PUT', f'/allocations/{consumer}', claim({provider: 1}))
        return consumer

    def test_reads(self):
        provider = self.make_provider({'VCPU': 10, 'MEMORY_MB': 10})
        consumer = self.make_claim(provider)
        own = provider_path(provider)
        kinds = ('inventories', 'inventories/VCPU', 'traits', 'aggregates', 'usages', 'allocations')
        for path in (
            *(own, *(f'{own}/{kind}' for kind in kinds)),
            f'/allocations/{consumer}',
            f'/allocations/{uuid.uuid4()}',
            *('/resource_providers', f'/resource_providers?name=provider-{provider}'),
            *('/traits', '/resource_classes', '/resource_classes/VCPU'),
            '/usages?project_id=project',
        ):
            self.measure_read(1, path)
        self.measure_read(1, provider_path(str(uuid.uuid4())), 404)
        self.measure_read(1, '/traits/HW_CPU_X86_AVX', 204)
        self.measure_read(1, '/usages?project_id=project', version='1.37')
        self.measure_read(2, '/resource_providers?resources=VCPU:1')

    def test_searches(self):
        inventory = {'VCPU': 8, 'MEMORY_MB': 1024}
        for _ in range(TREES):
            self.make_provider(inventory)
        search = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:512'
        # The begin and the end of the snapshot, the ids of names, pages, and the names of ids.
        self.measure_read(5, f'{search}&limit=10')
        self.measure_read(6, f'{search}&limit=1000')
        self.measure_read(5, '/allocation_candidates?resources=VCPU:9')

    def test_claims(self):
        provider, other = (self.make_provider({'VCPU': 1000}) for _ in range(2))

        def put(shares: dict[str, int], consumer: str | None = None, **options: Any) -> Call:
            path = f'/allocations/{consumer or uuid.uuid4()}'
            return self.call('PUT', path, claim(shares, **options))

        def move() -> Call:
            released = {self.make_claim(provider): claim({}, generation=1)}
            claimed = {str(uuid.uuid4()): claim({other: 1})}
            return self.call('POST', '/allocations', released | claimed)

        one, both = {provider: 1}, {provider: 1, other: 1}
        for trips, name, prepare in (
            (5, 'PUT, a known project', lambda: put(one)),
            (7, 'PUT, a new project', lambda: put(one, project=str(uuid.uuid4()))),
            (6, 'PUT, several providers', lambda: put(both)),
            (
                *(7, 'PUT, an existing consumer'),
                lambda: put({provider: 2}, self.make_claim(provider), generation=1),
            ),
            (10, 'POST, a move to another consumer', move),
            (4, 'DELETE', lambda: self.call('DELETE', f'/allocations/{self.make_claim(provider)}')),
        ):
            self.measure(trips, name, prepare, 204)
        self.measure(4, 'PUT, beyond the capacity', lambda: put({provider: 1001}), 409)

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

        def put(what: str, value: Any, before: int | None = None) -> Call:
            inventory = {'VCPU': before, 'MEMORY_MB': before} if before else None
            path = f'{provider_path(self.make_provider(inventory))}/{what}'
            generation = int(before is not None)
            return self.call('PUT', path, {'resource_provider_generation': generation, what: value})

        totals = inventories_of({'VCPU': 8, 'MEMORY_MB': 8}, 0)['inventories']
        known, measure = [str(uuid.uuid4())], self.measure
        measure(3, 'POST', post)
        measure(5, 'POST, a child', lambda: post(parent_provider_uuid=parent))
        measure(10, 'DELETE', lambda: self.call('DELETE', provider_path(self.make_provider())), 204)
        measure(4, 'PUT inventories, the first ones', lambda: put('inventories', totals))
        measure(4, 'PUT inventories', lambda: put('inventories', totals, 9))
        measure(3, 'PUT inventories, unchanged', lambda: put('inventories', totals, 8))
        measure(4, 'PUT traits', lambda: put('traits', ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2']))
        measure(4, 'PUT aggregates', lambda: put('aggregates', known))
        measure(5, 'PUT aggregates, a new one', lambda: put('aggregates', [str(uuid.uuid4())]))

    def test_a_provider_name_in_use(self):
        """The key violation aborts the transaction, and another one reads the provider."""
        body = {'name': f'provider-{self.make_provider()}'}
        post = functools.partial(self.call, 'POST', '/resource_providers', body)
        self.measure(4, 'POST', post, 409, transactions=2)


def provider_path(provider: str) -> str:
    return f'/resource_providers/{provider}'
