"""Compare the solver with the definition (`naive`), and limit the steps of hard searches."""

from collections import Counter
from collections.abc import Iterable, Sequence
import dataclasses
import itertools
import random
import sys
from unittest import mock

from oslotest import base

from placement import capacity
from placement.candidates import eligibility, model, solver
from placement.tests import worlds
from placement.tests.properties import UnmeasuredTestCase, randoms
from placement.tests.unit.candidates import cases
from placement.tests.worlds import naive, seeded


class WorkedExamplesTest(base.BaseTestCase):
    def test_each_row(self):
        for case in cases.CASES:
            query = case.world.parse(case.row.query, case.version)
            with self.subTest(case.name):
                found = case.world.with_names(query, case.world.solve(query))
                self.assertEqual(case.expected, case.comparable(found))


class DefinitionTest(base.BaseTestCase):
    """The solver returns the same candidates as the definition."""

    def test_random_worlds(self):
        for kind, number in (
            (seeded.search, 600),
            (seeded.sharing, 200),
            (seeded.contended, 200),
            (seeded.packing, 100),
        ):
            self._compare(kind, number)

    def test_checks_exclude_no_candidate(self):
        """The checks in long searches, and skipped options, do not exclude any valid candidate."""
        with mock.patch.object(solver.backtracking, 'CHECK_AFTER', 0):
            for kind, number in ((seeded.search, 200), (seeded.packing, 100), (seeded.tight, 1000)):
                self._compare(kind, number)

    def _compare(self, kind, number):
        for rng in randoms(number):
            search = kind(rng)
            with self.subTest(text=search.text, version=str(search.version)):
                query = search.query
                expected = search.world.solve(query, find=lambda a, q=query: naive.solve(q, a))
                found = search.world.solve(query)
                self.assertEqual(sorted(expected), sorted(found))
                limited = search.world.solve(query, 20)
                self.assertLessEqual(_bindings(limited), _bindings(found))

    def test_many_different_groups(self):
        """More than 16 kinds of groups share one list of options, but are not alike."""
        amounts = range(101, 118)
        world = worlds.World.of(f'R\n  A[V:217]\n  B[V:{sum(amounts) - 217}]')
        found = world.solve(world.parse(_text([f'V:{n}' for n in amounts])))
        self.assertEqual(8, len(found))  # two groups exhaust A: 101 and 116, 102 and 115, ...

    def test_the_rules_of_capacity(self):
        """`can_allocate` has a faster implementation of the rules in `capacity`."""
        for rng in randoms(100):
            for provider in seeded.world(rng).providers:
                for class_id, one in provider.inventories.items():
                    for amount in range(1, 7):
                        expected = capacity.fits(
                            amount, one.used, one.capacity
                        ) and not capacity.unit_violation(
                            amount, one.min_unit, one.max_unit, one.step_size
                        )
                        actual = eligibility.can_allocate(provider, class_id, amount)
                        self.assertEqual(expected, actual, one)


def _bindings(candidates: Iterable[model.Candidate]) -> Counter[model.Binding]:
    return Counter(candidate.binding for candidate in candidates)


class OrderTest(UnmeasuredTestCase):
    """What a client writes first has no effect on the search."""

    def test_order_of_the_groups(self):
        """A search with other orders of groups and classes takes the same steps."""
        for kind, rng in itertools.product((seeded.search, seeded.packing), randoms(60)):
            search = kind(rng)
            query = search.query
            groups = [
                dataclasses.replace(one, amounts=_shuffled(rng, one.amounts))
                for one in _shuffled(rng, query.groups)
            ]
            subtrees = _shuffled(rng, query.same_subtrees)
            other = dataclasses.replace(query, groups=tuple(groups), same_subtrees=subtrees)
            for steps in (20, 40, 200, solver.UNLIMITED):
                for seed in (None, 1):
                    one, same = (
                        search.world.solve(q, steps, seed if seed is None else random.Random(seed))
                        for q in (query, other)
                    )
                    self.assertEqual(one, same, search.text)

    def test_suffixes(self):
        """A search with other suffixes finds as many candidates."""
        for rng in randoms(100):
            search = seeded.packing(rng)
            query = search.query
            suffixes = _shuffled(rng, [group.suffix for group in query.groups])
            groups = (
                dataclasses.replace(group, suffix=suffix)
                for group, suffix in zip(query.groups, suffixes, strict=True)
            )
            other = dataclasses.replace(query, groups=tuple(groups))
            self.assertEqual(len(search.world.solve(query)), len(search.world.solve(other)))


def _shuffled(rng: random.Random, items: Sequence[object]) -> tuple[object, ...]:
    return tuple(rng.sample(items, len(items)))


def _text(resources: Sequence[str], *more: str, policy: str = 'none') -> str:
    """Return a query with a suffixed group for each value of `resources`."""
    groups = (f'resources_{n}={value}' for n, value in enumerate(resources))
    return '&'.join((*groups, *more, f'group_policy={policy}'))


def _wide(lines: Sequence[str], root: str = 'R') -> worlds.World:
    """Return a tree of a root and its children."""
    return worlds.World.of('\n'.join([root, *(f'  {line}' for line in lines)]))


class StepsTest(base.BaseTestCase):
    """The number of search steps of hard searches."""

    def _search(
        self, world: worlds.World, text: str, steps: int, take: int | None = None
    ) -> tuple[int, bool]:
        """Return how many candidates a search finds, and whether it is complete.

        :param steps: the number of steps after which the search of each tree ends
        :param take: the number of candidates after which the search ends
        """
        prepared = model.PreparedQuery.of(world.parse(text))
        found, complete = 0, True
        for anchor in world.anchors:
            bindings = solver.bindings(prepared, anchor, steps)
            while found != take:
                try:
                    next(bindings)
                except StopIteration as end:
                    complete &= end.value
                    break
                found += 1
        return found, complete

    def _check(self, expected: int, world: worlds.World, text: str, steps: int) -> None:
        """Require that a search finds as many candidates, or none, within a number of steps."""
        found = self._search(world, text, steps, take=expected or None)
        self.assertEqual((expected, True), found, text)

    def test_a_search_that_leaves_out_candidates_is_not_complete(self):
        """Whatever its number of steps is, for example exactly those of its first candidates."""
        world = _wide([f'C{n}[VGPU:1]' for n in range(4)])
        text = _text(['VGPU:1'] * 3, policy='isolate')
        self.assertEqual((24, True), self._search(world, text, 500))
        for steps in range(500):
            found, complete = self._search(world, text, steps)
            self.assertTrue(found == 24 or not complete, steps)

    def test_all_permutations(self):
        world = _wide([f'C{n}[VGPU:1]' for n in range(8)])
        for policy in ('isolate', 'none'):
            text = _text(['VGPU:1'] * 8, policy=policy)
            self.assertEqual((40320, True), self._search(world, text, 10**7))

    def test_the_first_candidates_take_few_steps(self):
        for width in (8, 21, 64):
            world = _wide([f'C{n}[VGPU:1]' for n in range(width)])
            for policy in ('isolate', 'none'):
                steps = 4 * width * width + 100 * width
                self._check(10, world, _text(['VGPU:1'] * width, policy=policy), steps)

    def test_an_impossible_query_takes_few_steps(self):
        for policy in ('isolate', 'none'):
            for groups in (8, 10, 64):
                world = _wide([f'C{n}[VGPU:1]' for n in range(groups - 1)])
                text = _text(['VGPU:1'] * groups, policy=policy)
                self._check(0, world, text, 2 * groups * groups)

    def test_impossible_groups_among_many_take_few_steps(self):
        """Four groups require a trait that only three providers have."""
        both = ['X[VGPU:1] {T1 T2}', 'Y[VGPU:1] {T2}', 'Z[VGPU:1] {T2}']
        world = _wide([*(f'A{n}[VGPU:1] {{T1}}' for n in range(12)), *both])
        required = [f'required_{n}=T2' for n in range(8, 12)]
        self._check(0, world, _text(['VGPU:1'] * 12, *required, policy='isolate'), 1000)

    def test_unequal_amounts_take_few_steps(self):
        """Neither the order of the groups nor the amounts make a search long."""
        six = [100, 300, 600] * 6
        pairs = [(6, 2), (2, 6)] * 4 + [(3, 3)] * 2
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
            # Two classes.
            ([10] * 4, pairs, 0),
            # All providers differ, but many groups are alike.
            ([16, 10, 14, 18, 17], [(9, 9)] * 5 + [(6, 6)] * 2 + [(9, 6), (6, 9)], 0),
        ):
            world = _wide([f'C{n}[V:{total}, M:{total}]' for n, total in enumerate(totals)])
            for ordered in (amounts, sorted(amounts), sorted(amounts, reverse=True)):
                values = [
                    f'V:{one}' if isinstance(one, int) else f'V:{one[0]},M:{one[1]}'
                    for one in ordered
                ]
                self._check(most, world, _text(values), 1500)

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
            world = _wide(
                [f'C{n}[V:{1000 + n}] {{{" ".join(names)}}}' for n, names in enumerate(traits)]
            )
            conditions = [f'required_{n}={name}' for n, name in enumerate(required)]
            values = [f'V:{600 + n}' for n in range(len(required))]
            self._check(0, world, _text(values, *conditions), 2500)

    def test_siblings_are_no_subtree(self):
        """Neither of two siblings is an ancestor of the other, so siblings cannot serve a pair."""
        world = _wide([f'C{n}[VGPU:1]' for n in range(60)], 'R[V:1]')
        pairs = [f'same_subtree=_{n},_{n + 1}' for n in (0, 2, 4, 6)]
        self._check(0, world, _text(['VGPU:1'] * 8, *pairs, policy='isolate'), 5000)

    def test_few_subtrees_for_many_pairs(self):
        """Each pair of groups needs its own subtree. Eight subtrees are too few for nine pairs."""
        nodes = [line for n in range(8) for line in (f'N{n}[V:1]', f'  G{n}[VGPU:1]')]
        for pairs, most in ((9, 2500), (8, 2000)):
            text = '&'.join(
                f'resources_C{n}=V:1&resources_G{n}=VGPU:1&same_subtree=_C{n},_G{n}'
                for n in range(pairs)
            )
            self._check(int(pairs == 8), _wide(nodes), f'{text}&group_policy=isolate', most)

    def test_steps_grow_with_the_work(self):
        """One step is at most a few function calls, whatever a search does."""
        deep = [f'{" " * n}D{n}[V:100] {{T1}}' for n in range(100)]
        wide = ['R', *(f'  C{n}[V:100] {{T1 T2}}' for n in range(100))]
        chain = [f'same_subtree=_{n},_{n + 1}' for n in range(39)]
        different = [f'V:{n + 1}' for n in range(40)]
        for drawing, text in (
            (deep, _text(['V:1'] * 40, *chain, policy='isolate')),
            (deep, _text(['V:1'] * 40, *chain)),
            (deep, _text(different, *chain)),
            (wide, _text(different)),
            (wide, _text(['V:1'] * 40, policy='isolate')),
        ):
            world = worlds.World.of('\n'.join(drawing))
            self.assertFalse(self._search(world, text, 20_000)[1], text)
            self.assertLess(self._calls(world, text, 20_000), 12 * 20_000, text)

    def _calls(self, world: worlds.World, text: str, steps: int) -> int:
        """Return the number of function calls of a search."""
        prepared = model.PreparedQuery.of(world.parse(text))
        calls = 0

        def count(_frame: object, event: str, _argument: object) -> None:
            nonlocal calls
            calls += event in ('call', 'c_call')

        for anchor in world.anchors:
            previous = sys.getprofile()
            sys.setprofile(count)
            try:
                all(solver.bindings(prepared, anchor, steps))
            finally:
                sys.setprofile(previous)
        return calls

    def test_deep_trees(self):
        """Python's recursion limit limits neither the depth of trees nor the number of groups."""
        world = worlds.World.of('\n'.join(f'{" " * n}D{n}[V:1]' for n in range(1500)))
        chain = [f'same_subtree=_{n},_{n + 1}' for n in range(60)]
        self._check(1, world, _text(['V:1'] * 61, *chain, policy='isolate'), 10**6)

    def test_provider_that_is_its_own_ancestor(self):
        """A damaged database may have such providers, or a provider whose parent is missing."""
        world = worlds.World.of('A[V:1]\n  B[VF:1]\n  C[VGPU:1]\n    D[V:1]')
        text = 'resources1=VGPU:1&resources2=V:1&group_policy=none&same_subtree=1,2'
        prepared = model.PreparedQuery.of(world.parse(text))
        (anchor,) = world.anchors
        a, b, c, d = anchor.tree
        for parent, expected in ((a.id, {(c.id, a.id), (c.id, d.id)}), (d.id, {(c.id, d.id)}),
                                 (99, {(c.id, d.id)})):  # fmt: skip
            changed = anchor._replace(tree=(a, b, c._replace(parent_id=parent), d))
            self.assertEqual(expected, set(solver.bindings(prepared, changed)), parent)
