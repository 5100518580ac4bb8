"""The solver against the definition, and what holds for any world."""

import dataclasses
from unittest import mock

import hypothesis
from oslotest import base

from placement.candidates import eligibility, model, rules, solver
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
        for chosen in solver.solve(task, anchor, solver.Effort())
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
        with mock.patch.object(solver, 'PATIENCE', 0):
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
        whole = world.solve(query)
        guarded = world.solve(query, steps=20)
        self.assertEqual(whole[: len(guarded)], guarded)


def _wide(children: int, groups: int, policy: str = 'isolate', each: str = 'VGPU:1') -> tuple:
    drawing = '\n'.join(['R[V:1]', *(f'  C{n}[VGPU:1]' for n in range(children))])
    world = worlds.World.of(drawing)
    text = '&'.join(f'resources_{n}={each}' for n in range(groups))
    return world, world.parse(f'{text}&group_policy={policy}')


class EffortTest(base.BaseTestCase):
    """How much is tried."""

    def _steps(self, world: worlds.World, query: model.Query[int], take: int) -> tuple[int, int]:
        effort = solver.Effort(10**7)
        task = solver.Task.of(query)
        found = 0
        for anchor in world.anchors:
            for _ in solver.solve(task, anchor, effort):
                found += 1
                if found == take:
                    break
        self.assertFalse(effort.struck)
        return found, int(10**7 - effort.left)

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
                self.assertLessEqual(steps, groups * groups)

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

    def test_guard(self):
        world, query = _wide(8, 8)
        effort = solver.Effort(1000)
        found = list(solver.solve(solver.Task.of(query), world.anchors[0], effort))
        self.assertTrue(effort.struck)
        self.assertTrue(0 < len(found) < 40320)

    def test_no_guard(self):
        effort = solver.Effort(-1)
        self.assertTrue(effort.spend(10**12))
        self.assertFalse(effort.struck)


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
            self.assertEqual(expected, rules.can_flow(wants, room), wants)


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
        self._assert_caught(rules, 'collective_traits', lambda slots, servers: [])

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
        def wrong(domains, subtrees, lines, effort):
            yield domains, []

        self._assert_caught(solver, '_narrow', wrong)

    def test_lines_end_at_the_parent(self):
        self._assert_caught(
            rules, 'lines_of', lambda ps: {p.id: frozenset((p.id, p.parent_id)) for p in ps}
        )

    def test_old_clients_get_siblings(self):
        self._assert_caught(solver._Search, '_has_sibling', lambda *args: False)


class CrowdMutantsTest(_Mutants):
    """Deliberate mistakes about what several groups take from one provider."""

    questions = strategies.crowds()

    def test_usage_is_forgotten(self):
        self._assert_caught(
            solver, '_room', lambda p, c: min(p.stock[c].capacity, p.stock[c].max_unit)
        )

    def test_max_unit_of_the_sum_is_forgotten(self):
        self._assert_caught(solver, '_room', lambda p, c: p.stock[c].capacity - p.stock[c].used)

    def test_isolation_is_forgotten(self):
        right = solver._problem

        def wrong(*args):
            return dataclasses.replace(right(*args), isolated=frozenset())

        self._assert_caught(solver, '_problem', wrong)

    def test_flow_gives_up_too_early(self):
        with mock.patch.object(solver, 'PATIENCE', 0):
            self._assert_caught(rules, '_make_way', lambda *args: 0)

    def test_room_is_not_given_back(self):
        self._assert_caught(solver._Search, '_give_back', lambda *args: None)
