"""Which candidates are returned, and how much is pulled for them."""

from collections.abc import Iterator
import itertools
import random

from oslotest import base

from placement.candidates import ordering


class OrderingTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.pulled: list[str] = []

    def streams(self, *texts: str) -> Iterator[Iterator[str]]:
        """Streams of letters that record what is pulled."""

        def stream(text: str) -> Iterator[str]:
            for letter in text:
                self.pulled.append(letter)
                yield letter

        return map(stream, texts)

    def test_depth_first(self):
        found = ordering.depth_first(self.streams('abc', '', 'de'))
        self.assertEqual('abcde', ''.join(found))

    def test_breadth_first(self):
        found = ordering.breadth_first(self.streams('abc', '', 'de', 'f'))
        self.assertEqual('adfbec', ''.join(found))

    def test_no_more_than_is_asked_for(self):
        for strategy, expected in (('depth-first', 'ab'), ('breadth-first', 'ad')):
            self.pulled.clear()
            found = ordering.STRATEGIES[strategy](self.streams('abc', 'def', 'gh'))
            self.assertEqual(expected, ''.join(itertools.islice(found, 2)))
            self.assertEqual(expected, ''.join(self.pulled))

    def test_cap_then_keep_then_limit(self):
        found = ordering.take(
            iter(range(100)), cap=10, keep=lambda n: n % 2 == 1, limit=3, rng=None
        )
        self.assertEqual([1, 3, 5], found)
        found = ordering.take(iter(range(100)), cap=4, keep=lambda n: n % 2 == 1, limit=3, rng=None)
        self.assertEqual([1, 3], found)

    def test_a_seed_is_replayed(self):
        one, other = (
            ordering.take(iter(range(100)), None, None, 50, random.Random(7)) for _ in range(2)
        )
        self.assertEqual(one, other)
        self.assertNotEqual(sorted(one), one)

    def test_unseen(self):
        seen: set[tuple[int, ...]] = set()
        sharing = {7, 8}
        first = list(ordering.unseen([(1, 7), (7, 7), (7, 8)], sharing, seen))
        second = list(ordering.unseen([(1, 7), (7, 7), (8, 7)], sharing, seen))
        self.assertEqual([(1, 7), (7, 7), (7, 8)], first)
        # Only what sharing providers make up alone is found again elsewhere.
        self.assertEqual([(1, 7), (8, 7)], second)
