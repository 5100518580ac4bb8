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
    cfg.IntOpt(
        'token_memory',
        default=10000,
        min=0,
        help="""
The maximum number of validated tokens that each process keeps in its
memory. 0 means that a process keeps no tokens.

A process does not validate a token again for `[keystone_authtoken]
token_cache_time` seconds. If the memory is full, the process removes
the token that was not used for the longest time. 10,000 tokens of
different users take about 14 MiB. Choose a number that is larger than
the number of clients, for example of nova-compute processes.

Some tokens are not kept, because they are not valid for each request:
tokens with access rules, tokens that are bound to a connection, and
expired tokens that come with a service token.

If `[keystone_authtoken] token_cache_time` is not larger than 0, if
`delay_auth_decision` is true, or if `cache` has a value, a process
keeps no tokens.
""",
    ),
    cfg.FloatOpt(
        'slow_request_seconds',
        default=5,
        min=0,
        help="""
A request that takes more than this number of seconds is logged at
WARNING, with its URL and its duration. 0 means that no request is.

The duration is the `time` of the request log: the time from the
arrival of the request until the response starts.
""",
    ),
    cfg.BoolOpt(
        'log_changes',
        default=True,
        help="""
Whether a line is logged for each object that a request changed:
inventories, traits, aggregates, resource providers, and allocations.

The logger `placement.changes` writes the lines at INFO.
""",
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[api]` on `conf`."""
    # Register a copy, because oslo.config stores the values of options in the group.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)
