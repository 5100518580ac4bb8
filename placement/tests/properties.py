"""Settings of hypothesis that property tests share."""

import hypothesis

# The same examples in each run, without a database of failures, a time limit, and health checks: on
# a busy machine, the check `too_slow` fails for any test. Shrinking a failure takes minutes. Add
# Phase.shrink to analyse one.
REPEATABLE = hypothesis.settings(
    derandomize=True,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    print_blob=False,
)
