"""Which anchors have the same pattern, so that only one of them is searched."""

from collections.abc import Iterable

from oslotest import base

from placement.admin.explain import patterns
from placement.candidates import model
from placement.tests import worlds

POOLS = 'H1[V:8] @A\nH2[V:8] @B\n'
GROUPS = 'resources_1=V:1&resources_2=D:1&group_policy=none'


def patterns_of(
    drawing: str, query: str, anchors: Iterable[model.Anchor] | None = None
) -> list[patterns.AnchorPattern]:
    world = worlds.World.of(drawing)
    found = patterns.Patterns(world.parse(query))
    found.add(world.anchors if anchors is None else anchors)
    return list(found.anchors.values())


class PatternsTest(base.BaseTestCase):
    def assertCounts(self, expected: list[int], drawing: str, query: str) -> None:
        """Check the numbers of anchors with the same pattern."""
        counts = [pattern.count for pattern in patterns_of(drawing, query)]
        self.assertEqual(expected, counts)

    def test_hosts_with_different_free_capacity_have_the_same_pattern(self) -> None:
        hosts = ''.join(f'H{n}[V: total 64 used {n}, M:{1000 + n}] @A\n' for n in range(20))
        self.assertCounts([20], hosts, 'resources=V:4')

    def test_only_the_number_of_equal_amounts_that_fit_is_distinguished(self) -> None:
        hosts = ''.join(f'H{n}[V:{n}]\n' for n in range(10, 30))
        groups = '&'.join(f'resources_{n}=V:10' for n in range(12))
        self.assertCounts([10, 10], hosts, f'{groups}&group_policy=none')

    def test_too_many_different_sums_are_not_computed(self) -> None:
        groups = '&'.join(f'resources_{n}=V:{2**n}' for n in range(13))
        self.assertCounts(
            [1, 2], 'H1[V:8190]\nH2[V:8191]\nH3[V:9999]', f'{groups}&group_policy=none'
        )

    def test_sharing_roots_have_no_position(self) -> None:
        pools = POOLS + 'S1[D:10] {SHARE} @A\nS2[D:20] {SHARE} @B'
        self.assertCounts([2, 2], pools, f'{GROUPS}&same_subtree=_1,_2')

    def test_sharing_children_have_a_position_that_only_same_subtree_distinguishes(self) -> None:
        pools = POOLS + 'R1\n  S1[D:10] {SHARE} @A\nR2\n  S2[D:10] {SHARE} @B'
        self.assertCounts([2, 2], pools, GROUPS)
        self.assertCounts([1, 1, 2], pools, f'{GROUPS}&same_subtree=_1,_2')

    def test_a_sharing_provider_is_not_taken_for_a_child(self) -> None:
        drawing = 'R[V:8]\n  C[D:1]\nH1[V:8] @A\nH2[V:8] @B\nS1[D:5] {SHARE} @A\nS2[D:9] {SHARE} @B'
        self.assertCounts([1, 1, 1, 1, 1], drawing, 'resources=V:1,D:6')

    def test_a_tree_with_a_cycle_has_its_own_pattern(self) -> None:
        drawing = ''.join(f'R{n}[V:8]\n  A{n}[D:1]\n    B{n}[D:1]\n' for n in range(3))
        anchors = list(worlds.World.of(drawing).anchors)
        for number in (0, 1):
            root, a, b = anchors[number].tree
            tree = (root, a._replace(parent_id=b.id), b)
            anchors[number] = anchors[number]._replace(tree=tree)
        found = patterns_of(drawing, f'{GROUPS}&same_subtree=_1,_2', anchors)
        self.assertEqual([1, 1, 1], [pattern.count for pattern in found])


class ExampleTest(base.BaseTestCase):
    def test_an_example_has_only_what_the_conditions_can_distinguish(self) -> None:
        (pattern,) = patterns_of(
            'H[V:8, M:64] {T1 T2} @A,B', 'resources=V:1&required=T1&member_of=B'
        )
        root = pattern.anchor.root
        self.assertEqual([1, 1], [len(root.traits), len(root.aggregates)])
        class_ids = [class_id for class_id in root.inventories if class_id >= 0]
        self.assertEqual([worlds.World.of('').ids.classes['VCPU']], class_ids)

    def test_examples_of_equal_providers_share_their_data(self) -> None:
        first, second = patterns_of('R[V:8]\n  A[D:1]\nS[V:8]', 'resources=V:1,D:1')
        self.assertIs(first.anchor.root.inventories, second.anchor.root.inventories)
        self.assertNotEqual(first.anchor.root.id, second.anchor.root.id)
