"""The sums of a report by resource class, aggregate, and trait, and the largest projects."""

from unittest import mock

from oslotest import base

from placement.admin.report import totals, trees
from placement.tests.unit.admin.report.clouds import (
    DISABLED,
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

CLOUD = cloud(
    provider(1, inventory(DISK_GB, 100, used=20), aggregates=(1, 2)),
    provider(2, inventory(VCPU, 4, used=1), root=1, parent=1, traits=(FAST,), aggregates=(2, 3)),
    provider(3, inventory(VCPU, 8, used=2), root=1, parent=1),
    provider(4, inventory(VCPU, 16, used=4), traits=(FAST,), aggregates=(1,)),
    projects=(('small', VCPU, 3), ('large', DISK_GB, 18), ('tiny', VCPU, 1)),
)
TREES = trees.of_cloud(CLOUD)


def usage(parts: totals.Parts) -> dict[str, tuple[int, dict[int, int]]]:
    return {
        part.name: (part.count, {id_: total.used for id_, total in part.totals.items()})
        for part in parts.shown
    }


class TotalsTest(base.BaseTestCase):
    def test_by_class(self):
        found = totals.by_class(TREES)
        self.assertEqual({DISK_GB, VCPU}, set(found))
        vcpu = found[VCPU]
        self.assertEqual((3, 28, 7), (vcpu.inventories, vcpu.capacity, vcpu.used))

    def test_free_amounts_are_those_that_claims_can_use(self):
        one = cloud(
            provider(1, aggregates=(4,)),
            provider(2, inventory(VCPU, 4, used=1), root=1, parent=1),
            provider(3, inventory(VCPU, 4, used=9), root=1, parent=1),
            provider(4, inventory(VCPU, 4, reserved=9), aggregates=(4,)),
            provider(5, traits=(DISABLED,), aggregates=(4,)),
            provider(6, inventory(VCPU, 64), root=5, parent=5),
            # Only the trait of the root disables a tree.
            provider(7, aggregates=(4,)),
            provider(8, inventory(VCPU, 2), root=7, parent=7, traits=(DISABLED,)),
        )
        found = trees.of_cloud(one)
        self.assertEqual(5, totals.by_class(found)[VCPU].free)
        (part,) = totals.by_aggregate(found, one).shown
        self.assertEqual(5, part.totals[VCPU].free)
        self.assertEqual([64], [tree.totals[VCPU].capacity for tree in found if tree.disabled])

    def test_an_inventory_counts_for_the_aggregates_of_its_provider_and_of_the_root(self):
        self.assertEqual(
            {
                'aggregate-1': (2, {DISK_GB: 20, VCPU: 7}),
                'aggregate-2': (1, {DISK_GB: 20, VCPU: 3}),
                'aggregate-3': (1, {VCPU: 1}),
            },
            usage(totals.by_aggregate(TREES, CLOUD)),
        )

    def test_an_inventory_counts_for_the_traits_of_its_provider_and_of_the_root(self):
        self.assertEqual({'CUSTOM_FAST': (2, {VCPU: 5})}, usage(totals.by_trait(TREES, CLOUD)))

    def test_only_the_largest_parts_are_shown(self):
        with mock.patch.object(totals, 'LINKS', 1):
            found = totals.by_aggregate(TREES, CLOUD)
        self.assertEqual((['aggregate-1'], 3), ([part.name for part in found.shown], found.number))

    def test_the_project_with_the_largest_share_of_a_class_is_first(self):
        by_class = totals.by_class(TREES)
        found = totals.largest_projects(CLOUD, by_class)
        self.assertEqual(['large', 'small', 'tiny'], [part.name for part in found.shown])
        self.assertEqual((1, {DISK_GB: 18}), usage(found)['large'])
        with mock.patch.object(totals, 'PROJECTS', 2):
            found = totals.largest_projects(CLOUD, by_class)
        self.assertEqual((2, 3), (len(found.shown), found.number))

    def test_projects_without_allocations_are_not_shown(self):
        idle = cloud(projects=(), project_consumers={'idle': 1})
        self.assertEqual(0, totals.largest_projects(idle, {}).number)

    def test_the_main_classes_are_those_of_the_most_trees(self):
        found = trees.of_cloud(
            cloud(
                provider(1, inventory(UNKNOWN, 1), inventory(DISK_GB, 1), inventory(VCPU, 1)),
                provider(2, inventory(UNKNOWN, 1), inventory(DISK_GB, 1)),
                provider(3, inventory(MEMORY_MB, 1)),
                provider(4, inventory(MEMORY_MB, 1)),
            )
        )
        self.assertEqual([MEMORY_MB, DISK_GB, UNKNOWN], totals.main_classes(found))
        self.assertEqual([VCPU, MEMORY_MB, DISK_GB, UNKNOWN], totals.classes(found))

    def test_a_sharing_provider_counts_for_its_own_aggregates(self):
        one = cloud(provider(1, inventory(DISK_GB, 5), traits=(SHARING,), aggregates=(4,)))
        self.assertEqual(
            ['aggregate-4'], list(usage(totals.by_aggregate(trees.of_cloud(one), one)))
        )
