"""The parts of `tools.perf` that need no server."""

from oslotest import base

from placement import validation
from placement.microversion import MAX_VERSION
from placement.schemas import allocation
from tools.perf import measure, scenarios


class ClaimTest(base.BaseTestCase):
    def test_a_claim_of_a_candidate_is_valid(self):
        allocations = {'6f2bb3f4-4f1c-4d0b-8e0e-0c1a5f3b7a10': {'resources': {'VCPU': 1}}}
        body = scenarios.claim_body(allocations, project='a project')
        self.assertEqual(allocations, body['allocations'])
        self.assertIsNone(validation.problem(allocation.PUT.pick(MAX_VERSION), body))


class PercentileTest(base.BaseTestCase):
    def test_the_median_and_the_99th_percentile(self):
        values = [float(number) for number in range(1, 101)]
        self.assertEqual(50, measure.percentile(values, 0.5))
        self.assertEqual(99, measure.percentile(values, 0.99))

    def test_few_values(self):
        self.assertEqual(0, measure.percentile([], 0.99))
        self.assertEqual(7, measure.percentile([7.0], 0.5))
        self.assertEqual(9, measure.percentile([7.0, 9.0], 0.99))
