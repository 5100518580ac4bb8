"""The reasons for which claims are refused."""

from unittest import mock

from oslotest import base

from placement import exception
from placement.claims import judge, write
from placement.tests.unit.claims import facts
from placement.tests.unit.telemetry.switched_on import SwitchedOn


class ReasonTest(base.BaseTestCase):
    def test_amounts(self):
        key = {facts.VCPU: facts.usage(total=9, min_unit=2, max_unit=8, step_size=2)}
        for amount, inventories, expected in (
            (8, {facts.VCPU: facts.usage(used=8, total=9)}, 'capacity'),
            (8, {}, 'no_inventory'),
            (1, key, 'min_unit'),
            (9, key, 'max_unit'),
            (3, key, 'step_size'),
        ):
            error = self.assertRaises(
                exception.InvalidAllocation,
                judge.check_amounts,
                [facts.demand(amount)],
                inventories,
                {},
            )
            self.assertEqual(expected, judge.refusal_reason(error))

    def test_other_errors(self):
        self.assertEqual('other', judge.refusal_reason(exception.AmbiguousKeys('x')))


class WriteClaimsTest(base.BaseTestCase):
    def test_refusals_are_counted(self):
        """Failures of the database are no refusals."""
        metrics = self.useFixture(SwitchedOn())
        for error in (
            *(exception.UnknownResourceProviders(['u'], code) for code in (None, 'another code')),
            exception.ConcurrentChange('x'),
            *(exception.DatabaseUnavailable(), exception.OutcomeUnknown(), KeyError('x')),
        ):
            with mock.patch.object(write.engine, 'write', side_effect=error) as engine_write:
                raised = self.assertRaises(type(error), write._execute, print, 3, [])
            self.assertIs(error, raised)
            engine_write.assert_called_once_with(print, 3)
        expected = {'unknown_provider': 2, 'concurrent_change': 1}
        self.assertEqual(expected, metrics.increased('placement_claims_refused_total'))
