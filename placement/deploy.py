"""Build the WSGI application and prepare the database."""

from collections.abc import Iterable

from oslo_config import cfg
from oslo_middleware import cors, http_proxy_to_wsgi

from placement import (
    auth,
    endpoints,
    exception,
    fault_wrap,
    handler,
    health,
    negotiation,
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
    application: Application = negotiation.MicroversionMiddleware(api)
    application = fault_wrap.FaultWrapper(application)
    application = auth.ContextMiddleware(application, conf)
    if conf.api.auth_strategy == 'noauth2':
        application = auth.NoAuthMiddleware(application)
    else:
        application = auth.KeystoneMiddleware(application, conf)
    if conf.cors.allowed_origin:
        application = cors.CORS(application, conf)
    application = BodyLimit(application, conf.oslo_middleware.max_request_body_size)
    if conf.metrics.enabled:
        application = requestlog.RequestMetrics(application, api.template)
    application = endpoints.Endpoints(application, _endpoints(application, conf))
    # A failure of a handler passes through CORS, which adds its headers. This FaultWrapper handles
    # failures of the layers above, and the outermost one those of the layers below.
    application = fault_wrap.FaultWrapper(application)
    application = requestlog.RequestLog(application, conf.api.slow_request_seconds)
    if conf.oslo_middleware.enable_proxy_headers_parsing:
        application = http_proxy_to_wsgi.HTTPProxyToWSGI(application, conf)
    application = fault_wrap.FaultWrapper(application, outermost=True)
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


def _endpoints(api: Application, conf: cfg.ConfigOpts) -> dict[str, Application]:
    """Return the applications outside of the API, by path."""
    applications: dict[str, Application] = {'/healthcheck': health.application(api, conf)}
    if conf.metrics.enabled:
        applications['/metrics'] = telemetry.serve_metrics
    return applications
