"""Encodings and limits in the lines of the trail, and when a change is logged.

`placement.tests.functional.objects.test_trail` compares the lines with those of the page.
"""

import logging
from types import SimpleNamespace
from unittest import mock

import fixtures
from oslotest import base

from placement import exception, trail


class TextsTest(base.BaseTestCase):
    def test_texts_of_clients_are_encoded(self):
        for name, expected in (
            ('a\n\x1b[2J b', 'a%0A%1B[2J%20b'),
            ('"\'', '%22%27'),
            ('h\u00f4te', 'h%C3%B4te'),
            ('\ud800', '%3F'),
        ):
            provider = SimpleNamespace(uuid='u', name=name, parent_uuid=None)
            (line,) = trail.provider(None, provider)
            self.assertEqual(f'provider {expected} (u) created', line)
        (line,) = trail.allocations('c', 'INSTANCE', 'p\n', 'u', {}, {'a': {'VCPU': 1}})
        self.assertEqual('allocations of c (INSTANCE, project p%0A, user u): a VCPU 1', line)
        self.assertEqual(
            ['allocations of c%0A removed'], list(trail.allocations_removed('c\n', {}))
        )

    def test_equal_amounts_are_left_out(self):
        one, two, both = {'VCPU': 1}, {'VCPU': 2}, {'VCPU': 1, 'VGPU': 1}
        for before, after, expected in (
            ({'a': one, 'b': one}, {'a': two, 'b': one}, 'a VCPU 1 -> a VCPU 2'),
            ({'a': one}, {'a': both}, 'none -> a VGPU 1'),
            ({'a': both}, {'a': one}, 'a VGPU 1 -> none'),
            # The owners changed.
            ({'a': one}, {'a': one}, 'a VCPU 1'),
        ):
            (line,) = trail.allocations('c', None, 'p', 'u', before, after)
            self.assertEqual(f'allocations of c (project p, user u): {expected}', line)

    def test_refusals(self):
        for error, expected in (
            (exception.ConcurrentChange('x'), 'concurrent change'),
            (exception.ConcurrentChange('x', ['b', 'a']), 'provider a, b: concurrent change'),
            (exception.InventoryInUse(['B', 'A'], 'u'), 'A, B on u: inventory in use'),
            (
                exception.ConsumerGenerationConflict('u', 1, None),
                'consumer generation 1 given, null stored',
            ),
            (exception.UnknownResourceClasses(['B', 'A']), 'resource class A, B: unknown'),
            (
                exception.UnknownResourceClasses(['A\n2026 INFO']),
                'resource class A%0A2026%20INFO: unknown',
            ),
            (exception.RequestTooLarge(), str(exception.RequestTooLarge())),
        ):
            self.assertEqual(expected, trail.refusal(error))
        line = trail.refusal(exception.AmbiguousKeys('a\n b'))
        self.assertIn('names a b more', line)
        self.assertNotIn('\n', line)
        for error in (exception.UnknownResourceClasses, exception.UnknownResourceProviders):
            line = trail.refusal(error([f'N{number:02}' for number in range(30)]))
            self.assertTrue(line.endswith('N18, N19 and 10 more: unknown'), line)


class LogTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement.changes', logging.INFO))
        self.addCleanup(trail.switch, not trail.LOG.disabled)
        trail.switch(True)

    def test_nothing_is_built_without_the_log(self):
        describe = mock.Mock(return_value=['a %s', 'b'])
        trail.switch(False)
        trail.log(describe)
        trail.switch(True)
        trail.LOG.setLevel(logging.WARNING)
        trail.log(describe)
        describe.assert_not_called()
        trail.LOG.setLevel(logging.INFO)
        trail.log(describe)
        describe.assert_called_once_with()
        self.assertEqual('a %s\nb\n', self.log.output)

    def test_a_defect_does_not_fail_the_request(self):
        trail.log(lambda: [1 / 0])
        self.assertIn('Failed to log a change\nTraceback', self.log.output)
