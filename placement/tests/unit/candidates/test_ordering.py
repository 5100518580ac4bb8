"""The order of candidates, and how many of them are searched."""

from collections.abc import Iterator
import itertools

from oslotest import base

from placement.candidates import ordering


class OrderingTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.requested: list[str] = []

    def streams(self, *texts: str) -> Iterator[Iterator[str]]:
        """Generate streams of letters. The streams record which letters a caller requests."""

        def stream(text: str) -> Iterator[str]:
            for letter in text:
                self.requested.append(letter)
                yield letter

        return map(stream, texts)

    def test_depth_first(self):
        found = ordering.depth_first(self.streams('abc', '', 'de'))
        self.assertEqual('abcde', ''.join(found))

    def test_breadth_first(self):
        found = ordering.breadth_first(self.streams('abc', '', 'de', 'f'))
        self.assertEqual('adfbec', ''.join(found))

    def test_only_requested_candidates_are_searched(self):
        for strategy, expected in (('depth-first', 'ab'), ('breadth-first', 'ad')):
            self.requested.clear()
            found = ordering.STRATEGIES[strategy](self.streams('abc', 'def', 'gh'))
            self.assertEqual(expected, ''.join(itertools.islice(found, 2)))
            self.assertEqual(expected, ''.join(self.requested))
