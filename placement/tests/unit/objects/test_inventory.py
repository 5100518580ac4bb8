"""The changes that turn the current inventories of a provider into the requested ones."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement.capacity import Inventory, InventoryUsage
from placement.objects.inventory import plan_changes
from placement.tests.properties import REPEATABLE

INVENTORIES = st.builds(Inventory, st.integers(1, 20), st.integers(0, 5))
NAMES = st.sampled_from(['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_A'])
CURRENT = st.dictionaries(
    NAMES, st.builds(InventoryUsage, st.just(0), INVENTORIES, st.integers(0, 30))
)
REQUESTED = st.dictionaries(NAMES, INVENTORIES)


class PlanTest(base.BaseTestCase):
    def test_each_class_is_added_changed_removed_or_left(self):
        plan = plan_changes(
            {
                'VCPU': InventoryUsage(0, Inventory(8), 0),
                'MEMORY_MB': InventoryUsage(1, Inventory(64), 4),
                'DISK_GB': InventoryUsage(2, Inventory(10), 0),
            },
            {'VCPU': Inventory(16), 'DISK_GB': Inventory(10), 'VGPU': Inventory(1)},
        )
        self.assertEqual({'VGPU': Inventory(1)}, plan.add)
        self.assertEqual({'VCPU': Inventory(16)}, plan.change)
        self.assertEqual(('MEMORY_MB',), plan.remove)
        self.assertEqual(('MEMORY_MB',), plan.in_use)
        self.assertEqual((), plan.over_capacity)

    def test_capacity_below_the_usage_is_reported_and_allowed(self):
        plan = plan_changes({'VCPU': InventoryUsage(0, Inventory(8), 6)}, {'VCPU': Inventory(5)})
        self.assertEqual({'VCPU': Inventory(5)}, plan.change)
        self.assertEqual(('VCPU',), plan.over_capacity)
        plan = plan_changes({'VCPU': InventoryUsage(0, Inventory(8), 6)}, {'VCPU': Inventory(6)})
        self.assertEqual((), plan.over_capacity)

    @REPEATABLE
    @given(CURRENT, REQUESTED)
    def test_applying_the_plan_results_in_the_requested_inventories(self, current, requested):
        plan = plan_changes(current, requested)
        result = {name: u.inventory for name, u in current.items() if name not in plan.remove}
        self.assertFalse(result.keys() & plan.add.keys())
        result |= plan.add
        self.assertLessEqual(plan.change.keys(), current.keys())
        result |= plan.change
        self.assertEqual(requested, result)

    @REPEATABLE
    @given(CURRENT)
    def test_equal_inventories_need_no_change(self, current):
        plan = plan_changes(current, {name: usage.inventory for name, usage in current.items()})
        self.assertFalse(plan.add or plan.change or plan.remove or plan.in_use)
