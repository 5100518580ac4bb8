"""The committed OpenAPI documents are current and valid, and they describe every operation."""

import importlib.resources
import re

import ddt
from openapi_spec_validator import validate
from oslotest import base
import yaml

from placement import openapi, validation
from placement.microversion import VERSIONS, of_text
from placement.operations import OPERATIONS
from tools import openapi as tool

# The names of component schemas that code generators of OpenStack refer to.
NAMES = [
    'AllocationSet_Allocations_For_ConsumerRequest',
    'AllocationList_For_ConsumerResponse',
    'AllocationsSet_AllocationsRequest',
    'Allocation_CandidatesList_Allocation_CandidatesResponse',
    'ReshaperReshapeRequest',
    'Resource_ClassGet_Resource_ClassResponse',
    'Resource_ClassUpdate_Resource_ClassRequest',
    'Resource_ClassUpdate_Resource_ClassResponse',
    'Resource_ClassesCreate_Resource_ClassRequest',
    'Resource_ClassesList_Resource_ClassesResponse',
    'Resource_ProviderGet_Resource_ProviderResponse',
    'Resource_ProviderUpdate_Resource_ProviderRequest',
    'Resource_ProviderUpdate_Resource_ProviderResponse',
    'Resource_ProvidersCreate_Resource_ProviderRequest',
    'Resource_ProvidersCreate_Resource_ProviderResponse',
    'Resource_ProvidersList_Resource_ProvidersResponse',
    'Resource_ProvidersAggregatesGet_AggregatesResponse',
    'Resource_ProvidersAggregatesSet_AggregatesRequest',
    'Resource_ProvidersAggregatesSet_AggregatesResponse',
    'Resource_ProvidersAllocationsList_For_Resource_ProviderResponse',
    'Resource_ProvidersInventoriesCreate_InventoryRequest',
    'Resource_ProvidersInventoriesCreate_InventoryResponse',
    'Resource_ProvidersInventoriesGet_InventoriesResponse',
    'Resource_ProvidersInventoriesSet_InventoriesRequest',
    'Resource_ProvidersInventoriesSet_InventoriesResponse',
    'Resource_ProvidersInventoryGet_InventoryResponse',
    'Resource_ProvidersInventoryUpdate_InventoryRequest',
    'Resource_ProvidersInventoryUpdate_InventoryResponse',
    'Resource_ProvidersTraitsList_Traits_For_Resource_ProviderResponse',
    'Resource_ProvidersTraitsUpdate_Traits_For_Resource_ProviderRequest',
    'Resource_ProvidersTraitsUpdate_Traits_For_Resource_ProviderResponse',
    'TraitsList_TraitsResponse',
    'UsagesGet_Total_UsagesResponse',
]
METHODS = {'get', 'put', 'post', 'delete'}


def committed(name):
    """Return the text of a document as a package resource."""
    return importlib.resources.files(openapi).joinpath(name).read_text()


def parsed(name):
    return yaml.load(committed(name), yaml.CSafeLoader)


def objects(value):
    """Return all objects in a document, at any depth."""
    if isinstance(value, dict):
        yield value
    for one in value.values() if isinstance(value, dict) else value:
        if isinstance(one, dict | list):
            yield from objects(one)


def contents(operation):
    """Return the JSON content of the request and of the successful responses of an operation."""
    bodies = [operation.get('requestBody', {})]
    bodies += [one for status, one in operation['responses'].items() if status.startswith('2')]
    return [body['content']['application/json'] for body in bodies if 'content' in body]


class CommittedDocumentsTest(base.BaseTestCase):
    def test_the_documents_are_those_that_the_tool_writes(self):
        fresh = {name: tool.text_of(content) for name, content in tool.documents()}
        directory = importlib.resources.files(openapi)
        names = {path.name for path in directory.iterdir() if path.name.endswith('.yaml')}
        self.assertEqual(fresh.keys(), names)
        stale = [name for name, text in fresh.items() if text != committed(name)]
        self.assertEqual([], stale, 'run "tox -e openapi" and commit the documents')


@ddt.ddt
class DocumentTest(base.BaseTestCase):
    @ddt.data(*VERSIONS)
    def test_the_document_of_a_microversion(self, text):
        document = parsed(f'placement-{text}.yaml')
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
            for described in objects(parsed(f'placement-{text}.yaml'))
            for version in re.findall(r'\b1\.\d+', str(described.get('description', '')))
        }
        # Without the header, 1.0 applies. It is also the default of `allocation_ratio`.
        self.assertEqual({'1.0', text}, found)

    def test_error_codes_occur_since_their_microversion(self):
        conflict = '`placement.concurrent_update`: '
        self.assertNotIn(conflict, committed('placement-1.22.yaml'))
        self.assertIn(conflict, committed('placement-1.23.yaml'))

    @ddt.data(*VERSIONS)
    def test_each_body_of_a_success_has_an_example_that_conforms_to_its_schema(self, text):
        document = parsed(f'placement-{text}.yaml')
        schemas = document['components']['schemas']
        for operation in (
            one for members in document['paths'].values() for one in members.values()
        ):
            for content in contents(operation):
                schema = schemas[content['schema']['$ref'].rpartition('/')[2]]
                [(name, example)] = content['examples'].items()
                with self.subTest(name):
                    self.assertIsNone(validation.problem(schema, example['value']))
                    recorded = of_text(name.rpartition('-')[2])
                    self.assertLessEqual(recorded, of_text(text))

    def test_the_example_is_that_of_the_latest_form_of_the_body(self):
        for text, recorded in (('1.0', '1.0'), ('1.11', '1.8'), ('1.27', '1.12'), ('1.39', '1.38')):
            operation = parsed(f'placement-{text}.yaml')['paths']['/allocations/{consumer_uuid}']
            examples = operation['put']['requestBody']['content']['application/json']['examples']
            self.assertEqual([f'update-allocations-{recorded}'], list(examples))

    def test_a_microversion_changes_the_bodies(self):
        name = 'AllocationSet_Allocations_For_ConsumerRequest'
        for text, required in (
            ('1.0', ['allocations']),
            ('1.8', ['allocations', 'project_id', 'user_id']),
            ('1.28', ['allocations', 'project_id', 'user_id', 'consumer_generation']),
        ):
            schema = parsed(f'placement-{text}.yaml')['components']['schemas'][name]
            self.assertEqual(required, schema['required'])

    def test_objects_with_arbitrary_keys_have_additional_properties(self):
        # Code generators do not support patternProperties.
        document = parsed('placement-1.39.yaml')
        body = document['components']['schemas']['AllocationSet_Allocations_For_ConsumerRequest']
        allocations = body['properties']['allocations']
        self.assertEqual({'pattern': '^[0-9a-fA-F-]{36}$'}, allocations['propertyNames'])
        self.assertEqual(['resources'], allocations['additionalProperties']['required'])


class CombinedDocumentTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.document = parsed('placement.yaml')
        self.schemas = self.document['components']['schemas']

    def operations(self):
        for members in self.document['paths'].values():
            for method in METHODS & members.keys():
                yield members[method]

    def test_it_is_valid(self):
        validate(self.document)
        self.assertEqual('1.39', self.document['info']['version'])
        self.assertEqual([{'ApiKeyAuth': []}], self.document['security'])

    def test_the_names_of_component_schemas(self):
        self.assertEqual([], [name for name in NAMES if name not in self.schemas])

    def test_operation_ids(self):
        ids = [operation['operationId'] for operation in self.operations()]
        self.assertEqual(len(set(ids)), len(ids))
        for expected in (
            ':get',
            'allocation_candidates:get',
            'allocations:post',
            'allocations/consumer_uuid:put',
            'resource_providers/uuid/inventories/resource_class:delete',
        ):
            self.assertIn(expected, ids)

    def test_variants_have_adjacent_ranges(self):
        ladders = [found for found in objects(self.schemas) if 'x-openstack' in found]
        ladders = [found for found in ladders if 'discriminator' in found['x-openstack']]
        self.assertGreater(len(ladders), 5)
        for ladder in ladders:
            self.assertEqual({'discriminator': 'microversion'}, ladder['x-openstack'])
            ranges = [variant['x-openstack'] for variant in ladder['oneOf']]
            ends = [VERSIONS.index(one['max-ver']) + 1 for one in ranges[:-1]]
            starts = [VERSIONS.index(one['min-ver']) for one in ranges[1:]]
            self.assertEqual(starts, ends)
            self.assertNotIn('max-ver', ranges[-1])

    def test_ranges_of_operations_parameters_and_properties(self):
        candidates = self.document['paths']['/allocation_candidates']['get']
        self.assertEqual({'min-ver': '1.10'}, candidates['x-openstack'])
        found = {one.get('name'): one.get('x-openstack') for one in candidates['parameters']}
        self.assertEqual({'min-ver': '1.21'}, found['member_of'])
        self.assertEqual({'min-ver': '1.25'}, found['request_groups'])
        self.assertIsNone(found['resources'])
        allocations = self.schemas['AllocationSet_Allocations_For_ConsumerRequest']
        latest = allocations['oneOf'][-1]['properties']
        self.assertEqual({'min-ver': '1.38'}, latest['consumer_type']['x-openstack'])
        self.assertNotIn('x-openstack', latest['allocations'])

    def test_ranges_of_responses(self):
        created = self.document['paths']['/resource_providers']['post']['responses']
        self.assertEqual({'max-ver': '1.19'}, created['201']['x-openstack'])
        self.assertEqual({'min-ver': '1.20'}, created['200']['x-openstack'])

    def test_parameters_that_can_be_repeated(self):
        parameters = self.document['paths']['/allocation_candidates']['get']['parameters']
        repeated = {
            one['name']: (one['style'], one['explode'])
            for one in parameters
            if one.get('schema', {}).get('type') == 'array'
        }
        form = ('form', True)
        self.assertEqual({'required': form, 'member_of': form, 'same_subtree': form}, repeated)
