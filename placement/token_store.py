"""Validated tokens in memcached, which all processes of a cloud share.

A process reads this store if its own memory does not contain a token, and before it requests a
validation from Keystone. Only Keystone decides whether a token is valid: the store returns what
Keystone responded.

With `[keystone_authtoken] memcache_security_strategy`, a value is signed (MAC) or encrypted
(ENCRYPT) with a key that depends on the secret and on the token. The time of the validation is a
part of the value. Therefore, who can write to memcached can neither make a token valid, nor
exchange the users of two tokens, nor make a token valid for longer than `token_cache_time`.
"""

import base64
from collections.abc import Callable, Sequence
import contextlib
from dataclasses import dataclass, field
import functools
import hashlib
import hmac
import logging
import math
import ssl
import time
from typing import Any

from keystoneauth1 import access
from keystonemiddleware import auth_token, opts
import orjson
from oslo_config import cfg

from placement import memcached
from placement.conf import authtoken
from placement.token_memory import Verdict

LOG = logging.getLogger(__name__)

# In seconds. The defaults of keystonemiddleware are 3 seconds and 5 minutes: a server that does not
# respond would delay requests by seconds, and would stay unused for long when it responds again.
TIMEOUT = 0.1
DEAD_RETRY = 30.0

# In seconds: how far the clock of another host may be ahead.
CLOCK_DIFFERENCE = 2.0

# In seconds. memcached interprets a larger number as a point in time.
_LONGEST_EXPIRATION = 30 * 24 * 60 * 60

# A part of all keys; a new format of the values needs a new number.
_FORMAT = 'placement-token-1'
_SIGNATURE_SIZE = hashlib.sha256().digest_size


@dataclass(frozen=True, slots=True)
class Protection:
    """Signs or encrypts the values.

    :param strategy: none, mac, or encrypt
    :param secret: the secret that all processes share; empty without a strategy
    """

    strategy: str
    secret: bytes = field(repr=False)

    def name(self, token: str) -> str:
        """Return the key in memcached for a token, from which the token cannot be derived."""
        return f'{_FORMAT}/{self._derive("name", token).hex()}'

    def protect(self, token: str, text: bytes) -> bytes:
        """Return the protected form of a text."""
        if self.strategy == 'encrypt':
            return bytes(self._fernet(token).encrypt(text))
        return self._signature(token, text) + text

    def unprotect(self, token: str, protected: bytes) -> bytes:
        """Return the text in its protected form.

        :raises ValueError: the form was not created with the same secret for the same token
        """
        if self.strategy == 'encrypt':
            return self._decrypt(token, protected)
        size = _SIGNATURE_SIZE if self.strategy == 'mac' else 0
        text = protected[size:]
        if not hmac.compare_digest(protected[:size], self._signature(token, text)):
            raise ValueError('its signature is wrong')
        return text

    def _signature(self, token: str, text: bytes) -> bytes:
        if self.strategy != 'mac':
            return b''
        return hmac.digest(self._derive('signature', token), text, 'sha256')

    def _decrypt(self, token: str, protected: bytes) -> bytes:
        from cryptography import fernet

        try:
            return bytes(self._fernet(token).decrypt(protected))
        except fernet.InvalidToken as exc:
            raise ValueError('it cannot be decrypted') from exc

    def _fernet(self, token: str) -> Any:
        from cryptography import fernet

        return fernet.Fernet(base64.urlsafe_b64encode(self._derive('encryption', token)))

    def _derive(self, purpose: str, token: str) -> bytes:
        """Return a key for one token, one purpose, and one strategy."""
        text = '\0'.join((_FORMAT, self.strategy, purpose, token))
        return hmac.digest(self.secret, text.encode(), 'sha256')


class TokenStore:
    """Reads and writes verdicts in memcached. Failures are logged, and raise no exception.

    A verdict on an expired token that Keystone accepted with `allow_expired` must be neither read
    nor written, because it is valid only together with a service token.
    """

    def __init__(
        self, servers: Sequence[memcached.Server], protection: Protection, lifetime: int
    ) -> None:
        """Create a store.

        :param lifetime: how long a verdict is valid, in seconds
        """
        self.servers = servers
        self._protection = protection
        self._lifetime = lifetime

    def get(self, token: str) -> Verdict | None:
        """Return a verdict that is younger than `token_cache_time`; None if there is none."""
        name = self._protection.name(token)
        server = self._server(name)
        if server is None:
            return None
        try:
            protected = server.run(lambda client: client.get(name))
            if protected is None:
                return None
            verdict = _verdict(self._protection.unprotect(token, protected))
        except ValueError as exc:
            LOG.warning(
                'A value in the memcached server %s is ignored, because Placement has not written '
                'it: %s',
                server.address,
                exc,
            )
            return None
        # memcached removes a value after its lifetime, but another program can write it again.
        age = time.time() - verdict.at
        return verdict if -CLOCK_DIFFERENCE <= age < self._lifetime else None

    def set(self, token: str, verdict: Verdict) -> None:
        """Write the verdict on a token that Keystone has just validated."""
        name = self._protection.name(token)
        server = self._server(name)
        seconds = math.ceil(verdict.at + self._lifetime - time.time())
        if server is None or seconds <= 0:
            return
        # A TypeError: JSON can contain integers that orjson does not write.
        with contextlib.suppress(TypeError, ValueError):
            text = orjson.dumps({'at': verdict.at, 'data': _without_secret(verdict.data)})
            protected = self._protection.protect(token, text)
            expire = min(seconds, _LONGEST_EXPIRATION)
            if len(protected) <= memcached.MAX_SIZE:
                server.run(lambda client: client.set(name, protected, expire=expire))

    def _server(self, name: str) -> memcached.Server | None:
        """Return the server for a key; all processes choose the same one (rendezvous hashing)."""
        return max(
            (server for server in self.servers if not server.is_avoided()),
            key=lambda server: hashlib.sha256(f'{server.address} {name}'.encode()).digest(),
            default=None,
        )


def _without_secret(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a token without its text, which python-keystoneclient adds."""
    return {'token': {key: value for key, value in data['token'].items() if key != 'auth_token'}}


def _verdict(text: bytes) -> Verdict:
    """Return the verdict in a text.

    :raises ValueError: the text does not contain a verdict
    """
    match orjson.loads(text):
        case {'at': float() | int() as at, 'data': {'token': dict()} as data}:
            require_identity(data)
            return Verdict(data, at)
    raise ValueError('it is not a validated token')


def require_identity(data: Any) -> None:
    """Check that keystonemiddleware can derive the identity headers from the data of a token.

    :raises ValueError: a part of the data is missing or has a wrong type
    """
    request = auth_token._request._AuthTokenRequest({})  # noqa: SLF001 - no copy
    try:
        token = access.create(body=data)
        token.will_expire_soon()
        request.set_user_headers(token)
    except Exception as exc:
        # The class of the exception depends on the part.
        raise ValueError(f'no valid token: {type(exc).__name__}: {exc!s:.200}') from exc
    if not all(isinstance(value, str | None) for value in request.environ.values()):
        raise ValueError('no valid token: an ID or a name is no text')


def open_store(config: cfg.ConfigOpts) -> TokenStore | None:
    """Return the store in the configured memcached; None if the service uses no memcached.

    :param config: the parsed configuration
    :raises conf.sources.MissingOption: a strategy is set, and the secret is not
    :raises ValueError: the address of a server is invalid, or a file for TLS cannot be used
    """
    # keystonemiddleware registers the same options when it is created.
    for group, options in opts.list_auth_token_opts():
        config.register_opts(options, group=group)
    if not authtoken.memcached_servers(config):
        return None
    # The service can start without the library: each process then has its own tokens.
    if authtoken.misses_encryption(config):
        LOG.warning(
            'Processes do not share validated tokens, because the Python library cryptography is '
            'not installed. Run `pip install %s`.',
            authtoken.ENCRYPTION_PACKAGE,
        )
        return None
    limits = _limits(config)
    servers = [
        memcached.Server(address, connect, limits)
        for address, connect in connectors(config, limits.timeout).items()
    ]
    protection = Protection(authtoken.strategy(config), authtoken.secret(config).encode())
    return TokenStore(servers, protection, config[authtoken.GROUP].token_cache_time)


def connectors(config: cfg.ConfigOpts, timeout: float) -> dict[str, Callable[[], memcached.Client]]:
    """Return functions that create a client of each configured server, by its address.

    :param timeout: in seconds, for a connection, and for each response
    :raises ValueError: the address of a server is invalid, or a file for TLS cannot be used
    """
    options = config[authtoken.GROUP]
    arguments: list[Any] = [timeout, _tls(options)]
    client: type[memcached.Client] = memcached.Client
    if options.memcache_sasl_enabled:
        client = memcached.SaslClient
        arguments.append((options.memcache_username or '', options.memcache_password or ''))
    return {
        text: functools.partial(client, address, *arguments)
        for text, address in authtoken.memcached_servers(config).items()
    }


def _tls(options: cfg.ConfigOpts.GroupAttr) -> ssl.SSLContext | None:
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


def _limits(config: cfg.ConfigOpts) -> memcached.Limits:
    options = config[authtoken.GROUP]
    return memcached.Limits(
        timeout=_value(config, 'memcache_pool_socket_timeout', TIMEOUT),
        dead_retry=_value(config, 'memcache_pool_dead_retry', DEAD_RETRY),
        # 0 stands for any number in keystonemiddleware.
        connections=options.memcache_pool_maxsize or 10,
        get_timeout=_value(config, 'memcache_pool_conn_get_timeout', TIMEOUT),
        unused_timeout=options.memcache_pool_unused_timeout,
    )


def _value(config: cfg.ConfigOpts, name: str, default: Any) -> Any:
    """Return the value of an option; another default than that of keystonemiddleware if not set."""
    place = config.get_location(name, authtoken.GROUP)
    is_default = place is None or place.location is cfg.Locations.opt_default
    return default if is_default else config[authtoken.GROUP][name]
