"""The order of candidates, how many of them are searched, and which a response contains."""

from collections.abc import Generator, Iterator
import itertools
import random

from oslotest import base

from placement.candidates import model, render, selection
from placement.candidates.budget import PAUSE, Pause
from placement.tests import worlds


class OrderingTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.requested: list[str] = []

    def streams(
        self, *texts: str, may_continue: bool = True
    ) -> Generator[Iterator[str | Pause], None, bool]:
        """Generate streams of letters. The streams record which letters a caller requests.

        :param texts: the letters of each stream; a space is a pause
        """

        def stream(text: str) -> Iterator[str | Pause]:
            for letter in text:
                self.requested.append(letter)
                yield PAUSE if letter == ' ' else letter

        yield from map(stream, texts)
        return may_continue

    def test_depth_first(self):
        found = selection.depth_first(self.streams('abc', '', 'de'))
        self.assertEqual('abcde', ''.join(found))

    def test_breadth_first(self):
        found = selection.breadth_first(self.streams('abc', '', 'de', 'f'))
        self.assertEqual('adfbec', ''.join(found))

    def test_streams_that_pause_are_last(self):
        found = selection.depth_first(self.streams('ab c', 'd', ' e'))
        self.assertEqual('abdce', ''.join(found))

    def test_streams_that_may_not_continue(self):
        for strategy, expected in (('depth-first', 'abd'), ('breadth-first', 'ad')):
            found = selection.STRATEGIES[strategy](self.streams('ab c', 'd', may_continue=False))
            self.assertEqual(expected, ''.join(found))

    def test_only_requested_candidates_are_searched(self):
        for strategy, expected in (('depth-first', 'ab'), ('breadth-first', 'ad')):
            self.requested.clear()
            found = selection.STRATEGIES[strategy](self.streams('abc', 'def', 'gh'))
            self.assertEqual(expected, ''.join(itertools.islice(found, 2)))
            self.assertEqual(expected, ''.join(self.requested))


class SelectTest(base.BaseTestCase):
    def test_cap_then_keep_then_limit(self):
        found = selection.select(
            iter(range(100)), cap=10, keep=lambda n: n % 2 == 1, limit=3, rng=None
        )
        self.assertEqual([1, 3, 5], found)
        found = selection.select(
            iter(range(100)), cap=4, keep=lambda n: n % 2 == 1, limit=3, rng=None
        )
        self.assertEqual([1, 3], found)

    def test_the_same_seed_returns_the_same_candidates(self):
        one, other = (
            selection.select(iter(range(100)), None, None, 50, random.Random(7)) for _ in range(2)
        )
        self.assertEqual(one, other)
        self.assertNotEqual(sorted(one), one)

    def test_duplicates(self):
        seen: set[tuple[int, ...]] = set()
        sharing = {7, 8}
        first, second = (
            [binding for binding in found if selection.is_new(binding, sharing, seen)]
            for found in ([(1, 7), (7, 7), (7, 8)], [(1, 7), (7, 7), (8, 7)])
        )
        self.assertEqual([(1, 7), (7, 7), (7, 8)], first)
        # A binding is a duplicate only if all its providers are sharing providers.
        self.assertEqual([(1, 7), (8, 7)], second)

    def test_one_provider_of_each_tree(self):
        world = worlds.World.of('A\n  A1[V:8]\n  A2[V:8]\nB\n  B1[V:8]')
        providers = {provider.id: provider for provider in world.providers}
        a1, a2, b1 = (p.id for p in world.providers if p.inventories)
        for binding, expected in (((a1, a1), True), ((a1, b1), True), ((a1, a2, b1), False)):
            candidate = model.Candidate(providers[a1].root_id, binding)
            found = selection.uses_one_provider_per_tree(candidate, providers)
            self.assertEqual(expected, found, binding)


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
            size = selection.candidate_size(world.unbind(bound))
            # A comma follows.
            self.assertEqual(len(request) + 1, size, request)
