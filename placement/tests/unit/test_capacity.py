"""Whether claims fit: the decision that keeps the cloud from being granted twice."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement import capacity, exception
from placement.capacity import Demand, Inventory, InventoryUsage

PROVIDER = 1
VCPU = (PROVIDER, 'VCPU')


def holding(used: int = 0, **record: float) -> InventoryUsage:
    return InventoryUsage(0, Inventory(**{'total': 10, **record}), used)


def demand(amount: int) -> Demand:
    return Demand(PROVIDER, 'uuid', 'VCPU', amount)


def is_granted(
    amounts: list[int], held: InventoryUsage | None, released: int = 0
) -> exception.InvalidAllocation | None:
    """None when granted, else the refusal."""
    try:
        capacity.judge(
            [demand(amount) for amount in amounts],
            {} if held is None else {VCPU: held},
            {VCPU: released},
        )
    except exception.InvalidAllocation as refusal:
        return refusal
    return None


class JudgeTest(base.BaseTestCase):
    def assertGranted(self, amounts: list[int], held: InventoryUsage, released: int = 0) -> None:
        self.assertIsNone(is_granted(amounts, held, released))

    def assertRefused(
        self, reason: str, amounts: list[int], held: InventoryUsage | None, released: int = 0
    ) -> None:
        refusal = is_granted(amounts, held, released)
        self.assertIsNotNone(refusal)
        self.assertIn(reason, str(refusal))

    def test_all_that_is_left_can_be_had_and_no_more(self):
        self.assertGranted([6], holding(used=4))
        self.assertRefused('no room', [7], holding(used=4))

    def test_what_is_reserved_cannot_be_had(self):
        self.assertGranted([8], holding(reserved=2))
        self.assertRefused('no room', [9], holding(reserved=2))

    def test_the_ratio_stretches_what_is_not_reserved(self):
        self.assertGranted([12], holding(reserved=2, allocation_ratio=1.5))
        self.assertRefused('no room', [13], holding(reserved=2, allocation_ratio=1.5))

    def test_capacity_is_not_truncated_before_it_is_compared(self):
        # 3 * 0.9 = 2.7: a third unit does not fit, though 2.7 rounds to 3.
        self.assertGranted([2], holding(total=3, allocation_ratio=0.9))
        self.assertRefused('no room', [3], holding(total=3, allocation_ratio=0.9))

    def test_consumers_of_one_request_are_summed_up(self):
        self.assertGranted([5, 5], holding())
        self.assertRefused('no room', [5, 6], holding())

    def test_what_the_request_gives_back_can_be_had_again(self):
        self.assertGranted([10], holding(used=10), released=10)
        self.assertRefused('no room', [10], holding(used=10), released=9)

    def test_an_over_full_provider_is_written_again_with_the_same_or_less(self):
        self.assertGranted([15], holding(used=15), released=15)
        self.assertGranted([14], holding(used=15), released=15)
        self.assertRefused('no room', [16], holding(used=15), released=15)
        self.assertRefused('no room', [1], holding(used=15))

    def test_units_are_looked_at_one_consumer_at_a_time(self):
        units = {'min_unit': 2, 'max_unit': 4, 'step_size': 2}
        self.assertGranted([4, 4], holding(**units))
        self.assertRefused('min_unit', [1], holding(**units))
        self.assertRefused('max_unit', [6], holding(**units))
        self.assertRefused('step_size', [4, 3], holding(**units))

    def test_a_class_without_inventory_cannot_be_had(self):
        self.assertRefused("Inventory for 'VCPU' on resource provider 'uuid'", [1], None)

    def test_a_negative_capacity_grants_nothing(self):
        self.assertRefused('no room', [1], holding(reserved=20))

    @given(
        st.lists(st.integers(1, 50), min_size=1, max_size=5),
        st.integers(0, 100),
        st.integers(0, 100),
        st.integers(1, 100),
        st.floats(0, 16),
    )
    def test_never_more_than_the_capacity_and_never_less_than_the_room(
        self, amounts, others, own, total, ratio
    ):
        """Granted exactly if the sum fits, or grows nothing that is over-full already."""
        held = holding(used=others + own, total=total, allocation_ratio=ratio)
        after = others + sum(amounts)
        fits = after <= total * ratio or after <= others + own
        self.assertEqual(fits, is_granted(amounts, held, own) is None)


class ReservationTest(base.BaseTestCase):
    def test_below_1_26_something_must_be_left(self):
        self.assertFalse(capacity.allows_reservation(Inventory(total=5, reserved=5), False))
        self.assertTrue(capacity.allows_reservation(Inventory(total=5, reserved=4), False))

    def test_from_1_26_on_everything_may_be_reserved(self):
        self.assertTrue(capacity.allows_reservation(Inventory(total=5, reserved=5), True))
        self.assertFalse(capacity.allows_reservation(Inventory(total=5, reserved=6), True))

    def test_the_rule_is_on_the_truncated_capacity(self):
        record = Inventory(total=3, reserved=0, allocation_ratio=0.3)
        self.assertFalse(capacity.allows_reservation(record, False))
        self.assertTrue(capacity.allows_reservation(record, True))
