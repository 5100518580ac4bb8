"""The trees of a report: their order, their sums, and their sharing providers."""

from oslotest import base

from placement.admin.report import trees
from placement.tests.unit.admin.report.clouds import (
    DISK_GB,
    FAST,
    MEMORY_MB,
    SHARING,
    UNKNOWN,
    VCPU,
    cloud,
    inventory,
    provider,
)


def ids(tree: trees.Tree) -> list[int]:
    return [one.id for one in tree.providers]


class TreesTest(base.BaseTestCase):
    def tree(self, *providers, **options) -> trees.Tree:
        (tree,) = trees.of_cloud(cloud(*providers, **options))
        return tree

    def test_each_provider_follows_its_parent(self):
        tree = self.tree(
            provider(5, root=1, parent=3),
            provider(4, root=1, parent=1),
            provider(3, root=1, parent=1),
            provider(2, root=1, parent=4),
            provider(1),
        )
        self.assertEqual([1, 3, 5, 4, 2], ids(tree))
        self.assertEqual([-1, 0, 1, 0, 3], tree.parents)

    def test_children_are_sorted_by_name(self):
        tree = self.tree(
            provider(1),
            provider(2, root=1, parent=1),
            provider(3, root=1, parent=1),
            names={2: 'b', 3: 'a'},
        )
        self.assertEqual([1, 3, 2], ids(tree))

    def test_a_root_of_an_old_release_has_no_root_id(self):
        tree = self.tree(provider(1)._replace(root_id=None))
        self.assertEqual([1], ids(tree))

    def test_a_provider_whose_root_is_missing_is_a_tree(self):
        tree = self.tree(provider(2, root=1, parent=1))
        self.assertEqual(([2], [-1]), (ids(tree), tree.parents))

    def test_a_provider_whose_parent_is_missing_is_below_the_root(self):
        tree = self.tree(provider(1), provider(2, root=1, parent=9))
        self.assertEqual(([1, 2], [-1, 0]), (ids(tree), tree.parents))

    def test_a_cycle_is_below_the_root(self):
        tree = self.tree(provider(1), provider(2, root=1, parent=3), provider(3, root=1, parent=2))
        self.assertEqual([1, 2, 3], sorted(ids(tree)))
        self.assertEqual(1, tree.root.id)

    def test_the_root_of_a_tree_can_have_another_root(self):
        found = trees.of_cloud(cloud(provider(1, root=2), provider(2, root=3), provider(3)))
        self.assertEqual([1, 2, 3], sorted(id_ for tree in found for id_ in ids(tree)))

    def test_the_sums_include_all_providers(self):
        tree = self.tree(
            provider(1, inventory(DISK_GB, 100, used=5, reserved=10)),
            provider(2, inventory(VCPU, 8, used=6, ratio=1.5), root=1, parent=1),
            provider(3, inventory(VCPU, 3, used=1, ratio=1.5), root=1, parent=1),
        )
        total = tree.totals[VCPU]
        # A capacity of 4.5 allows 4 units.
        self.assertEqual(
            (2, 11, 16, 7), (total.inventories, total.total, total.capacity, total.used)
        )
        self.assertEqual((9, 7 / 16), (total.free, total.fullness))
        self.assertEqual(90, tree.totals[DISK_GB].capacity)
        self.assertEqual((VCPU, 7 / 16), (tree.fullest, tree.fullness))

    def test_the_fullest_class(self):
        for expected, inventories in (
            (None, ()),
            (None, (inventory(VCPU, 1, reserved=1),)),
            (VCPU, (inventory(VCPU, 4),)),
            (VCPU, (inventory(VCPU, 1, reserved=2), inventory(DISK_GB, 4, used=5))),
            (MEMORY_MB, (inventory(VCPU, 4, used=2), inventory(MEMORY_MB, 4, used=3))),
            (VCPU, (inventory(VCPU, 1, used=1, reserved=1), inventory(DISK_GB, 1, used=9))),
            (DISK_GB, (inventory(VCPU, 4, used=2), inventory(DISK_GB, 8, used=4))),
            (UNKNOWN, (inventory(VCPU, 4), inventory(UNKNOWN, 4, used=2))),
        ):
            with self.subTest(inventories=inventories):
                self.assertEqual(expected, self.tree(provider(1, *inventories)).fullest)

    def test_the_fullest_trees_are_first(self):
        found = trees.of_cloud(
            cloud(
                provider(1, inventory(VCPU, 4, used=2)),
                provider(2),
                provider(3, inventory(VCPU, 4, used=5)),
                provider(4, inventory(VCPU, 2, used=1)),
                provider(5, inventory(VCPU, 2)),
                provider(6, inventory(VCPU, 2, used=1, reserved=2)),
                names={1: 'z', 4: 'y'},
            )
        )
        self.assertEqual([6, 3, 4, 1, 5, 2], [tree.root.id for tree in found])


class SharingTest(base.BaseTestCase):
    def available(self, *providers, **options) -> dict[int, list[int]]:
        """Root id -> the ids of the sharing providers that are available to the tree."""
        return {
            tree.root.id: [one.id for one in tree.sharing]
            for tree in trees.of_cloud(cloud(*providers, **options))
        }

    def test_a_sharing_provider_is_available_to_other_trees_of_its_aggregates(self):
        self.assertEqual(
            {1: [5, 6], 3: [], 4: [], 5: [6], 6: [5]},
            self.available(
                provider(1),
                provider(2, root=1, parent=1, aggregates=(7,)),
                provider(3, aggregates=(8,)),
                provider(4, traits=(FAST,)),
                provider(5, traits=(SHARING,), aggregates=(7, 9)),
                provider(6, traits=(SHARING, FAST), aggregates=(7,)),
            ),
        )

    def test_the_trait_is_not_registered(self):
        providers = (provider(1, aggregates=(7,)), provider(2, traits=(SHARING,), aggregates=(7,)))
        self.assertEqual({1: [2], 2: []}, self.available(*providers))
        self.assertEqual({1: [], 2: []}, self.available(*providers, sharing_trait=None))

    def test_a_provider_without_a_valid_root_does_not_share(self):
        self.assertEqual(
            {1: [], 2: []},
            self.available(
                provider(1, aggregates=(7,)),
                provider(2, root=99, traits=(SHARING,), aggregates=(7,)),
            ),
        )
