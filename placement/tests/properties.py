"""What property tests share: the settings of hypothesis, and a class without measured coverage."""

import sys

import hypothesis
from oslotest import base

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


class UnmeasuredTestCase(base.BaseTestCase):
    """The coverage of these tests is not measured.

    Thousands of random examples execute the lines that the examples of other tests execute, and the
    measurement would take as much time again.
    """

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(sys.settrace, sys.gettrace())
        sys.settrace(None)
