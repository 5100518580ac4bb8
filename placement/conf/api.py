"""Options of the HTTP interface."""

import copy

from oslo_config import cfg

GROUP = cfg.OptGroup(
    'api',
    title='API options',
    help='Options of the HTTP interface.',
)

OPTS = [
    cfg.StrOpt(
        'auth_strategy',
        default='keystone',
        choices=[
            ('keystone', 'Keystone validates tokens; see `[keystone_authtoken]`.'),
            (
                'noauth2',
                'Tokens are not validated: the token is the name of the user. The user `admin` has '
                'the role `admin`.',
            ),
        ],
        deprecated_group='DEFAULT',
        help="""
The method of authentication for requests.

In production, use `keystone`. Use `noauth2` only for tests and
evaluation: every client that can connect to the service has all
permissions.

Related options: the options in `[keystone_authtoken]` apply only to
`keystone`.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[api]` on `conf`."""
    # Register a copy, because oslo.config stores the values of options in the group.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)
