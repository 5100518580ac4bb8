"""Options of allocation candidates and claims."""

import copy

from oslo_config import cfg

INCOMPLETE_CONSUMER_ID = '00000000-0000-0000-0000-000000000000'

GROUP = cfg.OptGroup(
    'placement',
    title='Placement options',
    help='Options of allocation candidates and claims.',
)

OPTS = [
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


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[placement]` on `conf`."""
    # Register a copy, because oslo.config stores the values of options in the group.
    conf.register_group(copy.deepcopy(GROUP))
    conf.register_opts(OPTS, group=GROUP)
