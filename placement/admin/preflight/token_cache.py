"""Checks of the validated tokens in memcached."""

import secrets
import ssl

from oslo_config import cfg
from pymemcache.client.base import Client

from placement import token_cache
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
    if obstacle := authtoken.obstacle(config):
        return [judge_obstacle(obstacle)]
    verdicts = [judge_unprotected()] if authtoken.strategy(config) == 'none' else []
    tls = token_cache.tls_context(config)
    return verdicts + [
        judge_server(server, address, _error(address, tls), tls is not None)
        for server, address in addresses.items()
    ]


def _error(address: authtoken.Address, tls: ssl.SSLContext | None) -> str:
    """Write and read a value; return why it failed, or an empty text."""
    key = f'placement-preflight/{secrets.token_hex(16)}'
    client = Client(
        address,
        connect_timeout=TIMEOUT,
        timeout=TIMEOUT,
        default_noreply=False,
        tls_context=tls,
    )
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


def judge_obstacle(obstacle: authtoken.Obstacle) -> Verdict:
    """Return the warning for memcached that the service cannot use."""
    return warning(
        'The service starts without memcached, and each process remembers tokens by itself, '
        f'because {obstacle.reason}.',
        obstacle.remedy,
    )


def judge_unprotected() -> Verdict:
    """Return the failure for tokens that are neither signed nor encrypted."""
    return failure(
        'memcached_servers is set, and memcache_security_strategy is not. Whoever can write to '
        'memcached can make any token valid, with any role.',
        f'Remove [{AUTH_GROUP}] memcached_servers; each process then remembers tokens by itself. '
        'Or set memcache_security_strategy to ENCRYPT, and memcache_secret_key to the output of '
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
        'can read the tokens and use them, unless memcache_security_strategy is ENCRYPT.',
        f'Run memcached on this host, set [{AUTH_GROUP}] memcache_tls_enabled to true, or remove '
        'memcached_servers.',
    )
