"""Candidates from the rows of a database, without HTTP."""

from collections import Counter
import dataclasses
import random
from typing import Any
from unittest import mock

import hypothesis
from oslotest import base
import sqlalchemy as sa

from placement.candidates import model, render, search
from placement.candidates.steps import SearchLimit, Steps
from placement.db.sqlalchemy import models
from placement.tests.functional.candidates import rows, test_statements
from placement.tests.unit.candidates import cases, strategies, worlds

THOROUGH = hypothesis.settings(
    max_examples=60,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)


class WorkedExamplesTest(base.BaseTestCase):
    """Each test is one row of the table.

    As one page, and tree by tree: the first tree without a candidate makes the search strict.
    """


def _test(case: cases.Case, first_page: int):
    def test(self: WorkedExamplesTest) -> None:
        self.patch(search, 'FIRST_PAGE', first_page)
        query = case.world.unbind(case.world.parse(case.query, case.version))
        with rows.database() as conn:
            rows.fill(conn, case.world)
            answer = search.search(conn, query)
        body = render.render(answer, render.Shape.of(case.version))
        found, expected = case.world.answers_of(body), worlds.answers(case.answers)
        if any(mappings is None for _, mappings in expected):
            found = worlds.without_mappings(found)
        self.assertEqual(expected, found)
        if case.summaries is not None:
            names = {case.world.names[uuid] for uuid in body['provider_summaries']}
            self.assertEqual(set(case.summaries.split()), names)

    return test


for _number, _case in enumerate(cases.CASES):
    for _road, _size in (('as one page', search.FIRST_PAGE), ('tree by tree', 1)):
        _name = f'test_{_number:03d}_{_case.name}_{_road}'.replace(' ', '_')
        setattr(WorkedExamplesTest, _name, _test(_case, _size))


class AnyWorldTest(base.BaseTestCase):
    """Whatever the pages are, rows give what the pure search gives."""

    def setUp(self) -> None:
        super().setUp()
        database = rows.database()
        self.conn = database.__enter__()
        self.addCleanup(database.__exit__, None, None, None)

    def _chosen(self, candidates: list[model.Candidate]) -> list[model.Chosen]:
        return sorted(candidate.chosen for candidate in candidates)

    def _compare(self, question: tuple[worlds.World, model.Query[int]], **options: object) -> None:
        world, query = question
        rows.fill(self.conn, world)
        answer = search.search(self.conn, world.unbind(query), **options)
        self.assertEqual(self._chosen(world.solve(query)), self._chosen(list(answer.candidates)))
        known = {p.id: p for p in world.providers}
        for provider in answer.summarised:
            # Aggregates are read only where somebody asks for them.
            expected = known[provider.id]._replace(aggregates=provider.aggregates)
            self.assertEqual(expected, provider)

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_in_one_page(self, question):
        self._compare(question)

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_tree_by_tree(self, question):
        """The first tree without a candidate makes the database look for those that fit."""
        with mock.patch.multiple(search, FIRST_PAGE=1, LARGEST_PAGE=1):
            self._compare(question)

    @THOROUGH
    @hypothesis.given(strategies.borrowings())
    def test_borrowed_tree_by_tree(self, question):
        with mock.patch.multiple(search, FIRST_PAGE=1, LARGEST_PAGE=1):
            self._compare(question)

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_set_aside(self, question):
        """Every tree is set aside at once, and searched in the shortest turns."""
        with mock.patch.multiple(search, FIRST_PAGE=2, PAGE_STEPS=-1, FIRST_TURN=-(10**6)):
            self._compare(question)

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_drawn_and_with_a_limit(self, question):
        """Any order, any limit: a part of the whole, as long as there is enough."""
        world, query = question
        rows.fill(self.conn, world)
        whole = Counter(self._chosen(world.solve(query)))
        names = world.unbind(query)
        for strategy in ('depth-first', 'breadth-first'):
            for limit in (1, 3):
                with mock.patch.object(search, 'FIRST_PAGE', 1):
                    answer = search.search(
                        self.conn,
                        dataclasses.replace(names, limit=limit),
                        strategy=strategy,
                        rng=random.Random(limit),
                    )
                found = Counter(self._chosen(list(answer.candidates)))
                self.assertLessEqual(found, whole)
                self.assertEqual(min(limit, whole.total()), found.total())


class InvisibleTest(base.BaseTestCase):
    """Providers without a root, which releases before 2018 left behind."""

    def test_the_page_goes_on_behind_them(self):
        world = worlds.World.of('\n'.join(f'H{n}[V:4]' for n in range(40)))
        query = world.unbind(world.parse('resources=V:1'))
        providers = models.resource_providers
        with rows.database() as conn:
            rows.fill(conn, world)
            conn.execute(
                sa.update(providers).where(providers.c.id == 3).values(root_provider_id=None)
            )
            for rng in (None, random.Random(1)):
                answer = search.search(conn, query, rng=rng)
                found = {candidate.root_id for candidate in answer.candidates}
                self.assertEqual({*range(1, 41)} - {3}, found)


def _piecewise(providers: int, name: str = 'R') -> list[str]:
    """A tree in which 13 groups of two units find a place if it has 13 providers at least.

    Each provider has three units, so by the sums alone nine would do.
    """
    return [name, *(f'  {name}{n}[VGPU:3]' for n in range(providers))]


_IN_PIECES = '&'.join(f'resources{n}=VGPU:2' for n in range(1, 14)) + '&group_policy=none'


class SearchLimitTest(base.BaseTestCase):
    """The work of one request is bounded, and shared fairly between trees."""

    def _search(self, drawing: list[str], query: str, **options: Any) -> render.Answer:
        world = worlds.World.of('\n'.join(drawing))
        with rows.database() as conn:
            rows.fill(conn, world)
            return search.search(conn, world.unbind(world.parse(query)), **options)

    def test_what_was_found_is_returned_with_a_warning(self):
        text = '&'.join(f'resources{n}=VGPU:1' for n in range(1, 9))
        drawing = ['R', *(f'  C{n}[VGPU:1]' for n in range(8))]
        with self.assertLogs('placement', 'WARNING') as logs:
            answer = self._search(
                drawing, f'{text}&group_policy=isolate', limit=SearchLimit(100_000)
            )
        self.assertIn('max_candidate_search_steps', logs.output[0])
        self.assertTrue(0 < len(answer.candidates) < 40320)

    def test_a_tree_without_an_end_hides_no_tree_that_fits(self):
        """The search of the first tree would take all steps, and those of many requests more."""
        drawing = [*_piecewise(12, 'A'), *_piecewise(12, 'B'), *_piecewise(13, 'C')]
        limit = SearchLimit(10**7)
        for strategy in ('depth-first', 'breadth-first'):
            answer = self._search(drawing, f'{_IN_PIECES}&limit=1', limit=limit, strategy=strategy)
            self.assertEqual(1, len(answer.candidates))
        self.assertGreater(limit.left, 10**7 - 10**5)

    def test_a_tree_with_endless_candidates_hides_no_tree(self):
        drawing = [*_piecewise(14, 'A'), 'B', '  B1[VGPU:26]']
        limit = SearchLimit(10**6)
        with self.assertLogs('placement', 'WARNING'):
            answer = self._search(drawing, _IN_PIECES, limit=limit)
        self.assertEqual(2, len({candidate.root_id for candidate in answer.candidates}))

    def test_trees_are_set_aside_without_a_connection(self):
        """Between two pages a search takes few steps, and many after the last."""
        world = worlds.World.of('\n'.join([*_piecewise(12, 'A'), *_piecewise(13, 'B')]))
        query = dataclasses.replace(world.unbind(world.parse(_IN_PIECES)), limit=10**6)
        for strategy in ('depth-first', 'breadth-first'):
            limit = SearchLimit(10**6)
            left: list[float] = []
            with rows.database() as conn:
                rows.fill(conn, world)
                with test_statements.recorded(conn) as statements, self.assertLogs('placement'):
                    answer = search.search(
                        conn,
                        query,
                        strategy=strategy,
                        limit=limit,
                        release=lambda: left.extend([limit.left, len(statements)]),  # noqa: B023
                    )
            self.assertGreater(left[0], 10**6 - 2 * search.PAGE_STEPS)
            self.assertEqual(len(statements), left[1])
            self.assertLess(limit.left, 0)
            self.assertNotEqual([], answer.candidates)
            shown = render.render(answer, render.Shape.of(worlds.NEWEST))
            self.assertLessEqual(14, len(shown['provider_summaries']))

    def test_trees_in_turn_are_counted(self):
        """With breadth-first, trees that never use up a turn take steps too."""
        trees = ([f'R{n}', *(f'  R{n}C{k}[VGPU:1]' for k in range(12))] for n in range(30))
        groups = '&'.join(f'resources{n}=VGPU:1' for n in range(1, 13))
        used: list[Steps] = []

        class Recorded(Steps):
            def __init__(self, *args: float):
                super().__init__(*args)
                used.append(self)

        self.patch(search, 'Steps', Recorded)
        limit = SearchLimit(10**6)
        answer = self._search(
            [line for tree in trees for line in tree],
            f'{groups}&group_policy=isolate&limit=30',
            limit=limit,
            strategy='breadth-first',
        )
        self.assertEqual(30, len(answer.candidates))
        self.assertEqual(sum(steps.used for steps in used), 10**6 - limit.left)

    def test_more_trees_than_are_set_aside(self):
        """What does not fit into memory is left out, and the log says so."""
        drawing = [*_piecewise(12, 'A'), *_piecewise(12, 'B'), *_piecewise(13, 'C')]
        self.patch(search, 'MOST_SET_ASIDE', 20)
        with self.assertLogs('placement', 'WARNING') as logs:
            answer = self._search(drawing, _IN_PIECES, limit=SearchLimit(10**6))
        self.assertEqual({27}, {candidate.root_id for candidate in answer.candidates})
        self.assertIn('left out provider trees', ' '.join(logs.output))
