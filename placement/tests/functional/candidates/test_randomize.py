"""randomize_allocation_candidates selects each tree that has a candidate with equal probability."""

from collections import Counter
from collections.abc import Iterator
import random
import re

from placement.tests import worlds
from placement.tests.functional.candidates.database import DatabaseTestCase
from placement.tests.properties import UnmeasuredTestCase
from placement.tests.statements import recorded

# The probability that the chi-square of a uniform selection exceeds its mean (the number of trees
# minus 1) by this many standard deviations is below 1 in 500.
_DEVIATIONS = 5


def _chi_square(counts: Counter[str], names: list[str]) -> float:
    expected = counts.total() / len(names)
    return sum((counts[name] - expected) ** 2 / expected for name in names)


class UniformTest(DatabaseTestCase, UnmeasuredTestCase):
    """The seeds are fixed, so each run draws the same trees."""

    def _select(self, drawing: list[str], query: str, limit: int, times: int) -> Counter[str]:
        """Return how often a limited search selected each tree."""
        self.fill(worlds.World.of('\n'.join(drawing)))
        counts: Counter[str] = Counter()
        for seed in range(times):
            found = self.search(f'{query}&limit={limit}', random.Random(seed)).candidates
            self.assertEqual(limit, len({one.root_id for one in found}))
            counts.update(self.world.hosts[one.root_id - 1].name for one in found)
        return counts

    def _check(
        self, drawing: list[str], names: list[str], query: str = 'resources=V:1', limit: int = 1
    ) -> None:
        counts = self._select(drawing, query, limit, times=10 * len(names))
        self.assertLessEqual(counts.keys(), set(names))
        mean = len(names) - 1
        self.assertLess(_chi_square(counts, names), mean + _DEVIATIONS * (2 * mean) ** 0.5, counts)

    def test_a_run_of_trees_that_do_not_fit(self):
        fit = [f'F{n}' for n in range(20)]
        hosts = [*(f'{name}[V:1]' for name in fit), *(f'H{n}' for n in range(100))]
        self._check(hosts, fit)
        self._check(hosts, fit, limit=5)

    def test_few_trees_fit_among_many(self):
        fit = [f'F{n}' for n in range(5)]
        hosts = [f'H{n}' for n in range(500)]
        self._check([*hosts[:400], *(f'{name}[V:1]' for name in fit), *hosts[400:]], fit)

    def test_all_trees_fit(self):
        fit = [f'F{n}' for n in range(50)]
        self._check([f'{name}[V:1]' for name in fit], fit)
        self._check([f'{name}[V:1]' for name in fit], fit, limit=10)

    def test_gaps_between_the_ids_of_roots(self):
        fit = [f'F{n}' for n in range(30)]
        self._check(list(_with_children(fit)), fit)

    def test_conditions_on_the_root(self):
        fit = [f'F{n}' for n in range(30)]
        hosts = [f'H{n}[V:1]' for n in range(150)]
        hosts = [*hosts[:100], *(f'{name}[V:1] {{GOLD}}' for name in fit), *hosts[100:]]
        self._check(hosts, fit, query='resources=V:1&root_required=GOLD')


def _with_children(names: list[str]) -> Iterator[str]:
    """Trees with up to 40 children, whose ids are between the ids of the roots."""
    for number, name in enumerate(names):
        yield f'{name}[V:1]'
        yield from (f'  {name}_{child}' for child in range(number * 7 % 41))


class StatementsTest(DatabaseTestCase):
    """The number of statements does not depend on the number of trees."""

    def check(self, trees: int, query: str, candidates: int, statements: int) -> None:
        """Require a number of candidates, and a maximum number of statements."""
        self.fill(worlds.World.of('\n'.join(f'H{n}[V:1]' for n in range(trees))))
        for seed in range(10):
            with recorded(self.conn) as executed:
                found = self.search(query, random.Random(seed)).candidates
            self.assertEqual(candidates, len(found))
            self.assertLessEqual(len(executed), statements)

    def test_all_trees_fit(self):
        """Ids of names, the ids of roots, one page, and names of ids."""
        self.check(200, 'resources=V:1&limit=10', 10, 4)

    def test_no_tree_fits(self):
        """As above, and the list of the roots that satisfy the conditions of strict pages."""
        for trees in (100, 400):
            self.check(trees, 'resources=V:2&limit=10', 0, 4)

    def test_no_tree_is_read_twice(self):
        self.fill(worlds.World.of('\n'.join(f'H{n}[V:1]' for n in range(200))))
        for seed in range(10):
            with recorded(self.conn) as executed:
                self.search('resources=V:1&limit=150', random.Random(seed))
            pages = [one.text for one in executed if one.text.startswith('SELECT provider.id, ')]
            lists = [one for page in pages for one in re.findall(r'\(([0-9, ]{20,})\)', page)]
            ids = Counter(id_ for one in lists for id_ in one.split(', '))
            self.assertEqual({1}, set(ids.values()))

    def test_many_candidates(self):
        """A list of drawn ids in a statement has at most 900 items."""
        self.check(5000, 'resources=V:1&limit=2000', 2000, 8)

    def test_no_provider_exists(self):
        self.check(0, 'resources=V:1&limit=10', 0, 2)
