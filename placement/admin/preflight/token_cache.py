"""Checks of the cache of validated tokens."""

from collections.abc import Mapping
import importlib
from typing import Any

from oslo_config import cfg

from placement.admin.preflight.model import Verdict, failure, ok, warning
from placement.admin.preflight.options import AUTH_GROUP

# In seconds, for each server.
TIMEOUT = 3

# keystonemiddleware imports these modules with the first token.
_TEXT = {'memcache': "'openstack-placement[memcached]'"}
_BINARY = _TEXT | {'bmemcached': 'python-binary-memcached'}


def check(config: cfg.ConfigOpts) -> list[Verdict]:
    """Check that the memcached library is installed and that each server responds."""
    group = config[AUTH_GROUP]
    servers = group.memcached_servers or []
    if not servers:
        return [ok('memcached_servers is not set. Each process caches tokens in its own memory.')]
    binary = group.memcache_tls_enabled or group.memcache_sasl_enabled
    if missing := _missing(_BINARY if binary else _TEXT):
        return [judge_library(missing)]
    memcache = importlib.import_module('memcache')
    return [judge_server(server, _responds(memcache, server, binary)) for server in servers]


def _missing(libraries: Mapping[str, str]) -> list[str]:
    missing = []
    for module, package in libraries.items():
        try:
            importlib.import_module(module)
        except ImportError:
            missing.append(package)
    return missing


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
        'memcached_servers is set, but a library for memcached is missing. Requests with a token '
        'fail.',
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
