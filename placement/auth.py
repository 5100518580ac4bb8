"""Authentication, and the request context built from the identity.

If the authentication strategy is keystone, keystonemiddleware validates the token and adds the
identity to the headers of the request. If the strategy is noauth2, which is only for tests, the
token itself is the identity.
"""

from collections.abc import Iterable, Mapping
import logging
import math
import time
from typing import Any

from keystoneauth1 import exceptions as keystone_exc
from keystonemiddleware import auth_token
from oslo_config import cfg
from oslo_context import context
from webob import exc as webob_exc

from placement import exception, policy, telemetry
from placement.http import ENVIRON_CONTEXT, Application, Environ, StartResponse, errors
from placement.token_cache import TokenCache, open_cache
from placement.token_memory import TokenMemory

LOG = logging.getLogger(__name__)

# The names of the headers with an identity in a WSGI environment: those that keystonemiddleware
# documents, also the deprecated ones.
_IDENTITY = frozenset(
    (
        'HTTP_OPENSTACK_SYSTEM_SCOPE',
        'HTTP_X_IS_ADMIN_PROJECT',
        'HTTP_X_ROLE',
        'HTTP_X_SERVICE_CATALOG',
        'HTTP_X_TENANT',
        'HTTP_X_TENANT_ID',
        'HTTP_X_TENANT_NAME',
        'HTTP_X_USER',
        *(
            f'HTTP_X_{service}{name}'
            for service in ('', 'SERVICE_')
            for name in (
                'DOMAIN_ID',
                'DOMAIN_NAME',
                'IDENTITY_STATUS',
                'PROJECT_DOMAIN_ID',
                'PROJECT_DOMAIN_NAME',
                'PROJECT_ID',
                'PROJECT_NAME',
                'ROLES',
                'USER_DOMAIN_ID',
                'USER_DOMAIN_NAME',
                'USER_ID',
                'USER_NAME',
            )
        ),
    )
)

# The catalog is large, and Placement does not use it.
_REMEMBERED = tuple(sorted(_IDENTITY - {'HTTP_X_SERVICE_CATALOG'}))

# The key of the token cache of keystonemiddleware in a WSGI environment.
_ENVIRON_CACHE = 'placement.token_cache'

# With memcached, a process remembers a token for one of so many parts of `token_cache_time`.
_PARTS = 5

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
        elif 'HTTP_X_PROJECT_ID' not in environ:
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
        self.guarded = _TokenValidation(application, conf, open_cache(conf))

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


class _TokenValidation(auth_token.AuthProtocol):  # type: ignore[misc] # the library has no types
    """The middleware of keystonemiddleware with a memory of the accepted tokens.

    If Keystone is unavailable, keystonemiddleware would return 503 Service Unavailable in a form of
    its own, 401 Unauthorized (with `delay_auth_decision`), or an unhandled exception.
    """

    def __init__(
        self, application: Application, conf: cfg.ConfigOpts, memcached: TokenCache | None
    ) -> None:
        options = conf.keystone_authtoken
        shared = seconds = options.token_cache_time
        if memcached is not None:
            # A value in memcached has no time, so that both times add up.
            seconds = math.ceil(shared / _PARTS)
            shared -= seconds
        # keystonemiddleware would only sign with `encrypt`. Without a cache, the library for
        # encryption can be missing.
        has_cache = memcached is not None or options.cache
        strategy = options.memcache_security_strategy.upper() if has_cache else 'NONE'
        super().__init__(
            application,
            {
                'oslo_config_config': conf,
                'cache': _ENVIRON_CACHE,
                'token_cache_time': shared,
                'memcache_security_strategy': strategy,
            },
        )
        self._cache_of_operator = options.cache
        # Without any cache, keystonemiddleware would use a dictionary without a limit.
        self._cache = memcached or TokenCache()
        self._seconds = seconds
        self._memory: TokenMemory | None = None
        # With delay_auth_decision, keystonemiddleware passes rejected requests on, too. The age of
        # a token in the cache of the operator is not known.
        reliable = not options.delay_auth_decision and not options.cache
        if reliable and seconds > 0 and conf.api.token_memory > 0:
            self._memory = TokenMemory(_REMEMBERED, conf.api.token_memory, seconds)

    def recall(self, environ: Environ) -> dict[str, Any] | None:
        """Return the identity headers for a request, None if its tokens are not in the memory."""
        key = self._key(environ)
        identity = None if self._memory is None or key is None else self._memory.get(key)
        if identity is not None:
            telemetry.TOKEN_HITS.add(1, 'memory')
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
        environ[_ENVIRON_CACHE] = cache or self._cache
        start = time.time()
        try:
            response = super().process_request(request)
            _require_texts(environ)
            self._remember(request, start)
        except (exception.IdentityUnavailable, webob_exc.HTTPException):
            raise
        except Exception as exc:
            # keystonemiddleware does not check the form of what Keystone returns.
            raise _unavailable(exc) from exc
        return response

    def _remember(self, request: Any, start: float) -> None:
        """Remember the identity that an accepted request contains.

        :param start: a time before the verdict on its tokens, in seconds since the epoch
        """
        key = self._key(request.environ)
        if self._memory is None or key is None:
            return
        auth = request.token_auth
        tokens = [token for token in (auth.user, auth.service) if token is not None]
        if not any(map(_depends_on_request, tokens)):
            ends = [token.expires.timestamp() for token in tokens]
            self._memory.add(key, request.environ, min(start + self._seconds, *ends))

    def fetch_token(self, token: str, allow_expired: bool = False) -> Any:
        """Return the data of a token.

        :raises auth_token.InvalidToken: the token is rejected
        :raises exception.IdentityUnavailable: Keystone could not be used to validate the token
        """
        if '\r' in token or '\n' in token:
            # The request to Keystone would fail, and the log would contain the token.
            raise auth_token.InvalidToken
        start, result = time.perf_counter(), 'unavailable'
        try:
            data = super().fetch_token(token, allow_expired=allow_expired)
            # keystonemiddleware returns what Keystone responded in a class of its own.
            result = 'cached' if type(data['token']) is dict else 'accepted'
        except Exception as exc:
            if isinstance(exc.__context__, _UNAVAILABLE):
                # keystonemiddleware has logged the cause of its own exception.
                raise exception.IdentityUnavailable from exc
            if isinstance(exc, auth_token.InvalidToken):
                result = 'rejected'
            raise
        finally:
            if result == 'cached':
                telemetry.TOKEN_HITS.add(1, 'memcached')
            else:
                telemetry.VALIDATIONS.add(1, result)
                telemetry.VALIDATION_DURATION.observe(time.perf_counter() - start)
        return data

    def validate_allowed_request(self, request: Any, token: dict[str, Any]) -> None:
        """Check the access rules of a token.

        :raises auth_token.InvalidToken: the rules do not permit the request
        """
        # With `include_service_catalog = false`, a token has no catalog, and keystonemiddleware
        # would raise a KeyError if the token has access rules.
        super().validate_allowed_request(request, {'catalog': [], **token})


def _require_texts(environ: Environ) -> None:
    """Check the identity headers that keystonemiddleware has added.

    :raises TypeError: Keystone has returned an ID or a name that is no text
    """
    if not all(isinstance(environ.get(name), str | None) for name in _IDENTITY):
        raise TypeError('an ID or a name is no text')


def _unavailable(exc: Exception) -> exception.IdentityUnavailable:
    """Log a failure of Keystone, and return the exception for it."""
    LOG.warning('The identity service is unavailable: %s: %.1000s', type(exc).__name__, exc)
    return exception.IdentityUnavailable()


def _depends_on_request(token: Any) -> bool:
    """Return whether a token is valid only for some requests or on some connections."""
    return bool(token.bind) or token.application_credential_access_rules is not None


class RequestContext(context.RequestContext):
    """The caller's identity, roles and scope, and the configuration of the service.

    It has no database session: the functions that handlers call open their own transactions.
    """

    def __init__(self, *args: Any, config: Any = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.config: cfg.ConfigOpts = config

    def can(self, action: str, target: Mapping[str, Any] | None = None, fatal: bool = True) -> bool:
        """Return whether the policy allows the caller to perform an action.

        :param action: name of a policy rule
        :param target: attributes of the object on which the caller performs the action; by default,
            the caller's own project and user
        :param fatal: raise an exception instead of returning False
        :raises PolicyNotAuthorized: the policy does not allow the action, and `fatal` is true
        """
        if target is None:
            target = {'project_id': self.project_id, 'user_id': self.user_id}
        return policy.authorize(self, action, target, do_raise=fatal)


class ContextMiddleware:
    """Creates the RequestContext. Returns 401 Unauthorized if the request is not authenticated."""

    def __init__(self, application: Application, conf: cfg.ConfigOpts) -> None:
        self.application = application
        self.conf = conf

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        request_context = RequestContext.from_environ(environ, config=self.conf)
        environ[ENVIRON_CONTEXT] = request_context
        if request_context.user_id is None and not _is_root(environ):
            return _unauthorized(environ, start_response)
        return self.application(environ, start_response)
