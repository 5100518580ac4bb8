"""Options of the process, and the service's defaults for options of libraries."""

from oslo_config import cfg
from oslo_middleware import cors, sizelimit
from oslo_policy import opts as policy_opts

POLICY_FILE = 'policy.yaml'

# Bytes. The default of oslo.middleware, 114688, is too small for a reshape of many providers.
BODY_LIMIT = 1024 * 1024

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

# In other services, oslo.service registers an option with this name and meaning. The generated
# sample does not contain it.
OPTS = [
    cfg.BoolOpt(
        'log_options',
        default=True,
        help='Log the values of all options at DEBUG level when the service starts. '
        'Values of secret options are masked.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of the process on `conf`."""
    conf.register_opts(OPTS)


def set_lib_defaults() -> None:
    """Set the service's defaults for options of libraries, for the sample generator.

    This changes the option objects of the libraries for the whole process. Only the sample
    generator calls it, through the entry point `oslo.config.opts.defaults`.
    """
    policy_opts.set_defaults(cfg.ConfigOpts(), POLICY_FILE)
    cors.set_defaults(**CORS_DEFAULTS)
    cfg.set_defaults(sizelimit.OPTS, max_request_body_size=BODY_LIMIT)
