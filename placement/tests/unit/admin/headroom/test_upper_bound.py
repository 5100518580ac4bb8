"""The bound that no order of claims exceeds."""

from collections.abc import Iterable

from placement.candidates import model
from placement.tests import worlds
from placement.tests.properties import UnmeasuredTestCase, seeds
from placement.tests.unit.admin.headroom import clouds
from placement.tests.unit.admin.headroom.definition import Cloud, most_claims, simulate

# The maximum number of simulated claims in a cloud in which all orders of claims are tried.
_FEW = 5


class UpperBoundTest(UnmeasuredTestCase):
    def test_no_order_of_claims_exceeds_the_bound(self):
        compared = 0
        for seed in seeds(1200):
            case = clouds.case(seed)
            result = simulate(case.query, case.world)
            if 0 < result.fits <= _FEW and len(result.steps) > 1:
                compared += 1
                most = most_claims(Cloud(case.query, case.world), {})
                with self.subTest(seed=seed):
                    self.assertLessEqual(result.fits, most)
                    self.assertLessEqual(most, result.at_most)
        self.assertGreater(compared, len(seeds(1200)) // 24)

    def test_equal_for_one_group_in_simple_trees(self):
        compared = 0
        for seed in seeds(2000):
            case = clouds.case(seed)
            if _is_simple(case):
                result = simulate(case.query, case.world)
                compared += result.fits > 0
                with self.subTest(seed=seed):
                    self.assertEqual(result.at_most, result.fits)
        self.assertGreater(compared, len(seeds(2000)) // 30)

    def check(self, expected: tuple[int, int], drawing: str, query: str) -> None:
        """Compare the number of claims and the bound."""
        world = worlds.World.of(drawing)
        result = simulate(world.parse(query), world)
        self.assertEqual(expected, (result.fits, result.at_most))

    def test_the_scarcest_class(self):
        self.check((2, 2), 'A[V:8, M:100, D:5]', 'resources=V:1,M:10,D:2')

    def test_units_that_are_left_over_on_each_provider(self):
        self.check((2, 2), 'R\n  A[V:5]\n  B[V:5]', 'resources=V:3')

    def test_groups_of_one_kind_and_of_one_class(self):
        self.check(
            (2, 2), 'R\n  A[V:3]\n  B[V:2]', 'resources1=V:1&resources2=V:1&group_policy=none'
        )
        self.check(
            (1, 1), 'R\n  A[V:3]\n  B[V:2]', 'resources1=V:1&resources2=V:2&group_policy=none'
        )

    def test_groups_that_use_different_providers(self):
        for policy, expected in (('none', (5, 5)), ('isolate', (2, 2))):
            query = f'resources1=V:1&resources2=V:1&group_policy={policy}'
            self.check(expected, 'R\n  A[V:8]\n  B[V:2]', query)

    def test_a_sharing_provider_limits_all_its_trees(self):
        hosts = '\n'.join(f'H{n}[V:4] @A' for n in range(5))
        self.check((10, 10), f'SS[D:100] {{SHARE}} @A\n{hosts}', 'resources=V:1,D:10')
        # Here the trees are the limit.
        self.check((20, 20), f'SS[D:900] {{SHARE}} @A\n{hosts}', 'resources=V:1,D:10')

    def test_different_classes_limit_the_trees_of_a_sharing_provider(self):
        """Together, the trees have enough of each class for 11 claims."""
        drawing = 'SS[D:900] {SHARE} @A\nH1[V:10, M:1] @A\nH2[V:1, M:10] @A'
        self.check((2, 2), drawing, 'resources=V:1,M:1,D:1')

    def test_trees_that_use_one_of_several_sharing_providers_in_common(self):
        """S2 serves both trees, but its capacity counts once."""
        drawing = 'S1[D:10] {SHARE} @A\nS2[D:10] {SHARE} @B\nH1[V:9] @A,B\nH2[V:9] @B'
        self.check((2, 2), drawing, 'resources=V:1,D:10')

    def test_trees_that_do_not_use_the_same_sharing_provider(self):
        self.check(
            (5, 5),
            'S1[D:30] {SHARE} @A\nS2[D:20] {SHARE} @B\nH1[V:9] @A\nH2[V:9] @B',
            'resources=V:1,D:10',
        )

    def test_trees_without_a_candidate_do_not_count(self):
        self.check((0, 0), 'A[V:8] {T1}', 'resources=V:1&required=T2')
        self.check((0, 0), 'A[V:8]\n  B[D:8]', 'resources=V:1,D:1&root_required=T1')

    def test_the_bound_can_exceed_the_number_of_claims(self):
        """The first candidate uses the provider that alone could serve the other claim."""
        drawing = 'R\n  A[V:2] {T1}\n  B[V:2]'
        query = 'resources1=V:1&resources2=V:1&required2=T1&group_policy=none'
        self.check((1, 2), drawing, query)


def _is_simple(case: clouds.Case) -> bool:
    """Whether the contract promises that the bound equals the number of claims."""
    query, world = case.query, case.world
    return (
        len(query.groups) == 1
        and not any(anchor.sharing_providers for anchor in world.anchors)
        and all(_most_providers(anchor, query.classes) <= 1 for anchor in world.anchors)
    )


def _most_providers(anchor: model.Anchor, classes: Iterable[int]) -> int:
    """Return the largest number of providers of the tree that have one of the classes."""
    return max(sum(class_id in p.inventories for p in anchor.tree) for class_id in classes)
