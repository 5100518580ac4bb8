"""Plans of reshapes: providers, the inventories after a reshape, and removed inventories."""

from oslotest import base

from placement import exception
from placement.capacity import Inventory
from placement.claims import judge
from placement.claims.claim import Replacement
from placement.tests.unit.claims.facts import (
    OTHER,
    PROVIDER,
    VCPU,
    demand,
    locked_claims,
    usage,
)


class ProvidersTest(base.BaseTestCase):
    def test_reshaped_providers_are_checked_in_the_order_of_the_body(self):
        providers = {'p': PROVIDER}
        stale, missing = {'p': Replacement(4, {})}, {'x': Replacement(0, {})}
        judge.check_reshaped_providers({'p': Replacement(5, {})}, providers)
        for body, error in (
            (stale | missing, exception.ResourceProviderGenerationConflict),
            (missing | stale, exception.UnknownResourceProviders),
        ):
            self.assertRaises(error, judge.check_reshaped_providers, body, providers)


class ReshapeTest(base.BaseTestCase):
    """The requests move the inventory of one provider to another provider."""

    current = {VCPU: usage(4), (OTHER.id, 'MEMORY_MB'): usage(0)}

    def plan(self, replacements):
        return judge.plan_reshape(replacements, locked_claims(inventories=self.current))

    def test_plans_and_increments(self):
        requested = {'p': Replacement(5, {}), 'o': Replacement(7, {'VCPU': Inventory(8)})}
        self.assertEqual([1, 2], [one.increment for one in requested.values()])
        change = self.plan(requested)
        self.assertEqual(('VCPU',), change.plans[PROVIDER.id].remove)
        self.assertEqual({'VCPU': Inventory(8)}, change.plans[OTHER.id].add)
        self.assertEqual(('MEMORY_MB',), change.plans[OTHER.id].remove)
        new = {(OTHER.id, 'VCPU'): usage(total=8)}
        self.assertEqual(self.current | new, change.current_and_new)

    def test_new_inventory_takes_precedence_and_keeps_the_usage(self):
        change = self.plan({'p': Replacement(5, {'VCPU': Inventory(16)})})
        self.assertEqual(usage(4, total=16), change.current_and_new[VCPU])

    def test_removed_inventory_must_have_no_allocations_left(self):
        plans = self.plan({'p': Replacement(5, {})}).plans
        judge.check_removed_inventories(plans, locked_claims((), {VCPU: 4}, self.current))
        for case in (
            locked_claims((), {VCPU: 3}, self.current),
            locked_claims([demand(1)], {VCPU: 4}, self.current),
        ):
            error = self.assertRaises(
                exception.InventoryInUse, judge.check_removed_inventories, plans, case
            )
            self.assertEqual((['VCPU'], 'p'), (error.resource_classes, error.provider_uuid))
