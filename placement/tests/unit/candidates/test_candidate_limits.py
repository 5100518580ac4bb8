"""Which of the candidates a response contains."""

import random

from oslotest import base

from placement.candidates import candidate_limits, model, render
from placement.tests.unit.candidates import worlds


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

    def test_duplicates(self):
        seen: set[tuple[int, ...]] = set()
        sharing = {7, 8}
        first, second = (
            [binding for binding in found if candidate_limits.is_new(binding, sharing, seen)]
            for found in ([(1, 7), (7, 7), (7, 8)], [(1, 7), (7, 7), (8, 7)])
        )
        self.assertEqual([(1, 7), (7, 7), (7, 8)], first)
        # A binding is a duplicate only if all its providers are sharing providers.
        self.assertEqual([(1, 7), (8, 7)], second)


class CandidateSizeTest(base.BaseTestCase):
    def test_the_size_is_that_of_a_candidate_with_a_provider_for_each_slot(self):
        world = worlds.World.of('CN[V:8]')
        for text in (
            'resources=V:1',
            'resources=V:17,M:512,D:3',
            'resources1=V:1',
            'resources_A=V:1,M:4096&resources_BCD=V:1&group_policy=none',
            'resources=V:1,D:1&resources_A=VF:1&required_B=T1&same_subtree=_A,_B&group_policy=none',
        ):
            bound = world.parse(text)
            slots = model.slots_of(bound)
            (request,) = render.allocation_requests(
                [tuple(range(len(slots)))],
                slots,
                {number: worlds.uuid_of(str(number)) for number in range(len(slots))},
                {id_: name for name, id_ in world.ids.classes.items()},
                render.Shape.of(worlds.NEWEST),
            )
            size = candidate_limits.candidate_size(world.unbind(bound))
            # A comma follows.
            self.assertEqual(len(request) + 1, size, request)
