"""The OpenAPI documents are valid, and each describes its microversion completely."""

import re

import ddt
from openapi_spec_validator import validate
from oslotest import base

from placement import validation
from placement.microversion import VERSIONS, of_text
from placement.operations import OPERATIONS
from placement.tests.unit.openapi.documents import content, objects


def bodies(operation):
    """Return the JSON content of the request and of the successful responses of an operation."""
    parts = [operation.get('requestBody', {})]
    parts += [one for status, one in operation['responses'].items() if status.startswith('2')]
    return [part['content']['application/json'] for part in parts if 'content' in part]


@ddt.ddt
class DocumentTest(base.BaseTestCase):
    @ddt.data(*VERSIONS)
    def test_the_document_of_a_microversion(self, text):
        document = content(text)
        validate(document)
        self.assertEqual(('3.1.0', text), (document['openapi'], document['info']['version']))
        # Code generators cannot decide between variants by their content.
        used = [found for found in objects(document) if 'x-openstack' in found]
        self.assertEqual([], used)
        expected = {
            (path, method.lower())
            for path, methods in OPERATIONS.items()
            for method, operation in methods.items()
            if path and operation.since <= of_text(text)
        }
        described = {
            (path, method) for path, members in document['paths'].items() for method in members
        }
        self.assertEqual(expected, described)

    @ddt.data('1.2', '1.12', '1.24', '1.38')
    def test_the_document_of_a_microversion_does_not_mention_others(self, text):
        found = {
            version
            for described in objects(content(text))
            for version in re.findall(r'\b1\.\d+', str(described.get('description', '')))
        }
        # Without the header, 1.0 applies. It is also the default of `allocation_ratio`.
        self.assertEqual({'1.0', text}, found)

    def test_error_codes_occur_since_their_microversion(self):
        conflict = '`placement.concurrent_update`: '
        self.assertNotIn(conflict, str(content('1.22')))
        self.assertIn(conflict, str(content('1.23')))

    @ddt.data(*VERSIONS)
    def test_each_body_of_a_success_has_an_example_that_conforms_to_its_schema(self, text):
        document = content(text)
        schemas = document['components']['schemas']
        for operation in (
            one for members in document['paths'].values() for one in members.values()
        ):
            for body in bodies(operation):
                schema = schemas[body['schema']['$ref'].rpartition('/')[2]]
                [(name, example)] = body['examples'].items()
                with self.subTest(name):
                    self.assertIsNone(validation.problem(schema, example['value']))
                    recorded = of_text(name.rpartition('-')[2])
                    self.assertLessEqual(recorded, of_text(text))

    def test_the_example_is_that_of_the_latest_form_of_the_body(self):
        for text, recorded in (('1.0', '1.0'), ('1.11', '1.8'), ('1.27', '1.12'), ('1.38', '1.38')):
            operation = content(text)['paths']['/allocations/{consumer_uuid}']
            examples = operation['put']['requestBody']['content']['application/json']['examples']
            self.assertEqual([f'update-allocations-{recorded}'], list(examples))

    def test_a_microversion_changes_the_bodies(self):
        name = 'AllocationSet_Allocations_For_ConsumerRequest'
        for text, required in (
            ('1.0', ['allocations']),
            ('1.8', ['allocations', 'project_id', 'user_id']),
            ('1.28', ['allocations', 'project_id', 'user_id', 'consumer_generation']),
        ):
            schema = content(text)['components']['schemas'][name]
            self.assertEqual(required, schema['required'])

    def test_objects_with_arbitrary_keys_have_additional_properties(self):
        # Code generators do not support patternProperties.
        document = content(VERSIONS[-1])
        body = document['components']['schemas']['AllocationSet_Allocations_For_ConsumerRequest']
        allocations = body['properties']['allocations']
        self.assertEqual({'pattern': '^[0-9a-fA-F-]{36}$'}, allocations['propertyNames'])
        self.assertEqual(['resources'], allocations['additionalProperties']['required'])
