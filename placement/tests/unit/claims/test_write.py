"""The reasons for which claims are refused."""

from unittest import mock

from oslotest import base

from placement import exception
from placement.claims import judge, write
from placement.telemetry import declarations
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
            self.assertIn(expected, declarations.REFUSAL_REASONS)

    def test_every_reason_is_declared(self):
        self.assertEqual(set(), set(judge._REASON_OF.values()) - set(declarations.REFUSAL_REASONS))

    def test_other_errors(self):
        self.assertEqual('other', judge.refusal_reason(exception.AmbiguousKeys('x')))


class WriteClaimsTest(base.BaseTestCase):
    def test_a_claim(self):
        metrics = self.useFixture(SwitchedOn())
        with mock.patch.object(write.engine, 'write') as engine_write:
            write._execute(print, 3, [])
        engine_write.assert_called_once_with(print, 3)
        self.assertEqual({}, metrics.increased(declarations.REFUSALS))

    def test_a_refused_claim(self):
        metrics = self.useFixture(SwitchedOn())
        for error in (
            exception.UnknownResourceProviders(['u']),
            exception.UnknownResourceProviders(['u'], 'another code'),
            exception.ConcurrentChange('x'),
        ):
            with mock.patch.object(write.engine, 'write', side_effect=error):
                raised = self.assertRaises(type(error), write._execute, print, 1, [])
            self.assertIs(error, raised)
        self.assertEqual(
            {'unknown_provider': 2, 'concurrent_change': 1},
            metrics.increased(declarations.REFUSALS),
        )

    def test_failures_of_the_database_are_no_refusals(self):
        metrics = self.useFixture(SwitchedOn())
        for error in (exception.DatabaseUnavailable(), exception.OutcomeUnknown(), KeyError('x')):
            with mock.patch.object(write.engine, 'write', side_effect=error):
                self.assertRaises(type(error), write._execute, print, 1, [])
        self.assertEqual({}, metrics.increased(declarations.REFUSALS))
