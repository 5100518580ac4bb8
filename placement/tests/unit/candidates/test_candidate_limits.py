"""Which of the candidates a response contains."""

import random

from oslotest import base

from placement.candidates import candidate_limits


class SelectionTest(base.BaseTestCase):
    def test_cap_then_keep_then_limit(self):
        found = candidate_limits.select(
            iter(range(100)), cap=10, keep=lambda n: n % 2 == 1, limit=3, rng=None
        )
        self.assertEqual([1, 3, 5], found)
        found = candidate_limits.select(
            iter(range(100)), cap=4, keep=lambda n: n % 2 == 1, limit=3, rng=None
        )
        self.assertEqual([1, 3], found)

    def test_the_same_seed_returns_the_same_candidates(self):
        one, other = (
            candidate_limits.select(iter(range(100)), None, None, 50, random.Random(7))
            for _ in range(2)
        )
        self.assertEqual(one, other)
        self.assertNotEqual(sorted(one), one)

    def test_without_duplicates(self):
        seen: set[tuple[int, ...]] = set()
        sharing = {7, 8}
        first = list(candidate_limits.without_duplicates([(1, 7), (7, 7), (7, 8)], sharing, seen))
        second = list(candidate_limits.without_duplicates([(1, 7), (7, 7), (8, 7)], sharing, seen))
        self.assertEqual([(1, 7), (7, 7), (7, 8)], first)
        # A binding is a duplicate only if all its providers are sharing providers.
        self.assertEqual([(1, 7), (8, 7)], second)
