"""Options that work around defects or limitations."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'workarounds',
    title='Workaround options',
    help='Options for special deployments. Most deployments need none of these options.',
)

OPTS = [
    cfg.BoolOpt(
        'optimize_for_wide_provider_trees',
        default=False,
        help="""
This option has no effect. It exists for compatibility with existing
configuration files.

In earlier releases, this option accelerated the search for
candidates in trees with many similar child providers, for example
PCI devices. The search is now always optimized for such trees.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[workarounds]` on `conf`."""
    # Register a copy, because oslo.config stores the values of options in the group.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)
