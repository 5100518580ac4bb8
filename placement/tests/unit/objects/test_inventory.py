"""What has to be added, changed and dropped to come from some inventories to others."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement.capacity import Inventory, InventoryUsage
from placement.objects import inventory

RECORDS = st.builds(Inventory, st.integers(1, 20), st.integers(0, 5))
NAMES = st.sampled_from(['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_A'])
CURRENT = st.dictionaries(NAMES, st.builds(InventoryUsage, st.just(0), RECORDS, st.integers(0, 30)))
WANTED = st.dictionaries(NAMES, RECORDS)


class PlanTest(base.BaseTestCase):
    def test_each_class_gets_what_it_needs(self):
        steps = inventory.plan(
            {
                'VCPU': InventoryUsage(0, Inventory(8), 0),
                'MEMORY_MB': InventoryUsage(1, Inventory(64), 4),
                'DISK_GB': InventoryUsage(2, Inventory(10), 0),
            },
            {'VCPU': Inventory(16), 'DISK_GB': Inventory(10), 'VGPU': Inventory(1)},
        )
        self.assertEqual({'VGPU': Inventory(1)}, steps.add)
        self.assertEqual({'VCPU': Inventory(16)}, steps.change)
        self.assertEqual(('MEMORY_MB',), steps.drop)
        self.assertEqual(('MEMORY_MB',), steps.in_use)
        self.assertEqual((), steps.over_full)

    def test_a_capacity_below_what_is_in_use_is_told_and_allowed(self):
        steps = inventory.plan({'VCPU': InventoryUsage(0, Inventory(8), 6)}, {'VCPU': Inventory(5)})
        self.assertEqual({'VCPU': Inventory(5)}, steps.change)
        self.assertEqual(('VCPU',), steps.over_full)

    @given(CURRENT, WANTED)
    def test_a_plan_that_is_carried_out_gives_what_was_wanted(self, current, wanted):
        steps = inventory.plan(current, wanted)
        result = {name: held.inventory for name, held in current.items() if name not in steps.drop}
        self.assertFalse(result.keys() & steps.add.keys())
        result |= steps.add
        self.assertLessEqual(steps.change.keys(), current.keys())
        result |= steps.change
        self.assertEqual(wanted, result)

    @given(CURRENT)
    def test_what_stays_as_it_is_needs_no_step(self, current):
        steps = inventory.plan(current, {name: held.inventory for name, held in current.items()})
        self.assertFalse(steps.add or steps.change or steps.drop or steps.in_use)
