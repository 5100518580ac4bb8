"""The options of the connection pool limit all connections of a process, for reads and writes."""

from concurrent import futures
import itertools
import uuid

from placement import db_api
from placement.tests.functional import proxied
from placement.tests.functional.races.testcase import Call, claim
from placement.tests.waiting import wait_until

REQUESTS = 8  # of each kind


class PooledConnectionsTestCase(proxied.ProxiedTestCase):
    """`calls` has a read, a search, a write, and so on."""

    def setUp(self):
        super().setUp()
        # The fixture has an engine of its own.
        self.proxy.cut()
        provider = self.make_provider({'VCPU': 1000})
        self.calls: list[Call] = []
        for _ in range(REQUESTS):
            self.calls += [
                self.call('GET', f'/resource_providers/{provider}'),
                self.call('GET', '/allocation_candidates?resources=VCPU:1'),
                self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1})),
            ]

    def assertBecomeIdle(self, limit: int) -> None:
        """Require that at most `limit` connections stay open when no request uses any."""
        wait_until(lambda: self.proxy.connections <= limit)
        self.assertGreater(self.proxy.connections, 0)


class LargePoolTest(PooledConnectionsTestCase):
    options = {'max_pool_size': 4, 'max_overflow': 3}

    def test_a_busy_process_has_as_many_connections_as_the_options_allow(self):
        for call in self.calls[:3]:
            self.assertLess(call().status, 300)
        responses = self.send_together(self.calls[3:], connections=7, limit=7)
        self.assertEqual({200, 204}, {response.status for response in responses})
        self.assertBecomeIdle(4)


class OneConnectionTest(PooledConnectionsTestCase):
    """Reads and writes share a single connection, and no request needs a second one."""

    options = {'max_pool_size': 1, 'max_overflow': 0, 'pool_timeout': 20}

    def test_one_thread(self):
        for call, kind in zip(self.calls, itertools.cycle(('read', 'search', 'write'))):
            self.assertLess(call().status, 300, kind)
            self.assertBecomeIdle(1)

    def test_several_threads(self):
        with futures.ThreadPoolExecutor(6) as pool:
            responses = list(pool.map(lambda call: call(), self.calls))
        self.assertEqual({200, 204}, {response.status for response in responses})
        self.assertBecomeIdle(1)


class FullPoolTest(PooledConnectionsTestCase):
    options = {'max_pool_size': 1, 'max_overflow': 0, 'pool_timeout': 1}

    def test_requests_without_a_free_connection_are_503(self):
        with db_api.snapshot():
            for call in self.calls[:3]:
                self.assertUnavailable(call())
        self.assertEqual([200, 200, 204], [call().status for call in self.calls[:3]])
