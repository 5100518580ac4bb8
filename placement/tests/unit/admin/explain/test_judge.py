"""Searches that reach the search limit, and queries with many conditions."""

from oslotest import base

from placement.admin import progress
from placement.admin.explain import conditions, judge, patterns, relaxations
from placement.admin.explain.checks import Checks
from placement.candidates import request
from placement.candidates.budget import SearchLimit
from placement.tests import worlds

# Eight devices, for nine groups that need one device each.
DEVICES = worlds.World.of('R[V:8]\n' + ''.join(f'  D{n}[VGPU:1 ]\n' for n in range(8)))
GROUPS = '&'.join(f'resources_{n}=VGPU:1' for n in range(9)) + '&group_policy=isolate'


def judge_of(world: worlds.World, text: str) -> judge.Judge:
    pairs = [tuple(item.split('=')) for item in text.split('&')]
    query = request.parse(pairs, worlds.NEWEST)
    every = conditions.conditions_of(pairs, worlds.NEWEST, query)
    seen = patterns.Patterns(request.with_ids(query, world.ids))
    seen.add(world.anchors)
    by_failures = judge.by_failures(
        Checks(every, world.ids), seen.anchors.values(), lambda _count: None
    )
    return judge.Judge(every, world.ids, by_failures)


class SearchLimitTest(base.BaseTestCase):
    def test_a_cut_search(self) -> None:
        found = judge_of(DEVICES, GROUPS).trees((), True, SearchLimit(5))
        self.assertTrue(found.cut)
        self.assertTrue(found.more)

    def test_conditions_whose_search_was_cut_are_listed_as_such(self) -> None:
        every = judge_of(DEVICES, GROUPS)
        found = relaxations.find(every, True, 5, progress.silent)
        self.assertTrue(found.relaxations)
        self.assertEqual({True}, {relaxed.trees.cut for relaxed in found.relaxations})

    def test_a_set_that_no_tree_can_serve_needs_no_search(self) -> None:
        text = f'{GROUPS}&resources=VCPU:9&required=CUSTOM_GOLD'
        found = relaxations.find(judge_of(DEVICES, text), True, 0, progress.silent)
        keys = [tuple(c.key for c in relaxed.without) for relaxed in found.relaxations]
        self.assertEqual([('resources:VCPU', 'required:CUSTOM_GOLD')], keys)

    def test_a_condition_that_each_provider_satisfies_needs_no_search(self) -> None:
        text = f'{GROUPS}&required_0=!CUSTOM_GOLD&root_required=!CUSTOM_GOLD&resources=VCPU:1'
        found = relaxations.find(judge_of(DEVICES, text), True, 0, progress.silent)
        keys = [relaxed.without[0].key for relaxed in found.relaxations if not relaxed.without[1:]]
        self.assertEqual([*(f'resources_{n}:VGPU' for n in range(9)), 'group_policy'], keys)

    def test_each_expression_of_the_unsuffixed_group_can_have_an_effect(self) -> None:
        # The root satisfies one expression, and its child the other one.
        world = worlds.World.of('R @A\n  C[V:8] @B')
        text = f'resources=VCPU:1&member_of={worlds.uuid_of("A")}&member_of={worlds.uuid_of("B")}'
        found = relaxations.find(judge_of(world, text), True, -1, progress.silent)
        self.assertEqual([1, 1], [relaxed.trees.count for relaxed in found.relaxations])

    def test_a_complete_search(self) -> None:
        every = judge_of(DEVICES, GROUPS)
        found = relaxations.find(every, True, -1, progress.silent)
        keys = {tuple(c.key for c in relaxed.without) for relaxed in found.relaxations}
        self.assertEqual({(f'resources_{n}:VGPU', 'group_policy') for n in range(9)}, keys)


class ProgressTest(base.BaseTestCase):
    def test_each_searched_pattern_is_reported_once(self) -> None:
        every = judge_of(worlds.World.of('H1[V:8]\nH2[V:6] {GOLD}\nH3[V:1]'), 'resources=VCPU:4')
        counts: list[int] = []
        self.assertEqual(2, every.trees((), True, SearchLimit(), counts.append).count)
        self.assertEqual(1, sum(counts))


class ManyConditionsTest(base.BaseTestCase):
    def test_more_conditions_than_pairs_are_examined_for(self) -> None:
        world = worlds.World.of('H[V:8]')
        text = 'resources=VCPU:9&' + '&'.join(
            f'member_of=!{worlds.uuid_of(str(n))}' for n in range(40)
        )
        every = judge_of(world, text + '&required=CUSTOM_GOLD')
        found = relaxations.find(every, True, -1, progress.silent)
        self.assertEqual((), found.relaxations)
        self.assertTrue(found.pairs_omitted)

    def test_amounts_that_no_inventory_can_have(self) -> None:
        groups = '&'.join(f'resources_{n}=VCPU:{10**30}' for n in range(11))
        every = judge_of(worlds.World.of('H[V:8]'), f'{groups}&group_policy=none')
        self.assertEqual(0, every.trees((), True, SearchLimit()).count)
