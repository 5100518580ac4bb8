"""Authentication, and the request context built from the identity.

If the authentication strategy is keystone, keystonemiddleware validates the token and adds the
identity to the headers of the request. If the strategy is noauth2, which is only for tests, the
token itself is the identity.
"""

from collections.abc import Hashable, Iterable
from contextvars import ContextVar
from dataclasses import dataclass, field
import logging
import math
import time
from typing import Any

from keystoneauth1 import exceptions as keystone_exc
from keystonemiddleware import auth_token
from oslo_config import cfg
from webob import exc as webob_exc

from placement import context, exception, telemetry
from placement.http import ENVIRON_CONTEXT, Application, Environ, StartResponse, errors
from placement.telemetry.server import thread_count
from placement.token_memory import TokenMemory, Validations, Verdict
from placement.token_store import TokenStore, open_store, require_identity

LOG = logging.getLogger(__name__)

# The names of the headers with an identity in a WSGI environment. `remove_auth_headers` of
# keystonemiddleware removes the same headers, except the system scope.
_IDENTITY = frozenset(
    f'HTTP_{name.upper().replace("-", "_")}'
    for name in (
        *auth_token._request._AuthTokenRequest({})._all_auth_headers(),  # noqa: SLF001 - no copy
        'OpenStack-System-Scope',
    )
)

# The catalog is large, and Placement does not use it.
_REMEMBERED = tuple(sorted(_IDENTITY - {'HTTP_X_SERVICE_CATALOG'}))

# The key of the token cache of keystonemiddleware in a WSGI environment.
_ENVIRON_CACHE = 'placement.token_cache'

# The exceptions that keystonemiddleware treats as a failure of Keystone.
_UNAVAILABLE = (
    keystone_exc.ConnectFailure,
    keystone_exc.DiscoveryFailure,
    keystone_exc.RequestTimeout,
    auth_token.ServiceError,
)


def _is_root(environ: Environ) -> bool:
    """Return whether the request is for the version document, which requires no token."""
    return environ.get('PATH_INFO', '') in ('', '/')


def _remove_identity(environ: Environ) -> None:
    """Remove the headers with which a client could pretend to be another user."""
    for name in _IDENTITY & environ.keys():
        del environ[name]


def _unauthorized(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    response: Iterable[bytes] = errors.unauthorized(environ)(environ, start_response)
    return response


class NoAuthMiddleware:
    """Uses the token as the identity: `user` or `user:project`.

    The user `admin` has the admin role; other users have no role. If the request contains the
    X-Roles header, the user has the roles in this header instead. In the same way, X-Project-Id
    replaces the project of the token.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        if _is_root(environ):
            _remove_identity(environ)
            return self.application(environ, start_response)
        token = environ.get('HTTP_X_AUTH_TOKEN')
        if token is None:
            return _unauthorized(environ, start_response)
        user_id, _, project_id = token.partition(':')
        environ['HTTP_X_USER_ID'] = user_id
        if 'HTTP_X_ROLES' not in environ:
            environ['HTTP_X_ROLES'] = 'admin' if user_id == 'admin' else ''
        if environ.get('HTTP_OPENSTACK_SYSTEM_SCOPE'):
            # The scope of a token is either the system or a project.
            environ.pop('HTTP_X_PROJECT_ID', None)
            environ.pop('HTTP_X_TENANT_ID', None)
            environ.pop('HTTP_X_TENANT', None)
        elif not environ.get('HTTP_X_PROJECT_ID'):
            environ['HTTP_X_PROJECT_ID'] = project_id or user_id
        return self.application(environ, start_response)


class KeystoneMiddleware:
    """Validates tokens with keystonemiddleware, except in requests for the version document.

    :raises conf.sources.MissingOption: a strategy for memcached is set, and the secret is not
    :raises ValueError: the address of a memcached server is invalid, or a file for TLS cannot be
        used
    """

    def __init__(self, application: Application, conf: cfg.ConfigOpts) -> None:
        self.application = application
        self.guarded = _TokenValidation(application, conf, open_store(conf))

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        # Not only for the version document: keystonemiddleware does not remove the system scope,
        # and the context of a rejected request would contain it.
        _remove_identity(environ)
        if _is_root(environ):
            return self.application(environ, start_response)
        identity = self.guarded.recall(environ)
        if identity is not None:
            environ.update(identity)
            return self.application(environ, start_response)
        response: Iterable[bytes]
        try:
            response = self.guarded(environ, start_response)
        except exception.IdentityUnavailable as exc:
            response = errors.response(environ, exc)(environ, start_response)
        return response


class _RememberedError(Exception):
    """Another request has validated the same tokens meanwhile.

    :ivar identity: the identity headers
    """

    def __init__(self, identity: dict[str, Any]) -> None:
        super().__init__()
        self.identity = identity


@dataclass(slots=True)
class _Current:
    """The request that keystonemiddleware processes.

    :ivar key: its key in the memory of tokens; None if it is not to be remembered
    :ivar verdict_at: the time of the oldest verdict on its tokens, in seconds since the epoch
    :ivar started: the validations that it started
    """

    key: bytes | None
    verdict_at: float = math.inf
    started: list[Hashable] = field(default_factory=list)


# keystonemiddleware does not pass the request to `fetch_token`.
_CURRENT: ContextVar[_Current] = ContextVar('_CURRENT')


class _EmptyCache:
    """A token cache that keeps nothing, for keystonemiddleware.

    Otherwise, keystonemiddleware would use a dictionary without a limit, or a client of memcached
    that executes code from memcached.
    """

    def get(self, _key: str) -> None:
        return None

    def set(self, _key: str, _data: bytes, time: int = 0) -> None:
        pass


_EMPTY_CACHE = _EmptyCache()


class _TokenValidation(auth_token.AuthProtocol):  # type: ignore[misc] # the library has no types
    """The middleware of keystonemiddleware with a memory of the accepted tokens.

    If Keystone is unavailable, keystonemiddleware would return 503 Service Unavailable in a form of
    its own, 401 Unauthorized (with `delay_auth_decision`), or an unhandled exception.
    """

    def __init__(
        self, application: Application, conf: cfg.ConfigOpts, store: TokenStore | None
    ) -> None:
        super().__init__(application, {'oslo_config_config': conf, 'cache': _ENVIRON_CACHE})
        options = conf.keystone_authtoken
        self._cache_of_operator = options.cache
        seconds = self._seconds = options.token_cache_time
        self._validations = Validations(seconds, thread_count()) if seconds > 0 else None
        self._store = store
        self._memory: TokenMemory | None = None
        # With delay_auth_decision, keystonemiddleware passes rejected requests on, too. The age of
        # a token in the cache of the operator is not known.
        reliable = not options.delay_auth_decision and not options.cache
        if reliable and self._seconds > 0 and conf.api.token_memory > 0:
            self._memory = TokenMemory(_REMEMBERED, conf.api.token_memory, self._seconds)

    def recall(self, environ: Environ) -> dict[str, Any] | None:
        """Return the identity headers for a request, None if its tokens are not in the memory."""
        return self._known(self._key(environ))

    def _known(self, key: bytes | None) -> dict[str, Any] | None:
        identity = None if self._memory is None or key is None else self._memory.get(key)
        if identity is not None:
            telemetry.token_known('memory')
        return identity

    def _key(self, environ: Environ) -> bytes | None:
        token = environ.get('HTTP_X_AUTH_TOKEN')
        if self._memory is None or token is None:
            return None
        # keystonemiddleware removes white space around a token. It rejects a service token that is
        # only white space.
        service_token = environ.get('HTTP_X_SERVICE_TOKEN', '')
        return self._memory.key(token.strip(), service_token.strip() or service_token)

    def process_request(self, request: Any) -> Any:
        """Add the identity to a request, or return the response to a request without identity."""
        environ = request.environ
        cache = environ.get(self._cache_of_operator) if self._cache_of_operator else None
        environ[_ENVIRON_CACHE] = cache or _EMPTY_CACHE
        current = _Current(self._key(environ))
        reset = _CURRENT.set(current)
        try:
            response = super().process_request(request)
            self._remember(request, current)
        except _RememberedError as known:
            environ.update(known.identity)
            response = None
        except (exception.IdentityUnavailable, webob_exc.HTTPException):
            raise
        except Exception as exc:
            # keystonemiddleware does not check the form of what Keystone returns.
            raise _unavailable(exc) from exc
        finally:
            _CURRENT.reset(reset)
            if self._validations is not None:
                self._validations.end(current.started)
        return response

    def _remember(self, request: Any, current: _Current) -> None:
        if self._memory is None or current.key is None:
            return
        auth = request.token_auth
        tokens = [token for token in (auth.user, auth.service) if token is not None]
        if not any(map(_depends_on_request, tokens)):
            ends = [token.expires.timestamp() for token in tokens]
            end = min(current.verdict_at + self._seconds, *ends)
            self._memory.add(current.key, request.environ, end)

    def fetch_token(self, token: str, allow_expired: bool = False) -> Any:
        """Return the data of a token.

        :raises auth_token.InvalidToken: the token is rejected
        :raises exception.IdentityUnavailable: Keystone could not be used to validate the token
        """
        if '\r' in token or '\n' in token:
            # The request to Keystone would fail, and the log would contain the token.
            raise auth_token.InvalidToken
        current = _CURRENT.get()
        key = (token, allow_expired)

        def recall() -> None:
            identity = self._known(current.key)
            if identity is not None:
                raise _RememberedError(identity)

        def validate() -> Verdict:
            verdict = self._validate(token, allow_expired)
            current.started.append(key)
            return verdict

        if self._validations is None:
            verdict = self._validate(token, allow_expired)
        else:
            verdict = self._validations.share(key, recall, validate)
        current.verdict_at = min(current.verdict_at, verdict.at)
        return verdict.data

    def validate_allowed_request(self, request: Any, token: dict[str, Any]) -> None:
        """Check the access rules of a token.

        :raises auth_token.InvalidToken: the rules do not permit the request
        """
        # With `include_service_catalog = false`, a token has no catalog, and keystonemiddleware
        # would raise a KeyError if the token has access rules.
        super().validate_allowed_request(request, {'catalog': [], **token})

    def _validate(self, token: str, allow_expired: bool) -> Verdict:
        # An expired token is valid only together with a service token.
        store = None if allow_expired else self._store
        verdict = None if store is None else store.get(token)
        if verdict is not None:
            telemetry.token_known('memcached')
            return verdict
        verdict = self._request_verdict(token, allow_expired)
        if store is not None:
            store.set(token, verdict)
        return verdict

    def _request_verdict(self, token: str, allow_expired: bool) -> Verdict:
        """Request the validation of a token from Keystone."""
        at, start, result = time.time(), time.perf_counter(), 'unavailable'
        try:
            data = self._request_data(token, allow_expired)
            result = 'accepted'
        except auth_token.InvalidToken:
            result = 'rejected'
            raise
        finally:
            telemetry.token_validated(result, time.perf_counter() - start)
        return Verdict(data, at)

    def _request_data(self, token: str, allow_expired: bool) -> Any:
        try:
            data = super().fetch_token(token, allow_expired=allow_expired)
            require_identity(data)
        except Exception as exc:
            if isinstance(exc.__context__, _UNAVAILABLE):
                # keystonemiddleware has logged the cause of its own exception.
                raise exception.IdentityUnavailable from exc
            if isinstance(exc, auth_token.InvalidToken):
                raise
            raise _unavailable(exc) from exc
        return data


def _unavailable(exc: Exception) -> exception.IdentityUnavailable:
    """Log a failure of Keystone, and return the exception for it."""
    LOG.warning('The identity service is unavailable: %s: %.1000s', type(exc).__name__, exc)
    return exception.IdentityUnavailable()


def _depends_on_request(token: Any) -> bool:
    """Return whether a token is valid only for some requests or on some connections."""
    return bool(token.bind) or token.application_credential_access_rules is not None


class ContextMiddleware:
    """Creates the RequestContext. Returns 401 Unauthorized if the request is not authenticated."""

    def __init__(self, application: Application, conf: cfg.ConfigOpts) -> None:
        self.application = application
        self.conf = conf

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        request_context = context.RequestContext.from_environ(environ, config=self.conf)
        environ[ENVIRON_CONTEXT] = request_context
        if request_context.user_id is None and not _is_root(environ):
            return _unauthorized(environ, start_response)
        return self.application(environ, start_response)
