"""What property tests share: the number of examples, seeds, and a class without coverage."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
import os
import random
import sys

import hypothesis
from oslotest import base

from placement.tests import servers

# On a database server, as many as in the gate: the night would take an hour for each more.
_FACTORS = {'quick': 0.1, 'ci': 1, 'night': 1 if servers.ADMIN_URL in os.environ else 20}
_FACTOR = _FACTORS[os.environ.get('PLACEMENT_TEST_PROFILE', 'ci')]


def examples(number: int) -> int:
    """Return how many examples the profile permits.

    There are at least ten, because many tests require examples of each kind.

    :param number: the number of examples with the profile `ci`
    """
    return max(min(number, 10), round(number * _FACTOR))


def seeds(number: int) -> range:
    """Return the seeds of random examples; with the profile `ci`, as many as `number`."""
    return range(examples(number))


def randoms(number: int) -> Iterator[random.Random]:
    """Yield a source of random numbers for each seed; with the profile `ci`, `number` of them."""
    return map(random.Random, seeds(number))


# The same examples in each run, without a database of failures, a time limit, and health checks: on
# a busy machine, the check `too_slow` fails for any test. Shrinking a failure takes minutes. Add
# Phase.shrink to analyse one.
REPEATABLE = hypothesis.settings(
    max_examples=examples(100),
    derandomize=True,
    phases=[hypothesis.Phase.explicit, hypothesis.Phase.generate],
    deadline=None,
    database=None,
    suppress_health_check=list(hypothesis.HealthCheck),
    print_blob=False,
)


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds of the random worlds of a test.

    :ivar variable: the environment variable that selects other seeds, for example `1000-2000`
    :ivar usual: the seeds without this variable, with the profile `ci`
    """

    variable: str
    usual: str

    @property
    def range(self) -> range:
        """The selected seeds."""
        first, end = map(int, os.environ.get(self.variable, self.usual).split('-'))
        if self.variable not in os.environ:
            end = first + examples(end - first)
        return range(first, end)

    def show(self, counts: Mapping[str, int]) -> None:
        """Print what the tests counted, if the variable selects the seeds."""
        if self.variable in os.environ:
            print(f'{self.range}: {dict(counts)}', file=sys.__stderr__)


class UnmeasuredTestCase(base.BaseTestCase):
    """The coverage of these tests is not measured.

    They repeat lines thousands of times that other tests execute, too, and the measurement would
    take as much time again.
    """

    def setUp(self) -> None:
        super().setUp()
        self.addCleanup(sys.settrace, sys.gettrace())
        sys.settrace(None)
