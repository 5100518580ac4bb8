"""The store of validated tokens in a real memcached: forged values, failures, TLS, and SASL."""

from collections.abc import Iterator
import contextlib
import logging
import os
import pathlib
import pickle
import socket
import threading
import time
from typing import Any
from unittest import mock
import zlib

import fixtures
from keystonemiddleware import auth_token
import orjson
from oslo_config import cfg
from oslotest import base

from placement import deploy, memcached, token_store
from placement.conf import authtoken
from placement.http import Application
from placement.tests.functional import memcached_server
from placement.tests.unit import edge
from placement.token_memory import Verdict

TOKEN = 'token-of-a-client'
SECRET = 'hush-secret'
LIFETIME = 300
# Long enough for a busy machine. Tests in which a server must not respond use the default.
PATIENCE = {'memcache_pool_socket_timeout': 60, 'memcache_pool_conn_get_timeout': 60}
# Stands for the default of an option.
DEFAULT = object()
DEFAULTS = dict.fromkeys(PATIENCE, DEFAULT)
STRATEGIES = ('None', 'MAC', 'ENCRYPT')
PROTECTED = ('MAC', 'ENCRYPT')

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
    'memcache_username': memcached_server.USER,
    'memcache_password': memcached_server.PASSWORD,
}

# The flags with which python-memcached and python-binary-memcached mark a pickled object, and a
# compressed one.
PICKLED = 1
COMPRESSED = 8

DATA = {
    'token': {
        'methods': ['password'],
        'expires_at': '2099-01-01T00:00:00.000000Z',
        'user': {'id': 'u', 'name': 'u', 'domain': {'id': 'default', 'name': 'Default'}},
        'project': {'id': 'p', 'name': 'p', 'domain': {'id': 'default', 'name': 'Default'}},
        'roles': [{'id': 'admin', 'name': 'admin'}],
        'catalog': [],
    }
}


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path: pathlib.Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


def configuration(**values: object) -> cfg.ConfigOpts:
    """Return options of `[keystone_authtoken]` with a patience that suits a busy machine."""
    config = edge.configuration()
    config.register_opts(dict(auth_token.list_opts())[authtoken.GROUP], authtoken.GROUP)
    for name, value in {'token_cache_time': LIFETIME, 'www_authenticate_uri': 'http://id'}.items():
        config.set_override(name, value, authtoken.GROUP)
    for name, value in values.items():
        if value is not DEFAULT:
            config.set_override(name, value, authtoken.GROUP)
    return config


def options(address: str, strategy: str, **values: object) -> dict[str, object]:
    protection = {'memcache_security_strategy': strategy, 'memcache_secret_key': SECRET}
    return {'memcached_servers': [address], **PATIENCE, **protection, **values}


def close(server: memcached.Server) -> None:
    """Close the connections to a server."""
    for client, _ in server._pool.queue:
        client.close()


class Lines(fixtures.Fixture):
    """Collects the lines of the log of the service."""

    def _setUp(self) -> None:
        self.lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: self.lines.append(record.getMessage())
        self.useFixture(fixtures.LogHandler(handler, 'placement', logging.INFO))


class TestCase(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.lines = self.useFixture(Lines()).lines
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def memcached(self, *arguments: str, **kinds: bool) -> memcached_server.Memcached:
        return self.useFixture(memcached_server.Memcached(*arguments, **kinds))

    def open(self, server: memcached_server.Memcached, **values: object) -> token_store.TokenStore:
        """Open the store with the options that the server requires; values replace them."""
        return self.open_address(server.address, **{**server.options(), **values})

    def open_address(self, address: str, **values: object) -> token_store.TokenStore:
        store = token_store.open_store(configuration(**options(address, 'MAC', **values)))
        for server in store.servers:
            self.addCleanup(close, server)
        return store

    def verdict(self, age: float = 0) -> Verdict:
        return Verdict(DATA, time.time() - age)

    def assertStored(self, store: token_store.TokenStore, token: str = TOKEN) -> None:
        verdict = self.verdict()
        self.assertIsNone(store.get(token))
        store.set(token, verdict)
        self.assertEqual(verdict, store.get(token))
        self.assertIsNone(store.get(f'{token}-other'))
        self.assertEqual([], self.lines)


class AttackerTestCase(TestCase):
    """Another program writes to memcached; it even knows the name of the value."""

    def setUp(self) -> None:
        super().setUp()
        self.server = self.memcached('-I', '16m')
        host, _, port = self.server.address.partition(':')
        self.attacker = memcached.base.Client((host, int(port)), timeout=60, default_noreply=False)
        self.addCleanup(self.attacker.close)

    def store(self, strategy: str) -> token_store.TokenStore:
        return self.open(self.server, memcache_security_strategy=strategy)

    def forge(self, store: token_store.TokenStore, value: bytes, flags: int = 0) -> None:
        name = store._protection.name(TOKEN)
        self.assertTrue(self.attacker.set(name, value, expire=0, flags=flags))


class ForgeryTest(AttackerTestCase):
    """The store ignores what another program has written."""

    def assertIgnored(self, store: token_store.TokenStore, reason: str) -> None:
        """The value is a miss with a WARNING, and the next validation replaces it."""
        self.lines.clear()
        self.assertIsNone(store.get(TOKEN))
        self.assertEqual(1, len(self.lines), self.lines)
        self.assertIn(f'Placement has not written it: {reason}', self.lines.pop())
        store.set(TOKEN, self.verdict())
        self.assertIsNotNone(store.get(TOKEN))

    def test_values_without_the_secret(self):
        text = orjson.dumps({'at': time.time(), 'data': DATA})
        for strategy in PROTECTED:
            store = self.store(strategy)
            forger = token_store.Protection(strategy.lower(), b'guess')
            no_protection = token_store.Protection('none', b'')
            self.assertStored(store)
            for protection in (forger, no_protection):
                self.forge(store, protection.protect(TOKEN, text))
                self.assertIgnored(store, '')

    def test_the_value_of_another_token(self):
        for strategy in PROTECTED:
            store = self.store(strategy)
            store.set('token-of-the-administrator', self.verdict())
            name = store._protection.name('token-of-the-administrator')
            self.forge(store, self.attacker.get(name))
            self.assertIgnored(store, '')

    def test_a_value_that_is_written_again(self):
        """Its lifetime in memcached is endless, but the verdict ends with its time."""
        for strategy in STRATEGIES:
            store = self.store(strategy)
            store.set(TOKEN, self.verdict())
            value = self.attacker.get(store._protection.name(TOKEN))
            self.attacker.flush_all()
            self.assertIsNone(store.get(TOKEN))
            self.forge(store, value)
            self.assertIsNotNone(store.get(TOKEN))
            later = time.time() + LIFETIME
            with mock.patch('placement.token_store.time', mock.Mock(time=lambda t=later: t)):
                self.assertIsNone(store.get(TOKEN))

    def test_a_pickled_object_is_never_executed(self):
        path = self.folder / 'executed'
        value = pickle.dumps(Trap(path))
        for strategy in STRATEGIES:
            store = self.store(strategy)
            for flags in (PICKLED, PICKLED | COMPRESSED, 2, 4, 16):
                self.forge(store, value, flags)
                self.assertIgnored(store, f'its flags are {flags}')
            self.forge(store, value)
            self.assertIgnored(store, '')
        self.assertFalse(path.exists())
        pickle.loads(value)  # noqa: S301 - shows that the value is a trap
        self.assertTrue(path.exists())

    def test_a_compressed_value_is_never_decompressed(self):
        bomb = zlib.compress(b' ' * 10**7)
        with mock.patch.object(zlib, 'decompress') as decompress:
            for strategy in STRATEGIES:
                store = self.store(strategy)
                for flags in (0, COMPRESSED):
                    self.forge(store, bomb, flags)
                    self.assertIgnored(store, 'its flags are 8' if flags else '')
        decompress.assert_not_called()

    def test_a_huge_value_is_not_read(self):
        for strategy in STRATEGIES:
            store = self.store(strategy)
            self.forge(store, b'x' * (memcached.MAX_SIZE + 1))
            with mock.patch.object(memcached.base, '_readvalue') as read:
                self.lines.clear()
                self.assertIsNone(store.get(TOKEN))
            read.assert_not_called()
            self.assertIgnored(store, f'it has {memcached.MAX_SIZE + 1} bytes')

    def test_garbage(self):
        for strategy in STRATEGIES:
            store = self.store(strategy)
            for value in (b'', b'\0', b'\xff' * 100, b'null', b'[' * 10**5, b'VALUE a 0 1\r\nx'):
                self.forge(store, value)
                self.assertIgnored(store, '')


class ApplicationTest(AttackerTestCase):
    """Requests to the whole application; Keystone accepts only one token."""

    def setUp(self) -> None:
        super().setUp()
        self.validated: list[str] = []

        def verify(_server: object, token: str, *_options: Any, **_more: Any) -> dict[str, Any]:
            self.validated.append(token)
            if token == 'valid':
                return DATA
            raise auth_token.InvalidToken(token)

        server = 'keystonemiddleware.auth_token._identity.IdentityServer.verify_token'
        self.useFixture(fixtures.MonkeyPatch(server, verify))

    def process(self, strategy: str) -> Application:
        """Return the application of a new process."""
        config = configuration(**options(self.server.address, strategy))
        config.set_override('auth_strategy', 'keystone', 'api')
        return deploy._build(config)

    def status(self, application: Application, token: str) -> int:
        """Send a request for an unknown path: 404 Not Found, or 401 Unauthorized."""
        request = edge.environ(path='/unknown', HTTP_X_AUTH_TOKEN=token)
        return edge.call(application, request).status

    def test_processes_share_a_validation(self):
        for strategy in STRATEGIES:
            self.validated.clear()
            for _ in range(3):
                self.assertEqual(404, self.status(self.process(strategy), 'valid'))
            self.assertEqual(['valid'], self.validated)

    def test_a_forged_token_is_rejected(self):
        text = orjson.dumps({'at': time.time(), 'data': DATA})
        no_protection = token_store.Protection('none', b'')
        self.forge(self.store('None'), text)
        self.assertEqual(404, self.status(self.process('None'), TOKEN))
        self.assertEqual([], self.validated)
        for strategy in PROTECTED:
            store = self.store(strategy)
            for protection in (token_store.Protection(strategy.lower(), b'guess'), no_protection):
                self.forge(store, protection.protect(TOKEN, text))
                self.assertEqual(401, self.status(self.process(strategy), TOKEN))
                self.assertEqual(TOKEN, self.validated.pop())

    def test_a_pickled_object_is_rejected(self):
        path = self.folder / 'executed'
        for strategy in STRATEGIES:
            self.forge(self.store(strategy), pickle.dumps(Trap(path)), PICKLED)
            self.assertEqual(401, self.status(self.process(strategy), TOKEN))
        self.assertFalse(path.exists())

    def test_a_value_that_is_written_again_does_not_prolong_a_token(self):
        store = self.store('MAC')
        store.set(TOKEN, self.verdict(LIFETIME - 60))
        self.assertEqual(404, self.status(self.process('MAC'), TOKEN))
        value = self.attacker.get(store._protection.name(TOKEN))
        self.forge(store, value)
        later = time.time() + 60
        clock = mock.Mock(time=lambda: later)
        with mock.patch('placement.token_store.time', clock):
            self.assertEqual(401, self.status(self.process('MAC'), TOKEN))

    def test_rejections_are_not_stored(self):
        self.assertEqual(401, self.status(self.process('MAC'), 'rejected'))
        self.assertEqual(0, self.server.counters()['cmd_set'])

    def test_a_stopped_server(self):
        self.server.kill()
        application = self.process('MAC')
        self.assertEqual(404, self.status(application, 'valid'))
        self.assertEqual(401, self.status(application, 'rejected'))
        self.assertEqual(1, len([line for line in self.lines if 'is not used until' in line]))


class FailureTest(TestCase):
    """A server that stops, or that does not respond."""

    def setUp(self) -> None:
        super().setUp()
        self.operations: list[str] = []
        attempt = memcached.Server._attempt

        def counted(server: memcached.Server, *arguments: Any) -> Any:
            self.operations.append(server.address)
            return attempt(server, *arguments)

        self.useFixture(fixtures.MonkeyPatch('placement.memcached.Server._attempt', counted))

    def use(self, store: token_store.TokenStore, times: int = 20) -> None:
        for _ in range(times):
            self.assertIsNone(store.get(TOKEN))
            store.set(TOKEN, self.verdict())

    def test_a_stopped_server_and_its_restart(self):
        server = self.memcached()
        store = self.open(server)
        self.assertStored(store)
        server.kill()
        self.operations.clear()
        self.use(store)
        self.assertEqual(1, len(self.operations))
        self.assertEqual(1, len(self.lines), self.lines)
        self.assertIn(f'The memcached server {server.address} is not used', self.lines[-1])

        now = time.monotonic() + token_store.DEAD_RETRY
        clock = mock.Mock(monotonic=lambda: now)
        self.useFixture(fixtures.MonkeyPatch('placement.memcached.time', clock))
        self.use(store)
        self.assertEqual(2, len(self.operations))
        server.start()
        now += token_store.DEAD_RETRY
        store.set(TOKEN, self.verdict())
        self.assertIsNotNone(store.get(TOKEN))
        self.assertEqual(2, len(self.lines), self.lines)
        self.assertIn('responds again', self.lines[-1])

    def test_a_value_that_the_server_refuses(self):
        """A user can choose the size of a token, for example with many access rules."""
        large = {'token': {'name': 'x' * (memcached.MAX_SIZE - 200)}}
        for kinds in ({}, {'sasl': True}):
            store = self.open(self.memcached(**kinds))
            store.set('large', Verdict(large, time.time()))
            self.assertIsNone(store.get('large'))
            self.assertStored(store)

    def test_a_suspended_server(self):
        """The timeouts are the default ones: 0.1 seconds for each step."""
        for kinds in KINDS:
            self.lines.clear()
            self.operations.clear()
            server = self.memcached(**kinds)
            server.suspend()
            store = self.open(server, **DEFAULTS)
            connect = memcached.Client._connect
            with mock.patch.object(memcached.Client, '_connect', autospec=True) as connects:
                connects.side_effect = connect
                self.use(store)
            self.assertEqual((1, 1), (len(self.operations), connects.call_count), kinds)
            self.assertEqual(1, len(self.lines), self.lines)
            self.assertIn('TimeoutError', self.lines[-1])

    def test_threads_that_use_a_suspended_server(self):
        server = self.memcached()
        store = self.open(server, memcache_pool_socket_timeout=DEFAULT)
        server.suspend()
        threads = [threading.Thread(target=self.use, args=(store,)) for _ in range(30)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertLessEqual(len(self.operations), 10)
        self.assertEqual(1, len(self.lines), self.lines)
        self.assertIsNone(store.get(TOKEN))

    def test_a_server_that_is_not_memcached(self):
        for response in (b'HTTP/1.1 400 Bad Request\r\n\r\n', b'VALUE x\r\n', b'\x81' * 24, b''):
            for values in ({}, SASL):
                self.operations.clear()
                with self.stand_in(response) as address:
                    self.use(self.open_address(address, **values))
                self.assertEqual(1, len(self.operations), response)

    @contextlib.contextmanager
    def stand_in(self, response: bytes) -> Iterator[str]:
        """Respond to the first request with the same bytes, and close the connection."""

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                connection.recv(2**16)
                connection.sendall(response)

        with socket.create_server(('127.0.0.1', 0)) as listener:
            thread = threading.Thread(target=serve)
            thread.start()
            yield f'127.0.0.1:{listener.getsockname()[1]}'
            thread.join()


class ConnectionTest(TestCase):
    """All kinds of connections."""

    def test_a_verdict_is_stored(self):
        for kinds in KINDS:
            server = self.memcached(**kinds)
            for strategy in STRATEGIES:
                store = self.open(server, memcache_security_strategy=strategy)
                self.assertStored(store, f'{TOKEN}-{strategy}')

    def test_the_address_of_a_host_with_two_addresses(self):
        """The server listens on the address that is not the first one."""
        server = self.memcached()
        port = int(server.address.partition(':')[2])
        addresses = [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, '', ('::1', port, 0, 0)),
            (socket.AF_INET, socket.SOCK_STREAM, 6, '', ('127.0.0.1', port)),
        ]
        with mock.patch.object(socket, 'getaddrinfo', return_value=addresses):
            self.assertStored(self.open_address(f'controller:{port}'))

    def test_the_certificate_is_verified(self):
        server = self.memcached(tls=True)
        other = self.memcached(tls=True)
        for authority in (other.authority, None):
            store = self.open(server, memcache_tls_cafile=authority)
            store.set(TOKEN, self.verdict())
            self.assertIn('CERTIFICATE_VERIFY_FAILED', self.lines[-1])
            self.lines.clear()

    def test_a_client_without_tls(self):
        store = self.open(self.memcached(tls=True), memcache_tls_enabled=False)
        self.assertIsNone(store.get(TOKEN))
        self.assertIn('is not used until it responds', self.lines[-1])

    def test_wrong_credentials(self):
        server = self.memcached(sasl=True)
        for values in (
            {'memcache_password': 'wrong'},
            {'memcache_username': None, 'memcache_password': None},
            {'memcache_sasl_enabled': False},
        ):
            self.lines.clear()
            store = self.open(server, **values)
            store.set(TOKEN, self.verdict())
            self.assertIn('is not used until it responds', self.lines[-1])
            self.assertNotIn('wrong', self.lines[-1])

    def test_a_server_without_sasl(self):
        """A memcached that was built without SASL does not know the command."""
        self.assertStored(self.open(self.memcached(), **SASL))

    def test_foreign_values_with_sasl(self):
        path = self.folder / 'executed'
        server = self.memcached('-I', '16m', sasl=True)
        (connect,) = token_store.connectors(
            configuration(**options(server.address, 'MAC', **SASL)), timeout=60
        ).values()
        attacker = connect()
        self.addCleanup(attacker.close)
        for strategy in STRATEGIES:
            store = self.open(server, memcache_security_strategy=strategy)
            name = store._protection.name(TOKEN)
            for flags, value, reason in (
                (PICKLED, pickle.dumps(Trap(path)), 'its flags are 1'),
                (0, pickle.dumps(Trap(path)), ''),
                (COMPRESSED, zlib.compress(b' ' * 10**7), 'its flags are 8'),
                (0, b'x' * (memcached.MAX_SIZE + 1), f'it has {memcached.MAX_SIZE + 1} bytes'),
                (0, b'', ''),
            ):
                self.lines.clear()
                extras = memcached._EXTRAS.pack(flags, 0)
                status, _, _ = attacker._request(memcached._SET, name, extras, value)
                self.assertEqual(0, status)
                self.assertIsNone(store.get(TOKEN))
                self.assertEqual(1, len(self.lines), self.lines)
                self.assertIn(f'Placement has not written it: {reason}', self.lines[0])
                store.set(TOKEN, self.verdict())
                self.assertIsNotNone(store.get(TOKEN))
        self.assertFalse(path.exists())
