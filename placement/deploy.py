"""Build the WSGI application and prepare the database."""

from oslo_config import cfg
from oslo_middleware import cors, http_proxy_to_wsgi

from placement import (
    auth,
    body_limit,
    endpoints,
    fault_wrap,
    handler,
    health,
    negotiation,
    policy,
    requestlog,
)
from placement.db.sqlalchemy import migration
from placement.http import Application
from placement.objects import sync

try:
    from osprofiler import initializer as profiler_initializer
    from osprofiler import web as profiler
except ImportError:
    profiler = None


def loadapp(config: cfg.ConfigOpts, project_name: str | None = None) -> Application:
    """Prepare the database and return the WSGI application with all its middleware.

    The caller must have parsed `config` and configured the database (`db_api.configure`).

    :param project_name: ignored; exists for compatibility with programs that embed the service
    """
    del project_name
    policy.init(config)
    update_database(config)
    return _build(config)


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


def _build(conf: cfg.ConfigOpts) -> Application:
    """Return the application; the middleware that is added last processes a request first."""
    application: Application = handler.PlacementHandler()
    application = negotiation.MicroversionMiddleware(application)
    application = fault_wrap.FaultWrapper(application)
    application = auth.ContextMiddleware(application, conf)
    if conf.api.auth_strategy == 'noauth2':
        application = auth.NoAuthMiddleware(application)
    else:
        application = auth.KeystoneMiddleware(application, conf)
    if conf.cors.allowed_origin:
        application = cors.CORS(application, conf)
    application = body_limit.BodyLimit(application, conf.oslo_middleware.max_request_body_size)
    application = requestlog.RequestLog(application)
    application = endpoints.Endpoints(application, _endpoints(application, conf))
    if conf.oslo_middleware.enable_proxy_headers_parsing:
        application = http_proxy_to_wsgi.HTTPProxyToWSGI(application, conf)
    if profiler is not None and conf.profiler.enabled:
        profiler_initializer.init_from_conf(conf, {}, 'placement', 'placement', '')
        application = profiler.WsgiMiddleware(application)
    return application


def _endpoints(api: Application, conf: cfg.ConfigOpts) -> dict[str, Application]:
    """Return the applications outside of the API, by path."""
    return {'/healthcheck': fault_wrap.FaultWrapper(health.application(api, conf))}
