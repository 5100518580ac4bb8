"""The tables of an operation contain what its declaration states."""

from http import HTTPStatus

from oslotest import base

from placement import microversion
from placement.microversion import MAX_VERSION, MIN_VERSION
from placement.operations import OPERATIONS, responses
from tools.api_reference import tables

ALLOCATIONS = '/allocations/{consumer_uuid}'
DECLARED = [
    (path, operation) for path, methods in OPERATIONS.items() for operation in methods.values()
]


def row_of(rows, name):
    (row,) = [row for row in rows if row.name == name]
    return row


class RequestTest(base.BaseTestCase):
    def rows(self, method, path):
        return tables.request_rows(OPERATIONS[path][method])

    def test_the_path_the_query_and_the_body(self):
        rows = self.rows('PUT', '/resource_providers/{uuid}')
        self.assertEqual(
            [
                ('uuid', 'path', 'UUID', 'yes'),
                ('name', 'body', 'string', 'yes'),
                ('parent_provider_uuid', 'body', 'UUID or null', 'no'),
            ],
            [(row.name, row.location, row.type, row.required) for row in rows],
        )
        self.assertEqual(microversion.NESTED_PROVIDERS, rows[-1].since)

    def test_both_forms_of_allocations(self):
        rows = [row for row in self.rows('PUT', ALLOCATIONS) if row.name == 'allocations']
        changed = microversion.ALLOCATIONS_BY_PROVIDER
        self.assertEqual(
            [
                ('object', changed, MAX_VERSION),
                ('array of objects', MIN_VERSION, changed.before()),
            ],
            [(row.type, row.since, row.until) for row in rows],
        )
        self.assertTrue(rows[0].description.endswith('Not empty (1.12 to 1.27).'), rows[0])

    def test_a_body_that_later_microversions_ignore(self):
        row = self.rows('PUT', '/resource_classes/{name}')[-1]
        self.assertEqual(('body', '1.2', '1.6'), (row.location, str(row.since), str(row.until)))

    def test_query_parameters(self):
        rows = self.rows('GET', '/allocation_candidates')
        self.assertEqual('1.10 to 1.24', row_of(rows, 'resources').required)
        self.assertEqual('no', row_of(rows, 'resources{suffix}').required)
        self.assertEqual(microversion.CANDIDATES_LIMIT, row_of(rows, 'limit').since)
        self.assertIn('One of `none`, `isolate`.', row_of(rows, 'group_policy').description)

    def test_the_description_of_a_parameter_has_no_pattern(self):
        for row in self.rows('GET', '/allocation_candidates'):
            self.assertNotIn('Pattern', row.description)


class ResponseTest(base.BaseTestCase):
    def rows(self, method, path):
        return tables.response_rows(path, OPERATIONS[path][method])

    def test_headers_have_ranges(self):
        rows = self.rows('POST', '/resource_providers')
        location, caching = row_of(rows, 'Location'), row_of(rows, 'Last-Modified')
        self.assertEqual(
            ('header', 'yes', MIN_VERSION), (location.location, location.required, location.since)
        )
        self.assertEqual(microversion.PROVIDER_POST_RETURNS_BODY, caching.since)

    def test_headers_of_all_responses_are_omitted(self):
        names = {row.name for path, one in DECLARED for row in tables.response_rows(path, one)}
        self.assertEqual(set(), names & tables.COMMON_HEADERS)
        self.assertLess(tables.COMMON_HEADERS, set(responses.HEADERS))

    def test_a_body_that_earlier_microversions_omit(self):
        row = row_of(self.rows('POST', '/resource_providers'), 'generation')
        self.assertEqual(microversion.PROVIDER_POST_RETURNS_BODY, row.since)

    def test_an_empty_response_has_no_rows(self):
        self.assertEqual([], self.rows('DELETE', '/traits/{name}'))


class ReasonsTest(base.BaseTestCase):
    def reasons(self, method, path):
        return tables.reasons(path, OPERATIONS[path][method])

    def test_statuses_have_ranges(self):
        found = [
            (one.status.value, str(one.since), str(one.until))
            for one in self.reasons('POST', '/resource_providers')
            if one.status < HTTPStatus.BAD_REQUEST
        ]
        self.assertEqual([(200, '1.20', str(MAX_VERSION)), (201, '1.0', '1.19')], found)

    def test_error_codes(self):
        codes = {one.code for one in self.reasons('DELETE', '/resource_providers/{uuid}')}
        self.assertIn('placement.resource_provider.inuse', codes)
        self.assertNotIn('placement.undefined_code', codes)

    def test_common_reasons(self):
        own = [one.status.value for one in self.reasons('DELETE', ALLOCATIONS) if not one.common]
        self.assertEqual([204, 404], own)

    def test_every_declared_reason_is_a_row(self):
        for path, operation in DECLARED:
            rows = [(one.status, one.when) for one in tables.reasons(path, operation)]
            for declared in (*operation.successes, *operation.failures):
                self.assertIn((declared.status, declared.when), rows)


class CompletenessTest(base.BaseTestCase):
    def test_every_row_has_a_description(self):
        for path, operation in DECLARED:
            rows = tables.request_rows(operation) + tables.response_rows(path, operation)
            for row in rows:
                self.assertTrue(row.description, f'{operation.title}: {row.name}')

    def test_no_row_begins_before_its_operation(self):
        for path, operation in DECLARED:
            rows = tables.request_rows(operation) + tables.response_rows(path, operation)
            for row in rows:
                self.assertGreaterEqual(row.since, operation.since, row.name)
