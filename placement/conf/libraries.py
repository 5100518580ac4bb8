"""Registers the options of libraries with the service's defaults.

The defaults are set on the given object only, so that they do not change the defaults of another
service in the same process.
"""

from oslo_config import cfg
from oslo_middleware import cors, http_proxy_to_wsgi, sizelimit
from oslo_policy import opts as policy_opts

from placement.conf import base

try:
    from osprofiler import opts as profiler_opts
except ImportError:
    profiler_opts = None


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of oslo.policy, oslo.middleware and, if installed, osprofiler.

    keystonemiddleware registers `[keystone_authtoken]` itself when its filter is created.
    """
    # Without further arguments, set_defaults only registers the options.
    policy_opts.set_defaults(conf)
    conf.set_default('policy_file', base.POLICY_FILE, group='oslo_policy')

    conf.register_opts(cors.OPTS, group='cors')
    for name, value in base.CORS_DEFAULTS.items():
        conf.set_default(name, value, group='cors')

    conf.register_opts(http_proxy_to_wsgi.OPTS, group='oslo_middleware')
    conf.register_opts(sizelimit.OPTS, group='oslo_middleware')
    conf.set_default('max_request_body_size', base.BODY_LIMIT, group='oslo_middleware')

    if profiler_opts is not None:
        profiler_opts.set_defaults(conf)
