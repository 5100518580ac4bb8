"""The options of the service. Their help texts are the documentation for operators."""

from collections.abc import Sequence
import copy
import pathlib

from oslo_config import cfg

from placement.conf import database

INCOMPLETE_CONSUMER_ID = '00000000-0000-0000-0000-000000000000'

_PATHS = [
    cfg.StrOpt(
        'tempdir',
        help='This option has no effect. It exists for compatibility with existing configuration '
        'files.',
    ),
    cfg.StrOpt(
        'pybasedir',
        default=str(pathlib.Path(__file__).resolve().parents[2]),
        sample_default='<Path>',
        help="""
The directory that contains the Python package of the service.

Do not set this option. Its only use is as the default of
`state_path`.
""",
    ),
    cfg.StrOpt(
        'state_path',
        default='$pybasedir',
        help="""
The top directory for state files.

Only the test fixtures use this option. The service stores all its
state in the database.
""",
    ),
]

_API = [
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

_METRICS = [
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

_PLACEMENT = [
    cfg.BoolOpt(
        'randomize_allocation_candidates',
        default=False,
        help="""
Whether GET /allocation_candidates returns the candidates in random
order.

If false, the candidates are in the same order for each request, as
long as the data does not change. A scheduler that requests a
limited number of candidates then receives the same few providers
until these providers have no free capacity.

If true, the order is random. If the number of candidates is
limited, the provider trees of the candidates are selected at random:
each tree that has a candidate is selected with the same probability.
This does not apply to trees whose search takes long, and to
candidates that use only sharing providers.
""",
    ),
    cfg.IntOpt(
        'max_allocation_candidates',
        default=-1,
        help="""
The maximum number of allocation candidates that Placement generates
for one request. -1 means no limit.

If many providers of one tree can satisfy several request groups,
the number of candidates grows exponentially with the number of
these groups. Placement stops the search at the configured number.
The response contains at most this number of candidates, even if the
request has a larger `limit`.

If you limit the number, also set
`allocation_candidates_generation_strategy`, which determines the
trees from which Placement generates the candidates.
""",
    ),
    cfg.StrOpt(
        'allocation_candidates_generation_strategy',
        default='depth-first',
        choices=[
            ('depth-first', 'Generate all candidates of a tree, then continue with the next tree.'),
            ('breadth-first', 'Generate one candidate from each tree in turn.'),
        ],
        help="""
The order in which Placement generates candidates from the provider
trees.

The order determines which candidates are returned if
`max_allocation_candidates` or the `limit` of the request is smaller
than the number of candidates. With `depth-first`, all returned
candidates can be from a single tree. With `breadth-first`, the
returned candidates are from as many trees as possible, so that a
scheduler can choose between hosts.
""",
    ),
    cfg.IntOpt(
        'max_candidate_search_steps',
        default=10000000,
        min=-1,
        help="""
The search limit: the maximum number of steps in the search for the
candidates of one request. -1 means no limit.

If a request has many groups and the trees have many similar
providers, a complete search can take hours. Placement counts the
steps of the search; a step takes at most about a microsecond. If the search
completes before it reaches the limit, the response contains all
candidates. If the search reaches the limit, Placement logs a
warning, and the response contains the candidates that were
generated until then. If the search in one tree takes many steps,
Placement searches all other trees before it continues in that tree.

The default is much larger than the number of steps that usual
requests need. A search with this number of steps occupies a
processor core for at most about 10 seconds.
""",
    ),
    cfg.IntOpt(
        'max_candidates_response_size',
        default=64 * 2**20,
        min=-1,
        help="""
The maximum size in bytes of the allocation candidates in one
response, without the first candidate of each tree. -1 means no limit.

If many providers of one tree can satisfy several request groups, a
response can have millions of candidates, and the process needs a
large amount of memory. The first candidate of each tree does not
count, so the limit never affects a query that has at most one
candidate for each tree, even in a large cloud.

Placement computes the size of a candidate from the query, as if each
request group and each resource class of the unsuffixed group used a
provider of its own. If another candidate of a tree would exceed the
limit, Placement returns no more candidates of this tree, but still
returns the first candidate of each other tree, and logs a warning.
""",
    ),
    cfg.IntOpt(
        'allocation_conflict_retry_count',
        default=10,
        min=0,
        help="""
The minimum number of attempts to write a claim that conflicts with
concurrent transactions.

If a claim conflicts with a concurrent transaction, Placement rolls
the claim back and retries it for up to 30 seconds, with increasing
delays. After 30 seconds, Placement continues to retry until it has
made the configured number of attempts.
""",
    ),
    cfg.StrOpt(
        'incomplete_consumer_project_id',
        default=INCOMPLETE_CONSUMER_ID,
        help="""
The project ID of consumers that are created without a project.

Before microversion 1.8, claims have no project and no user. Some
allocations that very old releases created have no consumer row;
`placement-manage db online_data_migrations` creates the missing
consumers with this project ID.
""",
    ),
    cfg.StrOpt(
        'incomplete_consumer_user_id',
        default=INCOMPLETE_CONSUMER_ID,
        help='The user ID of consumers that are created without a user. '
        'See `incomplete_consumer_project_id`.',
    ),
]

_WORKAROUNDS = [
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

# The options by group, in the order of the sample configuration file. None is the group DEFAULT.
OPTIONS: dict[str | None, Sequence[cfg.Opt]] = {
    None: _PATHS,
    'api': _API,
    'metrics': _METRICS,
    'placement': _PLACEMENT,
    'placement_database': database.OPTS,
    'workarounds': _WORKAROUNDS,
}


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the names and options of the groups for oslo-config-generator.

    The options are copies, because oslo-config-generator can change the defaults of options.
    """
    return [(name or 'DEFAULT', copy.deepcopy(list(group))) for name, group in OPTIONS.items()]
