"""Checks of the cache of validated tokens."""

import importlib
from typing import Any

from oslo_config import cfg

from placement.admin.preflight import encryption
from placement.admin.preflight.model import Verdict, failure, ok, warning
from placement.admin.preflight.options import AUTH_GROUP
from placement.conf import authtoken

# In seconds, for each server.
TIMEOUT = 3


def check(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check the protection of the cached tokens, the library, and the servers of memcached."""
    group = config[AUTH_GROUP]
    servers = group.memcached_servers or []
    if not servers:
        return [ok('memcached_servers is not set. Each process caches tokens in its own memory.')]
    if missing := authtoken.missing_clients(config):
        return [judge_library(list(missing.values()))]
    binary = group.memcache_tls_enabled or group.memcache_sasl_enabled
    memcache = importlib.import_module('memcache')
    verdicts = [judge_unprotected()] if group.memcache_security_strategy.lower() == 'none' else []
    return verdicts + [
        judge_server(server, _responds(memcache, server, binary), bool(group.memcache_tls_enabled))
        for server in servers
    ]


def _responds(memcache: Any, server: str, binary: bool) -> bool:
    """Return whether a server responds.

    :param binary: the server uses TLS or SASL; only try to connect, because python-memcached
        supports neither
    :raises ValueError: the address of the server is invalid
    """
    client = memcache.Client([server], socket_timeout=TIMEOUT)
    try:
        return bool(client.servers[0].connect() if binary else client.get_stats())
    finally:
        client.disconnect_all()


def judge_library(missing: list[str]) -> Verdict:
    """Return the failure for missing libraries."""
    return failure(
        'memcached_servers is set, but a library for memcached is missing. The service does not '
        'start.',
        f'Run `pip install {" ".join(missing)}`.',
    )


def judge_unprotected() -> Verdict:
    """Return the failure for tokens that are neither signed nor encrypted."""
    return failure(
        'memcached_servers is set, and memcache_security_strategy is not. Whoever can write to '
        'memcached can make any token valid, with any role.',
        f'Remove [{AUTH_GROUP}] memcached_servers; each process then caches tokens in its own '
        'memory. Or set memcache_security_strategy to MAC, and memcache_secret_key to the output '
        'of `openssl rand -hex 32`.',
    )


def judge_server(server: str, responds: bool, has_tls: bool) -> Verdict:
    """Judge whether a server responds, and whether the connection to another host uses TLS."""
    if responds and (has_tls or encryption.is_local(_host(server))):
        return ok(f'The server {server} responds.')
    if responds:
        return warning(
            f'The server {server} responds, without TLS. Anyone who can read the network traffic '
            'can read the users and roles of tokens, unless memcache_security_strategy is ENCRYPT.',
            f'Run memcached on this host, set [{AUTH_GROUP}] memcache_tls_enabled to true, or '
            'remove memcached_servers.',
        )
    return warning(
        f'The server {server} does not respond. Keystone validates tokens that are not cached.',
        f'Start the server, or correct [{AUTH_GROUP}] memcached_servers.',
    )


def _host(server: str) -> str:
    """Return the host of a server in the notation of python-memcached, or the path of a socket."""
    kind, _, address = server.partition(':')
    if kind == 'unix' or server.startswith('/'):
        return address if kind == 'unix' else server
    address = address if kind in ('inet', 'inet6') else server
    if address.startswith('['):
        return address[1:].partition(']')[0]
    return address.partition(':')[0]
