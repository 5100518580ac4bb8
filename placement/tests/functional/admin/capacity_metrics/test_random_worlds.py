"""The metrics of random worlds are equal to what the API says.

The environment variable PLACEMENT_TEST_EXPORTER sets the seeds, for example 0-40 for 1,000
providers.
"""

from typing import Any

from placement.admin.capacity_metrics import reading
from placement.admin.capacity_metrics.exposition import Page
from placement.tests import where
from placement.tests.functional import base
from placement.tests.functional.admin.capacity_metrics import worlds
from placement.tests.properties import Seeds

# The number of providers of each world.
PROVIDERS = 25
SEEDS = Seeds('PLACEMENT_TEST_EXPORTER', '0-2')


@where.not_on('postgresql', reason='test_reading executes the same statements.')
class RandomWorldsTest(base.TestCase):
    def test_the_metrics_are_equal_to_what_the_api_says(self) -> None:
        for seed in SEEDS.range:
            worlds.create(self, seed, PROVIDERS)
        found = worlds.parse(Page(reading.read()).render().body.decode())
        expected = worlds.expected(self)
        self.assertEqual({}, differences(expected, found))
        capacities = worlds.candidate_capacities(self)
        self.assertEqual({}, {key: v for key, v in capacities.items() if found[key] != v})
        # The worlds are varied.
        self.assertEqual(PROVIDERS * len(SEEDS.range), found['placement_providers',])
        self.assertGreater(len(capacities), PROVIDERS * len(SEEDS.range) // 2)
        exceeded = [
            key
            for key, capacity in found.items()
            if key[0] == 'placement_resource_capacity'
            and found['openstack_placement_resource_usage', *key[1:]] > capacity
        ]
        self.assertGreater(len(exceeded), 0)
        SEEDS.show({'samples': len(found), 'usages above capacity': len(exceeded)})


def differences(
    expected: worlds.Samples, found: worlds.Samples
) -> dict[tuple[str, ...], tuple[Any, Any]]:
    """Return the keys whose values differ, with both values."""
    return {
        key: (expected.get(key), found.get(key))
        for key in expected.keys() | found.keys()
        if expected.get(key) != found.get(key)
    }
