"""Options of what the service decides."""

import copy

from oslo_config import cfg

INCOMPLETE_CONSUMER_ID = '00000000-0000-0000-0000-000000000000'

GROUP = cfg.OptGroup(
    'placement',
    title='Placement options',
    help='How candidates are found and claims are recorded.',
)

OPTS = [
    cfg.BoolOpt(
        'randomize_allocation_candidates',
        default=False,
        help="""
Whether the allocation candidates of an answer come in random
order.

Without it the order is the same for the same request and the same
data, so a scheduler that asks for a limited number of candidates
sees the same few providers again and again until they are full.
With it the order is random, and with a limit so is the choice.
""",
    ),
    cfg.IntOpt(
        'max_allocation_candidates',
        default=-1,
        help="""
The largest number of allocation candidates that is worked out for
one request.

The number of candidates can grow exponentially with the number of
request groups that can be served by many providers of one tree.
Beyond this number no further candidates are looked for. -1 means
no bound.

With a bound, look at `allocation_candidates_generation_strategy`
too: it says which trees the candidates within the bound come from.
A bound that is smaller than the `limit` a client sends shortens
its answer.
""",
    ),
    cfg.StrOpt(
        'allocation_candidates_generation_strategy',
        default='depth-first',
        choices=[
            ('depth-first', 'All candidates of one tree, then those of the next tree.'),
            ('breadth-first', 'One candidate of each tree in turn.'),
        ],
        help="""
The order in which candidates are taken from the provider trees
that can serve a request.

It matters when `max_allocation_candidates` or the `limit` of a
request cuts the list short. With `depth-first` a single tree with
many candidates may fill the whole answer. With `breadth-first` the
answer is spread over as many trees as possible, which gives a
scheduler a choice of hosts.
""",
    ),
    cfg.IntOpt(
        'max_candidate_search_steps',
        default=10000000,
        min=-1,
        help="""
The largest number of steps that the search for candidates takes
for one request.

A request with many groups over trees with many similar providers
can ask for a search that takes hours. The search counts its steps,
of about a microsecond each. Below this number the response is
exact. At this number the search ends, the response holds the
candidates that were found so far, and Placement logs a warning.
The trees share the steps: in a tree in which the search is long,
it continues after all other trees.

The default is far beyond what ordinary requests need and takes at
most about 10 seconds of one processor core. -1 means no bound.
""",
    ),
    cfg.IntOpt(
        'allocation_conflict_retry_count',
        default=10,
        min=0,
        help="""
The least number of attempts for a claim that competes with others
for the same provider.

A claim that loses against another one is tried again as a whole,
with growing pauses, for up to 30 seconds. This number of attempts
is made even when they take longer than that.
""",
    ),
    cfg.StrOpt(
        'incomplete_consumer_project_id',
        default=INCOMPLETE_CONSUMER_ID,
        help="""
The project of consumers that were recorded without one.

Clients that use a microversion before 1.8 name neither project nor
user in their claims. The same goes for allocations that very old
releases left without a consumer record; `placement-manage db
online_data_migrations` repairs those with this project.
""",
    ),
    cfg.StrOpt(
        'incomplete_consumer_user_id',
        default=INCOMPLETE_CONSUMER_ID,
        help='The user of consumers that were recorded without one. '
        'See `incomplete_consumer_project_id`.',
    ),
]


def register_opts(conf: cfg.ConfigOpts) -> None:
    """Register the options of `[placement]` on `conf`."""
    conf.register_group(copy.deepcopy(GROUP))  # a group keeps the values that are set on it
    conf.register_opts(OPTS, group=GROUP)
