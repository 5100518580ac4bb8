"""Check the options of keystonemiddleware, and interpret those for memcached."""

from dataclasses import dataclass
import importlib.util
import ipaddress
from urllib import parse

from oslo_config import cfg

from placement.conf import sources

GROUP = 'keystone_authtoken'

# A host and a port, or the path of a Unix socket.
Address = tuple[str, int] | str

_PORT = 11211


def validate(config: cfg.ConfigOpts) -> None:
    """Check that the service can request tokens, and that the options for memcached are valid.

    Without these checks, the service could start, but every request with a token would fail.

    :param config: a configuration object on which keystonemiddleware has registered its options
    :raises sources.MissingOption: `auth_type` has no value, or `memcache_secret_key` has none
        although a strategy needs it
    :raises ValueError: the address of a memcached server is invalid
    """
    section = config[GROUP].auth_section or GROUP
    if not config[section].auth_type:
        raise sources.missing_option(config, 'auth_type', section)
    require_secret(config)
    memcached_servers(config)


def strategy(config: cfg.ConfigOpts) -> str:
    """Return how tokens in memcached are protected: none, mac, or encrypt."""
    return str(config[GROUP].memcache_security_strategy).lower()


def require_secret(config: cfg.ConfigOpts) -> None:
    """Require a secret if tokens in memcached are protected.

    :raises sources.MissingOption: there is no secret
    """
    if strategy(config) != 'none' and not config[GROUP].memcache_secret_key:
        raise sources.missing_option(config, 'memcache_secret_key', GROUP)


def memcached_servers(config: cfg.ConfigOpts) -> dict[str, Address]:
    """Return the addresses of the memcached servers, by their text in the configuration.

    The result is empty if the service uses no memcached: if no server is configured, if tokens are
    not cached, or if another middleware provides the cache.

    :raises ValueError: the address of a server is invalid
    """
    options = config[GROUP]
    if options.cache or options.token_cache_time <= 0:
        return {}
    return {text: _address(text) for text in options.memcached_servers or ()}


def _address(text: str) -> Address:
    """Return the address in a text, which can have one of the prefixes of python-memcached.

    :raises ValueError: the text is not the address of a server
    """
    prefix, _, rest = text.partition(':')
    address = rest if prefix in ('inet', 'inet6', 'unix') else text
    if address.startswith('/'):
        return address
    try:
        return (str(ipaddress.IPv6Address(address)), _PORT)
    except ValueError:
        pass
    try:
        parts = parse.urlsplit(f'//{address}')
        if parts.hostname and parts.netloc == address and prefix != 'unix':
            return (parts.hostname, parts.port or _PORT)
    except ValueError:
        pass
    raise ValueError(
        f'[{GROUP}] memcached_servers contains {text}, which is not the address of a server. Write '
        'HOST:PORT, or the absolute path of a Unix socket.'
    )


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why the service works without the configured memcached.

    :ivar reason: a part of a sentence
    :ivar remedy: a sentence
    """

    reason: str
    remedy: str


def obstacle(config: cfg.ConfigOpts) -> Obstacle | None:
    """Return why the service cannot use the configured memcached; None if it can."""
    if config[GROUP].memcache_sasl_enabled:
        return Obstacle(
            'Placement does not support SASL for memcached',
            f'Remove [{GROUP}] memcache_sasl_enabled, and restrict the access to memcached with '
            'TLS, or remove memcached_servers.',
        )
    if strategy(config) == 'encrypt' and importlib.util.find_spec('cryptography') is None:
        return Obstacle(
            'the Python library cryptography is not installed',
            f"Run `pip install 'openstack-placement[memcached]'`, or remove [{GROUP}] "
            'memcached_servers.',
        )
    return None
