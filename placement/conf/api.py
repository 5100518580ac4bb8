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
                'Tokens are not validated. The token contains the name of the user; the user '
                '`admin` has the role `admin`.',
            ),
        ],
        deprecated_group='DEFAULT',
        help="""
The authentication of requests.

In production, use `keystone`. Use `noauth2` only for tests and
evaluation: every client that can connect to the service has all
permissions.

Related options: `[keystone_authtoken]`, whose options apply only to
`keystone`.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[api]` on `conf`."""
    conf.register_group(copy.deepcopy(GROUP))  # values that a user sets are stored in the group
    conf.register_opts(OPTS, group=GROUP)
