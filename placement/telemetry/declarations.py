"""The names, labels and help texts of all metrics."""

from dataclasses import dataclass
from typing import Literal

# Why a transaction was retried. `placement.db.retry` and `failures` determine the reason.
RETRY_REASONS = (
    'concurrent_change',
    'conflict',
    'connection_lost',
    'key_violation',
    'lock_timeout',
)
# Why claims were refused. `placement.claims.judge` determines the reason.
REFUSAL_REASONS = (
    'capacity',
    'concurrent_change',
    'consumer_generation',
    'inventory_in_use',
    'max_unit',
    'min_unit',
    'no_inventory',
    'other',
    'provider_generation',
    'step_size',
    'unknown_provider',
    'unknown_resource_class',
)
# The results of validations of tokens by Keystone, and where processes find validated tokens.
VALIDATION_RESULTS = ('accepted', 'rejected', 'unavailable')
MEMORY_LEVELS = ('memcached', 'memory')
# Values of the label `method`. All other methods of clients share the value `other`, because each
# value of a label needs memory.
METHODS = frozenset({'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'})
OTHER_METHOD = 'other'
UNMATCHED_ROUTE = 'unmatched'

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_CANDIDATES = (0, 1, 10, 100, 1_000, 10_000, 100_000)
_STEPS = (10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000)


@dataclass(frozen=True, slots=True)
class Declaration:
    """A metric.

    :ivar help: one sentence, which the exposition contains
    :ivar buckets: the upper limits of the buckets of a histogram
    """

    kind: Literal['counter', 'gauge', 'histogram']
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()


REQUEST_DURATION = 'placement_http_request_duration_seconds'
REQUESTS_IN_PROGRESS = 'placement_http_requests_in_progress'
CONNECTIONS_IN_USE = 'placement_database_connections_in_use'
RETRIES = 'placement_database_retries_total'
REFUSALS = 'placement_claims_refused_total'
CANDIDATES_RETURNED = 'placement_candidates_returned'
SEARCH_STEPS = 'placement_candidate_search_steps'
SEARCHES_CUT = 'placement_candidate_searches_cut_total'
UNUSABLE_POLICY = 'placement_policy_file_unusable'
VALIDATIONS = 'placement_token_validations_total'
VALIDATION_DURATION = 'placement_token_validation_duration_seconds'
MEMORY_HITS = 'placement_token_hits_total'

METRICS = {
    REQUEST_DURATION: Declaration(
        'histogram',
        'Duration of API requests.',
        ('route', 'method', 'status'),
        _SECONDS,
    ),
    REQUESTS_IN_PROGRESS: Declaration('gauge', 'API requests in progress.'),
    CONNECTIONS_IN_USE: Declaration('gauge', 'Database connections in use by requests.'),
    RETRIES: Declaration('counter', 'Retries of database transactions.', ('reason',)),
    REFUSALS: Declaration('counter', 'Requests whose claims were refused.', ('reason',)),
    CANDIDATES_RETURNED: Declaration(
        'histogram', 'Allocation candidates returned by a search.', buckets=_CANDIDATES
    ),
    SEARCH_STEPS: Declaration(
        'histogram', 'Search steps of a search for allocation candidates.', buckets=_STEPS
    ),
    SEARCHES_CUT: Declaration(
        'counter', 'Searches for allocation candidates that ended early because of a limit.'
    ),
    UNUSABLE_POLICY: Declaration(
        'gauge', 'Processes that use earlier policy rules, because a policy file is not usable.'
    ),
    VALIDATIONS: Declaration('counter', 'Validations of tokens by Keystone.', ('result',)),
    VALIDATION_DURATION: Declaration(
        'histogram', 'Duration of validations of tokens by Keystone.', buckets=_SECONDS
    ),
    MEMORY_HITS: Declaration(
        'counter', 'Tokens that needed no validation, because a memory contained them.', ('level',)
    ),
}
