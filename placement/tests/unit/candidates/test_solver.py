"""The solver against the definition, and what holds for any world."""

from collections import Counter
import dataclasses
from unittest import mock

import hypothesis
from oslotest import base

from placement.candidates import contest, eligibility, flow, model, rules, solver, subtrees
from placement.candidates.steps import SearchLimit, Steps
from placement.tests.unit.candidates import cases, naive, strategies, worlds

# The same examples in each run: a failure belongs to a change and not to chance.
THOROUGH = hypothesis.settings(
    max_examples=200,
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def _all(world: worlds.World, query: model.Query[int]) -> list[tuple[int, ...]]:
    task = solver.Task.of(query, one_per_tree=not query.nested)
    return [
        (anchor.root.id, *chosen)
        for anchor in world.anchors
        for chosen in solver.solve(task, anchor, Steps())
    ]


def _by_definition(world: worlds.World, query: model.Query[int]) -> list[tuple[int, ...]]:
    return [
        (anchor.root.id, *chosen)
        for anchor in world.anchors
        for chosen in naive.solve(query, anchor)
    ]


class DefinitionTest(base.BaseTestCase):
    """The lazy solver gives what the definition gives."""

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_same_as_by_definition(self, question):
        world, query = question
        self.assertEqual(sorted(_by_definition(world, query)), sorted(_all(world, query)))

    @THOROUGH
    @hypothesis.given(strategies.crowds())
    def test_same_when_crowded(self, question):
        world, query = question
        self.assertEqual(sorted(_by_definition(world, query)), sorted(_all(world, query)))

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_same_when_always_suspicious(self, question):
        """Testing necessary conditions at every step changes nothing."""
        world, query = question
        with mock.patch.object(solver, 'TEST_AFTER', 0):
            found = _all(world, query)
        self.assertEqual(sorted(_all(world, query)), sorted(found))

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_candidates_can_be_claimed(self, question):
        world, query = question
        slots = model.slots_of(query)
        for candidate in world.solve(query):
            for host in world.providers:
                for class_id, record in host.stock.items():
                    amount = sum(
                        dict(slot.amounts).get(class_id, 0)
                        for slot, id_ in zip(slots, candidate.chosen, strict=True)
                        if id_ == host.id
                    )
                    if amount:
                        self.assertLessEqual(record.used + amount, record.capacity)
                        self.assertLessEqual(amount, record.max_unit)

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_more_stock_loses_no_candidate(self, question):
        world, query = question
        larger = worlds.World(
            tuple(
                dataclasses.replace(
                    host,
                    stock={
                        name: {**record, 'total': record['total'] + 1}
                        for name, record in host.stock.items()
                    },
                )
                for host in world.hosts
            )
        )
        self.assertLessEqual(set(_all(world, query)), set(_all(larger, query)))

    @THOROUGH
    @hypothesis.given(strategies.questions())
    def test_a_guarded_run_is_part_of_the_whole(self, question):
        world, query = question
        whole = Counter(candidate.chosen for candidate in world.solve(query))
        guarded = Counter(candidate.chosen for candidate in world.solve(query, steps=20))
        self.assertLessEqual(guarded, whole)


def _wide(children: int, groups: int, policy: str = 'isolate', each: str = 'VGPU:1') -> tuple:
    drawing = '\n'.join(['R[V:1]', *(f'  C{n}[VGPU:1]' for n in range(children))])
    world = worlds.World.of(drawing)
    text = '&'.join(f'resources_{n}={each}' for n in range(groups))
    return world, world.parse(f'{text}&group_policy={policy}')


class StepsTest(base.BaseTestCase):
    """How much is tried."""

    def _steps(self, world: worlds.World, query: model.Query[int], take: int) -> tuple[int, int]:
        task = solver.Task.of(query)
        found = used = 0
        for anchor in world.anchors:
            steps = Steps()
            for _ in solver.solve(task, anchor, steps):
                found += 1
                if found == take:
                    break
            used += steps.used
        return found, used

    def test_all_arrangements(self):
        for policy in ('isolate', 'none'):
            found, _ = self._steps(*_wide(8, 8, policy), take=-1)
            self.assertEqual(40320, found)

    def test_the_first_ones_are_cheap(self):
        for width in (8, 21, 64):
            for policy in ('isolate', 'none'):
                found, steps = self._steps(*_wide(width, width, policy), take=10)
                self.assertEqual(10, found)
                self.assertLess(steps, 4 * width * width + 100 * width)

    def test_the_impossible_is_seen_at_once(self):
        for policy in ('isolate', 'none'):
            for groups in (8, 10, 64):
                found, steps = self._steps(*_wide(groups - 1, groups, policy), take=-1)
                self.assertEqual(0, found)
                self.assertLessEqual(steps, 2 * groups * groups)

    def test_late_dead_ends_are_seen(self):
        """Four groups that need a rare trait, five providers, of which three have it."""
        drawing = '\n'.join(
            ['R', *(f'  A{n}[VGPU:1] {{T1}}' for n in range(12)), '  X[VGPU:1] {T1 T2}',
             '  Y[VGPU:1] {T2}', '  Z[VGPU:1] {T2}']
        )  # fmt: skip
        world = worlds.World.of(drawing)
        text = '&'.join(
            [f'resources_{n}=VGPU:1' for n in range(8)]
            + [f'resources_b{n}=VGPU:1&required_b{n}=T2' for n in range(4)]
        )
        query = world.parse(f'{text}&group_policy=isolate')
        found, steps = self._steps(world, query, take=-1)
        self.assertEqual(0, found)
        self.assertLess(steps, 1000)

    def test_subtrees_that_must_be_apart(self):
        """Siblings have no common top among them: each pair of groups is hopeless by itself."""
        pairs = ((0, 1), (2, 3), (4, 5), (6, 7))
        world, query = _wide(60, 8)
        apart = dataclasses.replace(
            query, same_subtrees=tuple(frozenset((f'_{a}', f'_{b}')) for a, b in pairs)
        )
        found, steps = self._steps(world, apart, take=-1)
        self.assertEqual(0, found)
        self.assertLess(steps, 5000)

    def test_few_subtrees_for_many_pairs(self):
        """Every pair of groups finds a subtree, but there are not enough for all pairs."""
        nodes = (line for n in range(8) for line in (f'  N{n}[V:1]', f'    G{n}[VGPU:1]'))
        world = worlds.World.of('\n'.join(['R', *nodes]))
        for pairs, most in ((9, 2000), (8, 1500)):
            text = '&'.join(
                f'resources_C{n}=V:1&resources_G{n}=VGPU:1&same_subtree=_C{n},_G{n}'
                for n in range(pairs)
            )
            query = world.parse(f'{text}&group_policy=isolate')
            found, steps = self._steps(world, query, take=1)
            self.assertEqual(int(pairs == 8), found)
            self.assertLess(steps, most)

    def test_deep_trees(self):
        """Neither trees nor queries are limited by the depth of a stack."""
        depth = 1500
        world = worlds.World.of('\n'.join(f'{" " * n}D{n}[V:1]' for n in range(depth)))
        chain = '&'.join(f'same_subtree=_{n},_{n + 1}' for n in range(60))
        groups = '&'.join(f'resources_{n}=V:1' for n in range(61))
        found, steps = self._steps(
            world, world.parse(f'{groups}&{chain}&group_policy=isolate'), take=1
        )
        self.assertEqual(1, found)
        self.assertLess(steps, 10**6)

    def test_a_pause_loses_nothing(self):
        """The solver goes on where it paused, however short the turns are."""
        world, query = _wide(4, 4)
        steps = Steps(pause_at=0)
        found, pauses = [], 0
        for chosen in solver.solve(solver.Task.of(query), world.anchors[0], steps):
            if chosen is None:
                pauses += 1
                steps.pause_at = steps.used
                continue
            found.append(chosen)
        self.assertEqual(sorted(naive.solve(query, world.anchors[0])), sorted(found))
        self.assertGreater(pauses, 24)

    def test_search_limit(self):
        limit = SearchLimit(10)
        self.assertTrue(limit.spend(10))
        self.assertFalse(limit.incomplete)
        self.assertFalse(limit.spend(1))
        self.assertTrue(limit.incomplete)

    def test_no_search_limit(self):
        limit = SearchLimit(-1)
        self.assertTrue(limit.spend(10**12))
        self.assertFalse(limit.incomplete)


class FlowTest(base.BaseTestCase):
    """Whether all can be had."""

    def test_flows(self):
        room = {1: 1, 2: 1, 3: 2}
        for expected, wants in (
            (True, []),
            (True, [(4, (1, 2, 3))]),
            (False, [(5, (1, 2, 3))]),
            (True, [(2, (1, 2, 3)), (2, (1, 2))]),
            (False, [(2, (1, 2, 3)), (3, (1, 2))]),
            (True, [(1, (1, 2)), (1, (1,)), (2, (3,))]),
            (False, [(1, (1,)), (1, (1,))]),
            # What the first ones took has to be passed on twice.
            (True, [(1, (1, 2)), (1, (2, 3)), (1, (3, 1)), (1, (1,))]),
        ):
            self.assertEqual(expected, flow.feasible(wants, room.__getitem__, Steps()), wants)


class _Mutants(base.BaseTestCase):
    """Deliberate mistakes: the comparison with the definition must notice every one."""

    def _assert_caught(self, target: object, name: str, mistake: object) -> None:
        """Expect a difference in a worked example, or in a random world."""

        @hypothesis.settings(THOROUGH, max_examples=1000, phases=[hypothesis.Phase.generate])
        @hypothesis.given(self.questions)
        def same(question):
            _assert_same(*question)

        def same_in_examples():
            for case in cases.CASES:
                _assert_same(case.world, case.world.parse(case.query, case.version))

        with mock.patch.object(target, name, mistake):
            try:
                same_in_examples()
            except Exception:
                return
            self.assertRaises(Exception, same)


def _assert_same(world: worlds.World, query: model.Query[int]) -> None:
    assert sorted(_by_definition(world, query)) == sorted(_all(world, query))


class MutantsTest(_Mutants):
    """Deliberate mistakes about who may serve what."""

    questions = strategies.questions()

    def test_min_unit_is_forgotten(self):
        right = eligibility.can_serve

        def wrong(p, class_id, amount):
            record = p.stock.get(class_id)
            if record is None:
                return False
            free = p._replace(stock={class_id: record._replace(min_unit=1)})
            return right(free, class_id, amount)

        self._assert_caught(eligibility, 'can_serve', wrong)

    def test_forbidden_is_forgotten(self):
        self._assert_caught(eligibility, 'banned', lambda p, group: False)

    def test_member_of_is_forgotten(self):
        self._assert_caught(eligibility, 'in_aggregates', lambda p, group: True)

    def test_traits_of_granular_groups_are_forgotten(self):
        self._assert_caught(eligibility, 'has_traits', lambda traits, group: True)

    def test_collective_traits_are_forgotten(self):
        self._assert_caught(rules, 'collective_traits', lambda query, slots, servers: [])

    def test_collective_traits_are_asked_of_each(self):
        self._assert_caught(
            rules.OneOf, 'holds',
            lambda rule, bound: all(bound[slot] in rule.providers for slot in rule.slots),
        )  # fmt: skip

    def test_lenders_need_no_membership(self):
        right = eligibility.lends

        def wrong(p, group):
            return right(p, dataclasses.replace(group, member_of=()))

        self._assert_caught(eligibility, 'lends', wrong)

    def test_in_tree_still_borrows(self):
        right = eligibility.lends

        def wrong(p, group):
            if group.in_tree != p.root_id:
                return right(p, group)
            return right(p, dataclasses.replace(group, in_tree=None))

        self._assert_caught(eligibility, 'lends', wrong)

    def test_root_is_not_asked(self):
        self._assert_caught(eligibility, 'root_passes', lambda root, query: True)

    def test_nobody_lends(self):
        self._assert_caught(eligibility, 'lends', lambda p, group: False)

    def test_subtrees_have_no_top(self):
        def wrong(domains, *args):
            yield domains, []

        self._assert_caught(subtrees, 'split', wrong)

    def test_subtrees_end_at_the_children(self):
        right = subtrees.forest_of

        def wrong(providers):
            forest = right(providers)
            return dataclasses.replace(
                forest, end=[min(end, at + 2) for at, end in enumerate(forest.end)]
            )

        self._assert_caught(subtrees, 'forest_of', wrong)

    def test_old_clients_get_siblings(self):
        self._assert_caught(solver._Search, '_has_sibling', lambda *args: False)


class CrowdMutantsTest(_Mutants):
    """Deliberate mistakes about what several groups take from one provider."""

    questions = strategies.crowds()

    def test_usage_is_forgotten(self):
        self._assert_caught(
            contest, 'free_capacity', lambda p, c: min(p.stock[c].capacity, p.stock[c].max_unit)
        )

    def test_max_unit_of_the_sum_is_forgotten(self):
        self._assert_caught(
            contest, 'free_capacity', lambda p, c: p.stock[c].capacity - p.stock[c].used
        )

    def test_isolation_is_forgotten(self):
        right = contest.contest_of

        def wrong(*args):
            return dataclasses.replace(right(*args), isolated=frozenset())

        self._assert_caught(contest, 'contest_of', wrong)

    def test_flow_gives_up_too_early(self):
        with mock.patch.object(solver, 'TEST_AFTER', 0):
            self._assert_caught(flow._Flow, '_make_way', lambda *args: 0)

    def test_capacity_is_not_released(self):
        self._assert_caught(solver._Search, '_release', lambda *args: None)
