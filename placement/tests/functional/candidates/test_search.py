"""Searches of rows in a database, compared with the solver in memory."""

import dataclasses
import itertools
import json
import random
from unittest import mock

import sqlalchemy as sa

from placement import db_api
from placement.candidates import model
from placement.db.sqlalchemy import models
from placement.tests import worlds
from placement.tests.functional import base
from placement.tests.functional.candidates.database import (
    MANY,
    STRATEGIES,
    DatabaseTestCase,
    bindings,
)
from placement.tests.properties import randoms
from placement.tests.unit.telemetry.switched_on import SwitchedOn
from placement.tests.worlds import rows, seeded


class AnyWorldTest(DatabaseTestCase):
    """A search of rows returns the same candidates as the solver."""

    def test_small_worlds(self):
        """In one page, and with conditions that the database evaluates."""
        for kind, number in ((seeded.search, 60), (seeded.sharing, 30)):
            for rng in randoms(number):
                found = kind(rng)
                for world in (found.world, found.world.behind(MANY)):
                    self.fill(world)
                    self._compare(found.text, world.parse(found.text, found.version))

    def test_clouds_of_several_pages(self):
        for rng in randoms(6):
            self.fill(seeded.cloud(rng, MANY))
            for hard in (False, False, True, True):
                found = seeded.query(rng, self.world, hard)
                self._compare(found.text, found.query)
                self._limited(rng, found.query)

    def test_traits_and_aggregates_that_are_not_rare(self):
        names = {'traits': seeded.TRAITS, 'aggregates': seeded.AGGREGATES}
        for rng in randoms(10):
            found = seeded.search(rng, hard=True)
            self.fill(found.world.behind(1010, **names))
            for hard in (False, True, True):
                found = seeded.query(rng, self.world, hard)
                self._compare(found.text, found.query)

    def _compare(self, text: str, query: model.Query[int]) -> None:
        result = self.search(self.world.unbind(query))
        expected = self.world.solve(query)
        self.assertEqual(bindings(expected), bindings(result.candidates), text)
        by_id = {provider.id: provider for provider in self.world.providers}
        for provider in result.summarized:
            # Aggregates are read only if the search uses them.
            stored = by_id[provider.id]._replace(aggregates=provider.aggregates)
            self.assertEqual(stored, provider)

    def _limited(self, rng: random.Random, query: model.Query[int]) -> None:
        """In any order, a limited search returns as many candidates as requested."""
        whole = bindings(self.world.solve(query))
        for strategy in STRATEGIES:
            for order in (None, rng):
                limit = rng.choice((1, 3, 20))
                limited = dataclasses.replace(self.world.unbind(query), limit=limit)
                found = bindings(self.search(limited, order, strategy=strategy).candidates)
                self.assertLessEqual(found, whole)
                self.assertEqual(min(limit, whole.total()), found.total())

    def test_each_tree_once(self):
        """Also trees after a provider without a root, which releases before 2018 created."""
        self.fill(worlds.World.of('\n'.join(f'H{n}[V:4]' for n in range(200))))
        table = models.resource_providers
        self.conn.execute(sa.update(table).where(table.c.id == 3).values(root_provider_id=None))
        for rng in (None, random.Random(1)):
            found = self.search('resources=V:1&limit=1000', rng).candidates
            self.assertEqual(sorted({*range(1, 201)} - {3}), sorted(one.root_id for one in found))


def _three_units_each(providers: int, name: str = 'R') -> str:
    """A tree that can serve 13 groups of two units if it has at least 13 providers.

    Each provider has three units, so nine providers have a sufficient sum.
    """
    return '\n'.join([name, *(f'  {name}{n}[VGPU:3]' for n in range(providers))])


_TWO_UNITS_EACH = '&'.join(f'resources{n}=VGPU:2' for n in range(1, 14)) + '&group_policy=none'

# Twelve groups that five providers can hardly serve: the search takes 50,000 steps and more.
_rng = random.Random(20)
_AMOUNTS = [(_rng.randint(20, 45), _rng.randint(20, 45)) for _ in range(12)]
_UNEQUAL = '&'.join(f'resources{n}=V:{v},M:{m}' for n, (v, m) in enumerate(_AMOUNTS, 1))
_UNEQUAL += '&group_policy=none'
_FEW = [(78, 83), (81, 79), (83, 81), (82, 74), (82, 76)]
_LATE, _NEVER = (
    '\n'.join(
        [name, *(f'  {name}{n}[V:{v - less}, M:{m - less}]' for n, (v, m) in enumerate(_FEW))]
    )
    for name, less in (('LATE', 0), ('NEVER', 1))
)
_EASY = 'EASY[V:1000, M:1000]'
_TWO_GROUPS = 'resources1=VGPU:1&resources2=VGPU:1&group_policy=none'


class SearchLimitTest(DatabaseTestCase):
    """The work of one request is bounded, and divided fairly among trees."""

    def measured(self, text: str, **options) -> tuple[list[model.Candidate], int, bool]:
        """Return the candidates, the number of search steps, and whether the search was cut.

        The metrics must agree with the candidates, and with the warnings.
        """
        with SwitchedOn() as metrics, mock.patch('logging.Logger.warning') as warning:
            candidates = list(self.search(text, **options).candidates)
            steps = metrics.value('placement_candidate_search_steps_sum')
            returned = metrics.value('placement_candidates_returned_sum')
            cut = metrics.value('placement_candidate_searches_cut_total')
        self.assertEqual((len(candidates), warning.called), (returned, bool(cut)))
        self.warnings = ' '.join(call.args[0] for call in warning.mock_calls)
        return candidates, int(steps or 0), bool(cut)

    def test_candidates_up_to_the_limit_are_returned_with_a_warning(self):
        self.fill(worlds.World.of('\n'.join(['R', *(f'  C{n}[VGPU:1]' for n in range(8))])))
        groups = '&'.join(f'resources{n}=VGPU:1' for n in range(1, 9))
        found, _, _ = self.measured(f'{groups}&group_policy=isolate', max_steps=100_000)
        self.assertIn('max_candidate_search_steps', self.warnings)
        self.assertTrue(0 < len(found) < 40320)

    def test_a_tree_with_a_long_search_hides_no_tree_with_a_candidate(self):
        for trees in itertools.permutations((_LATE, _NEVER, _EASY)):
            self.fill(worlds.World.of('\n'.join(trees)))
            for strategy in STRATEGIES:
                options = {'max_steps': 10**7, 'strategy': strategy}
                found, steps, cut = self.measured(f'{_UNEQUAL}&limit=1', **options)
                self.assertEqual((1, False), (len(found), cut))
                self.assertLess(steps, 10_000)

    def test_a_long_search_has_several_turns(self):
        """The first candidate of a tree comes after 50,000 steps."""
        for trees in ((_LATE, _NEVER), (_NEVER, _LATE)):
            self.fill(worlds.World.of('\n'.join(trees)))
            found, _, cut = self.measured(f'{_UNEQUAL}&limit=1', max_steps=10**7)
            self.assertEqual((1, False), (len(found), cut), self.warnings)

    def test_the_search_of_a_tree_that_takes_long_is_complete(self):
        """First, last, or alone."""
        tree, easy = _three_units_each(7, 'A'), 'B\n  B1[VGPU:1]'
        text = '&'.join(f'resources{n}=VGPU:2' for n in range(1, 8)) + '&group_policy=none'
        for drawing in ([tree, easy], [easy, tree], [tree]):
            self.fill(worlds.World.of('\n'.join(drawing)))
            for strategy in STRATEGIES:
                found, steps, cut = self.measured(text, max_steps=10**7, strategy=strategy)
                self.assertEqual((5040, False), (len(found), cut))
                # Each candidate renews the share, so little is searched again.
                self.assertTrue(10**5 < steps < 300_000, steps)

    def test_a_tree_with_many_candidates_hides_no_tree(self):
        self.fill(worlds.World.of(_three_units_each(14, 'A') + '\nB\n  B1[VGPU:26]'))
        found, _, cut = self.measured(_TWO_UNITS_EACH, max_steps=10**6)
        self.assertEqual((2, True), (len({one.root_id for one in found}), cut))

    def test_the_limit_counts_the_steps_of_the_metrics(self):
        """Also the steps of a tree whose search ends early, and of trees with few steps."""
        trees = [_three_units_each(3, f'A{n}x') for n in range(30)]
        self.fill(worlds.World.of('\n'.join([*trees, _three_units_each(13, 'B')])))
        for text in (_TWO_GROUPS, f'{_TWO_GROUPS}&limit=1', f'{_TWO_UNITS_EACH}&limit=2'):
            for strategy in STRATEGIES:
                found, steps, cut = self.measured(text, strategy=strategy)
                self.assertFalse(cut)
                self.assertLess(0, steps)
                self.assertEqual(
                    (found, steps, False), self.measured(text, strategy=strategy, max_steps=steps)
                )
                if 'limit' not in text:  # with a limit, the last steps can be those of a candidate
                    self.assertTrue(self.measured(text, strategy=strategy, max_steps=steps - 1)[2])

    def test_a_candidate_whose_size_costs_too_many_steps_is_not_returned(self):
        self.fill(worlds.World.of('\n'.join(f'H{n}[V:4]' for n in range(9))))
        with mock.patch('placement.candidates.search._LARGE_CANDIDATE', 0):
            found, steps, cut = self.measured('resources=V:1')
            self.assertEqual((9, False), (len(found), cut))
            found, _, cut = self.measured('resources=V:1', max_steps=steps - 1)
            self.assertEqual((8, True), (len(found), cut))


class ResponseSizeTest(base.TestCase):
    """The size of the candidates is limited, except for the first candidate of each tree."""

    def setUp(self) -> None:
        super().setUp()
        trees = (f'{tree}\n  {tree}1[VGPU:2]\n  {tree}2[VGPU:2]' for tree in 'AB')
        rows.fill(db_api.get_placement_engine(), worlds.World.of('\n'.join(trees)))

    def count(self, size: int, query: str = _TWO_GROUPS, strategy: str = 'depth-first') -> int:
        """Return the number of candidates, which is negative if the response is cut."""
        self.service.conf_fixture.config(
            group='placement',
            max_candidates_response_size=size,
            allocation_candidates_generation_strategy=strategy,
        )
        with mock.patch('logging.Logger.warning') as warning:
            found = self.send_ok('GET', f'/allocation_candidates?{query}')['allocation_requests']
        self.assertLessEqual(warning.call_count, 1)
        for call in warning.mock_calls:
            self.assertIn('max_candidates_response_size', call.args[0])
        return -len(found) if warning.called else len(found)

    def test_the_first_candidate_of_each_tree_does_not_count(self):
        found = self.send_ok('GET', f'/allocation_candidates?{_TWO_GROUPS}')['allocation_requests']
        # All candidates count like the largest one, and a comma follows each of them.
        size = 1 + max(len(json.dumps(one, separators=(',', ':'))) for one in found)
        for strategy in STRATEGIES:
            for most, expected in (
                (0, -2),
                (size - 1, -2),
                (size, -3),
                (3 * size, -5),
                (6 * size - 1, -7),
                (6 * size, 8),
                (-1, 8),
            ):
                self.assertEqual(expected, self.count(most, strategy=strategy), most)
        self.assertEqual(2, self.count(size, f'{_TWO_GROUPS}&limit=2'))

    def test_a_query_with_one_candidate_for_each_tree_is_never_cut(self):
        groups = 'resources1=VGPU:2&resources2=VGPU:2&group_policy=none&required1=!HW_CPU_X86_AVX'
        for query, expected in (('resources=VGPU:1&limit=1', 1), (f'{groups}&limit=1', 1)):
            self.assertEqual(expected, self.count(0, query))
