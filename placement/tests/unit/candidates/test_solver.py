"""Compare the solver with the definition (`naive`), and check properties of all candidates."""

from collections import Counter
import dataclasses
import itertools
import random
import sys
from unittest import mock

import hypothesis
from hypothesis import strategies as st
from oslotest import base

from placement import capacity
from placement.candidates import (
    backtracking,
    joint_conditions,
    model,
    provider_checks,
    same_subtree,
    solver,
)
from placement.candidates.budget import PAUSE, UNLIMITED, Budget, Pause, SearchLimit
from placement.tests import worlds
from placement.tests.properties import UnmeasuredTestCase, examples
from placement.tests.unit.candidates import cases
from placement.tests.worlds import naive, strategies

# Each run has the same examples, so that only a change of the code can cause a failure.
THOROUGH = hypothesis.settings(
    max_examples=examples(100),
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=list(hypothesis.HealthCheck),
)


def _all(world: worlds.World, query: model.Query[int]) -> list[tuple[int, ...]]:
    prepared = solver.PreparedQuery.of(query, one_per_tree=not query.nested)
    return [
        (anchor.root.id, *binding)
        for anchor in world.anchors
        for binding in solver.solve(prepared, anchor, Budget())
    ]


def _by_definition(world: worlds.World, query: model.Query[int]) -> list[tuple[int, ...]]:
    return [
        (anchor.root.id, *binding)
        for anchor in world.anchors
        for binding in naive.solve(query, anchor)
    ]


class DefinitionTest(UnmeasuredTestCase):
    """The solver returns the same candidates as the definition."""

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_same_as_by_definition(self, example):
        world, query = example
        self.assertEqual(sorted(_by_definition(world, query)), sorted(_all(world, query)))

    @THOROUGH
    @hypothesis.given(strategies.contended_searches())
    def test_same_as_by_definition_for_contended_inventories(self, example):
        world, query = example
        self.assertEqual(sorted(_by_definition(world, query)), sorted(_all(world, query)))

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_same_with_checks_at_every_step(self, example):
        """The checks during the search do not exclude any valid candidate."""
        world, query = example
        with mock.patch.object(backtracking, 'CHECK_AFTER', 0):
            found = _all(world, query)
        self.assertEqual(sorted(_all(world, query)), sorted(found))

    def test_candidates_can_be_claimed(self):
        checked = 0

        @THOROUGH
        @hypothesis.given(strategies.searches() | strategies.contended_searches())
        def check(example):
            nonlocal checked
            world, query = example
            for candidate in world.solve(query):
                checked += self._check_claim(world, model.slots_of(query), candidate.binding)

        check()
        self.assertGreater(checked, examples(50))

    def _check_claim(self, world, slots, binding) -> int:
        """Require that a candidate fits; return the number of its amounts."""
        checked = 0
        for host in world.providers:
            for class_id, inventory in host.inventories.items():
                amount = sum(
                    dict(slot.amounts).get(class_id, 0)
                    for slot, id_ in zip(slots, binding, strict=True)
                    if id_ == host.id
                )
                if amount:
                    checked += 1
                    self.assertLessEqual(inventory.used + amount, inventory.capacity)
                    self.assertLessEqual(amount, inventory.max_unit)
        return checked

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_a_larger_total_loses_no_candidate(self, example):
        world, query = example
        larger = worlds.World(
            tuple(
                dataclasses.replace(
                    host,
                    inventories={
                        name: {**inventory, 'total': inventory['total'] + 1}
                        for name, inventory in host.inventories.items()
                    },
                )
                for host in world.hosts
            )
        )
        self.assertLessEqual(set(_all(world, query)), set(_all(larger, query)))

    @THOROUGH
    @hypothesis.given(strategies.searches())
    def test_a_limited_search_returns_a_subset(self, example):
        world, query = example
        whole = Counter(candidate.binding for candidate in world.solve(query))
        limited = Counter(candidate.binding for candidate in world.solve(query, steps=20))
        self.assertLessEqual(limited, whole)


def _search(
    world: worlds.World, query: model.Query[int], steps: int, seed: int | None
) -> list[tuple[list[model.Binding | Pause], int]]:
    """Return the bindings and the number of steps of a search in each tree.

    :param steps: the number of steps after which the search of each tree ends
    :param seed: randomizes the order of the options; None for a fixed order
    """
    prepared = solver.PreparedQuery.of(query, one_per_tree=not query.nested)
    result = []
    for anchor in world.anchors:
        budget = Budget(steps)
        rng = None if seed is None else random.Random(seed)
        found = solver.solve(prepared, anchor, budget, rng)
        bindings = list(itertools.takewhile(lambda binding: binding is not PAUSE, found))
        result.append((bindings, budget.used))
    return result


class OrderTest(UnmeasuredTestCase):
    """What a client writes first has no effect on the search."""

    @THOROUGH
    @hypothesis.given(
        strategies.searches() | strategies.packings(), st.sampled_from((None, 1)), st.data()
    )
    def test_order_of_the_groups(self, example, seed, data):
        """A search with other orders of groups and classes takes the same steps."""
        world, query = example
        groups = [
            dataclasses.replace(group, amounts=tuple(data.draw(st.permutations(group.amounts))))
            for group in data.draw(st.permutations(query.groups))
        ]
        other = dataclasses.replace(
            query,
            groups=tuple(groups),
            same_subtrees=tuple(data.draw(st.permutations(query.same_subtrees))),
        )
        for steps in (40, 200, UNLIMITED):
            self.assertEqual(_search(world, query, steps, seed), _search(world, other, steps, seed))

    @THOROUGH
    @hypothesis.given(strategies.packings(), st.data())
    def test_suffixes(self, example, data):
        """A search with other suffixes finds as many candidates in as many steps."""
        world, query = example
        suffixes = data.draw(st.permutations([group.suffix for group in query.groups]))
        other = dataclasses.replace(
            query,
            groups=tuple(
                dataclasses.replace(group, suffix=suffix)
                for group, suffix in zip(query.groups, suffixes, strict=True)
            ),
        )
        for steps in (40, 200, UNLIMITED):
            ((expected, used),) = _search(world, query, steps, None)
            ((found, used_by_other),) = _search(world, other, steps, None)
            self.assertEqual((len(expected), used), (len(found), used_by_other))

    @hypothesis.settings(THOROUGH, max_examples=examples(1000))
    @hypothesis.given(strategies.tight_searches())
    def test_checks_exclude_no_candidate(self, example):
        """The checks of unequal amounts, and skipped options, exclude no candidate."""
        world, query = example
        with mock.patch.object(backtracking, 'CHECK_AFTER', 0):
            found = _all(world, query)
        self.assertEqual(sorted(_by_definition(world, query)), sorted(found))

    def test_many_different_groups(self):
        """More than 16 kinds of groups share one list of options, but are not alike."""
        amounts = range(101, 118)
        world = worlds.World.of(f'R\n  A[V:217]\n  B[V:{sum(amounts) - 217}]')
        text = '&'.join(f'resources_{n}=V:{n}' for n in amounts)
        found = _all(world, world.parse(f'{text}&group_policy=none'))
        self.assertEqual(8, len(found))  # two groups exhaust A: 101 and 116, 102 and 115, ...


def _wide(children: int, groups: int, policy: str = 'isolate') -> tuple:
    drawing = '\n'.join(['R[V:1]', *(f'  C{n}[VGPU:1]' for n in range(children))])
    world = worlds.World.of(drawing)
    text = '&'.join(f'resources_{n}=VGPU:1' for n in range(groups))
    return world, world.parse(f'{text}&group_policy={policy}')


def _groups(count: int) -> str:
    return '&'.join(f'resources_{n}=V:1' for n in range(count))


class StepsTest(base.BaseTestCase):
    """The number of search steps of typical searches."""

    def _steps(self, world: worlds.World, query: model.Query[int], take: int) -> tuple[int, int]:
        prepared = solver.PreparedQuery.of(query)
        found = used = 0
        for anchor in world.anchors:
            budget = Budget(10**7)
            for binding in solver.solve(prepared, anchor, budget):
                found += binding is not PAUSE
                if found == take or binding is PAUSE:
                    break
            used += budget.used
        return found, used

    def test_all_permutations(self):
        for policy in ('isolate', 'none'):
            found, _ = self._steps(*_wide(8, 8, policy), take=-1)
            self.assertEqual(40320, found)

    def test_the_first_candidates_take_few_steps(self):
        for width in (8, 21, 64):
            for policy in ('isolate', 'none'):
                found, steps = self._steps(*_wide(width, width, policy), take=10)
                self.assertEqual(10, found)
                self.assertLess(steps, 4 * width * width + 100 * width)

    def test_an_impossible_query_takes_few_steps(self):
        for policy in ('isolate', 'none'):
            for groups in (8, 10, 64):
                found, steps = self._steps(*_wide(groups - 1, groups, policy), take=-1)
                self.assertEqual(0, found)
                self.assertLessEqual(steps, 2 * groups * groups)

    def test_impossible_groups_among_many_take_few_steps(self):
        """Four groups require a trait that only three providers have."""
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

    def test_unequal_amounts_take_few_steps(self):
        """Neither the order of the groups nor the amounts make a search long."""
        six = [100, 300, 600] * 6
        for totals, amounts, most in (
            # Large amounts must be bound before small ones.
            ([1000] * 6, six, 10),
            ([1000] * 5, six[:15], 10),
            # The total is large enough, but 600 fits only once in each provider.
            ([1000] * 8, [600] * 9, 0),
            ([1000] * 8, [600] * 9 + [100] * 4, 0),
            ([1000] * 7 + [500] * 5, [600] * 8 + [100] * 4, 0),
            # 301 fits into no provider after 700, but only the search finds that out.
            ([1000] * 20, [700] * 20 + [301] * 5, 0),
            # Alike groups and providers can be exchanged in many ways.
            ([10] * 4, [6, 6, 6, 6, 3, 3, 3, 5], 0),
        ):
            drawing = '\n'.join(['R', *(f'  C{n}[V:{total}]' for n, total in enumerate(totals))])
            world = worlds.World.of(drawing)
            for ordered in (amounts, sorted(amounts), sorted(amounts, reverse=True)):
                text = '&'.join(f'resources_{n}=V:{amount}' for n, amount in enumerate(ordered))
                found, steps = self._steps(world, world.parse(f'{text}&group_policy=none'), take=10)
                self.assertEqual(most, found, ordered)
                self.assertLess(steps, 2500, ordered)

    def test_unequal_amounts_of_two_classes_take_few_steps(self):
        for totals, pairs in (
            ([10] * 4, [(6, 2), (2, 6)] * 4 + [(3, 3)] * 2),
            # All providers differ, but many groups are alike.
            ([16, 10, 14, 18, 17], [(9, 9)] * 5 + [(6, 6)] * 2 + [(9, 6), (6, 9)]),
        ):
            lines = (f'  C{n}[V:{total}, M:{total}]' for n, total in enumerate(totals))
            world = worlds.World.of('\n'.join(['R', *lines]))
            for ordered in (pairs, sorted(pairs), sorted(pairs, reverse=True)):
                text = '&'.join(f'resources_{n}=V:{v},M:{m}' for n, (v, m) in enumerate(ordered))
                found, steps = self._steps(world, world.parse(f'{text}&group_policy=none'), take=1)
                self.assertEqual(0, found)
                self.assertLess(steps, 2500, ordered)

    def test_different_groups_and_providers_take_few_steps(self):
        """If all groups and providers differ, only the necessary conditions keep a search short."""
        twelve = [('T1',)] * 12
        pairs = [('T1',)] * 9 + [('T2',)] * 9
        overlapping = [[f'T{n + more}' for more in range(4)] for n in range(20)]
        for traits, required in (
            # Each provider can serve only one group.
            (twelve, ['T1'] * 13),
            (pairs, ['T2'] * 10 + ['T1'] * 8),
            (overlapping, [f'T{n}' for n in (*range(3, 20), 5, 9, 13, 17)]),
        ):
            lines = (
                f'  C{n}[V:{1000 + n}] {{{" ".join(names)}}}' for n, names in enumerate(traits)
            )
            world = worlds.World.of('\n'.join(['R', *lines]))
            text = '&'.join(
                f'resources_{n}=V:{600 + n}&required_{n}={name}' for n, name in enumerate(required)
            )
            found, steps = self._steps(world, world.parse(f'{text}&group_policy=none'), take=-1)
            self.assertEqual(0, found)
            self.assertLess(steps, 2500, required)

    def test_siblings_are_no_subtree(self):
        """Neither of two siblings is an ancestor of the other, so siblings cannot serve a pair."""
        pairs = ((0, 1), (2, 3), (4, 5), (6, 7))
        world, query = _wide(60, 8)
        paired = dataclasses.replace(
            query, same_subtrees=tuple(frozenset((f'_{a}', f'_{b}')) for a, b in pairs)
        )
        found, steps = self._steps(world, paired, take=-1)
        self.assertEqual(0, found)
        self.assertLess(steps, 5000)

    def test_few_subtrees_for_many_pairs(self):
        """Each pair of groups needs its own subtree. Eight subtrees are too few for nine pairs."""
        nodes = (line for n in range(8) for line in (f'  N{n}[V:1]', f'    G{n}[VGPU:1]'))
        world = worlds.World.of('\n'.join(['R', *nodes]))
        for pairs, most in ((9, 2500), (8, 2000)):
            text = '&'.join(
                f'resources_C{n}=V:1&resources_G{n}=VGPU:1&same_subtree=_C{n},_G{n}'
                for n in range(pairs)
            )
            query = world.parse(f'{text}&group_policy=isolate')
            found, steps = self._steps(world, query, take=1)
            self.assertEqual(int(pairs == 8), found)
            self.assertLess(steps, most)

    def test_steps_grow_with_the_work(self):
        """One step is at most a few function calls, whatever a search does."""
        deep = [f'{" " * n}D{n}[V:100] {{T1}}' for n in range(100)]
        wide = ['R', *(f'  C{n}[V:100] {{T1 T2}}' for n in range(100))]
        flat = ['H[V:100] {T1}', 'X[V:100] {T3 T4}']
        chain = '&'.join(f'same_subtree=_{n},_{n + 1}' for n in range(39))
        different = '&'.join(f'resources_{n}=V:{n + 1}' for n in range(40))
        subsets = itertools.combinations((*worlds.EXISTING_TRAITS, 'T3', 'T4'), 3)
        any_sets = '&'.join(f'required=in:T1,{",".join(few)}' for few in subsets)
        for drawing, query in (
            (deep, f'{_groups(40)}&{chain}&group_policy=isolate'),
            (deep, f'{_groups(40)}&{chain}&group_policy=none'),
            (deep, f'{different}&{chain}&group_policy=none'),
            (wide, f'{different}&group_policy=none'),
            (wide, f'{_groups(40)}&group_policy=isolate'),
            (flat, f'resources=V:1&{any_sets}'),
        ):
            world = worlds.World.of('\n'.join(drawing))
            calls, steps = self._calls_and_steps(world, world.parse(query), most=20_000)
            self.assertLess(calls, 12 * steps, query)

    def _calls_and_steps(
        self, world: worlds.World, query: model.Query[int], most: int
    ) -> tuple[int, int]:
        """Return the number of function calls of a search with a limit, and of its steps."""
        prepared = solver.PreparedQuery.of(query)
        calls, used = 0, 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ('call', 'c_call')

        for anchor in world.anchors:
            budget = Budget(most)
            previous = sys.getprofile()
            sys.setprofile(count)
            try:
                all(binding is not PAUSE for binding in solver.solve(prepared, anchor, budget))
            finally:
                sys.setprofile(previous)
            used += budget.used
        return calls, used

    def test_deep_trees(self):
        """Python's recursion limit limits neither the depth of trees nor the number of groups."""
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
        """After each pause, the solver continues where it paused, even after every step."""
        world, query = _wide(4, 4)
        budget = Budget(0)
        found, pauses = [], 0
        for binding in solver.solve(solver.PreparedQuery.of(query), world.anchors[0], budget):
            if binding is PAUSE:
                pauses += 1
                budget.grant(0)
                continue
            found.append(binding)
        self.assertEqual(sorted(naive.solve(query, world.anchors[0])), sorted(found))
        self.assertGreater(pauses, 24)

    def test_a_budget_counts_the_steps_of_all_slices(self):
        budget = Budget(10)
        budget.spend(12)
        self.assertEqual(12, budget.new_steps())
        budget.grant(5)
        budget.spend(1)
        self.assertEqual((4, 13), (budget.left, budget.used))
        self.assertEqual(1, budget.new_steps())
        self.assertEqual(0, budget.new_steps())

    def test_search_limit(self):
        limit = SearchLimit(10)
        self.assertTrue(limit.spend(10))
        self.assertFalse(limit.exceeded)
        self.assertFalse(limit.spend(1))
        self.assertTrue(limit.exceeded)

    def test_no_search_limit(self):
        limit = SearchLimit(-1)
        self.assertTrue(limit.spend(10**12))
        self.assertFalse(limit.exceeded)


class _Mutants(UnmeasuredTestCase):
    """Inserts mistakes into the solver. The comparison with the definition must detect them."""

    def _assert_caught(self, target: object, name: str, mistake: object) -> None:
        """Require that a mistake causes a difference in a worked example or in a random world."""

        @hypothesis.settings(THOROUGH, max_examples=1000, phases=[hypothesis.Phase.generate])
        @hypothesis.given(self.examples)
        def same(example):
            _assert_same(*example)

        def same_in_examples():
            for case in cases.CASES:
                _assert_same(case.world, case.world.parse(case.row.query, case.version))

        with mock.patch.object(target, name, mistake):
            try:
                same_in_examples()
            except AssertionError:
                return
            self.assertRaises(AssertionError, same)


def _assert_same(world: worlds.World, query: model.Query[int]) -> None:
    assert sorted(_by_definition(world, query)) == sorted(_all(world, query))


class MutantsTest(_Mutants):
    """Deliberate mistakes in the conditions on providers."""

    examples = strategies.searches()

    def test_min_unit_is_ignored(self):
        right = provider_checks.can_allocate

        def wrong(p, class_id, amount):
            inventory = p.inventories.get(class_id)
            if inventory is None:
                return False
            changed = p._replace(inventories={class_id: inventory._replace(min_unit=1)})
            return right(changed, class_id, amount)

        self._assert_caught(provider_checks, 'can_allocate', wrong)

    def test_forbidden_is_ignored(self):
        self._assert_caught(provider_checks, 'is_forbidden', lambda p, group: False)

    def test_member_of_is_ignored(self):
        self._assert_caught(provider_checks, 'satisfies_member_of', lambda p, group: True)

    def test_traits_of_suffixed_groups_are_ignored(self):
        self._assert_caught(provider_checks, 'satisfies_required', lambda traits, group: True)

    def test_collective_traits_are_ignored(self):
        self._assert_caught(solver, 'collective_traits', lambda query, slots, eligible: [])

    def test_collective_traits_are_required_of_each_provider(self):
        def wrong(trait, binding):
            return all(binding[slot] in trait.providers for slot in trait.slots)

        self._assert_caught(joint_conditions.CollectiveTrait, 'is_satisfied', wrong)

    def test_sharing_providers_need_no_member_of(self):
        right = provider_checks.may_serve_other_trees

        def wrong(p, group):
            return right(p, dataclasses.replace(group, member_of=()))

        self._assert_caught(provider_checks, 'may_serve_other_trees', wrong)

    def test_in_tree_allows_sharing_providers(self):
        right = provider_checks.may_serve_other_trees

        def wrong(p, group):
            if group.in_tree != p.root_id:
                return right(p, group)
            return right(p, dataclasses.replace(group, in_tree=None))

        self._assert_caught(provider_checks, 'may_serve_other_trees', wrong)

    def test_root_required_is_ignored(self):
        self._assert_caught(provider_checks, 'is_anchor', lambda root, query: True)

    def test_no_provider_shares(self):
        self._assert_caught(provider_checks, 'may_serve_other_trees', lambda p, group: False)

    def test_subtrees_have_no_top(self):
        def wrong(division):
            yield division._all_options

        self._assert_caught(same_subtree.Division, 'parts', wrong)

    def test_subtrees_end_at_the_children(self):
        right = same_subtree.forest_of

        def wrong(providers):
            forest = right(providers)
            return dataclasses.replace(
                forest, end=[min(end, at + 2) for at, end in enumerate(forest.end)]
            )

        self._assert_caught(same_subtree, 'forest_of', wrong)

    def test_old_clients_get_siblings(self):
        self._assert_caught(backtracking._Search, '_has_sibling', lambda *args: False)


class JointConditionsMutantsTest(_Mutants):
    """Deliberate mistakes in the sums of what several groups request from one provider."""

    examples = strategies.contended_searches()

    def test_usage_is_ignored(self):
        self._assert_caught(
            joint_conditions,
            'free_capacity_of',
            lambda inventory: min(int(inventory.capacity), inventory.max_unit),
        )

    def test_max_unit_of_the_sum_is_ignored(self):
        self._assert_caught(
            joint_conditions,
            'free_capacity_of',
            lambda inventory: int(inventory.capacity) - inventory.used,
        )

    def test_isolation_is_ignored(self):
        right = solver.PreparedQuery.of

        def wrong(query, one_per_tree=False):
            return dataclasses.replace(right(query, one_per_tree), isolated=frozenset())

        self._assert_caught(solver.PreparedQuery, 'of', wrong)

    def test_capacity_is_not_released(self):
        self._assert_caught(backtracking._Search, '_release', lambda *args: None)


class CapacityTest(UnmeasuredTestCase):
    """`can_allocate` has a faster implementation of the rules in `capacity`."""

    @THOROUGH
    @hypothesis.given(strategies.clouds(), st.integers(1, 6))
    def test_same_as_capacity(self, world, amount):
        for provider in world.providers:
            for class_id, inventory in provider.inventories.items():
                expected = capacity.fits(
                    amount, inventory.used, inventory.capacity
                ) and not capacity.unit_violation(
                    amount, inventory.min_unit, inventory.max_unit, inventory.step_size
                )
                actual = provider_checks.can_allocate(provider, class_id, amount)
                self.assertEqual(expected, actual, inventory)
