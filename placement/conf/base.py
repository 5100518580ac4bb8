"""Process-wide options, and this service's defaults for library options."""

from oslo_config import cfg
from oslo_middleware import cors, sizelimit
from oslo_middleware.healthcheck import opts as healthcheck_opts
from oslo_policy import opts as policy_opts

POLICY_FILE = 'policy.yaml'

# In bytes. The default of oslo.middleware, 114688, is too small to reshape many providers.
BODY_LIMIT = 1024 * 1024

# The backends of `/healthcheck`, by the names of their entry points.
HEALTH_BACKENDS = ['placement_database']

CORS_DEFAULTS = {
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

# In other OpenStack services, oslo.service registers this option. The sample configuration file
# does not contain this option.
OPTS = [
    cfg.BoolOpt(
        'log_options',
        default=True,
        help='Log the values of all options at DEBUG level when the service starts. '
        'Values of secret options are masked.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the process-wide options on `conf`."""
    conf.register_opts(OPTS)


def set_lib_defaults() -> None:
    """Set this service's defaults for library options in the sample configuration file.

    This function changes the option objects of the libraries for the whole process. Only
    oslo-config-generator calls this function, through the entry point `oslo.config.opts.defaults`.
    """
    policy_opts.set_defaults(cfg.ConfigOpts(), POLICY_FILE)
    cors.set_defaults(**CORS_DEFAULTS)
    cfg.set_defaults(sizelimit.OPTS, max_request_body_size=BODY_LIMIT)
    cfg.set_defaults(healthcheck_opts.HEALTHCHECK_OPTS, backends=HEALTH_BACKENDS)
