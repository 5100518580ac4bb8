"""The JSON document of a report."""

from unittest import mock

from oslotest import base

from placement.admin.report import document, trees
from placement.admin.report.model import Consumer
from placement.tests.unit.admin.report.clouds import (
    DISABLED,
    DISK_GB,
    DRAINS,
    FAST,
    SHARING,
    UNKNOWN,
    VCPU,
    cloud,
    inventory,
    provider,
)


def build(*providers, **options) -> document.Document:
    of_test = cloud(*providers, **options)
    return document.build(of_test, trees.of_cloud(of_test))


class DocumentTest(base.BaseTestCase):
    maxDiff = None

    def test_providers_and_inventories(self):
        found = build(
            provider(
                1,
                inventory(VCPU, 8, used=6, reserved=2, ratio=1.5),
                traits=(FAST,),
                aggregates=(4, 2),
            ),
            provider(2, inventory(DISK_GB, 10, used=1), root=1, parent=1),
            provider(3, inventory(DISK_GB, 10, used=5)),
            consumers={1: [Consumer(str(number), 'INSTANCE', 'p', {}) for number in range(7)]},
        )
        self.assertEqual(
            {
                'name': ['provider-1', 'provider-2', 'provider-3'],
                'uuid': [f'00000000-0000-0000-0000-00000000000{number}' for number in (1, 2, 3)],
                'generation': [3, 3, 3],
                'parent': [-1, 0, -1],
                'traits': [0, 1, 1],
                'aggregates': [0, 1, 1],
                'inventories': [1, 1, 1],
            },
            found['providers'],
        )
        self.assertEqual({'shape': [0, 1, 1], 'used': [6, 1, 5]}, found['inventories'])
        self.assertEqual(
            {
                'class': [0, 1],
                'capacity': [9, 10],
                'total': [8, 10],
                'reserved': [2, 0],
                'min_unit': [1, 1],
                'max_unit': [8, 10],
                'step_size': [1, 1],
                'allocation_ratio': [1.5, 1.0],
            },
            found['shapes'],
        )
        self.assertEqual(['VCPU', 'DISK_GB'], found['classes'])
        self.assertEqual([[0], []], found['trait_sets'])
        names = [found['aggregates'][position] for position in found['aggregate_sets'][0]]
        self.assertEqual(['aggregate-2', 'aggregate-4'], names)
        self.assertEqual(
            {
                'size': [2, 1],
                'consumers': [7, 0],
                'fullest': [0, 1],
                'sharing': [0, 0],
                'disabled': [0, 0],
                'drain': None,
            },
            found['trees'],
        )

    def test_sharing_providers(self):
        found = build(
            provider(1, aggregates=(4,)),
            provider(2, aggregates=(4,)),
            provider(3, inventory(DISK_GB, 9), traits=(SHARING,), aggregates=(4,)),
        )
        self.assertEqual(['provider-3', 'provider-1', 'provider-2'], found['providers']['name'])
        self.assertEqual([0, 1, 1], found['trees']['sharing'])
        self.assertEqual([(), (0,)], found['sharing_sets'])
        self.assertEqual(
            {
                'name': ['provider-3'],
                'uuid': ['00000000-0000-0000-0000-000000000003'],
                'position': [0],
                'trees': [2],
            },
            found['sharing_providers'],
        )

    def test_above_the_limit_only_the_fullest_trees_are_shown(self):
        providers = [
            provider(1, inventory(VCPU, 4, used=1), aggregates=(4,)),
            provider(2, inventory(VCPU, 4, used=2), aggregates=(4,)),
            provider(3, inventory(DISK_GB, 9), traits=(SHARING,), aggregates=(4,)),
        ]
        with mock.patch.object(document, 'TREES', 1):
            found = build(*providers)
        self.assertEqual(['provider-2'], found['providers']['name'])
        self.assertEqual(3, found['all_trees'])
        # The sums and the sharing providers include all trees.
        self.assertEqual([3, 0], found['class_totals']['used'])
        self.assertEqual(
            ([-1], [2]), tuple(found['sharing_providers'][n] for n in ('position', 'trees'))
        )

    def test_parts(self):
        found = build(
            provider(1, inventory(VCPU, 4, used=3, reserved=1, ratio=2.0), aggregates=(4,)),
            projects=(('p', VCPU, 3), ('q', UNKNOWN, 1)),
        )
        self.assertEqual(['VCPU', 'unknown class 77'], found['classes'])
        self.assertEqual(
            {
                'all': 1,
                'name': ['aggregate-4'],
                'count': [1],
                'totals': {
                    'part': [0],
                    'class': [0],
                    'capacity': [6],
                    'used': [3],
                    'free': [3],
                    'reserved': [1],
                    'nominal': [8],
                },
            },
            found['parts']['aggregate'],
        )
        self.assertEqual(['p', 'q'], found['parts']['project']['name'])
        self.assertEqual([0, 1], found['parts']['project']['totals']['class'])

    def test_free_amounts_and_negative_capacities(self):
        found = build(
            provider(1, inventory(VCPU, 4, used=1)),
            provider(2, inventory(VCPU, 4, used=6)),
            provider(3, inventory(VCPU, 16), traits=(DISABLED,)),
            provider(4, inventory(VCPU, 4, reserved=12)),
        )
        self.assertEqual([3], found['class_totals']['free'])
        self.assertEqual(
            ['provider-4', 'provider-2', 'provider-1', 'provider-3'], found['providers']['name']
        )
        self.assertEqual([-8, 4, 16], found['shapes']['capacity'])
        self.assertEqual([0, 0, 0, 1], found['trees']['disabled'])

    def test_consumers(self):
        small, large = {VCPU: 1, DISK_GB: 90}, {VCPU: 2, UNKNOWN: 1}
        of_test = cloud(
            provider(1, inventory(VCPU, 4, used=4)),
            provider(2, inventory(DISK_GB, 10)),
            provider(3, inventory(VCPU, 4, used=1)),
            consumers={
                1: [
                    Consumer('b', 'INSTANCE', 'p', small),
                    Consumer('c', 'INSTANCE', 'p', large),
                    Consumer('a', 'MIGRATION', 'q\x1b', small),
                ],
                3: [Consumer('d', 'INSTANCE', 'p', small)],
            },
        )
        with mock.patch.object(document, 'CONSUMERS', 2):
            found = document.consumers(of_test, trees.of_cloud(of_test))
        self.assertEqual(
            {
                # In the order of the trees: 1, 3, 2.
                'size': [2, 1, 0],
                'name': ['c', 'a', 'd'],
                'type': [0, 1, 0],
                'project': [0, 1, 0],
                'amounts': [0, 1, 1],
                'types': ['INSTANCE', 'MIGRATION'],
                'projects': ['p', 'q\\x1b'],
                'amount_sets': [
                    (('VCPU', 2), ('unknown class 77', 1)),
                    (('VCPU', 1), ('DISK_GB', 90)),
                ],
            },
            found,
        )

    def test_an_empty_cloud(self):
        found = build()
        self.assertEqual(
            ([], [], 0), (found['classes'], found['trees']['size'], found['all_trees'])
        )

    def test_control_characters_of_names_are_escaped(self):
        found = build(
            provider(1, aggregates=(4,)),
            names={1: 'a\u202eb\u2028c\x1b'},
            aggregates={4: '\u2066x'},
            projects=(('p\u200f', VCPU, 1),),
        )
        self.assertEqual(['a\\u202eb\\u2028c\\x1b'], found['providers']['name'])
        self.assertEqual(['\\u2066x'], found['aggregates'])
        self.assertEqual(['p\\u200f'], found['parts']['project']['name'])

    def test_a_name_of_blanks_is_quoted(self):
        found = build(provider(1), provider(2), names={1: '  ', 2: ''})
        self.assertEqual(['', "'  '"], found['providers']['name'])


class DrainTest(base.BaseTestCase):
    def test_the_column(self):
        found = build(*(provider(number) for number in range(1, 5)), drains=DRAINS)
        names = [found['providers']['name'][number] for number in range(4)]
        drains = dict(zip(names, found['trees']['drain'], strict=True))
        self.assertEqual(
            {
                'provider-1': 'yes',
                'provider-2': 'no: lacks 24 VCPU, 10 DISK_GB',
                'provider-3': 'no plan: lacks 1 VCPU',
                'provider-4': '',
            },
            drains,
        )
