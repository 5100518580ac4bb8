"""The combined OpenAPI document has the form that the code generators of OpenStack read."""

import json

from openapi_spec_validator import validate
from oslotest import base

from api_reference.openapi import files
from api_reference.operations import OPERATIONS
from placement.microversion import MIN_VERSION, VERSIONS
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


class CombinedTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.document = content(files.COMBINED)
        self.schemas = self.document['components']['schemas']

    def operations(self):
        """Yield the path, the method, and the content of each operation."""
        for path, members in self.document['paths'].items():
            for method in METHODS & members.keys():
                yield path, method, members[method]

    def test_the_committed_documents_are_current_and_valid(self):
        # JSON keeps the order of keys, and does not depend on how a YAML library wraps lines.
        found = {name: json.dumps(document) for name, document in committed().items()}
        current = {
            files.file_name(name): json.dumps(content(name))
            for name in (files.COMBINED, files.LATEST)
        }
        self.assertTrue(found == current, 'run "tox -e openapi" and commit the documents')
        validate(self.document)
        self.assertEqual('3.1.0', self.document['openapi'])
        self.assertEqual(VERSIONS[-1], self.document['info']['version'])

    def test_only_the_version_document_needs_no_token(self):
        scheme = self.document['components']['securitySchemes']['ApiKeyAuth']
        expected = {'type': 'apiKey', 'in': 'header', 'name': 'X-Auth-Token'}
        self.assertEqual(expected, {key: scheme[key] for key in expected})
        self.assertEqual([{'ApiKeyAuth': []}], self.document['security'])
        open_to_all = {path for path, _, one in self.operations() if one.get('security') == []}
        self.assertEqual({'/'}, open_to_all)

    def test_each_operation_has_the_id_the_tag_and_the_range_of_its_declaration(self):
        described = {
            (path, method.upper()): (
                operation['operationId'],
                operation['tags'],
                operation.get('x-openstack'),
            )
            for path, method, operation in self.operations()
        }
        expected = {}
        for path, methods in OPERATIONS.items():
            for method, operation in methods.items() if path else ():
                plain = path.removeprefix('/').replace('{', '').replace('}', '')
                first = (
                    None if operation.since == MIN_VERSION else {'min-ver': str(operation.since)}
                )
                tag = path.split('/')[1] or 'versions'
                expected[path, method] = (f'{plain}:{method.lower()}', [tag], first)
        self.assertEqual(expected, described)
        listed = {tag['name'] for tag in self.document['tags']}
        self.assertEqual({tag for _, (tag,), _ in expected.values()}, listed)

    def test_the_names_of_component_schemas(self):
        self.assertEqual([], [name for name in NAMES if name not in self.schemas])

    def test_a_body_that_differs_by_microversion_has_one_variant_for_each_form(self):
        for path, methods in OPERATIONS.items():
            for method, operation in methods.items():
                if path and operation.body is not None:
                    content = self.document['paths'][path][method.lower()]['requestBody']['content']
                    name = content['application/json']['schema']['$ref'].rpartition('/')[2]
                    forms = [one for one in operation.body.windows() if one.variant is not None]
                    variants = self.schemas[name].get('oneOf', [self.schemas[name]])
                    self.assertEqual(len(forms), len(variants), name)

    def test_variants_have_adjacent_ranges(self):
        """Only schemas with variants have a discriminator."""
        with_variants = 0
        for found in objects(self.document):
            limits = found.get('x-openstack')
            if limits is None or 'oneOf' not in found:
                self.assertLessEqual((limits or {}).keys(), {'min-ver', 'max-ver'})
                continue
            with_variants += 1
            self.assertEqual({'discriminator': 'microversion'}, limits)
            ranges = [variant['x-openstack'] for variant in found['oneOf']]
            ends = [VERSIONS.index(one['max-ver']) + 1 for one in ranges[:-1]]
            starts = [VERSIONS.index(one['min-ver']) for one in ranges[1:]]
            self.assertEqual(starts, ends)
            self.assertNotIn('max-ver', ranges[-1])
        self.assertGreater(with_variants, 5)

    def test_ranges_of_parameters_properties_and_responses(self):
        for path, name, expected in (
            ('/allocation_candidates', 'member_of', {'min-ver': '1.21'}),
            ('/allocation_candidates', 'request_groups', {'min-ver': '1.25'}),
            ('/allocation_candidates', 'resources', None),
            ('/resource_providers', 'member_of', {'min-ver': '1.3'}),
        ):
            parameters = self.document['paths'][path]['get']['parameters']
            (found,) = [one for one in parameters if one.get('name') == name]
            self.assertEqual(expected, found.get('x-openstack'), (path, name))
        allocations = self.schemas['AllocationSet_Allocations_For_ConsumerRequest']
        latest = allocations['oneOf'][-1]['properties']
        self.assertEqual({'min-ver': '1.38'}, latest['consumer_type']['x-openstack'])
        self.assertNotIn('x-openstack', latest['allocations'])
        created = self.document['paths']['/resource_providers']['post']['responses']
        self.assertEqual({'max-ver': '1.19'}, created['201']['x-openstack'])
        self.assertEqual({'min-ver': '1.20'}, created['200']['x-openstack'])
