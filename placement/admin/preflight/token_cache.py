"""Checks of the store of validated tokens in memcached."""

from collections.abc import Callable
import secrets
from typing import Any

from oslo_config import cfg

from placement import token_store
from placement.admin.preflight import encryption
from placement.admin.preflight.model import Verdict, failure, ok, warning
from placement.admin.preflight.options import AUTH_GROUP
from placement.conf import authtoken

# In seconds, for the connection to each server, and for each response.
TIMEOUT = 3
# In seconds. The written value is removed by memcached.
_EXPIRATION = 10


def check(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the protection of the stored tokens, the library, and the servers of memcached."""
    addresses = authtoken.memcached_servers(config)
    if not addresses:
        return [ok('The service uses no memcached. Each process remembers tokens by itself.')]
    if authtoken.misses_encryption(config):
        return [judge_missing_encryption()]
    has_tls = bool(config[AUTH_GROUP].memcache_tls_enabled)
    verdicts = [judge_unprotected()] if authtoken.strategy(config) == 'none' else []
    connectors = token_store.connectors(config, TIMEOUT)
    return verdicts + [
        judge_server(server, addresses[server], _error(connect), has_tls)
        for server, connect in connectors.items()
    ]


def _error(connect: Callable[[], Any]) -> str:
    """Write and read a value with a new client; return why it failed, or an empty text."""
    key = f'placement-preflight/{secrets.token_hex(16)}'
    client = connect()
    try:
        value = b'{}'
        if client.set(key, value, expire=_EXPIRATION) and client.get(key) == value:
            return ''
    # A client raises other exceptions, too, if the response is not one of memcached.
    except Exception as error:
        return f'{type(error).__name__}: {error}'
    finally:
        client.close()
    return 'A written value cannot be read.'


def judge_missing_encryption() -> Verdict:
    """Return the warning for the missing library."""
    return warning(
        'memcache_security_strategy is ENCRYPT, but the Python library cryptography is not '
        'installed. The service starts without memcached, and each process remembers tokens by '
        'itself.',
        f'Run `pip install {authtoken.ENCRYPTION_PACKAGE}`, or remove [{AUTH_GROUP}] '
        'memcached_servers.',
    )


def judge_unprotected() -> Verdict:
    """Return the failure for tokens that are neither signed nor encrypted."""
    return failure(
        'memcached_servers is set, and memcache_security_strategy is not. Whoever can write to '
        'memcached can make any token valid, with any role.',
        f'Remove [{AUTH_GROUP}] memcached_servers; each process then remembers tokens by itself. '
        'Or set memcache_security_strategy to MAC, and memcache_secret_key to the output of '
        '`openssl rand -hex 32`.',
    )


def judge_server(server: str, address: authtoken.Address, error: str, has_tls: bool) -> Verdict:
    """Judge whether a server works, and whether the connection to another host uses TLS.

    :param server: the server as it is configured
    :param error: why the server does not work; empty if it works
    """
    if error:
        return warning(
            f'The server {server} does not work, so that Keystone validates the tokens: {error}',
            f'Start the server, or correct the options of memcached in [{AUTH_GROUP}].',
        )
    if has_tls or isinstance(address, str) or encryption.is_local(address[0]):
        return ok(f'The server {server} stores values.')
    return warning(
        f'The server {server} stores values, without TLS. Anyone who can read the network traffic '
        'can read the users and roles of tokens, unless memcache_security_strategy is ENCRYPT.',
        f'Run memcached on this host, set [{AUTH_GROUP}] memcache_tls_enabled to true, or remove '
        'memcached_servers.',
    )
