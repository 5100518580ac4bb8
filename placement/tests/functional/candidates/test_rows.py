"""Candidates from the rows of a database, without HTTP."""

from collections import Counter
import dataclasses
import random
from unittest import mock

import hypothesis
from oslotest import base
import sqlalchemy as sa

from placement.candidates import model, render, search, solver
from placement.db.sqlalchemy import models
from placement.tests.functional.candidates import rows
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


class GuardTest(base.BaseTestCase):
    """The bound on the work of one request."""

    def test_what_was_found_is_returned_with_a_warning(self):
        world = worlds.World.of('\n'.join(['R', *(f'  C{n}[VGPU:1]' for n in range(8))]))
        text = '&'.join(f'resources{n}=VGPU:1' for n in range(1, 9))
        query = world.unbind(world.parse(f'{text}&group_policy=isolate'))
        with rows.database() as conn, self.assertLogs('placement', 'WARNING') as logs:
            rows.fill(conn, world)
            answer = search.search(conn, query, effort=solver.Effort(2000))
        self.assertIn('max_candidate_search_steps', logs.output[0])
        self.assertTrue(0 < len(answer.candidates) < 40320)
