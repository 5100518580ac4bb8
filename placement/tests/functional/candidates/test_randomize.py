"""randomize_allocation_candidates selects each tree that has a candidate with equal probability."""

from collections import Counter
from collections.abc import Iterator
import dataclasses
import random

from oslotest import base

from placement.candidates import paging, search
from placement.tests import worlds
from placement.tests.functional.candidates import rows
from placement.tests.properties import UnmeasuredTestCase
from placement.tests.statements import recorded

# The probability that the chi-square of a uniform selection exceeds its mean (the number of trees
# minus 1) by this many standard deviations is below 1 in 500.
_DEVIATIONS = 5


def _chi_square(counts: Counter[str], names: list[str]) -> float:
    expected = counts.total() / len(names)
    return sum((counts[name] - expected) ** 2 / expected for name in names)


class UniformTest(UnmeasuredTestCase):
    """The seeds are fixed, so each run draws the same trees."""

    def _select(self, drawing: list[str], query: str, limit: int, times: int) -> Counter[str]:
        """Return how often a limited search selected each tree."""
        world = worlds.World.of('\n'.join(drawing))
        bound = dataclasses.replace(world.unbind(world.parse(query)), limit=limit)
        names = {provider.id: world.names[provider.uuid] for provider in world.providers}
        counts: Counter[str] = Counter()
        with rows.database() as conn:
            rows.fill(conn, world)
            for seed in range(times):
                rng = random.Random(seed)
                result = search.search_with(conn, bound, search.Options(), rng=rng)
                self.assertEqual(limit, len({one.root_id for one in result.candidates}))
                counts.update(names[one.root_id] for one in result.candidates)
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


class StatementsTest(base.BaseTestCase):
    """The number of statements does not depend on the number of trees."""

    def _statements(self, drawing: list[str], query: str, limit: int) -> tuple[int, int]:
        """Return the largest numbers of candidates and statements of several searches.

        An earlier response contained the same names.
        """
        world = worlds.World.of('\n'.join(drawing))
        bound = dataclasses.replace(world.unbind(world.parse(query)), limit=limit)
        found, count = 0, 0
        with rows.database() as conn:
            rows.fill(conn, world)
            search.search_with(conn, bound, search.Options())
            for seed in range(10):
                with recorded(conn) as statements:
                    rng = random.Random(seed)
                    result = search.search_with(conn, bound, search.Options(), rng=rng)
                found, count = max(found, len(result.candidates)), max(count, len(statements))
        return found, count

    def test_all_trees_fit(self):
        """Ids of names, the range of ids, and one page."""
        hosts = [f'H{n}[V:1]' for n in range(200)]
        self.assertEqual((10, 3), self._statements(hosts, 'resources=V:1', limit=10))

    def test_no_tree_fits(self):
        """As above, and two pages of drawn trees at most before all trees are listed."""
        for count in (100, 400):
            hosts = [f'H{n}[V:1]' for n in range(count)]
            found, statements = self._statements(hosts, 'resources=V:2', limit=10)
            self.assertEqual(0, found)
            self.assertLessEqual(statements, 6)

    def test_no_provider_exists(self):
        self.assertEqual((0, 2), self._statements([], 'resources=V:1', limit=10))

    def test_ids_are_drawn_in_bounded_lists(self):
        self.patch(paging, '_MAX_IDS', 3)
        hosts = [f'H{n}[V:1]' for n in range(200)]
        found, statements = self._statements(hosts, 'resources=V:1', limit=10)
        self.assertEqual(10, found)
        self.assertLessEqual(statements, 8)
