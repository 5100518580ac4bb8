"""Authentication, and the request context built from the identity.

If the authentication strategy is keystone, keystonemiddleware validates the token and adds the
identity to the headers of the request. If the strategy is noauth2, which is only for tests, the
token itself is the identity.
"""

from collections.abc import Iterable
import logging
from typing import Any

from keystoneauth1 import exceptions as keystone_exc
from keystonemiddleware import auth_token
from oslo_config import cfg

from placement import context, exception
from placement.http import Application, Environ, StartResponse, errors
from placement.http.request import ENVIRON_CONTEXT

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
    """Validates tokens with keystonemiddleware, except in requests for the version document."""

    def __init__(self, application: Application, conf: cfg.ConfigOpts) -> None:
        self.application = application
        self.guarded = _TokenValidation(application, {'oslo_config_config': conf})

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        # Not only for the version document: keystonemiddleware does not remove the system scope,
        # and the context of a rejected request would contain it.
        _remove_identity(environ)
        if _is_root(environ):
            return self.application(environ, start_response)
        response: Iterable[bytes]
        try:
            response = self.guarded(environ, start_response)
        except exception.IdentityUnavailable as exc:
            response = errors.response(environ, exc)(environ, start_response)
        return response


class _TokenValidation(auth_token.AuthProtocol):  # type: ignore[misc] # the library has no types
    """The middleware of keystonemiddleware, except if Keystone is unavailable.

    In that case, keystonemiddleware would return 503 Service Unavailable in a form of its own, 401
    Unauthorized (with `delay_auth_decision`), or an unhandled exception.
    """

    def fetch_token(self, token: str, **options: Any) -> Any:
        """Return the data of a token.

        :raises exception.IdentityUnavailable: Keystone could not be used to validate the token
        """
        try:
            return super().fetch_token(token, **options)
        except keystone_exc.ClientException as exc:
            LOG.warning('The identity service is unavailable: %s: %s', type(exc).__name__, exc)
            raise exception.IdentityUnavailable from exc
        except Exception as exc:
            # keystonemiddleware has logged the cause of its own exception.
            if isinstance(exc.__context__, _UNAVAILABLE):
                raise exception.IdentityUnavailable from exc
            raise


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
