"""Tokens that processes share in a real memcached: forged values, failures, TLS, and SASL."""

from collections.abc import Callable, Iterator
import contextlib
import functools
import json
import logging
import os
import pathlib
import pickle
import socket
import threading
from typing import Any
from unittest import mock
from urllib.parse import unquote
import zlib

import fixtures
from oslotest import base
from pymemcache.client import base as pymemcache

from placement import auth
from placement.tests import where
from placement.tests.functional.memcached_server import PASSWORD, USER, Memcached
from placement.tests.unit import edge, identity
from placement.tests.unit.identity import CACHE_TIME
from placement.tests.unit.telemetry.switched_on import SwitchedOn
from placement.tests.waiting import LONGEST

TOKEN = 'token-of-a-client'
OTHER = 'token-of-another-client'
SECRET = 'hush-secret'
# Long enough for a busy machine. Tests in which a server must not respond use the default.
PATIENCE = {'memcache_pool_socket_timeout': 60, 'memcache_pool_conn_get_timeout': 60}
STRATEGIES = ('None', 'MAC', 'ENCRYPT')
# The largest value that memcached accepts by default, in bytes.
MAX_SIZE = 2**20

# Servers, and how clients connect to them.
KINDS = (
    {},
    {'unix': True},
    {'tls': True},
    {'sasl': True},
    {'tls': True, 'sasl': True},
    {'unix': True, 'sasl': True},
)
SASL = {
    'memcache_sasl_enabled': True,
    'memcache_username': USER,
    'memcache_password': PASSWORD,
}
FOREIGN = 'Placement has not written it'
AVOIDED = 'is not used until it responds'

# The flags with which python-memcached and python-binary-memcached mark a pickled object, and a
# compressed one.
PICKLED = 1
COMPRESSED = 8


class Trap:
    """Creates a directory when it is unpickled."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


class StandIn(fixtures.Fixture):
    """A server that is not memcached, and responds to the first request on each connection.

    :ivar connections: the number of connections
    :ivar address: the value for the option `memcached_servers`
    """

    def __init__(self, respond: Callable[[socket.socket], object]) -> None:
        super().__init__()
        self._respond = respond
        self.connections = 0

    def _setUp(self) -> None:
        self._listener = socket.create_server(('127.0.0.1', 0))
        self.address = f'127.0.0.1:{self._listener.getsockname()[1]}'
        thread = threading.Thread(target=self._serve)
        thread.start()
        self.addCleanup(self._listener.close)
        self.addCleanup(thread.join)
        self.addCleanup(self._listener.shutdown, socket.SHUT_RDWR)

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self.connections += 1
                with connection, contextlib.suppress(OSError):
                    connection.recv(2**16)
                    self._respond(connection)


@where.only_on('sqlite', reason='No SQL statement is executed.')
class TestCase(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger('placement', logging.INFO))
        self.lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(record.getMessage())
        self.useFixture(fixtures.LogHandler(handler, 'placement', logging.INFO))
        # keystonemiddleware logs each rejected token.
        self.useFixture(fixtures.FakeLogger('keystonemiddleware', logging.CRITICAL))
        # The middleware of a process never closes its connections.
        self.useFixture(
            fixtures.WarningsFilter([{'action': 'ignore', 'category': ResourceWarning}])
        )
        self.keystone = self.useFixture(identity.Keystone())
        self.keystone.issue(TOKEN)

    def memcached(self, *arguments: str, **kinds: bool) -> Memcached:
        return self.useFixture(Memcached(*arguments, **kinds))

    def process(
        self, server: Memcached | StandIn, strategy: str = 'MAC', **options: Any
    ) -> auth.KeystoneMiddleware:
        """Return the middleware of a new process."""
        required = server.options() if isinstance(server, Memcached) else {}
        settings = {
            'memcached_servers': [server.address],
            'memcache_security_strategy': strategy,
            'memcache_secret_key': SECRET,
            **PATIENCE,
            **required,
            **options,
        }
        set_options = {name: value for name, value in settings.items() if value != 'default'}
        return identity.middleware(edge.ok, token_memory=100, **set_options)

    def status(self, process: auth.KeystoneMiddleware, token: str = TOKEN, **more: str) -> int:
        environ = edge.environ(path='/traits', HTTP_X_AUTH_TOKEN=token, **more)
        return edge.call(process, environ).status

    def new_tokens(self, process: auth.KeystoneMiddleware, number: int = 20) -> None:
        """Send requests with tokens that only Keystone knows."""
        for _ in range(number):
            token = self.keystone.issue(os.urandom(8).hex())
            self.assertEqual(200, self.status(process, token))

    def assert_validated(self, *tokens: str) -> None:
        """Check which tokens Keystone has validated since the last call."""
        self.assertEqual([*tokens], self.keystone.validated)
        self.keystone.validated.clear()

    def entries(self, server: Memcached) -> dict[str, dict[str, str]]:
        """Return the keys in memcached, and the data about each of them."""
        with server.connect() as connection, connection.makefile('r') as response:
            # At the same time, the server can look for expired values itself.
            line = 'BUSY'
            while line.startswith('BUSY'):
                connection.sendall(b'lru_crawler metadump all\r\n')
                line = response.readline().strip()
            rows = []
            while line != 'END':
                rows.append(dict(pair.split('=') for pair in line.split()))
                line = response.readline().strip()
        return {unquote(row['key']): row for row in rows}


class SharedTest(TestCase):
    """A token that one process has validated, in other processes."""

    def setUp(self) -> None:
        super().setUp()
        self.server = self.memcached()

    def test_each_kind_of_connection(self):
        metrics = self.useFixture(SwitchedOn())
        for kinds in KINDS:
            server = self.memcached(**kinds)
            for strategy in STRATEGIES:
                token = self.keystone.issue(strategy)
                for _ in range(3):
                    process = self.process(server, strategy)
                    self.assertEqual([200] * 2, [self.status(process, token) for _ in range(2)])
                self.assertEqual(401, self.status(process, f'{token}-other'))
                self.assert_validated(token, f'{token}-other')
        self.assertEqual([], self.lines)
        number = len(KINDS) * len(STRATEGIES)
        self.assertEqual(
            {'memory': 3 * number, 'memcached': 2 * number},
            metrics.increased('placement_token_hits_total'),
        )

    def test_the_verdict_ends_at_its_own_time(self):
        for strategy in STRATEGIES:
            with identity.Clock() as clock:
                token = self.keystone.issue(f'a-{strategy}')
                self.status(self.process(self.server, strategy), token)
                self.keystone.revoke(token)
                clock.advance(200)
                known = self.process(self.server, strategy)
                for seconds, status in ((0, 200), (99.5, 200), (0.5, 401)):
                    clock.advance(seconds)
                    for process in (known, self.process(self.server, strategy)):
                        self.assertEqual(status, self.status(process, token), strategy)

    def test_the_clock_of_another_host_is_ahead(self):
        with identity.Clock() as clock:
            for seconds, validations in ((2.1, 2), (2, 1)):
                token = self.keystone.issue(str(seconds))
                clock.advance(seconds)
                self.status(self.process(self.server), token)
                clock.advance(-seconds)
                process = self.process(self.server)
                self.assertEqual(200, self.status(process, token))
                self.assert_validated(*[token] * validations)
            # The process does not remember this verdict for longer than its own ones.
            self.keystone.revoke('2')
            for seconds, status in ((CACHE_TIME - 0.5, 200), (0.5, 401)):
                clock.advance(seconds)
                with mock.patch.object(socket.socket, 'sendall', side_effect=OSError):
                    self.assertEqual(status, self.status(process, '2'))

    def test_memcached_removes_a_token_after_its_lifetime(self):
        for lifetime, expiration in ((CACHE_TIME, CACHE_TIME), (10**9, 30 * 24 * 60 * 60)):
            known = self.entries(self.server).keys()
            self.status(self.process(self.server, token_cache_time=lifetime), f'{lifetime}')
            self.keystone.issue(f'{lifetime}')
            self.status(self.process(self.server, token_cache_time=lifetime), f'{lifetime}')
            (entry,) = [row for key, row in self.entries(self.server).items() if key not in known]
            seconds = int(entry['exp']) - int(entry['la'])
            self.assertIn(expiration - seconds, (-1, 0, 1))

    def test_what_is_stored(self):
        self.keystone.issue('expired', lifetime=-60)
        self.keystone.issue('a-service', roles=('service',))
        # Users can influence the size of a token.
        self.keystone.issue('large', audit_ids=['x' * MAX_SIZE])
        self.keystone.issue('almost-large', audit_ids=['x' * (MAX_SIZE - 600)])
        self.keystone.issue('number', audit_ids=[2**64])
        for token in ('unknown', 'large', 'almost-large', 'number'):
            expected = 401 if token == 'unknown' else 200
            self.assertEqual(expected, self.status(self.process(self.server), token))
        self.assertEqual({}, self.entries(self.server))
        self.keystone.validated.clear()
        for validated in (('a-service', 'expired'), ('expired',)):
            process = self.process(self.server)
            status = self.status(process, 'expired', HTTP_X_SERVICE_TOKEN='a-service')
            self.assertEqual(200, status)
            self.assert_validated(*validated)
        self.assertEqual([], self.lines)

    def test_access_rules(self):
        rules = [{'id': '1', 'method': 'GET', 'path': '/traits', 'service': 'placement'}]
        self.keystone.issue(TOKEN, application_credential={'id': 'x', 'access_rules': rules})
        for _ in range(2):
            process = self.process(self.server, service_type='placement')
            self.assertEqual(200, self.status(process))
            self.assertEqual(401, self.status(process, REQUEST_METHOD='PUT'))
        self.assert_validated(TOKEN)

    def test_several_servers(self):
        """Each token is in one of them. A process that cannot use it validates the token."""
        servers = [self.server, self.memcached()]
        addresses = [server.address for server in servers]
        tokens = [self.keystone.issue(f'token-{number}') for number in range(20)]
        for order in (addresses, addresses[::-1]):
            process = self.process(self.server, memcached_servers=order)
            for token in tokens:
                self.assertEqual(200, self.status(process, token))
        self.assert_validated(*tokens)
        stored = [server.counters()['curr_items'] for server in servers]
        self.assertEqual(20, sum(stored))
        self.assertLess(1, min(stored))
        servers[1].kill()
        process = self.process(self.server, memcached_servers=addresses)
        self.assertEqual([200] * 20, [self.status(process, token) for token in tokens])
        self.assertEqual(stored[1], len(self.keystone.validated))


class ForgeryTest(TestCase):
    """Another program writes to memcached; it even knows the key of a token."""

    def setUp(self) -> None:
        super().setUp()
        self.server = self.memcached('-I', '16m')
        host, _, port = self.server.address.partition(':')
        self.attacker = pymemcache.Client((host, int(port)), timeout=60, default_noreply=False)
        self.addCleanup(self.attacker.close)
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'executed')

    def stored(self, token: str, strategy: str, **options: str) -> tuple[str, bytes]:
        """Return the key and the value that a process writes for a token."""
        self.attacker.flush_all()
        self.assertEqual(200, self.status(self.process(self.server, strategy, **options), token))
        (key,) = self.entries(self.server)
        value = self.attacker.get(key)
        self.keystone.validated.clear()
        self.assertNotIn(token, key)
        return key, value

    def forge(self, key: str, value: bytes, flags: int = 0) -> None:
        self.assertTrue(self.attacker.set(key, value, expire=0, flags=flags))

    def assert_ignored(self, strategy: str, reason: str = '', **options: Any) -> None:
        """The value causes one WARNING, and the next validation replaces it."""
        self.lines.clear()
        for _ in range(2):
            self.assertEqual(200, self.status(self.process(self.server, strategy, **options)))
        self.assert_validated(TOKEN)
        self.assertEqual(1, len(self.lines), self.lines)
        self.assertIn(f'{FOREIGN}: {reason}', self.lines[0])

    def test_the_value_of_another_token(self):
        for strategy, status in (('None', 200), ('MAC', 401), ('ENCRYPT', 401)):
            _, value = self.stored(TOKEN, strategy)
            key, _ = self.stored(self.keystone.issue(OTHER), strategy)
            self.keystone.revoke(OTHER)
            self.forge(key, value)
            self.assertEqual(status, self.status(self.process(self.server, strategy), OTHER))

    def test_values_without_the_secret(self):
        guess = {'memcache_secret_key': 'guess'}
        writers = [(one, options) for one in STRATEGIES for options in ({}, guess)]
        stored = [self.stored(TOKEN, one, **options) for one, options in writers]
        self.assertEqual(5, len({key for key, _ in stored}))
        for reader, options in writers[2:]:
            key, value = self.stored(TOKEN, reader, **options)
            damaged = (value[:-1], b'x' + value, bytes([value[0] ^ 1]) + value[1:])
            others = [one for known, one in stored if known != key]
            for forged in (*others, *damaged, b''):
                self.forge(key, forged)
                self.assert_ignored(reader, **options)

    def test_a_value_that_is_written_again(self):
        """Its lifetime in memcached is endless, but the verdict ends with its time."""
        for strategy in STRATEGIES:
            with identity.Clock() as clock:
                key, value = self.stored(self.keystone.issue(OTHER), strategy)
                self.keystone.revoke(OTHER)
                self.attacker.flush_all()
                self.forge(key, value)
                for seconds, status in ((CACHE_TIME - 1, 200), (1, 401)):
                    clock.advance(seconds)
                    self.assertEqual(
                        status, self.status(self.process(self.server, strategy), OTHER)
                    )

    def test_values_that_are_ignored(self):
        trap, bomb = pickle.dumps(Trap(self.path)), zlib.compress(b' ' * 10**7)
        decompress = self.useFixture(fixtures.MockPatchObject(zlib, 'decompress')).mock
        garbage = (b'', b'\0', b'\xff' * 100, b'null', b'[' * 10**6, b'VALUE a 0 1\r\nx')
        for strategy in STRATEGIES:
            key, _ = self.stored(TOKEN, strategy)
            for value, flags, reason in (
                (trap, PICKLED, 'its flags are 1'),
                (trap, PICKLED | COMPRESSED, 'its flags are 9'),
                (trap, 16, 'its flags are 16'),
                (trap, 0, ''),
                (bomb, COMPRESSED, 'its flags are 8'),
                (bomb, 0, ''),
                (b'x' * (MAX_SIZE + 1), 0, f'it has {MAX_SIZE + 1} bytes'),
                *((one, 0, '') for one in garbage),
            ):
                self.forge(key, value, flags)
                self.assert_ignored(strategy, reason)
        self.assertFalse(self.path.exists())
        pickle.loads(trap)  # noqa: S301 - shows that the value is a trap
        self.assertTrue(self.path.exists())
        decompress.assert_not_called()

    def test_values_that_are_ignored_with_sasl(self):
        """The same program without authentication shares the database of a server."""
        trap = pickle.dumps(Trap(self.path))
        for value, flags, reason in (
            (trap, PICKLED, 'its flags are 1'),
            (b'x' * (MAX_SIZE + 1), 0, f'it has {MAX_SIZE + 1} bytes'),
            (trap, 0, ''),
            (b'', 0, ''),
        ):
            key, _ = self.stored(TOKEN, 'MAC')
            self.forge(key, value, flags)
            # This server does not know SASL, and requires no authentication.
            self.assert_ignored('MAC', reason, **SASL)
        self.assertFalse(self.path.exists())

    def test_changed_parts_of_a_value_without_protection(self):
        key, value = self.stored(TOKEN, 'None')
        document = json.loads(value)
        for place, name in list(edge.parts(document)):
            kept = place[name]
            for place[name] in (None, 'x', 1, [], {}):
                self.forge(key, json.dumps(document).encode())
                status = self.status(self.process(self.server, 'None'))
                self.assertIn(status, (200, 503), document)
            place[name] = kept


class FailureTest(TestCase):
    """A server that stops, or that does not respond."""

    def stand_in(self, respond: Callable[[socket.socket], object]) -> StandIn:
        return self.useFixture(StandIn(respond))

    def silent(self) -> StandIn:
        """Return a server that never responds."""
        end = threading.Event()
        server = self.stand_in(lambda _: end.wait())
        self.addCleanup(end.set)
        return server

    def test_a_failure_costs_one_attempt_in_a_time_and_one_line(self):
        for options, seconds in (({}, 30), ({'memcache_pool_dead_retry': 2}, 2)):
            self.lines.clear()
            server = self.stand_in(lambda _: None)
            process = self.process(server, **options)
            with identity.Clock() as clock:
                for attempts in (1, 2, 3):
                    self.new_tokens(process)
                    clock.advance(seconds - 0.5)
                    self.new_tokens(process)
                    self.assertEqual(attempts, server.connections)
                    clock.advance(0.5)
            self.assertEqual(1, len(self.lines), self.lines)
            self.assertIn(f'The memcached server {server.address} {AVOIDED}', self.lines[0])

    def test_a_stopped_server_and_its_restart(self):
        server = self.memcached()
        process = self.process(server)
        self.new_tokens(process, 1)
        server.kill()
        with identity.Clock() as clock:
            self.new_tokens(process)
            self.assertEqual(401, self.status(process, 'rejected'))
            server.start()
            self.new_tokens(process)
            self.assertEqual(1, len(self.lines), self.lines)
            clock.advance(30)
            self.assertEqual(
                [200] * 2, [self.status(one) for one in (process, self.process(server))]
            )
            self.assertEqual(1, self.keystone.validated.count(TOKEN))
            self.assertEqual(2, len(self.lines), self.lines)
            self.assertIn('responds again', self.lines[-1])
            server.kill()
            self.new_tokens(process)
            self.assertIn(AVOIDED, self.lines[-1])

    def test_unused_connections_are_not_used_again(self):
        server = self.memcached()
        process = self.process(server)
        self.new_tokens(process, 1)
        with identity.Clock() as clock:
            self.new_tokens(process, 1)
            for seconds, connections in ((0, 0), (59, 0), (61, 1), (1, 0)):
                clock.advance(seconds)
                before = server.counters()['total_connections']
                self.new_tokens(process, 1)
                after = server.counters()['total_connections']
                self.assertEqual(connections, after - before - 1, seconds)

    def test_a_suspended_server(self):
        """The timeouts are the default ones: 0.1 seconds for each step."""
        for kinds in KINDS:
            self.lines.clear()
            server = self.memcached(**kinds)
            server.suspend()
            self.new_tokens(self.process(server, **dict.fromkeys(PATIENCE, 'default')))
            self.assertEqual(1, len(self.lines), self.lines)
            self.assertIn('TimeoutError', self.lines[-1])

    def test_threads_that_use_a_silent_server(self):
        server = self.silent()
        process = self.process(server, memcache_pool_socket_timeout='default')
        threads = [threading.Thread(target=self.new_tokens, args=(process,)) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(600, len(self.keystone.validated))
        self.assertEqual(1, len(self.lines), self.lines)

    def test_a_server_that_is_not_memcached(self):
        for response in (b'HTTP/1.1 400 Bad Request\r\n\r\n', b'VALUE x\r\n', b'\x81' * 24, b''):
            for options in ({}, SASL):
                server = self.stand_in(lambda one, response=response: one.sendall(response))
                self.new_tokens(self.process(server, **options))
                self.assertEqual(1, server.connections, response)

    def test_a_response_that_does_not_end(self):
        """Another program has taken the port of a stopped memcached."""
        header = b'\x81\x21' + bytes(6) + (10**6).to_bytes(4) + bytes(12)

        def slowly(start: bytes) -> Iterator[bytes]:
            yield start
            while not end.wait(0.05):
                yield b'x'

        def fast(start: bytes) -> Iterator[bytes]:
            yield start
            for _ in range(10**4):
                yield start or b'x' * 4096

        end = threading.Event()
        for parts, start, options in (
            (slowly, b'', {}),
            (slowly, b'VALUE a 0 1000000\r\n', {}),
            (slowly, header, SASL),
            (fast, b'', {}),
            (fast, b'VALUE a 0 2\r\nxx\r\n' * 1000, {}),
        ):
            closed = threading.Event()

            def respond(
                connection: socket.socket,
                response: Iterator[bytes],
                closed: threading.Event = closed,
            ) -> None:
                try:
                    for part in response:
                        connection.sendall(part)
                except OSError:
                    closed.set()

            server = self.stand_in(functools.partial(respond, response=parts(start)))
            self.addCleanup(end.set)
            process = self.process(server, **options, **dict.fromkeys(PATIENCE, 'default'))
            self.new_tokens(process, 2)
            self.assertIn(AVOIDED, self.lines[-1])
            self.assertTrue(closed.wait(LONGEST))


class ConnectionTest(TestCase):
    """Options for connections."""

    def test_a_host_with_two_addresses(self):
        """The server listens on the address that is not the first one."""
        server = self.memcached()
        port = int(server.address.partition(':')[2])
        addresses = [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, '', ('::1', port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, '', ('127.0.0.1', port)),
        ]
        with mock.patch.object(socket, 'getaddrinfo', return_value=addresses):
            for _ in range(2):
                process = self.process(server, memcached_servers=[f'controller:{port}'])
                self.assertEqual(200, self.status(process))
        self.assert_validated(TOKEN)

    def test_servers_that_cannot_be_used(self):
        tls, other, sasl = (self.memcached(**{kind: True}) for kind in ('tls', 'tls', 'sasl'))
        for server, options, reason in (
            (tls, {'memcache_tls_cafile': other.authority}, 'CERTIFICATE_VERIFY_FAILED'),
            (tls, {'memcache_tls_cafile': None}, 'CERTIFICATE_VERIFY_FAILED'),
            (tls, {'memcache_tls_enabled': False}, ''),
            (sasl, {'memcache_password': 'wrong'}, ''),
            (sasl, {'memcache_username': None, 'memcache_password': None}, ''),
            (sasl, {'memcache_sasl_enabled': False}, ''),
        ):
            self.lines.clear()
            self.assertEqual(200, self.status(self.process(server, **options)))
            (line,) = self.lines
            self.assertRegex(line, f'{AVOIDED}.*{reason}')
            self.assertNotIn('wrong', line)

    def test_options_that_disable_memcached(self):
        server = self.memcached()
        for options in (
            {'memcached_servers': None},
            {'memcached_servers': []},
            {'cache': 'swift.cache'},
            {'token_cache_time': 0},
            {'token_cache_time': -1},
        ):
            self.assertEqual(200, self.status(self.process(server, **options)))
        self.assertEqual(0, server.counters()['cmd_get'])
        self.assertEqual([], self.lines)

    def test_without_the_library_for_encryption(self):
        server = self.memcached()
        self.useFixture(fixtures.MonkeyPatch('importlib.util.find_spec', lambda _name: None))
        for _ in range(2):
            self.assertEqual(200, self.status(self.process(server, 'ENCRYPT')))
        self.assert_validated(TOKEN, TOKEN)
        advice = "Run `pip install 'openstack-placement[memcached]'`."
        self.assertEqual([True] * 2, [line.endswith(advice) for line in self.lines])
        for _ in range(2):
            self.assertEqual(200, self.status(self.process(server)))
        self.assert_validated(TOKEN)
