"""Decisions about claims: generations, providers, and amounts."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement import exception
from placement.capacity import InventoryUsage
from placement.claims import judge
from placement.claims.claim import Claim, Consumer
from placement.tests.properties import REPEATABLE
from placement.tests.unit.claims.facts import VCPU, demand, locked_claims, usage


def refusal(
    amounts: list[int], current: InventoryUsage | None, released: int = 0
) -> exception.InvalidAllocation | None:
    """Return the error that `check_amounts` raises, or None if it grants the amounts."""
    try:
        judge.check_amounts(
            [demand(amount) for amount in amounts],
            {} if current is None else {VCPU: current},
            {VCPU: released},
        )
    except exception.InvalidAllocation as error:
        return error
    return None


class AmountsTest(base.BaseTestCase):
    def assertGranted(self, amounts: list[int], current: InventoryUsage, released: int = 0) -> None:
        self.assertIsNone(refusal(amounts, current, released))

    def assertRefused(
        self, reason: str, amounts: list[int], current: InventoryUsage | None, released: int = 0
    ) -> None:
        error = refusal(amounts, current, released)
        self.assertIsNotNone(error)
        self.assertIn(reason, str(error))

    def test_free_capacity_is_granted_and_no_more(self):
        self.assertGranted([6], usage(4))
        self.assertRefused('exceed its capacity', [7], usage(4))

    def test_reserved_units_are_not_granted(self):
        self.assertGranted([8], usage(reserved=2))
        self.assertRefused('exceed its capacity', [9], usage(reserved=2))

    def test_the_ratio_applies_to_units_that_are_not_reserved(self):
        self.assertGranted([12], usage(reserved=2, allocation_ratio=1.5))
        self.assertRefused('exceed its capacity', [13], usage(reserved=2, allocation_ratio=1.5))

    def test_fractional_capacity_is_not_rounded_up(self):
        self.assertGranted([2], usage(total=3, allocation_ratio=0.9))
        self.assertRefused('exceed its capacity', [3], usage(total=3, allocation_ratio=0.9))

    def test_amounts_of_several_consumers_are_added(self):
        self.assertGranted([5, 5], usage())
        self.assertRefused('exceed its capacity', [5, 6], usage())

    def test_released_amounts_are_available(self):
        self.assertGranted([10], usage(10), released=10)
        self.assertRefused('exceed its capacity', [10], usage(10), released=9)

    def test_usage_above_the_capacity_may_stay_equal_or_decrease(self):
        self.assertGranted([15], usage(15), released=15)
        self.assertGranted([14], usage(15), released=15)
        self.assertRefused('exceed its capacity', [16], usage(15), released=15)
        self.assertRefused('exceed its capacity', [1], usage(15))

    def test_unit_rules_apply_to_each_consumer(self):
        units = {'min_unit': 2, 'max_unit': 4, 'step_size': 2}
        self.assertGranted([4, 4], usage(**units))
        self.assertRefused('an amount of 1: less than its min_unit 2', [1], usage(**units))
        self.assertRefused('an amount of 6: more than its max_unit 4', [6], usage(**units))
        self.assertRefused('3: not a multiple of its step_size 2', [4, 3], usage(**units))

    def test_missing_inventory_is_refused(self):
        sentence = "Inventory for 'VCPU' on resource provider 'p' does not exist."
        self.assertRefused(sentence, [1], None)

    def test_negative_capacity_grants_nothing(self):
        self.assertRefused('exceed its capacity', [1], usage(reserved=20))

    def test_the_sentence_states_usage_and_capacity(self):
        self.assertRefused('9 requested or in use, capacity 4.', [5], usage(4, total=4))

    @REPEATABLE
    @given(
        st.lists(st.integers(1, 50), min_size=1, max_size=5),
        st.integers(0, 100),
        st.integers(0, 100),
        st.integers(1, 100),
        st.floats(0, 16),
    )
    def test_granted_exactly_if_usage_fits_or_does_not_grow(
        self, amounts, others, own, total, ratio
    ):
        current = usage(others + own, total=total, allocation_ratio=ratio)
        after = others + sum(amounts)
        fits = after <= total * ratio or after <= others + own
        self.assertEqual(fits, refusal(amounts, current, own) is None)


class ConsumerGenerationTest(base.BaseTestCase):
    consumers = {'c': Consumer(1, 'c', 3, 1, 1, None)}

    def check(self, uuid: str, generation: int | None, checks_generation: bool = True) -> bool:
        """Return whether both functions accept the generation, and require that they agree."""
        claims = [Claim(uuid, 'p', 'u', None, generation, checks_generation, {})]
        stale = judge.has_stale_consumer(claims, self.consumers)
        try:
            judge.check_consumers(claims, self.consumers)
        except exception.ConsumerGenerationConflict:
            self.assertTrue(stale)
            return False
        self.assertFalse(stale)
        return True

    def test_existing_consumer(self):
        self.assertTrue(self.check('c', 3))
        self.assertFalse(self.check('c', 2))
        self.assertFalse(self.check('c', None))

    def test_new_consumer(self):
        self.assertTrue(self.check('new', None))
        self.assertFalse(self.check('new', 0))

    def test_generation_is_ignored_before_1_28(self):
        self.assertTrue(self.check('c', None, checks_generation=False))


class ProvidersTest(base.BaseTestCase):
    def test_all_missing_providers_are_named(self):
        judge.check_claimed_providers(locked_claims())
        error = self.assertRaises(
            exception.UnknownResourceProviders,
            judge.check_claimed_providers,
            locked_claims(missing=('b', 'a')),
        )
        self.assertEqual(['a', 'b'], error.uuids)
