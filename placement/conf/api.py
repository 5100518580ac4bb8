"""Options of the HTTP interface."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'api',
    title='API options',
    help='How the HTTP interface treats its callers.',
)

OPTS = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('keystone', 'Tokens are validated by Keystone; see `[keystone_authtoken]`.'),
            (
                'noauth2',
                'Tokens are believed without any check. The token names the user; '
                '`admin` has the role `admin`.',
            ),
        ],
        deprecated_group='DEFAULT',
        help="""
How the service finds out who is calling.

Use `keystone` wherever anyone but you can reach the service.
`noauth2` is for tests and for a first look: whoever can open a
connection can do everything.

Related options: all of `[keystone_authtoken]`, which are read only
with `keystone`.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[api]` on `conf`."""
    conf.register_group(copy.deepcopy(GROUP))  # a group keeps the values that are set on it
    conf.register_opts(OPTS, group=GROUP)
