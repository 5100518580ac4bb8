"""Drains of random small clouds, compared with the definition and with an exact search.

To check other clouds than the suite, set PLACEMENT_TEST_DRAIN, for example to `1000-2000`.
"""

from collections import Counter

from oslotest import base

from placement.admin.drain.report import FITS, IMPOSSIBLE, NOWHERE, SUM, Drain, Planner
from placement.tests.properties import Seeds
from placement.tests.unit.admin.drain import clouds
from placement.tests.unit.admin.drain.definition import Definition

SEEDS = Seeds('PLACEMENT_TEST_DRAIN', '0-150')


class RandomWorldsTest(base.BaseTestCase):
    def test_verdicts(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range:
            case = clouds.case(seed)
            with self.subTest(seed=seed, style=case.style):
                counts += self._check(case)
        SEEDS.show(counts)
        for name in ('fits', 'impossible', NOWHERE, SUM):
            self.assertGreater(counts[name], 0, name)
        self.assertGreaterEqual(counts['fits'], 0.97 * counts['possible'])

    def _check(self, case: clouds.Case) -> Counter[str]:
        drain, moves = Planner(case.cloud, case.conditions).drain(case.affected, case.roots)
        definition = Definition(case)
        possible = definition.can_drain()
        self.assertEqual(drain.consumers, len(case.affected))
        self.assertEqual(drain.placed, len(moves))
        if drain.verdict == FITS:
            self.assertTrue(possible)
            self.assertEqual((None, [], {}), (drain.reason, drain.unplaced, drain.missing))
        else:
            self._check_reason(case, definition, drain)
            self.assertFalse(possible and drain.verdict == IMPOSSIBLE)
        return Counter({'possible': possible, drain.verdict: 1, drain.reason or 'no reason': 1})

    def _check_reason(self, case: clouds.Case, definition: Definition, drain: Drain) -> None:
        nowhere = {one.uuid for one in case.affected if definition.is_nowhere(one)}
        self.assertEqual(nowhere, {one.consumer for one in drain.unplaced if one.nowhere})
        reason = NOWHERE if nowhere else SUM if definition.exceeds_sum() else None
        self.assertEqual(reason, drain.reason)
        self.assertEqual(drain.verdict == IMPOSSIBLE, reason is not None)
