"""A database connection that is closed while it is idle costs no request anything but time.

A restart of the server, its limit for idle connections, and a proxy between the service and the
server close such connections.
"""

from collections.abc import Callable
import importlib.util
import itertools
from typing import Any
import unittest
import uuid

import sqlalchemy as sa

from placement.db import engine
from placement.tests import servers, where
from placement.tests.functional import proxied
from placement.tests.functional.faults import machines
from placement.tests.functional.races.testcase import Call, Response, claim, claim_1_27
from placement.tests.waiting import wait_until

# The number of idle connections that reads, searches, and writes leave in the pool, each.
IDLE = 2
SEARCH = '/allocation_candidates?resources=VCPU:1'


class IdleTestCase(proxied.ProxiedTestCase):
    """`fill_pool` leaves idle connections of each kind in the pool."""

    options = {'max_pool_size': 3 * IDLE}

    def setUp(self):
        super().setUp()
        self.provider = self.make_provider({'VCPU': 1000})
        body = claim_1_27({self.provider: 1})
        consumers = [str(uuid.uuid4()) for _ in range(IDLE)]
        self.calls = [
            *(self.call('GET', f'/resource_providers/{self.provider}') for _ in range(IDLE)),
            *(self.call('GET', SEARCH) for _ in range(IDLE)),
            *(self.call('PUT', f'/allocations/{own}', body, '1.27') for own in consumers),
        ]
        for call in self.calls:
            self.assertLess(call().status, 300)

    def fill_pool(self) -> None:
        """Use so many connections at the same time that several of each kind become idle."""
        responses = self.send_together(self.calls, connections=len(self.calls))
        self.assertEqual({200, 204}, {response.status for response in responses})
        self.assertGreaterEqual(self.proxy.connections, 2 * IDLE)

    def close_all(self) -> None:
        """Let the server close all connections."""
        machines.close_all(self.direct)
        self.wait_until_closed()

    def wait_until_closed(self) -> None:
        """Wait until the server has closed all connections."""
        wait_until(lambda: self.proxy.connections == 0)


class ClosedConnectionsTest(IdleTestCase):
    """The tour of the README, during which idle connections are closed before every request."""

    def take_tour(self, close: Callable[[], Any]) -> None:
        """Take the tour; all requests must succeed.

        :param close: closes the idle connections
        """

        def send(method: str, path: str, body: Any = None, expect: int = 200) -> Any:
            self.fill_pool()
            close()
            self.assertEqual(0, self.proxy.connections)
            response = self.send(method, path, body)
            self.assertEqual(expect, response.status, f'{method} {path}: {response.body}')
            return response.body

        machines.tool('tour').take(send)
        self.audit()

    def test_a_proxy_closes_the_connections(self):
        self.take_tour(self.proxy.cut)

    def test_the_server_closes_the_connections(self):
        """The server sends an error before it closes a connection."""
        self.take_tour(self.close_all)


@where.only_on('postgresql', reason='The driver is one for PostgreSQL.')
@unittest.skipIf(importlib.util.find_spec('psycopg2') is None, 'psycopg2 is not installed')
class Psycopg2Test(ClosedConnectionsTest):
    """Another driver for PostgreSQL, which reports lost connections in its own way."""

    def setUp(self):
        lease = servers.lease()
        self.addCleanup(lease.release)
        url = sa.make_url(lease.url).set(drivername='postgresql+psycopg2')
        self.connection = url.render_as_string(hide_password=False)
        super().setUp()


class IdleTimeTest(IdleTestCase):
    """A private server, because other tests use the server of the run."""

    def setUp(self):
        server = machines.DatabaseServer()
        self.addCleanup(server.remove)
        self.connection = server.create_database('placement')
        super().setUp()

    def test_the_server_limits_the_time_of_idle_connections(self):
        machines.limit_idle_time(self.direct, seconds=1)
        # The limit is valid for new connections.
        self.proxy.cut()
        self.fill_pool()
        self.wait_until_closed()
        for call in self.calls[::IDLE]:
            self.assertLess(call().status, 300)
        # On a busy machine, the limit would end connections of the cleanups.
        machines.limit_idle_time(self.direct, seconds=28_800)
        engine.get_pools().pool.dispose()


class LostDuringRequestTest(IdleTestCase):
    """The connection is lost during a round trip of a request; other connections are intact."""

    def claim(self) -> Response:
        """Claim one VCPU for a new consumer."""
        return self.send('PUT', f'/allocations/{uuid.uuid4()}', claim({self.provider: 1}))

    def trips(self, call: Call) -> int:
        """Return the number of round trips of a request.

        On a busy machine, the proxy can count the last message of an earlier connection in between.
        """
        call()
        counts = []
        for _ in range(3):
            before = self.proxy.trips
            call()
            counts.append(self.proxy.trips - before)
        return min(counts)

    def assertRepeated(self, call: Call) -> None:
        """Require that a read has the same response wherever its connection is lost."""
        for trip, delivered in itertools.product(range(self.trips(call)), (False, True)):
            expected = call()  # opens a connection if the last one was lost
            self.assertEqual(200, expected.status)
            self.proxy.lose(trip + 1, delivered)
            response = call()
            self.assertEqual((200, expected.body), (response.status, response.body), trip)

    def test_reads_are_repeated(self):
        for path in (f'/resource_providers/{self.provider}', '/traits', '/usages?project_id=p'):
            self.assertRepeated(self.call('GET', path))

    def test_searches_are_repeated(self):
        self.assertRepeated(self.call('GET', SEARCH))

    def test_claims_are_repeated_unless_commit_was_sent(self):
        """The last round trip of a claim is COMMIT."""
        last = self.trips(self.claim)
        for trip, delivered in itertools.product(range(1, last + 1), (False, True)):
            self.claim()  # opens a connection if the last one was lost
            used = self.used(self.provider)
            self.proxy.lose(trip, delivered)
            response = self.claim()
            if trip < last:
                self.assertEqual(204, response.status, response.body)
                self.assertEqual(used + 1, self.used(self.provider))
                continue
            self.assertUnavailable(response)
            self.assertIn('may or may not', response.detail)
            self.assertEqual(used + delivered, self.used(self.provider))
        self.audit()
