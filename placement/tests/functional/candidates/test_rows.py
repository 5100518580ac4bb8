"""Candidates from the rows of a database, without HTTP."""

from collections import Counter
import dataclasses
import json
import random
from unittest import mock

import hypothesis
from oslotest import base
import sqlalchemy as sa

from placement import validation
from placement.candidates import (
    model,
    paging,
    render,
    search,
    selection,
    tree_search,
)
from placement.candidates.budget import Budget, SearchLimit
from placement.db.sqlalchemy import models
from placement.schemas.allocation_candidate import CANDIDATES
from placement.telemetry import declarations
from placement.tests import worlds
from placement.tests.functional.candidates import rows, test_statements
from placement.tests.properties import UnmeasuredTestCase, examples
from placement.tests.unit.candidates import cases
from placement.tests.unit.telemetry.switched_on import SwitchedOn
from placement.tests.worlds import strategies

THOROUGH = hypothesis.settings(
    max_examples=examples(40),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)


class WorkedExamplesTest(UnmeasuredTestCase):
    """Each test is one row of an example.

    Once as one page, and once tree by tree: the first tree without a candidate makes all further
    pages strict.
    """


def _test(case: cases.Case, first_page: int):
    def test(self: WorkedExamplesTest) -> None:
        self.patch(paging, 'FIRST_PAGE', first_page)
        query = case.world.unbind(case.world.parse(case.row.query, case.version))
        with rows.database() as conn:
            rows.fill(conn, case.world)
            result = search.search_with(conn, query, search.Options())
        body = json.loads(''.join(render.render(result, render.Shape.of(case.version))))
        self.assertIsNone(validation.problem(CANDIDATES.pick(case.version), body))
        found = case.world.from_body(body)
        expected = worlds.expected(case.row.candidates)
        if any(mappings is None for _, mappings in expected):
            found = worlds.without_mappings(found)
        self.assertEqual(expected, found)
        if case.row.summaries is not None:
            names = {case.world.names[uuid] for uuid in body['provider_summaries']}
            self.assertEqual(set(case.row.summaries.split()), names)

    return test


for _number, _case in enumerate(cases.CASES):
    for _how, _size in (('as one page', paging.FIRST_PAGE), ('tree by tree', 1)):
        _name = f'test_{_number:03d}_{_case.name}_{_how}'.replace(' ', '_')
        setattr(WorkedExamplesTest, _name, _test(_case, _size))


class AnyWorldTest(UnmeasuredTestCase):
    """For any sizes of pages, a search of rows returns the same candidates as the pure solver."""

    def setUp(self) -> None:
        super().setUp()
        database = rows.database()
        self.conn = database.__enter__()
        self.addCleanup(database.__exit__, None, None, None)

    def _bindings(self, candidates: list[model.Candidate]) -> list[model.Binding]:
        return sorted(candidate.binding for candidate in candidates)

    def _compare(self, example: tuple[worlds.World, model.Query[int]]) -> None:
        world, query = example
        rows.fill(self.conn, world)
        result = search.search_with(self.conn, world.unbind(query), search.Options())
        self.assertEqual(
            self._bindings(world.solve(query)), self._bindings(list(result.candidates))
        )
        by_id = {p.id: p for p in world.providers}
        for provider in result.summaries.providers:
            # Aggregates are read only if the search uses them.
            expected = by_id[provider.id]._replace(aggregates=provider.aggregates)
            self.assertEqual(expected, provider)

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_in_one_page(self, example):
        self._compare(example)

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_tree_by_tree(self, example):
        """The first tree without a candidate makes all further pages strict."""
        with mock.patch.multiple(paging, FIRST_PAGE=1, LARGEST_PAGE=1):
            self._compare(example)

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_tree_by_tree_if_no_trait_is_rare(self, example):
        with mock.patch.multiple(paging, FIRST_PAGE=1), rows.rare_up_to(0):
            self._compare(example)

    @THOROUGH
    @hypothesis.given(strategies.sharing_searches())
    def test_sharing_tree_by_tree(self, example):
        with mock.patch.multiple(paging, FIRST_PAGE=1, LARGEST_PAGE=1):
            self._compare(example)

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_postponed(self, example):
        """Every tree is postponed at once, and searched in the shortest turns."""
        with (
            mock.patch.multiple(paging, FIRST_PAGE=2, PAGE_STEPS=-1),
            mock.patch.object(tree_search, 'FIRST_TURN', -(10**6)),
        ):
            self._compare(example)

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_randomized_and_with_a_limit(self, example):
        """In any order, a limited search returns as many candidates as requested."""
        world, query = example
        rows.fill(self.conn, world)
        whole = Counter(self._bindings(world.solve(query)))
        names = world.unbind(query)
        for strategy in ('depth-first', 'breadth-first'):
            for limit in (1, 3):
                with mock.patch.object(paging, 'FIRST_PAGE', 1):
                    result = search.search_with(
                        self.conn,
                        dataclasses.replace(names, limit=limit),
                        search.Options(strategy=strategy),
                        rng=random.Random(limit),
                    )
                found = Counter(self._bindings(list(result.candidates)))
                self.assertLessEqual(found, whole)
                self.assertEqual(min(limit, whole.total()), found.total())


class AllPagesTest(UnmeasuredTestCase):
    """`paging.all_pages` yields every anchor of the cloud as it is, whatever the query is."""

    def setUp(self) -> None:
        super().setUp()
        database = rows.database()
        self.conn = database.__enter__()
        self.addCleanup(database.__exit__, None, None, None)

    def _pages(self, query: model.Query[int], sharing: int, **more: bool) -> list[model.Anchor]:
        pages = paging.all_pages(self.conn, query, sharing, **more)
        return [anchor for page in pages for anchor in page]

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_all_anchors_in_the_order_of_their_roots(self, example):
        world, query = example
        rows.fill(self.conn, world)
        expected = sorted(world.anchors, key=lambda anchor: anchor.root.id)
        for size in (1, 2, paging.LARGEST_PAGE):
            with mock.patch.object(paging, 'LARGEST_PAGE', size):
                found = self._pages(query, world.sharing_id)
            self.assertEqual([a.root for a in expected], [a.root for a in found])
            for one, other in zip(expected, found, strict=True):
                self.assertEqual(sorted(one.tree), sorted(other.tree))
                self.assertEqual(one.sharing_providers, other.sharing_providers)
                self._check_sharing_trees(query, one, {p.id for p in other.sharing_trees})

    def _check_sharing_trees(
        self, query: model.Query[int], anchor: model.Anchor, found: set[int]
    ) -> None:
        """A tree in which a sharing provider has a parent is needed; the others have no effect."""
        if not query.same_subtrees:
            self.assertEqual(set(), found)
            return
        nested = {p.root_id for p in anchor.sharing_providers if p.parent_id is not None}
        needed = {p.id for p in anchor.sharing_trees if p.root_id in nested}
        self.assertLessEqual(needed, found)
        self.assertLessEqual(found, {p.id for p in anchor.sharing_trees})

    def test_statements(self):
        """One for all sharing providers, and one for each page."""
        world = test_statements.cloud(20, 5)
        query = world.parse('resources=V:1,D:1')
        rows.fill(self.conn, world)
        for size, expected in ((paging.LARGEST_PAGE, 2), (10, 4)):
            with (
                mock.patch.object(paging, 'LARGEST_PAGE', size),
                test_statements.recorded(self.conn) as statements,
            ):
                self.assertEqual(25, len(self._pages(query, world.sharing_id)))
            self.assertEqual(expected, len(statements))

    def test_aggregates_are_read_if_requested(self):
        world = worlds.World.of('CN[V:8] @A')
        query = world.parse('resources=V:1')
        rows.fill(self.conn, world)
        for requested in (False, True):
            (anchor,) = self._pages(query, None, with_aggregates=requested)
            self.assertEqual(requested, bool(anchor.root.aggregates))


class PagesTest(base.BaseTestCase):
    """A search would not return the candidates of a repeated tree twice, so count the trees."""

    def test_no_tree_is_read_twice(self):
        read_page = paging.Reader.read_page
        read: list[int] = []

        def recording(*arguments, **options):
            roots, anchors = read_page(*arguments, **options)
            read.extend(roots)
            return roots, anchors

        self.patch(paging, 'FIRST_PAGE', 2)
        self.patch(paging.Reader, 'read_page', recording)
        world = worlds.World.of('\n'.join(f'H{n}[V:1]' for n in range(40)))
        query = dataclasses.replace(world.unbind(world.parse('resources=V:1')), limit=40)
        with rows.database() as conn:
            rows.fill(conn, world)
            for rng in (None, random.Random(1)):
                read.clear()
                search.search_with(conn, query, search.Options(), rng=rng)
                self.assertEqual([*range(1, 41)], sorted(read))


class NoRootTest(base.BaseTestCase):
    """Providers without a root, which releases before 2018 created."""

    def test_pages_continue_after_them(self):
        world = worlds.World.of('\n'.join(f'H{n}[V:4]' for n in range(40)))
        query = world.unbind(world.parse('resources=V:1'))
        providers = models.resource_providers
        with rows.database() as conn:
            rows.fill(conn, world)
            conn.execute(
                sa.update(providers).where(providers.c.id == 3).values(root_provider_id=None)
            )
            for rng in (None, random.Random(1)):
                result = search.search_with(conn, query, search.Options(), rng=rng)
                found = {candidate.root_id for candidate in result.candidates}
                self.assertEqual({*range(1, 41)} - {3}, found)


def _three_units_each(providers: int, name: str = 'R') -> list[str]:
    """A tree that can serve 13 groups of two units if it has at least 13 providers.

    Each provider has three units, so nine providers have a sufficient sum.
    """
    return [name, *(f'  {name}{n}[VGPU:3]' for n in range(providers))]


_TWO_UNITS_EACH = '&'.join(f'resources{n}=VGPU:2' for n in range(1, 14)) + '&group_policy=none'


class SearchLimitTest(UnmeasuredTestCase):
    """The work of one request is bounded, and divided fairly among trees."""

    def _search(
        self,
        drawing: list[str],
        query: str,
        limit: SearchLimit,
        strategy: str = selection.DEPTH_FIRST,
    ) -> render.SearchResult:
        world = worlds.World.of('\n'.join(drawing))
        with rows.database() as conn:
            rows.fill(conn, world)
            bound = world.unbind(world.parse(query))
            return search.search_with(conn, bound, search.Options(strategy=strategy), limit)

    def test_candidates_up_to_the_limit_are_returned_with_a_warning(self):
        text = '&'.join(f'resources{n}=VGPU:1' for n in range(1, 9))
        drawing = ['R', *(f'  C{n}[VGPU:1]' for n in range(8))]
        with self.assertLogs('placement', 'WARNING') as logs:
            result = self._search(
                drawing, f'{text}&group_policy=isolate', limit=SearchLimit(100_000)
            )
        self.assertIn('max_candidate_search_steps', logs.output[0])
        self.assertTrue(0 < len(result.candidates) < 40320)

    def test_a_tree_with_a_long_search_hides_no_tree_with_a_candidate(self):
        """The search of the first tree alone would exceed the limit many times."""
        drawing = [
            *_three_units_each(12, 'A'),
            *_three_units_each(12, 'B'),
            *_three_units_each(13, 'C'),
        ]
        limit = SearchLimit(10**7)
        for strategy in ('depth-first', 'breadth-first'):
            result = self._search(
                drawing, f'{_TWO_UNITS_EACH}&limit=1', limit=limit, strategy=strategy
            )
            self.assertEqual(1, len(result.candidates))
        self.assertGreater(limit.left, 10**7 - 10**5)

    def test_a_tree_with_many_candidates_hides_no_tree(self):
        drawing = [*_three_units_each(14, 'A'), 'B', '  B1[VGPU:26]']
        limit = SearchLimit(10**6)
        with self.assertLogs('placement', 'WARNING'):
            result = self._search(drawing, _TWO_UNITS_EACH, limit=limit)
        self.assertEqual(2, len({candidate.root_id for candidate in result.candidates}))

    def test_postponed_trees_are_searched_without_a_connection(self):
        """A search takes few steps between two pages, and many after the last page."""
        world = worlds.World.of(
            '\n'.join([*_three_units_each(12, 'A'), *_three_units_each(13, 'B')])
        )
        query = dataclasses.replace(world.unbind(world.parse(_TWO_UNITS_EACH)), limit=10**6)
        for strategy in ('depth-first', 'breadth-first'):
            limit = SearchLimit(10**6)
            left: list[float] = []
            with rows.database() as conn:
                rows.fill(conn, world)
                with test_statements.recorded(conn) as statements, self.assertLogs('placement'):
                    result = search.search_with(
                        conn,
                        query,
                        search.Options(strategy=strategy),
                        limit,
                        disconnect=lambda: left.extend([limit.left, len(statements)]),  # noqa: B023 (called before the next iteration)
                    )
            self.assertGreater(left[0], 10**6 - 2 * paging.PAGE_STEPS)
            self.assertEqual(len(statements), left[1])
            self.assertLess(limit.left, 0)
            self.assertNotEqual([], result.candidates)
            shown = json.loads(''.join(render.render(result, render.Shape.of(worlds.NEWEST))))
            self.assertLessEqual(14, len(shown['provider_summaries']))

    def test_breadth_first_counts_the_steps_of_all_trees(self):
        """Also those of trees that never use up a turn."""
        trees = ([f'R{n}', *(f'  R{n}C{k}[VGPU:1]' for k in range(12))] for n in range(30))
        groups = '&'.join(f'resources{n}=VGPU:1' for n in range(1, 13))
        used: list[Budget] = []

        class Recorded(Budget):
            def __init__(self, *args: int):
                super().__init__(*args)
                used.append(self)

        self.patch(tree_search, 'Budget', Recorded)
        limit = SearchLimit(10**6)
        metrics = self.useFixture(SwitchedOn())
        result = self._search(
            [line for tree in trees for line in tree],
            f'{groups}&group_policy=isolate&limit=30',
            limit=limit,
            strategy='breadth-first',
        )
        self.assertEqual(30, len(result.candidates))
        steps = sum(one.used for one in used)
        self.assertEqual(steps, 10**6 - limit.left)
        self.assertEqual(steps, metrics.value(f'{declarations.SEARCH_STEPS}_sum'))

    def test_the_metrics_contain_all_steps(self):
        """Also the steps of a tree whose search ends early, with and without a search limit."""
        for query, max_steps, cut in (
            ('resources1=VGPU:1&resources2=VGPU:1&group_policy=none', -1, 0),
            ('resources1=VGPU:1&resources2=VGPU:1&group_policy=none&limit=1', -1, 0),
            ('resources1=VGPU:1&resources2=VGPU:1&group_policy=none&limit=1', 10**5, 0),
            (_TWO_UNITS_EACH, 10**5, 1),
        ):
            for strategy in ('depth-first', 'breadth-first'):
                used: list[Budget] = []

                class Recorded(Budget):
                    def __init__(self, *args: int):
                        super().__init__(*args)
                        used.append(self)  # noqa: B023 (called before the next iteration)

                metrics = SwitchedOn()
                with mock.patch.object(tree_search, 'Budget', Recorded), metrics:
                    result = self._search(
                        [*_three_units_each(12, 'A'), *_three_units_each(13, 'B')],
                        query,
                        strategy=strategy,
                        limit=SearchLimit(max_steps),
                    )
                    self.assertLess(0, sum(steps.used for steps in used))
                    self.assertEqual(
                        (sum(steps.used for steps in used), len(result.candidates), cut),
                        (
                            metrics.value(f'{declarations.SEARCH_STEPS}_sum'),
                            metrics.value(f'{declarations.CANDIDATES_RETURNED}_sum'),
                            metrics.value(declarations.SEARCHES_CUT),
                        ),
                    )

    def test_more_trees_than_can_be_postponed(self):
        """Trees that exceed the memory are left out with a warning."""
        metrics = self.useFixture(SwitchedOn())
        drawing = [
            *_three_units_each(12, 'A'),
            *_three_units_each(12, 'B'),
            *_three_units_each(13, 'C'),
        ]
        self.patch(tree_search, 'MAX_POSTPONED_OPTIONS', 20)
        with self.assertLogs('placement', 'WARNING') as logs:
            result = self._search(drawing, _TWO_UNITS_EACH, limit=SearchLimit(10**6))
        self.assertEqual({27}, {candidate.root_id for candidate in result.candidates})
        self.assertIn('left out provider trees', ' '.join(logs.output))
        self.assertEqual(1, metrics.value(declarations.SEARCHES_CUT))

    def test_a_slot_of_a_postponed_tree_needs_memory(self):
        """Each of 400 equal slots has its own generator, although they are of one kind."""
        groups = '&'.join(f'resources{n}=VGPU:1' for n in range(1, 401))
        drawing = [line for n in range(9) for line in _many_units_each(f'R{n}')]
        # A first turn is too short for any of the trees, so that each is postponed or left out.
        self.patch(tree_search, 'FIRST_TURN', 0)
        for most, left_out in ((2 * 400 * 8, True), (10**6, False)):
            self.patch(tree_search, 'MAX_POSTPONED_OPTIONS', most)
            with mock.patch.object(tree_search.LOG, 'warning') as warning:
                self._search(
                    drawing, f'{groups}&group_policy=none&limit=9', limit=SearchLimit(10**6)
                )
            self.assertEqual(left_out, warning.called)


def _many_units_each(name: str) -> list[str]:
    """A tree with two providers, of which each can serve hundreds of groups."""
    return [name, f'  {name}A[VGPU:1000]', f'  {name}B[VGPU:1000]']


class ResponseSizeTest(base.BaseTestCase):
    """The size of the candidates is limited, except for the first candidate of each tree."""

    drawing = ('A', '  A1[VGPU:2]', '  A2[VGPU:2]', 'B', '  B1[VGPU:2]', '  B2[VGPU:2]')
    two_groups = 'resources1=VGPU:1&resources2=VGPU:1&group_policy=none'

    def _search(
        self, size: int, query: str = two_groups, strategy: str = selection.DEPTH_FIRST
    ) -> tuple[list[model.Candidate], str, float]:
        """Return the candidates, the logged warnings, and the number of searches cut."""
        world = worlds.World.of('\n'.join(self.drawing))
        with (
            rows.database() as conn,
            SwitchedOn() as metrics,
            mock.patch.object(tree_search.LOG, 'warning') as warning,
        ):
            rows.fill(conn, world)
            options = search.Options(strategy=strategy, max_size=size)
            result = search.search_with(conn, world.unbind(world.parse(query)), options)
            cut = metrics.value(declarations.SEARCHES_CUT)
        return list(result.candidates), ' '.join(call.args[0] for call in warning.mock_calls), cut

    @property
    def _size(self) -> int:
        world = worlds.World.of('\n'.join(self.drawing))
        return selection.candidate_size(world.unbind(world.parse(self.two_groups)))

    def test_the_first_candidate_of_each_tree_does_not_count(self):
        size = self._size
        for strategy in selection.STRATEGIES:
            for most, expected in (
                (0, 2),
                (size - 1, 2),
                (size, 3),
                (3 * size, 5),
                (6 * size - 1, 7),
            ):
                found, warnings, cut = self._search(most, strategy=strategy)
                self.assertEqual(expected, len(found), most)
                self.assertEqual(2, len({candidate.root_id for candidate in found}))
                self.assertIn('max_candidates_response_size', warnings)
                self.assertEqual(1, cut)

    def test_a_complete_response_has_no_warning(self):
        for most in (6 * self._size, -1):
            found, warnings, cut = self._search(most)
            self.assertEqual((8, '', 0), (len(found), warnings, cut))

    def test_a_query_with_one_candidate_for_each_tree_is_never_cut(self):
        plain = 'resources=VGPU:1&in_tree=A&limit=1', 'resources1=VGPU:2&resources2=VGPU:3'
        for query in (plain[0], f'{plain[1]}&group_policy=none'):
            found, warnings, cut = self._search(0, query)
            self.assertEqual(('', 0), (warnings, cut), found)

    def test_the_limit_of_the_request_is_reached_first(self):
        found, warnings, cut = self._search(self._size, f'{self.two_groups}&limit=2')
        self.assertEqual((2, '', 0), (len(found), warnings, cut))
