"""Tokens that processes share in a real memcached: forged values, failures, and TLS."""

import base64
import contextlib
import json
import logging
import os
import pathlib
import pickle
import socket
import threading
from typing import Any
from urllib.parse import unquote
import zlib

import fixtures
from oslotest import base
from pymemcache.client import base as pymemcache

from placement import auth
from placement.tests import where
from placement.tests.functional.memcached_server import Memcached
from placement.tests.unit import edge, identity
from placement.tests.unit.identity import CACHE_TIME
from placement.tests.unit.telemetry.switched_on import SwitchedOn

TOKEN = 'token-of-a-client'
OTHER = 'token-of-another-client'
SECRET = 'hush-secret'
# How long a process remembers a token, and how long memcached contains it.
IN_MEMORY = CACHE_TIME // 5
IN_MEMCACHED = CACHE_TIME - IN_MEMORY
STRATEGIES = ('None', 'MAC', 'ENCRYPT')
# The largest value that memcached accepts by default, in bytes.
MAX_SIZE = 2**20

# Servers, and how clients connect to them.
KINDS = ({}, {'unix': True}, {'tls': True})
DEAD = 'A memcached server is not used for 30 seconds'

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

    :ivar address: the value for the option `memcached_servers`
    """

    def __init__(self, response: bytes) -> None:
        super().__init__()
        self._response = response

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
                with connection, contextlib.suppress(OSError):
                    connection.recv(2**16)
                    connection.sendall(self._response)


@where.only_on('sqlite', reason='No SQL statement is executed.')
class TestCase(base.BaseTestCase):
    """Requests to the middleware of several processes.

    :cvar is_patient: whether a server can take longer than usual, because the machine is busy
    """

    is_patient = True

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(fixtures.FakeLogger('placement', logging.INFO))
        self.lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(record.getMessage())
        self.useFixture(fixtures.LogHandler(handler, 'placement', logging.INFO))
        # keystonemiddleware logs each rejected token.
        self.useFixture(fixtures.FakeLogger('keystonemiddleware', logging.CRITICAL))
        if self.is_patient:
            self.useFixture(fixtures.MonkeyPatch('placement.token_cache.TIMEOUT', 60))
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
            **required,
            **options,
        }
        return identity.middleware(edge.ok, token_memory=100, **settings)

    def status(self, process: auth.KeystoneMiddleware, token: str = TOKEN, **more: str) -> int:
        environ = edge.environ(path='/traits', HTTP_X_AUTH_TOKEN=token, **more)
        return edge.call(process, environ).status

    def attacker(self) -> pymemcache.Client:
        """Return another client of the server."""
        host, _, port = self.server.address.partition(':')
        client = pymemcache.Client((host, int(port)), timeout=60, default_noreply=False)
        self.addCleanup(client.close)
        return client

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
            if line == 'OK':  # the first line of newer releases
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

    def test_the_time_in_memcached_and_the_time_in_memory_add_up(self):
        for strategy in STRATEGIES:
            token = self.keystone.issue(f'a-{strategy}')
            known = self.entries(self.server).keys()
            self.status(self.process(self.server, strategy), token)
            (entry,) = [row for key, row in self.entries(self.server).items() if key not in known]
            self.assertIn(IN_MEMCACHED - int(entry['exp']) + int(entry['la']), (-1, 0, 1))
            with identity.Clock() as clock:
                process = self.process(self.server, strategy)
                self.assertEqual(200, self.status(process, token))
                self.keystone.revoke(token)
                self.attacker().flush_all()
                for seconds, status in ((IN_MEMORY - 0.5, 200), (0.5, 401)):
                    clock.advance(seconds)
                    self.assertEqual(status, self.status(process, token), strategy)

    def test_a_time_that_is_too_short_for_memcached(self):
        """Otherwise, memcached would keep a value with a lifetime of 0 without end."""
        for _ in range(2):
            self.assertEqual(200, self.status(self.process(self.server, token_cache_time=1)))
        self.assert_validated(TOKEN, TOKEN)

    def test_rejected_and_large_tokens_are_not_stored(self):
        # Users can influence the size of a token.
        self.keystone.issue('large', audit_ids=['x' * MAX_SIZE])
        for token, expected in (('unknown', 401), ('large', 200)):
            for _ in range(2):
                self.assertEqual(expected, self.status(self.process(self.server), token))
        self.assertEqual({}, self.entries(self.server))
        self.assertEqual([], self.lines)

    def test_an_expired_token_is_valid_only_with_a_service_token(self):
        self.keystone.issue('expired', lifetime=-60)
        self.keystone.issue('a-service', roles=('service',))
        for _ in range(2):
            process = self.process(self.server)
            status = self.status(process, 'expired', HTTP_X_SERVICE_TOKEN='a-service')
            self.assertEqual(200, status)
            for one in (process, self.process(self.server)):
                self.assertEqual(401, self.status(one, 'expired'))
        self.assert_validated('a-service', 'expired')

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

    def test_a_stopped_server_and_its_restart(self):
        with identity.Clock() as clock:
            process = self.process(self.server)
            self.new_tokens(process, 1)
            self.server.kill()
            self.new_tokens(process)
            self.assertEqual(401, self.status(process, 'rejected'))
            self.server.start()
            self.new_tokens(process)
            clock.advance(31)
            self.assertEqual(
                [200] * 2, [self.status(one) for one in (process, self.process(self.server))]
            )
        self.assertEqual(1, self.keystone.validated.count(TOKEN))


class ForgeryTest(TestCase):
    """Another program writes to memcached; it even knows the key of a token."""

    def setUp(self) -> None:
        super().setUp()
        self.server = self.memcached('-I', '16m')
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'executed')

    def stored(self, token: str, strategy: str, **options: str) -> tuple[str, bytes]:
        """Return the key and the value that a process writes for a token."""
        self.attacker().flush_all()
        self.assertEqual(200, self.status(self.process(self.server, strategy, **options), token))
        (key,) = self.entries(self.server)
        value = self.attacker().get(key)
        self.keystone.validated.clear()
        self.assertNotIn(token, key)
        return key, value

    def forge(self, key: str, value: bytes, flags: int = 0) -> None:
        self.assertTrue(self.attacker().set(key, value, expire=0, flags=flags))

    def assert_ignored(self, strategy: str, **options: Any) -> None:
        """The next validation replaces the value."""
        for _ in range(2):
            self.assertEqual(200, self.status(self.process(self.server, strategy, **options)))
        self.assert_validated(TOKEN)

    def test_an_encrypted_value_does_not_contain_the_token(self):
        for strategy in ('ENCRYPT', 'encrypt'):
            _, value = self.stored(TOKEN, strategy)
            self.assertNotIn(TOKEN.encode(), base64.b64decode(value))

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

    def test_values_that_are_ignored(self):
        trap, bomb = pickle.dumps(Trap(self.path)), zlib.compress(b' ' * 10**7)
        decompress = self.useFixture(fixtures.MockPatchObject(zlib, 'decompress')).mock
        garbage = (b'', b'\0', b'\xff' * 100, b'null', b'[' * 10**6, b'VALUE a 0 1\r\nx')
        for strategy in STRATEGIES:
            key, _ = self.stored(TOKEN, strategy)
            for value, flags in (
                (trap, PICKLED),
                (trap, PICKLED | COMPRESSED),
                (trap, 16),
                (trap, 0),
                (bomb, COMPRESSED),
                (bomb, 0),
                (b'x' * (MAX_SIZE + 1), 0),
                *((one, 0) for one in garbage),
            ):
                self.forge(key, value, flags)
                if strategy == 'None':
                    # Whoever can write such a value can make any token valid, too.
                    self.assertIn(self.status(self.process(self.server, strategy)), (200, 503))
                else:
                    self.assert_ignored(strategy)
        self.assertFalse(self.path.exists())
        pickle.loads(trap)  # noqa: S301 - shows that the value is a trap
        self.assertTrue(self.path.exists())
        decompress.assert_not_called()

    def test_changed_parts_of_a_value_without_protection(self):
        key, value = self.stored(TOKEN, 'None')
        document = json.loads(value)
        for place, name in list(edge.parts(document)):
            kept = place[name]
            for place[name] in (None, 'x', 1, [], {}):
                self.forge(key, json.dumps(document).encode())
                status = self.status(self.process(self.server, 'None'))
                self.assertIn(status, (200, 401, 503), document)
            place[name] = kept


class FailureTest(TestCase):
    """A server that does not respond, or not as memcached."""

    is_patient = False

    def test_a_failure_costs_one_attempt_in_a_time_and_one_line(self):
        for kinds in KINDS:
            self.lines.clear()
            server = self.memcached(**kinds)
            server.suspend()
            with identity.Clock() as clock:
                process = self.process(server)
                for attempts in (1, 2, 3):
                    self.new_tokens(process)
                    clock.advance(29.5)
                    self.new_tokens(process)
                    self.assertEqual(attempts, len(self.lines), self.lines)
                    clock.advance(1)
            self.assertIn(f'{DEAD}: TimeoutError', self.lines[0])

    def test_threads_that_use_a_silent_server(self):
        server = self.memcached()
        server.suspend()
        process = self.process(server)
        threads = [threading.Thread(target=self.new_tokens, args=(process,)) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(600, len(self.keystone.validated))
        self.assertLessEqual(len(self.lines), len(threads))

    def test_a_server_that_is_not_memcached(self):
        for response in (b'HTTP/1.1 400 Bad Request\r\n\r\n', b'VALUE x\r\n', b'\x81' * 24, b''):
            self.new_tokens(self.process(self.useFixture(StandIn(response))))


class ConnectionTest(TestCase):
    """Options for connections."""

    def test_servers_that_cannot_be_used(self):
        tls, other = self.memcached(tls=True), self.memcached(tls=True)
        for options, reason in (
            ({'memcache_tls_cafile': other.authority}, 'CERTIFICATE_VERIFY_FAILED'),
            ({'memcache_tls_cafile': None}, 'CERTIFICATE_VERIFY_FAILED'),
            ({'memcache_tls_enabled': False}, ''),
        ):
            self.lines.clear()
            self.assertEqual(200, self.status(self.process(tls, **options)))
            (line,) = self.lines
            self.assertRegex(line, f'{DEAD}.*{reason}')

    def test_certificates_and_ciphers_that_cannot_be_used(self):
        server = self.memcached(tls=True)
        for name, value in (
            ('memcache_tls_cafile', '/nonexistent'),
            ('memcache_tls_certfile', '/nonexistent'),
            ('memcache_tls_allowed_ciphers', 'NONEXISTENT'),
        ):
            error = self.assertRaises(ValueError, self.process, server, **{name: value})
            self.assertIn(name, str(error))

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

    def test_sasl_is_not_supported(self):
        server = self.memcached()
        for _ in range(2):
            process = self.process(server, 'ENCRYPT', memcache_sasl_enabled=True)
            self.assertEqual(200, self.status(process))
        self.assert_validated(TOKEN, TOKEN)
        advice = 'Remove [keystone_authtoken] memcache_sasl_enabled'
        self.assertEqual([True] * 2, [advice in line for line in self.lines])
        self.assertEqual(0, server.counters()['cmd_get'])

    def test_without_the_library_for_encryption(self):
        server = self.memcached()
        self.useFixture(fixtures.MonkeyPatch('importlib.util.find_spec', lambda _name: None))
        for _ in range(2):
            self.assertEqual(200, self.status(self.process(server, 'ENCRYPT')))
        self.assert_validated(TOKEN, TOKEN)
        advice = "Run `pip install 'openstack-placement[memcached]'`"
        self.assertEqual([True] * 2, [advice in line for line in self.lines])
        for _ in range(2):
            self.assertEqual(200, self.status(self.process(server)))
        self.assert_validated(TOKEN)
