"""The descriptions of operations and parameters, for all microversions and for one of them."""

import re

import ddt
from oslotest import base

from placement.handlers import root
from placement.microversion import MAX_VERSION, MIN_VERSION, VERSIONS, Version, of_text
from placement.operations import OPERATIONS, resource_class
from placement.operations.operation import Change, Operation

OPERATION = Operation(
    method='GET',
    path='/',
    handler=root.home,
    title='Example',
    text='Always.',
    changes=(
        Change('since the beginning.', since=Version(1, 2)),
        Change('early.', until=Version(1, 9)),
        Change('for some time.', since=Version(1, 10), until=Version(1, 19)),
        Change('late.', since=Version(1, 20)),
    ),
    since=Version(1, 4),
    policy=None,
    successes=(),
)
DESCRIBED = [
    described
    for methods in OPERATIONS.values()
    for operation in methods.values()
    for described in (operation, *(operation.query or ()))
]


@ddt.ddt
class DescriptionTest(base.BaseTestCase):
    def test_the_description_for_all_microversions_states_the_range_of_each_change(self):
        self.assertEqual(
            'Always. Since the beginning. 1.4 to 1.9: early. 1.10 to 1.19: for some time. '
            'Changed in 1.20: late.',
            OPERATION.description,
        )

    @ddt.unpack
    @ddt.data(
        ('1.9', 'Always. Since the beginning. Early.'),
        ('1.10', 'Always. Since the beginning. For some time.'),
        ('1.20', 'Always. Since the beginning. Late.'),
    )
    def test_the_description_for_one_microversion_states_what_applies(self, version, expected):
        self.assertEqual(expected, OPERATION.description_at(of_text(version)))

    def test_a_description_can_consist_of_changes_only(self):
        update = resource_class.UPDATE
        self.assertEqual('Renames a custom resource class.', update.description_at(Version(1, 6)))
        self.assertEqual(
            'Creates a custom resource class if it does not exist, and ignores the body.',
            update.description_at(Version(1, 7)),
        )


class DeclaredDescriptionsTest(base.BaseTestCase):
    def test_each_change_applies_in_a_range_of_microversions(self):
        for described in DESCRIBED:
            for change in described.changes:
                self.assertIn(str(change.since), VERSIONS)
                self.assertLessEqual(max(change.since, described.since), change.until)
                self.assertNotEqual((MIN_VERSION, MAX_VERSION), (change.since, change.until))

    def test_the_order_of_the_changes_is_that_of_their_microversions(self):
        for described in DESCRIBED:
            starts = [max(change.since, described.since) for change in described.changes]
            self.assertEqual(sorted(starts), starts, described.text)

    def test_every_microversion_has_a_description_without_microversions(self):
        for described in DESCRIBED:
            for version in map(of_text, VERSIONS):
                if version >= described.since:
                    description = described.description_at(version)
                    self.assertRegex(description, r'^[A-Z`].*\.$')
                    self.assertIsNone(re.search(r'\b1\.\d', description), description)

    def test_descriptions_mention_only_existing_parameters(self):
        for operation in [one for one in DESCRIBED if isinstance(one, Operation)]:
            query = operation.query or ()
            names = {one.name for one in query}
            for version in [one for one in map(of_text, VERSIONS) if one >= operation.since]:
                existing = {one.name for one in query if one.since <= version}
                for described in (operation, *(one for one in query if one.since <= version)):
                    words = set(re.findall(r'`(\w+)`', described.description_at(version)))
                    self.assertEqual(set(), (words & names) - existing)
