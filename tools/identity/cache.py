"""Check that processes share tokens in memcached, without risk and without depending on it."""

from collections.abc import Callable, Iterator
import contextlib
from pathlib import Path
import pickle
import time
from typing import Any
import unittest

from keystoneauth1 import session
from keystoneauth1.identity import v3
from keystonemiddleware import auth_token
import orjson
from oslo_config import cfg
import requests

from placement import token_store
from placement.conf import authtoken
from placement.tests.functional.memcached_server import Memcached
from tools import with_database
from tools.identity.clients import Client
from tools.identity.servers import PASSWORD, placement

# The strategies, and the status for a token that another program has written to memcached.
STRATEGIES = {'None': 200, 'MAC': 401, 'ENCRYPT': 401}
# A busy machine can need longer than the default.
PATIENT = {'memcache_pool_socket_timeout': '60'}
_NEWEST = {'OpenStack-API-Version': 'placement latest'}
_SCOPE = {'project_name': 'one'}
# The flags of a pickled object.
PICKLED = 1


class Trap:
    """Creates a directory when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.path,)


class CacheTest(unittest.TestCase):
    """Processes share tokens in memcached, without risk and without depending on it.

    :ivar folder: a directory for the configuration of Placement
    :ivar identity: the URL of Keystone
    """

    client: Client
    folder: Path
    identity: str

    def setUp(self) -> None:
        """Get a token."""
        password = v3.Password(**{**self.client.credentials, 'username': 'services', **_SCOPE})
        self.token = str(password.get_token(session.Session()))

    @contextlib.contextmanager
    def started(
        self, cache: Memcached, strategy: str = 'MAC', **options: str
    ) -> Iterator[Callable[[str | None], int]]:
        """Run a new process; yield a function that sends a request and returns the status."""
        options = {
            'memcached_servers': cache.address,
            'memcache_security_strategy': strategy,
            'memcache_secret_key': PASSWORD,
            **{name: str(value) for name, value in cache.options().items()},
            **options,
        }
        port = with_database.free_port()
        with placement(self.folder / 'cached', self.identity, port, **options) as url:
            yield (
                lambda token: (
                    requests.get(
                        f'{url}/traits',
                        headers=_NEWEST | ({'X-Auth-Token': token} if token else {}),
                        timeout=300,
                    ).status_code
                )
            )

    def test_each_strategy(self) -> None:
        """A process uses the validation of another process, and no forged value.

        The program that forges values has no secret. Nothing may execute a pickled object.
        """
        for strategy, status in STRATEGIES.items():
            with self.subTest(strategy), Memcached() as cache:
                with self.started(cache, strategy, **PATIENT) as send:
                    self.assertEqual([200] * 3, [send(self.token) for _ in range(3)])
                self.assertEqual(1, cache.counters()['cmd_set'])
                path = self.folder / f'executed-{strategy}'
                protection = token_store.Protection(strategy.lower(), _secret(strategy))
                for name, value, flags in (
                    ('forged', orjson.dumps({'at': time.time(), 'data': _administrator()}), 0),
                    ('pickled', pickle.dumps(Trap(path)), PICKLED),
                ):
                    _write(cache, protection.name(name), value, flags)
                with self.started(cache, strategy, **PATIENT) as send:
                    self.assertEqual([200] * 3, [send(self.token) for _ in range(3)])
                    self.assertEqual(1, cache.counters()['get_hits'])
                    self.assertEqual([status, 401], [send('forged'), send('pickled')])
                self.assertFalse(path.exists())

    def test_tls_and_sasl(self) -> None:
        """A process writes the token with TLS and SASL."""
        with Memcached(tls=True, sasl=True) as cache:
            with self.started(cache, **PATIENT) as send:
                self.assertEqual(200, send(self.token))
            config = cfg.ConfigOpts()
            config.register_opts(dict(auth_token.list_opts())[authtoken.GROUP], authtoken.GROUP)
            config(['--config-file', str(self.folder / 'cached' / 'placement.conf')])
            store = token_store.open_store(config)
            self.assertTrue(store is not None and store.get(self.token))

    def test_failures_of_memcached(self) -> None:
        """A process validates tokens without memcached."""
        for failure in (Memcached.kill, Memcached.suspend):
            with Memcached() as cache, self.started(cache) as send:
                known = self.token
                self.assertEqual(200, send(known))
                failure(cache)
                self.setUp()
                self.assertNotEqual(known, self.token)
                for token in (known, self.token):
                    self.assertEqual([200] * 3, [send(token) for _ in range(3)])
                self.assertEqual(401, send(None))


def _secret(strategy: str) -> bytes:
    return b'' if strategy == 'None' else PASSWORD.encode()


def _administrator() -> dict[str, Any]:
    """Return the data of the token of an administrator."""
    domain = {'id': 'default', 'name': 'Default'}
    return {
        'token': {
            'methods': ['password'],
            'expires_at': '2099-01-01T00:00:00.000000Z',
            'user': {'id': 'forged', 'name': 'forged', 'domain': domain},
            'project': {'id': 'forged', 'name': 'forged', 'domain': domain},
            'roles': [{'id': 'admin', 'name': 'admin'}],
            'catalog': [],
        }
    }


def _write(cache: Memcached, key: str, value: bytes, flags: int) -> None:
    """Write a value without a client, as another program could."""
    with cache.connect() as connection, connection.makefile('rb') as responses:
        connection.sendall(f'set {key} {flags} 0 {len(value)}\r\n'.encode() + value + b'\r\n')
        if responses.readline() != b'STORED\r\n':
            raise RuntimeError('memcached does not store the value')
