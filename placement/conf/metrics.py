"""Options of the service metrics."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'metrics',
    title='Metrics options',
    help='Options of the service metrics for Prometheus.',
)

OPTS = [
    cfg.BoolOpt(
        'enabled',
        default=False,
        help="""
Whether the service records metrics and returns them from the path
`/metrics`.

Requests for this path need no token, so the web server must not
forward this path from outside of the deployment.

The option needs the library prometheus_client, which the extra
`metrics` installs. If several processes serve requests, set the
environment variable `PROMETHEUS_MULTIPROC_DIR` to a directory that
these processes share.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[metrics]` on `conf`."""
    # Register a copy, because oslo.config stores the values of options in the group.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)
