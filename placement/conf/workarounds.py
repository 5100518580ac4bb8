"""Options that were made to work around a shortcoming."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'workarounds',
    title='Workaround options',
    help='Options for particular deployments. None should be needed.',
)

OPTS = [
    cfg.BoolOpt(
        'optimize_for_wide_provider_trees',
        default=False,
        help="""
Accepted, and without effect.

In earlier releases it made the search for candidates faster where
a host has many child providers of the same kind, such as PCI
devices. The search always works that way now.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[workarounds]` on `conf`."""
    conf.register_group(copy.deepcopy(GROUP))  # a group keeps the values that are set on it
    conf.register_opts(OPTS, group=GROUP)
