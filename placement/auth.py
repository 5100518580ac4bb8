"""Authentication, and the context that is made from it.

With keystone, keystonemiddleware checks the token and puts the identity into the request's
headers. With noauth2, meant for tests only, the token *is* the identity.
"""

from collections.abc import Iterable
from http import HTTPStatus

from keystonemiddleware import auth_token
from oslo_config import cfg

from placement import context, util

_DETAIL = 'This request needs a valid token in the header X-Auth-Token.'
_DOCUMENT = {'message': _DETAIL, 'code': '401 Unauthorized', 'title': 'Unauthorized'}


def _is_root(environ: util.Environ) -> bool:
    """Whether the request is for the version document, which everybody may see."""
    return environ.get('PATH_INFO', '') in ('', '/')


def _unauthorized(environ: util.Environ, start_response: util.StartResponse) -> Iterable[bytes]:
    response = util.failure(environ, HTTPStatus.UNAUTHORIZED, _DETAIL, _DOCUMENT)
    return response(environ, start_response)


class NoAuthMiddleware:
    """Takes the token for the identity: `user` or `user:project`.

    The user `admin` has the role admin; a header X-Roles names other roles.
    """

    def __init__(self, application: util.Application):
        self.application = application

    def __call__(
        self, environ: util.Environ, start_response: util.StartResponse
    ) -> Iterable[bytes]:
        if _is_root(environ):
            return self.application(environ, start_response)
        token = environ.get('HTTP_X_AUTH_TOKEN')
        if token is None:
            return _unauthorized(environ, start_response)
        user_id, _, project_id = token.partition(':')
        environ['HTTP_X_USER_ID'] = user_id
        if 'HTTP_X_ROLES' not in environ:
            environ['HTTP_X_ROLES'] = 'admin' if user_id == 'admin' else ''
        if environ.get('HTTP_OPENSTACK_SYSTEM_SCOPE'):
            # A token has one scope: the system, or a project.
            environ.pop('HTTP_X_PROJECT_ID', None)
            environ.pop('HTTP_X_TENANT_ID', None)
            environ.pop('HTTP_X_TENANT', None)
        else:
            environ['HTTP_X_PROJECT_ID'] = project_id or user_id
        return self.application(environ, start_response)


class KeystoneMiddleware:
    """Has keystonemiddleware check tokens for everything but the version document."""

    def __init__(self, application: util.Application, conf: cfg.ConfigOpts):
        self.application = application
        self.guarded = auth_token.AuthProtocol(application, {'oslo_config_config': conf})

    def __call__(
        self, environ: util.Environ, start_response: util.StartResponse
    ) -> Iterable[bytes]:
        if _is_root(environ):
            return self.application(environ, start_response)
        return self.guarded(environ, start_response)


class ContextMiddleware:
    """Makes the RequestContext; answers 401 when nobody is known to be asking."""

    def __init__(self, application: util.Application, conf: cfg.ConfigOpts):
        self.application = application
        self.conf = conf

    def __call__(
        self, environ: util.Environ, start_response: util.StartResponse
    ) -> Iterable[bytes]:
        request_context = context.RequestContext.from_environ(environ, config=self.conf)
        environ[util.ENVIRON_CONTEXT] = request_context
        if request_context.user_id is None and not _is_root(environ):
            return _unauthorized(environ, start_response)
        return self.application(environ, start_response)
