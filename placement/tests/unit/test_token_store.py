"""The store of validated tokens, with stubs in place of memcached."""

import ssl
import time
from typing import Any
from unittest import mock

import fixtures
from keystonemiddleware import auth_token
import orjson
from oslo_config import cfg
from oslotest import base
from pymemcache import exceptions

from placement import memcached, token_store
from placement.conf import authtoken, sources
from placement.tests.unit import edge
from placement.token_memory import Verdict

USER = {'id': 'u', 'name': 'u', 'domain': {'id': 'd', 'name': 'd'}}
DATA = {'token': {'expires_at': '2099-01-01T00:00:00Z', 'user': USER}}
LIFETIME = 300
LIMITS = memcached.Limits(
    timeout=0.1, dead_retry=30, connections=2, get_timeout=0.01, unused_timeout=60
)


def configuration(**values: object) -> cfg.ConfigOpts:
    config = edge.configuration()
    config.register_opts(dict(auth_token.list_opts())[authtoken.GROUP], authtoken.GROUP)
    for name, value in values.items():
        config.set_override(name, value, authtoken.GROUP)
    return config


class Client:
    """A client that keeps values in a dictionary, or fails."""

    def __init__(self, values: dict[str, bytes]) -> None:
        self.values = values
        self.error: Exception | None = None
        self.operations = 0
        self.closed = 0
        self.expire: int | None = None

    def _count(self) -> None:
        self.operations += 1
        if self.error is not None:
            raise self.error

    def get(self, key: str) -> bytes | None:
        self._count()
        return self.values.get(key)

    def set(self, key: str, value: bytes, expire: int) -> bool:
        self._count()
        self.values[key] = value
        self.expire = expire
        return True

    def close(self) -> None:
        self.closed += 1


class Clock:
    """Replaces the clock of a module."""

    def __init__(self, test: base.BaseTestCase, module: str) -> None:
        self.now = 1000.0
        clock = mock.Mock(monotonic=lambda: self.now, time=lambda: self.now)
        test.useFixture(fixtures.MonkeyPatch(f'{module}.time', clock))


class TestCase(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement'))
        self.values: dict[str, bytes] = {}
        self.clients: list[Client] = []

    def server(self, address: str = 'a', **limits: Any) -> memcached.Server:
        limits = memcached.Limits(
            **{name: limits.get(name, getattr(LIMITS, name)) for name in LIMITS.__slots__}
        )

        def connect() -> Client:
            self.clients.append(Client(self.values))
            return self.clients[-1]

        return memcached.Server(address, connect, limits)

    def store(
        self, strategy: str = 'mac', secret: bytes = b'secret', servers: Any = None
    ) -> token_store.TokenStore:
        protection = token_store.Protection(strategy, secret)
        return token_store.TokenStore(servers or [self.server()], protection, LIFETIME)


class ProtectionTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.mac = token_store.Protection('mac', b'secret')
        self.encrypt = token_store.Protection('encrypt', b'secret')

    def test_only_the_same_token_and_secret_can_read(self):
        for right in (self.mac, self.encrypt):
            protected = right.protect('token', b'text')
            self.assertEqual(b'text', right.unprotect('token', protected))
            other_secret = token_store.Protection(right.strategy, b'other')
            other_strategy = self.encrypt if right is self.mac else self.mac
            for protection, token, value in (
                (right, 'other', protected),
                (other_secret, 'token', protected),
                (other_strategy, 'token', protected),
                (right, 'token', protected[:-1]),
                (right, 'token', b'x' + protected),
                (right, 'token', bytes([protected[0] ^ 1]) + protected[1:]),
                (right, 'token', b''),
                (right, 'token', b'text'),
            ):
                self.assertRaises(ValueError, protection.unprotect, token, value)

    def test_encryption_hides_the_text(self):
        self.assertIn(b'text', self.mac.protect('token', b'text'))
        self.assertNotIn(b'text', self.encrypt.protect('token', b'text'))

    def test_names_need_the_secret_and_hide_the_token(self):
        others = (
            self.encrypt,
            token_store.Protection('mac', b'other'),
            token_store.Protection('none', b''),
        )
        names = {protection.name('token') for protection in (self.mac, *others)}
        self.assertEqual(4, len(names))
        self.assertNotEqual(self.mac.name('token'), self.mac.name('other'))
        for name in names:
            self.assertRegex(name, r'^placement-token-1/[0-9a-f]{64}$')

    def test_the_secret_is_not_printed(self):
        self.assertNotIn('secret=', repr(self.mac))

    def test_without_a_strategy_a_value_is_the_text(self):
        protection = token_store.Protection('none', b'')
        self.assertEqual(b'text', protection.protect('token', b'text'))
        self.assertEqual(b'text', protection.unprotect('token', b'text'))


class VerdictTest(TestCase):
    """The age and the form of a verdict."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock(self, 'placement.token_store')

    def test_a_verdict_is_valid_for_token_cache_time(self):
        for strategy in ('none', 'mac', 'encrypt'):
            store = self.store(strategy)
            start = self.clock.now
            verdict = Verdict(DATA, start - 10.5)
            store.set('token', verdict)
            self.assertIsNone(store.get('other'))
            for age, expected in (
                (10.5, verdict),
                (LIFETIME - 0.1, verdict),
                (LIFETIME, None),
                (LIFETIME + 10, None),
            ):
                self.clock.now = start - 10.5 + age
                self.assertEqual(expected, store.get('token'), age)
        self.assertEqual('', self.log.output)

    def test_the_clock_of_another_host_is_ahead(self):
        store = self.store()
        for ahead, is_valid in ((token_store.CLOCK_DIFFERENCE, True), (2.1, False), (1e9, False)):
            store.set('token', Verdict(DATA, self.clock.now + ahead))
            self.assertEqual(is_valid, store.get('token') is not None, ahead)

    def test_memcached_removes_a_verdict_after_its_lifetime(self):
        store = self.store()
        for age, lifetime, expire in (
            (0, LIFETIME, 300),
            (0.5, LIFETIME, 300),
            (10, LIFETIME, 290),
            (0, 10**9, 30 * 24 * 60 * 60),
        ):
            store._lifetime = lifetime
            store.set('token', Verdict(DATA, self.clock.now - age))
            self.assertEqual(expire, self.clients[1].expire)

    def test_a_verdict_that_is_too_old_is_not_written(self):
        self.store().set('token', Verdict(DATA, self.clock.now - LIFETIME))
        self.assertEqual({}, self.values)

    def test_values_that_are_not_written(self):
        for data in ({'token': {'a': 2**64}}, {'token': {'a': 'x' * memcached.MAX_SIZE}}):
            self.store().set('token', Verdict(data, self.clock.now))
        self.assertEqual({}, self.values)
        self.assertEqual('', self.log.output)

    def test_the_text_of_a_token_is_not_written(self):
        """python-keystoneclient adds it to the data."""
        data = {'token': DATA['token'] | {'auth_token': 'the text'}}
        store = self.store()
        store.set('the text', Verdict(data, self.clock.now))
        self.assertEqual(DATA, store.get('the text').data)
        (value,) = self.values.values()
        self.assertNotIn(b'the text', value)

    def test_texts_that_are_not_verdicts(self):
        """Only a process with the secret can write them."""
        now = self.clock.now
        for document in (
            None,
            [],
            {},
            {'at': now},
            {'at': str(now), 'data': DATA},
            {'at': None, 'data': DATA},
            {'at': now, 'data': {}},
            {'at': now, 'data': {'token': []}},
            {'at': now, 'data': {'token': {}}},
            {'at': now, 'data': {'token': {**DATA['token'], 'user': None}}},
            {'at': now, 'data': {'token': {**DATA['token'], 'user': {**USER, 'id': 1}}}},
            {'at': now, 'data': {'token': {**DATA['token'], 'expires_at': 'never'}}},
            {'at': now, 'data': {'token': {**DATA['token'], 'roles': None}}},
        ):
            for strategy in ('none', 'mac', 'encrypt'):
                protection = token_store.Protection(strategy, b'secret')
                text = orjson.dumps(document)
                self.values[protection.name('token')] = protection.protect('token', text)
                self.assertIsNone(self.store(strategy).get('token'), document)
        self.assertEqual(13 * 3, self.log.output.count('Placement has not written it'))

    def test_nested_lists_do_not_exhaust_the_stack(self):
        name = token_store.Protection('none', b'').name('token')
        self.values[name] = b'[' * 10**6
        self.assertIsNone(self.store('none', b'').get('token'))


class ServerTest(TestCase):
    """A server that fails."""

    def setUp(self) -> None:
        super().setUp()
        self.clock = Clock(self, 'placement.memcached')

    def operations(self) -> int:
        return sum(client.operations for client in self.clients)

    def fail(self, error: Exception | None) -> None:
        for client in self.clients:
            client.error = error

    def test_a_failure_costs_one_operation_in_30_seconds_and_one_line(self):
        store = self.store()
        self.fail(OSError('stopped'))
        for attempts in (1, 2, 3):
            for _ in range(50):
                self.assertIsNone(store.get('token'))
                store.set('token', Verdict(DATA, time.time()))
            self.assertEqual(attempts, self.operations())
            self.clock.now += 30
        self.assertEqual(1, self.log.output.count('\n'))
        self.assertIn('The memcached server a is not used until it responds', self.log.output)
        self.assertIn('OSError: stopped', self.log.output)

    def test_a_server_that_responds_again(self):
        store = self.store()
        self.fail(OSError())
        store.get('token')
        self.fail(None)
        store.set('token', Verdict(DATA, time.time()))
        self.assertEqual({}, self.values)
        self.clock.now += 30
        for _ in range(3):
            store.set('token', Verdict(DATA, time.time()))
            self.assertIsNotNone(store.get('token'))
        self.assertEqual(1, self.log.output.count('The memcached server a responds again.'))
        self.fail(OSError())
        store.get('token')
        self.assertEqual(2, self.log.output.count('is not used until'))

    def test_one_request_at_a_time_tries_a_server(self):
        server = self.server()
        self.fail(OSError())
        server.run(lambda client: client.get('a'))
        self.clock.now += 30
        nested = []

        def operation(client: Client) -> None:
            # Another thread uses the server during the attempt.
            nested.append(server.run(lambda other: other.get('a')))
            client.get('a')

        server.run(operation)
        self.assertEqual([None], nested)
        self.assertEqual(2, self.operations())

    def test_a_failure_closes_all_connections_before_their_next_use(self):
        server = self.server()

        def use_both(client: Client) -> None:
            server.run(lambda other: other.get('a'))
            client.get('a')

        server.run(use_both)
        self.assertEqual([1, 1], [client.operations for client in self.clients])
        before = [client.closed for client in self.clients]
        self.fail(OSError())
        server.run(lambda client: client.get('a'))
        self.fail(None)
        self.clock.now += 30
        server.run(use_both)
        for client, closed in zip(self.clients, before, strict=True):
            self.assertGreater(client.closed, closed)

    def test_unused_connections_are_closed(self):
        server = self.server(connections=1)
        (client,) = self.clients
        server.run(lambda client: client.get('a'))
        for seconds, closed in ((0, 0), (60, 0), (61, 1), (1, 0)):
            self.clock.now += seconds
            before = client.closed
            server.run(lambda client: client.get('a'))
            self.assertEqual(closed, client.closed - before, seconds)

    def test_no_connection_is_free(self):
        server = self.server(connections=1)
        results = []

        def operation(client: Client) -> None:
            results.append(server.run(lambda other: other.get('a')))

        server.run(operation)
        self.assertEqual([None], results)
        self.assertEqual('', self.log.output)

    def test_any_exception_is_a_failure(self):
        for error in (ValueError('?'), KeyError('?'), AssertionError(), TimeoutError()):
            server = self.server()
            self.fail(error)
            self.assertIsNone(server.run(lambda client: client.get('a')))
            self.assertTrue(server.is_avoided())

    def test_a_foreign_value_is_no_failure(self):
        store = self.store()
        self.fail(memcached.ForeignValueError('its flags are 1'))
        for _ in range(2):
            self.assertIsNone(store.get('token'))
            store.set('token', Verdict(DATA, time.time()))
        self.assertFalse(store.servers[0].is_avoided())
        self.assertEqual(2, self.log.output.count('has not written it: its flags are 1'))

    def test_keys_are_spread_over_the_servers(self):
        servers = [self.server(address) for address in 'abc']
        store = self.store(servers=servers)
        names = [str(number) for number in range(300)]
        before = {name: store._server(name) for name in names}
        for server in servers:
            self.assertGreater(list(before.values()).count(server), 50)
        same = self.store(servers=servers[::-1])
        self.assertEqual(before, {name: same._server(name) for name in names})
        # Only the keys of a server that fails move.
        self.fail(OSError())
        servers[0].run(lambda client: client.get('a'))
        after = {name: store._server(name) for name in names}
        for name in names:
            self.assertIsNot(servers[0], after[name])
            if before[name] is not servers[0]:
                self.assertIs(before[name], after[name])


class Connection:
    """A connection on which a response never ends.

    :param seconds: how long each part of the response takes
    :param size: the size of each part, in bytes
    """

    setsockopt = close = sendall = mock.Mock()

    def __init__(self, clock: Clock, start: bytes, seconds: float, size: int) -> None:
        self._clock = clock
        self._start = start
        self._seconds = seconds
        self._size = size
        self.received = 0

    def recv(self, size: int) -> bytes:
        if self.received > 10 * memcached.MAX_SIZE:
            raise AssertionError('The response has no limit.')
        self._clock.now += self._seconds
        part = (self._start or b'x' * self._size)[:size]
        self._start = self._start[size:]
        self.received += len(part)
        return part


class EndlessResponseTest(base.BaseTestCase):
    """Another program has taken the port of a stopped memcached."""

    def fail(
        self, client: memcached.Client, error: type[Exception], start: bytes, *part: Any
    ) -> None:
        clock = Clock(self, 'placement.memcached')
        connection = Connection(clock, start, *part)
        with mock.patch('socket.create_connection', return_value=connection):
            self.assertRaises(error, client.get, 'a')
        self.assertIsNone(client.sock)
        self.assertLess(clock.now, 1000 + LIMITS.timeout * 12)

    def test_a_response_in_small_parts(self):
        address = ('host', 1)
        client = memcached.Client(address, LIMITS.timeout, None)
        for start in (b'', b'VALUE a 0 1000000\r\n'):
            self.fail(client, TimeoutError, start, LIMITS.timeout * 0.9, 1)
        header = memcached._HEADER.pack(0x81, 0x21, 0, 0, 0, 0, 10**6, 0, 0)
        sasl = memcached.SaslClient(address, LIMITS.timeout, None, ('a', 'b'))
        self.fail(sasl, TimeoutError, header, LIMITS.timeout * 0.9, 1)

    def test_a_response_without_limit(self):
        client = memcached.Client(('host', 1), LIMITS.timeout, None)
        for start in (b'', b'VALUE a 0 2\r\nxx\r\n' * 10**5):
            self.fail(client, exceptions.MemcacheUnknownError, start, 0, 4096)


class OptionsTest(base.BaseTestCase):
    """The options of keystonemiddleware for memcached."""

    def setUp(self) -> None:
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement'))

    def open(self, **values: object) -> token_store.TokenStore | None:
        return token_store.open_store(
            configuration(**{'memcached_servers': ['127.0.0.1:11211'], **values})
        )

    def test_no_store(self):
        for values in (
            {'memcached_servers': None},
            {'memcached_servers': []},
            {'cache': 'swift.cache'},
            {'token_cache_time': 0},
            {'token_cache_time': -1},
        ):
            self.assertIsNone(self.open(**values), values)
        self.assertEqual('', self.log.output)

    def test_options_that_are_not_registered(self):
        config = edge.configuration()
        self.assertIsNone(token_store.open_store(config))
        self.assertEqual(300, config.keystone_authtoken.token_cache_time)

    def test_a_strategy_without_a_secret(self):
        error = self.assertRaises(
            sources.MissingOption, self.open, memcache_security_strategy='MAC'
        )
        self.assertEqual('memcache_secret_key', error.opt_name)

    def test_a_missing_library(self):
        self.useFixture(fixtures.MonkeyPatch('importlib.util.find_spec', lambda _name: None))
        encrypt = {'memcache_security_strategy': 'ENCRYPT', 'memcache_secret_key': 's'}
        self.assertIsNone(self.open(**encrypt, cache='swift.cache'))
        self.assertIsNotNone(self.open())
        self.assertEqual('', self.log.output)
        self.assertIsNone(self.open(**encrypt))
        self.assertEqual(1, self.log.output.count('\n'), self.log.output)
        self.assertIn("Run `pip install 'openstack-placement[memcached]'`.", self.log.output)

    def test_defaults_limit_the_cost_of_a_failure(self):
        limits = token_store._limits(configuration())
        self.assertLessEqual(limits.timeout, 0.1)
        self.assertLessEqual(limits.get_timeout, 0.1)
        self.assertGreaterEqual(limits.dead_retry, 30)
        self.assertEqual((10, 60), (limits.connections, limits.unused_timeout))
        (server,) = self.open().servers
        client, _ = server._pool.get()
        self.assertEqual(limits.timeout, client.timeout)

    def test_the_options_of_the_pool(self):
        limits = token_store._limits(
            configuration(
                memcache_pool_socket_timeout=1,
                memcache_pool_dead_retry=2,
                memcache_pool_maxsize=3,
                memcache_pool_conn_get_timeout=4,
                memcache_pool_unused_timeout=5,
            )
        )
        self.assertEqual(memcached.Limits(1, 2, 3, 4, 5), limits)
        self.assertEqual(
            10, token_store._limits(configuration(memcache_pool_maxsize=0)).connections
        )

    def test_sasl(self):
        store = self.open(
            memcache_sasl_enabled=True, memcache_username='user', memcache_password='hush'
        )
        client, _ = store.servers[0]._pool.get()
        self.assertIsInstance(client, memcached.SaslClient)
        self.assertEqual(b'\0user\0hush', client._credentials)

    def test_tls(self):
        self.assertIsNone(self.open().servers[0]._pool.get()[0].tls_context)
        context = mock.Mock(spec=ssl.SSLContext)
        create = mock.patch.object(ssl, 'create_default_context', return_value=context)
        with create as created:
            store = self.open(
                memcache_tls_enabled=True,
                memcache_tls_cafile='ca',
                memcache_tls_certfile='crt',
                memcache_tls_keyfile='key',
                memcache_tls_allowed_ciphers='HIGH',
            )
        created.assert_called_once_with(cafile='ca')
        context.load_cert_chain.assert_called_once_with('crt', 'key')
        context.set_ciphers.assert_called_once_with('HIGH')
        self.assertIs(context, store.servers[0]._pool.get()[0].tls_context)
        error = self.assertRaises(
            ValueError, self.open, memcache_tls_enabled=True, memcache_tls_cafile='/x'
        )
        self.assertIn('No such file or directory. Correct memcache_tls_cafile', str(error))
