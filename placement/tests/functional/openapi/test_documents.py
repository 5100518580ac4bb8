"""The OpenAPI documents are valid, and each describes its microversion completely."""

import ddt
from openapi_spec_validator import validate
from oslotest import base

from api_reference.operations import OPERATIONS
from placement import validation
from placement.microversion import VERSIONS, of_text
from placement.tests import where
from placement.tests.unit.openapi.documents import content, objects

UUID = '7b9e1d1c-0000-4000-8000-000000000001'
HEX = UUID.replace('-', '')


def operations(document):
    """Yield the path and the content of each operation of a document."""
    for path, members in document['paths'].items():
        for operation in members.values():
            yield path, operation


def bodies(operation):
    """Return the JSON content of the request and of the successful responses of an operation."""
    parts = [operation.get('requestBody', {})]
    parts += [one for status, one in operation['responses'].items() if status.startswith('2')]
    found = [part['content']['application/json'] for part in parts if 'content' in part]
    return [body for body in found if body['schema']]  # otherwise, Placement ignores the body


@where.only_on('sqlite', reason='The web server does not depend on the database.')
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
                    if isinstance(example['value'], dict):
                        other = {**example['value'], 'unexpected member': 1}
                        self.assertIsNotNone(validation.problem(schema, other))
                    recorded = of_text(name.rpartition('-')[2])
                    self.assertGreaterEqual(recorded, of_text(text))

    def test_a_request_states_the_forms_of_uuids_by_a_pattern(self):
        # Other validators require hyphens for the format `uuid`.
        document = content('1.39')
        schemas = document['components']['schemas']
        requests = [one for name, one in schemas.items() if name.endswith('Request')]
        self.assertEqual([], [one for one in objects(requests) if one.get('format') == 'uuid'])
        new = schemas['Resource_ProvidersCreate_Resource_ProviderRequest']
        for uuid in (UUID, HEX, f'{{{UUID}}}', f'urn:uuid:{UUID}'):
            body = {'name': 'x', 'uuid': uuid, 'parent_provider_uuid': uuid}
            self.assertIsNone(validation.problem(new, body))
        for uuid in ('', HEX[1:], f'{HEX}0', 'x' * 32):
            self.assertIsNotNone(validation.problem(new, {'name': 'x', 'uuid': uuid}))

    def test_a_body_that_the_service_ignores_is_optional(self):
        expected = {'application/json': {'schema': {}}}
        for version, path in (('1.39', '/traits/{name}'), ('1.7', '/resource_classes/{name}')):
            body = content(version)['paths'][path]['put']['requestBody']
            self.assertEqual((False, expected), (body['required'], body['content']))
        before = content('1.6')['paths']['/resource_classes/{name}']['put']['requestBody']
        self.assertTrue(before['required'])

    def test_the_body_of_400_has_a_code_unless_the_microversion_is_malformed(self):
        schemas = content('1.39')['components']['schemas']
        error = {'status': 400, 'title': 'x', 'detail': 'x', 'request_id': f'req-{UUID}'}
        for name, allowed in (('BadRequest', True), ('Error', False)):
            problem = validation.problem(schemas[name], {'errors': [error]})
            self.assertEqual(allowed, problem is None, name)
        for _, operation in operations(content('1.39')):
            body = operation['responses']['400']['content']['application/json']['schema']
            self.assertEqual('#/components/schemas/BadRequest', body['$ref'])

    def test_the_version_document_needs_no_microversion(self):
        for version in VERSIONS:
            document = content(version)
            for path, operation in operations(document):
                name = operation['parameters'][0]['$ref'].rpartition('/')[2]
                required = document['components']['parameters'][name]['required']
                self.assertEqual(path != '/' and version != '1.0', required, (version, path))

    def test_the_allocations_of_a_consumer_are_empty_or_complete(self):
        schemas = content('1.39')['components']['schemas']
        schema = schemas['AllocationList_For_ConsumerResponse']
        used = {UUID: {'generation': 1, 'resources': {'VCPU': 1}}}
        others = {'project_id': 'p', 'user_id': 'u', 'consumer_generation': 1, 'consumer_type': 'X'}
        for allocations, members, valid in (
            ({}, {}, True),
            (used, others, True),
            (used, {}, False),
            (used, {**others, 'unknown': 1}, False),
            ({}, others, False),
            ({}, {'project_id': 'p'}, False),
            *((used, {**others, name: None}, False) for name in others),
        ):
            problem = validation.problem(schema, {'allocations': allocations, **members})
            self.assertEqual(valid, problem is None, (allocations, members))
        for name in others:
            document = {'allocations': used, **others}
            del document[name]
            self.assertIsNotNone(validation.problem(schema, document), name)
