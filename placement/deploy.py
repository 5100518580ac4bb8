"""Build the WSGI application and prepare the database."""

from collections.abc import Iterable, Mapping

from oslo_config import cfg
from oslo_middleware import cors, http_proxy_to_wsgi

from placement import (
    auth,
    exception,
    fault_wrap,
    handler,
    health,
    microversion,
    policy,
    requestlog,
    telemetry,
    trail,
)
from placement.db.sqlalchemy import migration
from placement.http import Application, Environ, StartResponse, errors
from placement.http.request import check_length
from placement.objects import sync

try:
    from osprofiler import initializer as profiler_initializer
    from osprofiler import web as profiler
except ImportError:
    profiler = None


def loadapp(config: cfg.ConfigOpts, project_name: str | None = None) -> Application:
    """Prepare the database and return the WSGI application with all its middleware.

    The caller must have parsed `config` and configured the database (`db.engine.configure`).

    :param project_name: ignored; exists for compatibility with programs that embed the service
    :raises exception.MetricsUnavailable: metrics are enabled but cannot be recorded
    """
    del project_name
    if config.metrics.enabled:
        telemetry.switch_on()
    trail.switch(config.api.log_changes)
    policy.init(config)
    update_database(config)
    return build(config)


def update_database(conf: cfg.ConfigOpts) -> None:
    """Prepare the database for the first request.

    If `[placement_database] sync_on_startup` is true, this function upgrades the schema. Then it
    inserts the missing standard traits and resource classes.

    :raises exception.UnsuitableDatabase: the schema is older than this release, and
        `sync_on_startup` is false
    """
    if conf.placement_database.sync_on_startup:
        migration.upgrade('head')
    else:
        migration.require_current()
    sync.sync_traits()
    sync.sync_resource_classes()


def build(conf: cfg.ConfigOpts) -> Application:
    """Return the application, without preparing the database.

    The middleware that is added last processes a request first.
    """
    api = handler.PlacementHandler()
    application: Application = microversion.MicroversionMiddleware(api)
    application = fault_wrap.FaultWrapper(application)
    application = auth.ContextMiddleware(application, conf)
    if conf.api.auth_strategy == 'noauth2':
        application = auth.NoAuthMiddleware(application)
    else:
        application = auth.KeystoneMiddleware(application, conf)
    if conf.cors.allowed_origin:
        application = cors.CORS(application, conf)
    application = BodyLimit(application, conf.oslo_middleware.max_request_body_size)
    others: dict[str, Application] = {}
    if conf.metrics.enabled:
        application = requestlog.RequestMetrics(application, api.template)
        others['/metrics'] = telemetry.serve_metrics
    others['/healthcheck'] = health.application(application, conf)
    application = Endpoints(application, others)
    # Handles failures of the layers above, so that the log has the status. Those of handlers are
    # handled inside of CORS, which adds its headers to the response.
    application = fault_wrap.FaultWrapper(application)
    application = requestlog.RequestLog(application, conf.api.slow_request_seconds)
    if conf.oslo_middleware.enable_proxy_headers_parsing:
        application = http_proxy_to_wsgi.HTTPProxyToWSGI(application, conf)
    if profiler is not None and conf.profiler.enabled:
        profiler_initializer.init_from_conf(conf, {}, 'placement', 'placement', '')
        application = profiler.WsgiMiddleware(application)
    return application


class BodyLimit:
    """Rejects a body whose Content-Length exceeds `[oslo_middleware] max_request_body_size`.

    The response is 413 Request Entity Too Large. Placement does not use the corresponding
    middleware of oslo.middleware, for two reasons: its responses are not error documents of
    Placement, and it reads the whole of a body without Content-Length before it checks the size.
    """

    def __init__(self, application: Application, limit: int) -> None:
        self.application = application
        self.limit = limit

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        application = self.application
        try:
            check_length(environ, self.limit)
        except exception.BodyTooLarge as exc:
            application = errors.response(environ, exc)
        return application(environ, start_response)


class Endpoints:
    """Passes the requests for the paths outside of the API to other applications.

    These paths need no token and have no microversions. A proxy can reject requests for them, so
    that a client cannot use them. But a proxy and a web server can decode the same unusual URL in
    different ways. Therefore a request is served only if the client has sent the path itself.

    :param application: the API
    :param others: the other applications by path; a path is relative to the mount point, so it is
        the same for every path prefix
    """

    def __init__(self, application: Application, others: Mapping[str, Application]) -> None:
        self.application = application
        self._others = others

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request.

        :raises exception.RouteNotFound: the client has sent another path
        :raises exception.MethodNotAllowed: the method is neither GET nor HEAD
        """
        path = environ.get('PATH_INFO', '')
        other = self._others.get(path)
        if other is None:
            return self.application(environ, start_response)
        if not _is_sent_as(path, environ):
            raise exception.RouteNotFound
        method = environ['REQUEST_METHOD']
        if method not in ('GET', 'HEAD'):
            raise exception.MethodNotAllowed(method, 'GET, HEAD')
        return other(environ, start_response)


def _is_sent_as(path: str, environ: Environ) -> bool:
    """Return whether the URL of a request ends in a path, without encoding and dot segments.

    If the web server does not pass the URL, the result is true.
    """
    # uWSGI, mod_wsgi and waitress, and gunicorn pass it. PEP 3333 does not define these keys.
    url = environ.get('REQUEST_URI', environ.get('RAW_URI'))
    if url is None:
        return True
    sent = url.partition('?')[0]
    return sent.endswith(path) and '%' not in sent and not {'.', '..'} & set(sent.split('/'))
