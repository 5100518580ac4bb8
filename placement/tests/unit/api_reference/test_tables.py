"""The tables of an operation contain what its declaration states."""

from oslotest import base

from api_reference.operations import OPERATIONS
from api_reference.pages import fields, tables
from placement import microversion
from placement.microversion import MAX_VERSION, MIN_VERSION

ALLOCATIONS = '/allocations/{consumer_uuid}'
DECLARED = [operation for methods in OPERATIONS.values() for operation in methods.values()]


class TablesTest(base.BaseTestCase):
    def test_the_path_and_both_forms_of_the_body(self):
        rows = tables.request_rows(OPERATIONS[ALLOCATIONS]['PUT'])
        self.assertEqual(('consumer_uuid', 'path'), (rows[0].name, rows[0].location))
        rows = [row for row in rows if row.name == 'allocations']
        changed = microversion.ALLOCATIONS_BY_PROVIDER
        self.assertEqual(
            [('object', changed, MAX_VERSION), ('array of objects', MIN_VERSION, changed.before())],
            [(row.type, row.since, row.until) for row in rows],
        )
        self.assertTrue(rows[0].description.endswith('Not empty (1.12 to 1.27).'), rows[0])

    def test_a_note_states_the_range_of_a_row_unless_it_is_that_of_the_operation(self):
        traits, types = microversion.TRAITS, microversion.CONSUMER_TYPES
        self.assertEqual('', fields.note(traits, MAX_VERSION, traits))
        self.assertEqual('New in microversion 1.38.', fields.note(types, MAX_VERSION, traits))
        for until, text in (
            (types, 'In microversions 1.6 to 1.38'),
            (traits, 'In microversion 1.6'),
        ):
            self.assertEqual(f'{text} only.', fields.note(traits, until, traits))

    def test_the_tables_of_all_operations_are_complete(self):
        for operation in DECLARED:
            reasons = [(one.status, one.when) for one in tables.reasons(operation)]
            for declared in (*operation.successes, *operation.failures):
                self.assertIn((declared.status, declared.when), reasons)
            response = tables.response_rows(operation)
            self.assertEqual(set(), {row.name for row in response} & tables.COMMON_HEADERS)
            for row in tables.request_rows(operation) + response:
                self.assertTrue(row.description, f'{operation.title}: {row.name}')
                self.assertGreaterEqual(row.since, operation.since, row.name)
