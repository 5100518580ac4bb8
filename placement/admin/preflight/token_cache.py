"""Checks of the cache of validated tokens."""

import importlib
from typing import Any

from oslo_config import cfg

from placement.admin.preflight.model import Verdict, failure, ok, warning
from placement.admin.preflight.options import AUTH_GROUP
from placement.conf import authtoken

# In seconds, for each server.
TIMEOUT = 3


def check(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the memcached library is installed and that each server responds."""
    group = config[AUTH_GROUP]
    servers = group.memcached_servers or []
    if not servers:
        return [ok('memcached_servers is not set. Each process caches tokens in its own memory.')]
    if missing := authtoken.missing_clients(config):
        return [judge_library(list(missing.values()))]
    binary = group.memcache_tls_enabled or group.memcache_sasl_enabled
    memcache = importlib.import_module('memcache')
    return [judge_server(server, _responds(memcache, server, binary)) for server in servers]


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


def judge_server(server: str, responds: bool) -> Verdict:
    """Judge whether a server responds."""
    if responds:
        return ok(f'The server {server} responds.')
    return warning(
        f'The server {server} does not respond. Keystone validates tokens that are not cached.',
        f'Start the server, or correct [{AUTH_GROUP}] memcached_servers.',
    )
