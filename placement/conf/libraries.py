"""Register the options of libraries, with the defaults of this service.

The defaults are set on a single configuration object, so another service in the same process keeps
its own defaults.
"""

from oslo_config import cfg
from oslo_middleware import cors, http_proxy_to_wsgi, sizelimit
from oslo_middleware.healthcheck import opts as healthcheck_opts
from oslo_policy import opts as policy_opts

from placement.conf import base

try:
    from osprofiler import opts as profiler_opts
except ImportError:
    profiler_opts = None


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.policy, oslo.middleware and, if installed, osprofiler.

    `[keystone_authtoken]` is not registered here, because keystonemiddleware registers this group
    when the application is built.
    """
    # Without other arguments, this set_defaults() only registers the options of oslo.policy.
    policy_opts.set_defaults(conf)
    conf.set_default('policy_file', base.POLICY_FILE, group='oslo_policy')

    conf.register_opts(cors.OPTS, group='cors')
    for name, value in base.CORS_DEFAULTS.items():
        conf.set_default(name, value, group='cors')

    conf.register_opts(http_proxy_to_wsgi.OPTS, group='oslo_middleware')
    conf.register_opts(sizelimit.OPTS, group='oslo_middleware')
    conf.set_default('max_request_body_size', base.BODY_LIMIT, group='oslo_middleware')

    conf.register_opts(healthcheck_opts.HEALTHCHECK_OPTS, group='healthcheck')
    conf.register_opts(healthcheck_opts.DISABLE_BY_FILE_OPTS, group='healthcheck')
    conf.set_default('backends', base.HEALTH_BACKENDS, group='healthcheck')

    if profiler_opts is not None:
        profiler_opts.set_defaults(conf)
