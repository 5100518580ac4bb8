"""The combined OpenAPI document has the form that the code generators of OpenStack read."""

import json

from openapi_spec_validator import validate
from oslotest import base

from placement.handler import ROUTE_DECLARATIONS
from placement.microversion import VERSIONS, of_text
from placement.openapi import files
from placement.operations import OPERATIONS
from placement.tests.unit.openapi.documents import committed, content, objects

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


class _CombinedTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.document = content(files.COMBINED)
        self.schemas = self.document['components']['schemas']

    def operations(self):
        """Yield the path, the method, and the content of each operation."""
        for path, members in self.document['paths'].items():
            for method in METHODS & members.keys():
                yield path, method, members[method]

    def with_variants(self):
        """Return the schemas that differ by microversion."""
        found = [one for one in objects(self.schemas) if 'x-openstack' in one]
        return [one for one in found if 'discriminator' in one['x-openstack']]


class CombinedDocumentTest(_CombinedTest):
    def test_the_committed_document_is_current(self):
        # JSON keeps the order of keys, and does not depend on how a YAML library wraps lines.
        current = json.dumps(committed()) == json.dumps(self.document)
        self.assertTrue(current, 'run "tox -e openapi" and commit the document')

    def test_it_is_valid(self):
        validate(self.document)

    def test_the_version_is_the_latest_microversion(self):
        self.assertEqual('3.1.0', self.document['openapi'])
        self.assertEqual(VERSIONS[-1], self.document['info']['version'])

    def test_the_token_is_an_api_key(self):
        self.assertEqual([{'ApiKeyAuth': []}], self.document['security'])
        scheme = self.document['components']['securitySchemes']['ApiKeyAuth']
        expected = {'type': 'apiKey', 'in': 'header', 'name': 'X-Auth-Token'}
        self.assertEqual(expected, {key: scheme[key] for key in expected})

    def test_only_the_version_document_needs_no_token(self):
        open_to_all = {path for path, _, one in self.operations() if one.get('security') == []}
        self.assertEqual({'/'}, open_to_all)

    def test_the_tag_of_an_operation_is_the_first_part_of_its_path(self):
        tags = {path: operation['tags'] for path, _, operation in self.operations()}
        self.assertEqual(['versions'], tags.pop('/'))
        self.assertEqual({path: [path.split('/')[1]] for path in tags}, tags)
        listed = {tag['name'] for tag in self.document['tags']}
        self.assertEqual({'versions', *(path.split('/')[1] for path in tags)}, listed)

    def test_it_describes_every_route(self):
        declared = {
            (path, method.lower())
            for path, methods in ROUTE_DECLARATIONS.items()
            for method in methods
            if path
        }
        self.assertEqual(declared, {(path, method) for path, method, _ in self.operations()})

    def test_an_operation_id_is_the_path_without_braces_and_the_method(self):
        ids = [operation['operationId'] for _, _, operation in self.operations()]
        self.assertEqual(len(set(ids)), len(ids))
        for path, method, operation in self.operations():
            plain = path.removeprefix('/').replace('{', '').replace('}', '')
            self.assertEqual(f'{plain}:{method}', operation['operationId'])
        for known in (
            ':get',
            'allocation_candidates:get',
            'allocations:post',
            'allocations/consumer_uuid:put',
            'resource_providers/uuid/inventories/resource_class:delete',
        ):
            self.assertIn(known, ids)

    def test_the_names_of_component_schemas(self):
        self.assertEqual([], [name for name in NAMES if name not in self.schemas])


class CombinedRangesTest(_CombinedTest):
    def test_a_body_that_differs_by_microversion_has_one_variant_for_each_form(self):
        for path, methods in OPERATIONS.items():
            for method, operation in methods.items():
                if path and operation.body is not None:
                    content = self.document['paths'][path][method.lower()]['requestBody']['content']
                    name = content['application/json']['schema']['$ref'].rpartition('/')[2]
                    forms = [one for one in operation.body.windows() if one.variant is not None]
                    variants = self.schemas[name].get('oneOf', [self.schemas[name]])
                    self.assertEqual(len(forms), len(variants), name)

    def test_only_schemas_with_variants_have_a_discriminator(self):
        self.assertGreater(len(self.with_variants()), 5)
        for found in objects(self.document):
            limits = found.get('x-openstack')
            if limits is None:
                continue
            if 'oneOf' in found:
                self.assertEqual({'discriminator': 'microversion'}, limits)
            else:
                self.assertTrue(limits)
                self.assertLessEqual(limits.keys(), {'min-ver', 'max-ver'})

    def test_limits_are_texts_of_existing_microversions(self):
        for found in objects(self.document):
            limits = dict(found.get('x-openstack', {}))
            limits.pop('discriminator', None)
            for limit in limits.values():
                self.assertIn(limit, VERSIONS)
            if len(limits) == 2:
                self.assertLessEqual(of_text(limits['min-ver']), of_text(limits['max-ver']))

    def test_variants_have_adjacent_ranges(self):
        for schema in self.with_variants():
            ranges = [variant['x-openstack'] for variant in schema['oneOf']]
            ends = [VERSIONS.index(one['max-ver']) + 1 for one in ranges[:-1]]
            starts = [VERSIONS.index(one['min-ver']) for one in ranges[1:]]
            self.assertEqual(starts, ends)
            self.assertNotIn('max-ver', ranges[-1])

    def test_operations_have_the_range_of_their_declaration(self):
        for path, method, operation in self.operations():
            since = str(OPERATIONS[path][method.upper()].since)
            expected = None if since == VERSIONS[0] else {'min-ver': since}
            self.assertEqual(expected, operation.get('x-openstack'), path)

    def test_ranges_of_parameters_and_properties(self):
        candidates = self.document['paths']['/allocation_candidates']['get']
        found = {one.get('name'): one.get('x-openstack') for one in candidates['parameters']}
        self.assertEqual({'min-ver': '1.21'}, found['member_of'])
        self.assertEqual({'min-ver': '1.25'}, found['request_groups'])
        self.assertIsNone(found['resources'])
        providers = self.document['paths']['/resource_providers']['get']
        found = {one.get('name'): one.get('x-openstack') for one in providers['parameters']}
        self.assertEqual({'min-ver': '1.3'}, found['member_of'])
        allocations = self.schemas['AllocationSet_Allocations_For_ConsumerRequest']
        latest = allocations['oneOf'][-1]['properties']
        self.assertEqual({'min-ver': '1.38'}, latest['consumer_type']['x-openstack'])
        self.assertNotIn('x-openstack', latest['allocations'])

    def test_ranges_of_responses(self):
        created = self.document['paths']['/resource_providers']['post']['responses']
        self.assertEqual({'max-ver': '1.19'}, created['201']['x-openstack'])
        self.assertEqual({'min-ver': '1.20'}, created['200']['x-openstack'])

    def test_a_parameter_that_can_be_repeated_is_an_array_of_texts(self):
        repeated = set()
        for path, _, operation in self.operations():
            for one in operation['parameters']:
                if one.get('schema', {}).get('type') == 'array':
                    repeated.add((path, one['name']))
                    self.assertEqual(('form', True), (one['style'], one['explode']))
                    self.assertEqual('string', one['schema']['items']['type'])
        declared = {
            (path, parameter.name)
            for path, methods in OPERATIONS.items()
            for operation in methods.values()
            for parameter in operation.query or ()
            if parameter.repeatable and parameter.suffix is None
        }
        self.assertEqual(declared, repeated)
