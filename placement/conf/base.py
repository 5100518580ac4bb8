"""The options of libraries, with the defaults of this service.

The defaults are set on a single configuration object, so another service in the same process keeps
its own defaults.
"""

from collections.abc import Sequence
from typing import Any

from oslo_config import cfg
from oslo_middleware import cors, http_proxy_to_wsgi, sizelimit
from oslo_middleware.healthcheck import opts as healthcheck_opts
from oslo_policy import opts as policy_opts

try:
    from osprofiler import opts as profiler_opts
except ImportError:
    profiler_opts = None

POLICY_FILE = 'policy.yaml'

# In bytes. The default of oslo.middleware, 114688, is too small to reshape many providers.
BODY_LIMIT = 1024 * 1024

# The backends of `/healthcheck`, by the names of their entry points.
HEALTH_BACKENDS = ['placement_database']

_CORS: dict[str, Any] = {
    'allow_headers': [
        'X-Auth-Token',
        'X-Openstack-Request-Id',
        'X-Identity-Status',
        'X-Roles',
        'X-Service-Catalog',
        'X-User-Id',
        'X-Tenant-Id',
        'OpenStack-API-Version',
    ],
    'expose_headers': [
        'X-Auth-Token',
        'X-Openstack-Request-Id',
        'X-Subject-Token',
        'X-Service-Token',
        'OpenStack-API-Version',
    ],
    'allow_methods': ['GET', 'PUT', 'POST', 'DELETE', 'PATCH'],
}

# The options of oslo.middleware by group, and the defaults of this service.
_MIDDLEWARE: tuple[tuple[str, Sequence[cfg.Opt], dict[str, Any]], ...] = (
    ('cors', cors.OPTS, _CORS),
    ('oslo_middleware', http_proxy_to_wsgi.OPTS, {}),
    ('oslo_middleware', sizelimit.OPTS, {'max_request_body_size': BODY_LIMIT}),
    ('healthcheck', healthcheck_opts.HEALTHCHECK_OPTS, {'backends': HEALTH_BACKENDS}),
    ('healthcheck', healthcheck_opts.DISABLE_BY_FILE_OPTS, {}),
)

# In other OpenStack services, oslo.service registers this option. The sample configuration file
# does not contain this option.
_LOG_OPTIONS = cfg.BoolOpt(
    'log_options',
    default=True,
    help='Log the values of all options at DEBUG level when the service starts. '
    'Values of secret options are masked.',
)


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.policy, oslo.middleware and, if installed, osprofiler.

    `[keystone_authtoken]` is not registered here, because keystonemiddleware registers this group
    when the application is built.
    """
    conf.register_opt(_LOG_OPTIONS)
    # Without other arguments, this set_defaults() only registers the options of oslo.policy.
    policy_opts.set_defaults(conf)
    conf.set_default('policy_file', POLICY_FILE, group='oslo_policy')
    for group, options, defaults in _MIDDLEWARE:
        conf.register_opts(options, group=group)
        for name, value in defaults.items():
            conf.set_default(name, value, group=group)
    if profiler_opts is not None:
        profiler_opts.set_defaults(conf)


def set_lib_defaults() -> None:
    """Set this service's defaults for library options in the sample configuration file.

    This function changes the option objects of the libraries for the whole process. Only
    oslo-config-generator calls this function, through the entry point `oslo.config.opts.defaults`.
    """
    policy_opts.set_defaults(cfg.ConfigOpts(), POLICY_FILE)
    for _, options, defaults in _MIDDLEWARE:
        cfg.set_defaults(options, **defaults)
