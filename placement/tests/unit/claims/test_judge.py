"""Decisions about claims: generations, providers, and amounts."""

from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement import exception
from placement.capacity import InventoryUsage
from placement.claims import judge
from placement.claims.claim import Claim, Consumer
from placement.tests.properties import REPEATABLE
from placement.tests.unit.claims.facts import VCPU, demand, usage


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
    def test_the_reason_of_a_refusal(self):
        """Random worlds (`functional/objects`) test which amounts are refused."""
        units = usage(min_unit=2, max_unit=4, step_size=2)
        for amounts, current, released, reason in (
            ([10], usage(10), 10, None),
            ([10], usage(10), 9, '11 requested or in use, capacity 10.'),
            ([5], usage(4, total=4), 0, '9 requested or in use, capacity 4.'),
            ([5, 6], usage(), 0, '11 requested or in use, capacity 10.'),
            ([1], usage(reserved=20), 0, 'exceed its capacity'),
            ([3], usage(total=3, allocation_ratio=0.9), 0, 'exceed its capacity'),
            ([4, 4], units, 0, None),
            ([1], units, 0, 'an amount of 1: less than its min_unit 2'),
            ([6], units, 0, 'an amount of 6: more than its max_unit 4'),
            ([4, 3], units, 0, '3: not a multiple of its step_size 2'),
            ([1], None, 0, "Inventory for 'VCPU' on resource provider 'p' does not exist."),
        ):
            with self.subTest(amounts=amounts, current=current):
                error = refusal(amounts, current, released)
                self.assertEqual(reason is None, error is None)
                self.assertIn(reason or '', str(error or ''))

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
    consumers = {'c': Consumer(1, 'c', 3)}

    def check(self, uuid: str, generation: int | None, checks_generation: bool) -> bool:
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

    def test_generations(self):
        """Before microversion 1.28, the generation is ignored."""
        for uuid, generation, checks, accepted in (
            *(('c', 3, True, True), ('c', 2, True, False), ('c', None, True, False)),
            *(('new', None, True, True), ('new', 0, True, False), ('c', None, False, True)),
        ):
            self.assertEqual(accepted, self.check(uuid, generation, checks), (uuid, generation))
