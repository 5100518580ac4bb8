"""Check that processes share tokens in memcached, without risk and without depending on it."""

from collections.abc import Iterator
import contextlib
from dataclasses import dataclass
from pathlib import Path
import pickle
import time
from typing import Any

from keystonemiddleware import auth_token
import orjson
from oslo_config import cfg

from placement import token_store
from placement.conf import authtoken
from placement.tests.functional.memcached_server import Memcached
from tools.identity.checks import Checks
from tools.identity.cloud import Cloud
from tools.identity.servers import PASSWORD, Send, placement

# The strategies, and the status for a token that another program has written to memcached.
STRATEGIES = {'None': 200, 'MAC': 401, 'ENCRYPT': 401}
# A busy machine can need longer than the default.
PATIENT = {'memcache_pool_socket_timeout': '60'}
# The flags of a pickled object.
PICKLED = 1


class Trap:
    """Creates a directory when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.mkdir, (self.path,)


@dataclass(frozen=True, slots=True)
class Service:
    """Starts processes of Placement.

    :param folder: the directory for the configuration
    :param identity: the URL of Keystone
    :param port: the port of Placement
    """

    folder: Path
    identity: str
    port: int

    @contextlib.contextmanager
    def started(self, cache: Memcached, strategy: str = 'MAC', **options: str) -> Iterator[Send]:
        """Run a new process that uses memcached."""
        options = {
            'memcached_servers': cache.address,
            'memcache_security_strategy': strategy,
            'memcache_secret_key': PASSWORD,
            **{name: str(value) for name, value in cache.options().items()},
            **options,
        }
        with placement(self.folder, self.identity, self.port, **options) as send:
            yield send


def check_cache(checks: Checks, cloud: Cloud, service: Service) -> None:
    """Check the tokens in memcached with each strategy, with TLS and SASL, and with failures."""
    for strategy, status in STRATEGIES.items():
        with Memcached() as cache:
            _check_strategy(checks, cloud, service, cache, strategy, status)
    with Memcached(tls=True, sasl=True) as cache:
        _check_connection(checks, cloud, service, cache)
    for failure in (Memcached.kill, Memcached.suspend):
        with Memcached() as cache, service.started(cache) as send:
            title = f'after {failure.__name__} of memcached'
            known = cloud.token('services', project_name='one')
            checks.equal('before a failure of memcached', [200], _statuses(send, known))
            failure(cache)
            new = cloud.token('services', project_name='one')
            for name, token in (('a known token', known), ('a new token', new)):
                checks.equal(f'{title}: {name}', [200] * 3, _statuses(send, token, 3))
            checks.equal(f'{title}: no token', 401, send('GET', '/traits').status_code)


def _statuses(send: Send, token: str, times: int = 1) -> list[int]:
    return [send('GET', '/traits', token).status_code for _ in range(times)]


def _check_strategy(
    checks: Checks,
    cloud: Cloud,
    service: Service,
    cache: Memcached,
    strategy: str,
    status: int,
) -> None:
    """Check that a process uses the validation of another process, and no forged value.

    The program that forges values has no secret. Nothing may execute a pickled object.

    :param status: the expected status for a forged token
    """
    title = f'memcache_security_strategy = {strategy}'
    token = cloud.token('services', project_name='one')
    with service.started(cache, strategy, **PATIENT) as send:
        checks.equal(f'{title}: a new token', [200] * 3, _statuses(send, token, 3))
    checks.equal(f'{title}: tokens written', 1, cache.counters()['cmd_set'])
    path = service.folder / f'executed-{strategy}'
    protection = token_store.Protection(strategy.lower(), _secret(strategy))
    for name, value, flags in (
        ('forged', orjson.dumps({'at': time.time(), 'data': _administrator()}), 0),
        ('pickled', pickle.dumps(Trap(path)), PICKLED),
    ):
        _write(cache, protection.name(name), value, flags)
    with service.started(cache, strategy, **PATIENT) as send:
        checks.equal(f'{title}: a known token', [200] * 3, _statuses(send, token, 3))
        checks.equal(f'{title}: tokens read', 1, cache.counters()['get_hits'])
        checks.equal(f'{title}: a forged token', [status], _statuses(send, 'forged'))
        checks.equal(f'{title}: a pickled object', [401], _statuses(send, 'pickled'))
    checks.equal(f'{title}: executed', False, path.exists())


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


def _check_connection(checks: Checks, cloud: Cloud, service: Service, cache: Memcached) -> None:
    """Check that a process writes the token with TLS and SASL."""
    token = cloud.token('services', project_name='one')
    with service.started(cache, **PATIENT) as send:
        checks.equal('memcached with TLS and SASL', [200], _statuses(send, token))
    config = cfg.ConfigOpts()
    config.register_opts(dict(auth_token.list_opts())[authtoken.GROUP], authtoken.GROUP)
    config(['--config-file', str(service.folder / 'placement.conf')])
    store = token_store.open_store(config)
    stored = store is not None and store.get(token) is not None
    checks.equal('memcached with TLS and SASL: the token is in memcached', True, stored)
