"""The tables of an operation contain what its declaration states."""

from http import HTTPStatus

from oslotest import base

from placement import microversion
from placement.microversion import MAX_VERSION, MIN_VERSION
from placement.operations import OPERATIONS
from tools.api_reference import tables

ALLOCATIONS = '/allocations/{consumer_uuid}'
DECLARED = [
    (path, operation) for path, methods in OPERATIONS.items() for operation in methods.values()
]


def row_of(rows, name):
    (row,) = [row for row in rows if row.name == name]
    return row


class TablesTest(base.BaseTestCase):
    def requested(self, method, path):
        return tables.request_rows(OPERATIONS[path][method])

    def returned(self, method, path):
        return tables.response_rows(path, OPERATIONS[path][method])

    def test_the_path_and_the_body(self):
        rows = self.requested('PUT', '/resource_providers/{uuid}')
        self.assertEqual(
            [
                ('uuid', 'path', 'UUID', 'yes', '1.0'),
                ('name', 'body', 'string', 'yes', '1.0'),
                ('parent_provider_uuid', 'body', 'UUID or null', 'no', '1.14'),
            ],
            [(row.name, row.location, row.type, row.required, str(row.since)) for row in rows],
        )
        # Later microversions ignore this body.
        row = self.requested('PUT', '/resource_classes/{name}')[-1]
        self.assertEqual(('body', '1.2', '1.6'), (row.location, str(row.since), str(row.until)))

    def test_both_forms_of_allocations(self):
        rows = [row for row in self.requested('PUT', ALLOCATIONS) if row.name == 'allocations']
        changed = microversion.ALLOCATIONS_BY_PROVIDER
        self.assertEqual(
            [('object', changed, MAX_VERSION), ('array of objects', MIN_VERSION, changed.before())],
            [(row.type, row.since, row.until) for row in rows],
        )
        self.assertTrue(rows[0].description.endswith('Not empty (1.12 to 1.27).'), rows[0])

    def test_query_parameters(self):
        rows = self.requested('GET', '/allocation_candidates')
        self.assertEqual('1.10 to 1.24', row_of(rows, 'resources').required)
        self.assertEqual('no', row_of(rows, 'resources{suffix}').required)
        self.assertEqual(microversion.CANDIDATES_LIMIT, row_of(rows, 'limit').since)
        self.assertIn('One of `none`, `isolate`.', row_of(rows, 'group_policy').description)
        self.assertEqual([], [row.name for row in rows if 'Pattern' in row.description])

    def test_headers_and_the_body_of_a_response_have_ranges(self):
        rows = self.returned('POST', '/resource_providers')
        with_body = str(microversion.PROVIDER_POST_RETURNS_BODY)
        for name, expected in (
            ('Location', ('header', 'yes', '1.0')),
            ('Last-Modified', ('header', 'yes', with_body)),
            ('generation', ('body', 'yes', with_body)),
        ):
            row = row_of(rows, name)
            self.assertEqual(expected, (row.location, row.required, str(row.since)), name)
        self.assertEqual([], self.returned('DELETE', '/traits/{name}'))

    def test_reasons(self):
        path = '/resource_providers'
        found = [
            (one.status.value, str(one.since), str(one.until))
            for one in tables.reasons(path, OPERATIONS[path]['POST'])
            if one.status < HTTPStatus.BAD_REQUEST
        ]
        self.assertEqual([(200, '1.20', str(MAX_VERSION)), (201, '1.0', '1.19')], found)
        path = '/resource_providers/{uuid}'
        codes = {one.code for one in tables.reasons(path, OPERATIONS[path]['DELETE'])}
        self.assertIn('placement.resource_provider.inuse', codes)
        self.assertNotIn('placement.undefined_code', codes)
        reasons = tables.reasons(ALLOCATIONS, OPERATIONS[ALLOCATIONS]['DELETE'])
        self.assertEqual([204, 404], [one.status.value for one in reasons if not one.common])

    def test_the_tables_of_all_operations_are_complete(self):
        for path, operation in DECLARED:
            reasons = [(one.status, one.when) for one in tables.reasons(path, operation)]
            for declared in (*operation.successes, *operation.failures):
                self.assertIn((declared.status, declared.when), reasons)
            response = tables.response_rows(path, operation)
            self.assertEqual(set(), {row.name for row in response} & tables.COMMON_HEADERS)
            for row in tables.request_rows(operation) + response:
                self.assertTrue(row.description, f'{operation.title}: {row.name}')
                self.assertGreaterEqual(row.since, operation.since, row.name)
