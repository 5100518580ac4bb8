"""The capacity formula, the unit rules and the reservation rule."""

from oslotest import base

from placement import capacity
from placement.capacity import Inventory


class CapacityTest(base.BaseTestCase):
    def test_reserved_units_are_subtracted_before_the_ratio_applies(self):
        self.assertEqual(12.0, capacity.capacity_of(10, 2, 1.5))
        self.assertEqual(12.0, Inventory(10, reserved=2, allocation_ratio=1.5).capacity)

    def test_capacity_is_not_truncated(self):
        self.assertEqual(1.5, Inventory(3, allocation_ratio=0.5).capacity)

    def test_an_amount_fits_up_to_the_capacity(self):
        self.assertTrue(capacity.fits(6, 4, 10.0))
        self.assertFalse(capacity.fits(7, 4, 10.0))
        self.assertFalse(capacity.fits(7, 4, 10.9))

    def test_the_free_capacity_is_the_largest_amount_that_fits(self):
        for used, limit in ((0, 10.0), (4, 10.9), (3, 3.0), (7, 6.5), (0, 0.7)):
            free = capacity.free(used, limit)
            self.assertTrue(capacity.fits(free, used, limit))
            self.assertFalse(capacity.fits(free + 1, used, limit))


class UnitViolationTest(base.BaseTestCase):
    def test_all_limits_include_their_value(self):
        for amount in (4, 6, 8):
            self.assertIsNone(capacity.unit_violation(amount, 4, 8, 2))

    def test_the_violated_limit_is_named(self):
        self.assertEqual('min_unit', capacity.unit_violation(2, 4, 8, 2))
        self.assertEqual('max_unit', capacity.unit_violation(10, 4, 8, 2))
        self.assertEqual('step_size', capacity.unit_violation(5, 4, 8, 2))

    def test_the_first_violated_limit_is_named(self):
        self.assertEqual('min_unit', capacity.unit_violation(3, 4, 2, 2))
        self.assertEqual('max_unit', capacity.unit_violation(9, 4, 8, 2))


class ReservationTest(base.BaseTestCase):
    def test_before_1_26_the_capacity_must_be_positive(self):
        self.assertFalse(capacity.allows_reservation(Inventory(total=5, reserved=5), False))
        self.assertTrue(capacity.allows_reservation(Inventory(total=5, reserved=4), False))

    def test_since_1_26_the_capacity_may_be_zero(self):
        self.assertTrue(capacity.allows_reservation(Inventory(total=5, reserved=5), True))
        self.assertFalse(capacity.allows_reservation(Inventory(total=5, reserved=6), True))

    def test_the_rule_applies_to_the_truncated_capacity(self):
        inventory = Inventory(total=3, reserved=0, allocation_ratio=0.3)
        self.assertFalse(capacity.allows_reservation(inventory, False))
        self.assertTrue(capacity.allows_reservation(inventory, True))
