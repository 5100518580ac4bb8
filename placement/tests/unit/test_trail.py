"""The texts of the trail, and when a change is logged."""

import logging
from typing import NamedTuple
from unittest import mock

import fixtures
from oslotest import base

from placement import exception, trail
from placement.capacity import Inventory, InventoryUsage


class Provider(NamedTuple):
    uuid: str = 'u'
    name: str = 'a'
    parent_uuid: str | None = None


class ProviderTest(base.BaseTestCase):
    def assert_described(self, expected, before, after):
        self.assertEqual(expected, list(trail.provider(before, after)))

    def test_every_event(self):
        self.assert_described(['provider a (u) created'], None, Provider())
        self.assert_described(['provider a (u) deleted'], Provider(), None)
        self.assert_described(
            ['provider b (u) renamed from a, moved from parent p to none'],
            Provider(parent_uuid='p'),
            Provider(name='b'),
        )

    def test_no_change(self):
        self.assert_described([], Provider(), Provider())

    def test_names_are_encoded(self):
        for name, expected in (
            ('a\n\x1b[2J b', 'a%0A%1B[2J%20b'),
            ('"\'', '%22%27'),
            ('h\u00f4te', 'h%C3%B4te'),
            ('\ud800', '%3F'),
        ):
            self.assert_described([f'provider {expected} (u) created'], None, Provider(name=name))


class InventoriesTest(base.BaseTestCase):
    def describe(self, before, after, name='a'):
        stored = {key: InventoryUsage(0, one, 0) for key, one in before.items()}
        return list(trail.inventories('u', name, stored, after))

    def test_only_changes(self):
        same = Inventory(8)
        self.assertEqual([], self.describe({'VCPU': same}, {'VCPU': same}))
        self.assertEqual(
            ['inventory of a (u): VGPU reserved 0 -> 1, max_unit 2147483647 -> 2'],
            self.describe(
                {'VCPU': same, 'VGPU': Inventory(2)},
                {'VCPU': same, 'VGPU': Inventory(2, reserved=1, max_unit=2)},
            ),
        )

    def test_without_a_name(self):
        self.assertEqual(
            ['inventory of u: VCPU removed (total 8)'],
            self.describe({'VCPU': Inventory(8)}, {}, name=None),
        )


class LinksTest(base.BaseTestCase):
    def test_links(self):
        self.assertEqual([], list(trail.links('traits', 'u', 'a', [], [])))
        self.assertEqual(
            ['traits of a (u): +A +B -C'], list(trail.links('traits', 'u', 'a', ['B', 'A'], ['C']))
        )


class AllocationsTest(base.BaseTestCase):
    def describe(self, before, after, kind=None, project='p'):
        (line,) = trail.allocations('c', kind, project, 'u', before, after)
        return line

    def test_equal_amounts_are_left_out(self):
        one, two, both = {'VCPU': 1}, {'VCPU': 2}, {'VCPU': 1, 'VGPU': 1}
        start = 'allocations of c (project p, user u): '
        for before, after, expected in (
            ({'a': one, 'b': one}, {'a': two, 'b': one}, 'a VCPU 1 -> a VCPU 2'),
            ({'a': one}, {'a': both}, 'none -> a VGPU 1'),
            ({'a': both}, {'a': one}, 'a VGPU 1 -> none'),
            ({'a': one}, {'a': one, 'b': one}, 'none -> b VCPU 1'),
            # The owners changed.
            ({'a': one}, {'a': one}, 'a VCPU 1'),
        ):
            self.assertEqual(start + expected, self.describe(before, after))

    def test_owners_are_encoded(self):
        self.assertEqual(
            'allocations of c (INSTANCE, project p%0A, user u): a VCPU 1',
            self.describe({}, {'a': {'VCPU': 1}}, 'INSTANCE', 'p\n'),
        )

    def test_unknown_old_allocations(self):
        self.assertEqual(
            ['allocations of c%0A removed'], list(trail.allocations_removed('c\n', {}))
        )


class LogTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement.changes', logging.INFO))
        self.addCleanup(trail.switch, not trail.LOG.disabled)
        trail.switch(True)

    def test_a_line_for_each_text(self):
        trail.log(lambda *texts: texts, 'a %s', 'b')
        self.assertEqual('a %s\nb\n', self.log.output)

    def test_nothing_is_built_without_the_log(self):
        describe = mock.Mock(return_value=['a'])
        trail.switch(False)
        trail.log(describe)
        trail.switch(True)
        trail.LOG.setLevel(logging.WARNING)
        trail.log(describe)
        describe.assert_not_called()
        trail.LOG.setLevel(logging.INFO)
        trail.log(describe)
        describe.assert_called_once_with()

    def test_a_defect_does_not_fail_the_request(self):
        trail.log(lambda: [1 / 0])
        self.assertIn('Failed to log a change\nTraceback', self.log.output)


class RefusalTest(base.BaseTestCase):
    def test_texts(self):
        for error, expected in (
            (exception.ConcurrentChange('x'), 'concurrent change'),
            (exception.ConcurrentChange('x', ['b', 'a']), 'provider a, b: concurrent change'),
            (exception.InventoryInUse(['B', 'A'], 'u'), 'A, B on u: inventory in use'),
            (
                exception.ConsumerGenerationConflict('u', 1, None),
                'consumer generation 1 given, null stored',
            ),
            (exception.UnknownResourceClasses(['B', 'A']), 'resource class A, B: unknown'),
            (exception.RequestTooLarge(), str(exception.RequestTooLarge())),
        ):
            self.assertEqual(expected, trail.refusal(error))

    def test_texts_of_clients_are_encoded(self):
        for error, expected in (
            (exception.UnknownResourceClasses(['A\n2026 INFO']), 'A%0A2026%20INFO: unknown'),
            (exception.AmbiguousKeys('a\n b'), 'names a b more'),
        ):
            line = trail.refusal(error)
            self.assertIn(expected, line)
            self.assertNotIn('\n', line)

    def test_many_unknown_names(self):
        for error in (exception.UnknownResourceClasses, exception.UnknownResourceProviders):
            line = trail.refusal(error([f'N{number:02}' for number in range(30)]))
            self.assertTrue(line.endswith('N18, N19 and 10 more: unknown'), line)
