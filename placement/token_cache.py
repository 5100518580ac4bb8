"""The token cache of keystonemiddleware in memcached, which all processes of a cloud share.

keystonemiddleware reads it before it requests a validation from Keystone, and signs or encrypts the
values according to `memcache_security_strategy`. The clients that it would use by itself unpickle a
value if its flags say so: whoever can write to memcached could execute code in this process.
"""

from collections.abc import Callable, Sequence
import logging
import ssl
from typing import Any

from keystonemiddleware import opts
from oslo_config import cfg
from pymemcache.client.hash import HashClient

from placement.conf import authtoken

LOG = logging.getLogger(__name__)

# In seconds, for a connection, and for each part of a response.
TIMEOUT = 0.1
# In seconds: how long a server is not used after a failure.
DEAD_TIME = 30
# Other services can have the same secret. Their clients can compress the values.
_PREFIX = b'placement/'


class TokenCache:
    """Reads and writes bytes. It contains nothing without servers.

    pymemcache without a serializer neither unpickles nor decompresses a value. Failures are logged,
    and raise no exception: Keystone then validates the token.
    """

    def __init__(
        self, servers: Sequence[authtoken.Address] = (), tls: ssl.SSLContext | None = None
    ) -> None:
        self._client = HashClient(
            servers,
            connect_timeout=TIMEOUT,
            timeout=TIMEOUT,
            no_delay=True,
            key_prefix=_PREFIX,
            use_pooling=True,
            retry_attempts=0,
            dead_timeout=DEAD_TIME,
            default_noreply=False,
            tls_context=tls,
        )

    def get(self, key: str) -> bytes | None:
        """Return a value, None if there is none."""
        value: bytes | None = _run(self._client.get, key)
        return value

    def set(self, key: str, value: bytes, time: int) -> None:
        """Write a value.

        :param time: its lifetime in seconds
        """
        # memcached would keep it without end.
        if time > 0:
            _run(self._client.set, key, value, time)


def _run(operation: Callable[..., Any], *arguments: Any) -> Any:
    """Return the result of an operation; None if it fails."""
    try:
        return operation(*arguments)
    except OSError as exc:
        LOG.warning(
            'A memcached server is not used for %d seconds: %s: %s',
            DEAD_TIME,
            type(exc).__name__,
            exc,
        )
    # No server is left, or a server refuses a large token. The class of the exception depends on
    # the response of the server, and on the other threads that use the client.
    except Exception as exc:
        LOG.debug('memcached: %s: %s', type(exc).__name__, exc)
    return None


def open_cache(config: cfg.ConfigOpts) -> TokenCache | None:
    """Return the cache in the configured memcached; None if the service uses no memcached.

    :param config: the parsed configuration
    :raises conf.sources.MissingOption: a strategy is set, and the secret is not
    :raises ValueError: the address of a server is invalid, or a file for TLS cannot be used
    """
    # keystonemiddleware registers the same options when it is created.
    for group, options in opts.list_auth_token_opts():
        config.register_opts(options, group=group)
    servers = authtoken.memcached_servers(config)
    if not servers:
        return None
    if obstacle := authtoken.obstacle(config):
        LOG.warning(
            'Processes do not share validated tokens, because %s. %s',
            obstacle.reason,
            obstacle.remedy,
        )
        return None
    authtoken.require_secret(config)
    return TokenCache(list(servers.values()), tls_context(config))


def tls_context(config: cfg.ConfigOpts) -> ssl.SSLContext | None:
    """Return the TLS options of the connections to memcached; None for connections without TLS.

    :raises ValueError: a file or a cipher cannot be used
    """
    options = config[authtoken.GROUP]
    if not options.memcache_tls_enabled:
        return None
    try:
        context = ssl.create_default_context(cafile=options.memcache_tls_cafile)
        if options.memcache_tls_certfile:
            context.load_cert_chain(options.memcache_tls_certfile, options.memcache_tls_keyfile)
        if options.memcache_tls_allowed_ciphers:
            context.set_ciphers(options.memcache_tls_allowed_ciphers)
    except OSError as exc:
        # The exception names neither the option nor the file.
        raise ValueError(
            f'A file or a cipher in [{authtoken.GROUP}] memcache_tls_* cannot be used: '
            f'{exc.strerror or exc}. Correct memcache_tls_cafile, memcache_tls_certfile, '
            'memcache_tls_keyfile, or memcache_tls_allowed_ciphers.'
        ) from exc
    return context
