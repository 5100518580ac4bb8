"""Options of the process, and defaults that the service gives to libraries' options."""

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

# oslo.service registers an option of the same name and meaning in other services. It is
# left out of the generated sample.
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
    """Make the sample generator show the defaults that the service gives to libraries.

    This changes the libraries' option objects for the whole process. It is the entry
    point `oslo.config.opts.defaults`, and the service itself never calls it.
    """
    policy_opts.set_defaults(cfg.ConfigOpts(), POLICY_FILE)
    cors.set_defaults(**CORS_DEFAULTS)
    cfg.set_defaults(sizelimit.OPTS, max_request_body_size=BODY_LIMIT)
