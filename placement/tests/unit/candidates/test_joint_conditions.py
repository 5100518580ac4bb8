"""Whether an incomplete binding can still satisfy the traits of the unsuffixed group."""

from collections.abc import Mapping, Sequence

from oslotest import base

from placement.candidates.budget import Budget
from placement.candidates.joint_conditions import CollectiveTrait

# Slots 0 and 1 may contribute the trait, and providers 10 and 11 have it.
TRAIT = CollectiveTrait(slots=frozenset((0, 1)), providers=frozenset((10, 11)))
UNBOUND = -1


class MayBeSatisfiedTest(base.BaseTestCase):
    def may_be_satisfied(
        self, binding: Sequence[int], options: Mapping[int, Sequence[int]]
    ) -> bool:
        return TRAIT.may_be_satisfied(binding, options, Budget())

    def test_a_bound_provider_has_the_trait(self):
        self.assertTrue(self.may_be_satisfied([10, 20], {}))
        self.assertTrue(self.may_be_satisfied([20, 11], {}))

    def test_no_bound_provider_has_the_trait(self):
        self.assertFalse(self.may_be_satisfied([20, 21], {}))

    def test_an_option_of_an_unbound_slot_has_the_trait(self):
        self.assertTrue(self.may_be_satisfied([20, UNBOUND], {1: [21, 11]}))

    def test_no_option_of_an_unbound_slot_has_the_trait(self):
        self.assertFalse(self.may_be_satisfied([20, UNBOUND], {1: [21, 22]}))

    def test_slots_with_the_same_options(self):
        for expected, options in ((False, [20, 21]), (True, [20, 10])):
            actual = self.may_be_satisfied([UNBOUND, UNBOUND], {0: options, 1: options})
            self.assertEqual(expected, actual)

    def test_slots_with_different_options(self):
        self.assertTrue(self.may_be_satisfied([UNBOUND, UNBOUND], {0: [20], 1: [10]}))

    def test_other_slots_do_not_contribute(self):
        self.assertFalse(self.may_be_satisfied([20, 21, 10], {}))
        self.assertFalse(self.may_be_satisfied([20, 21, UNBOUND], {2: [10]}))
