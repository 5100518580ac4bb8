"""The committed examples are complete and valid.

`placement/tests/functional/test_api.py` compares each example with the response of the service. The
tests of this module need no service: no example is missing, no file is superfluous, and each form
of each body has an example.
"""

import json

import ddt
from oslotest import base
import yaml

from placement import errors, handler, microversion, validation
from placement.microversion import Variants
from placement.schemas import (
    aggregate,
    allocation,
    allocation_candidate,
    error,
    inventory,
    reshaper,
    resource_class,
    resource_provider,
    root,
    trait,
    usage,
)
from placement.tests.examples import collection
from placement.tests.examples.operations import SLUGS

FOLDER = collection.API_REFERENCE.folder
EXAMPLES = yaml.safe_load((FOLDER / collection.INDEX).read_text())
OPERATIONS = {slug for methods in SLUGS.values() for slug in methods.values()}


def unchanged(schema, since=microversion.MIN_VERSION):
    """Return the variants of a body that has the same form in all microversions."""
    return Variants({since: schema})


# Operation -> the schemas of its requests by microversion. None: the request has no body.
REQUESTS = {
    'create-resource-class': unchanged(resource_class.BODY, microversion.RESOURCE_CLASSES),
    'update-resource-class': Variants(
        {
            microversion.RESOURCE_CLASSES: resource_class.BODY,
            microversion.RESOURCE_CLASS_PUT_CREATES: None,
        }
    ),
    'create-resource-provider': resource_provider.POST,
    'update-resource-provider': resource_provider.PUT,
    'create-resource-provider-inventory': unchanged(inventory.POST_INVENTORY),
    'update-resource-provider-inventories': unchanged(inventory.PUT_INVENTORIES),
    'update-resource-provider-inventory': unchanged(inventory.PUT_INVENTORY),
    'update-resource-provider-aggregates': aggregate.PUT,
    'update-resource-provider-traits': unchanged(trait.PUT_TRAITS, microversion.TRAITS),
    'manage-allocations': allocation.POST,
    'update-allocations': allocation.PUT,
    'reshaper': reshaper.POST,
}
# Operation -> the schemas of its successful responses by microversion.
RESPONSES = {
    'list-versions': root.VERSIONS,
    'list-resource-classes': resource_class.RESOURCE_CLASSES,
    'show-resource-class': resource_class.RESOURCE_CLASS,
    'update-resource-class': Variants(
        {
            microversion.RESOURCE_CLASSES: resource_class.RESOURCE_CLASS.pick((1, 2)),
            microversion.RESOURCE_CLASS_PUT_CREATES: None,
        }
    ),
    'list-resource-providers': resource_provider.PROVIDERS,
    'create-resource-provider': Variants(
        {
            microversion.MIN_VERSION: None,
            **{
                window.since: window.variant
                for window in resource_provider.CREATED_PROVIDER.windows()
            },
        }
    ),
    'show-resource-provider': resource_provider.PROVIDER,
    'update-resource-provider': resource_provider.PROVIDER,
    'list-resource-provider-inventories': inventory.INVENTORIES,
    'create-resource-provider-inventory': inventory.INVENTORY,
    'update-resource-provider-inventories': inventory.INVENTORIES,
    'show-resource-provider-inventory': inventory.INVENTORY,
    'update-resource-provider-inventory': inventory.INVENTORY,
    'list-resource-provider-usages': usage.PROVIDER_USAGES,
    'list-resource-provider-aggregates': aggregate.AGGREGATES,
    'update-resource-provider-aggregates': aggregate.AGGREGATES,
    'list-resource-provider-allocations': allocation.PROVIDER,
    'list-allocations': allocation.CONSUMER,
    'list-allocation-candidates': allocation_candidate.CANDIDATES,
    'list-traits': trait.TRAITS,
    'list-resource-provider-traits': trait.PROVIDER_TRAITS,
    'update-resource-provider-traits': trait.PROVIDER_TRAITS,
    'list-usages': usage.USAGES,
}


def version_of(example):
    return microversion.of_text(example['microversion'])


def is_error(example):
    return example['response']['status'] >= 400


def document(name):
    return json.loads((FOLDER / name).read_text())


def error_schema(example):
    status = example['response']['status']
    if status == 401:
        return error.UNAUTHORIZED
    if status == 406:
        return error.UNSUPPORTED_VERSION
    if status == 500:
        # The response names no microversion, but the error depends on it.
        return error.ERROR.pick(microversion.MAX_VERSION)
    if example['microversion'] is None:
        return error.WITHOUT_VERSION
    return error.ERROR.pick(version_of(example))


@ddt.ddt
class FilesTest(base.BaseTestCase):
    @ddt.data(*collection.COLLECTIONS)
    def test_the_index_lists_the_examples_of_the_gabbi_files(self, one):
        index = yaml.safe_load((one.folder / collection.INDEX).read_text())
        self.assertEqual(one.names(), [example['name'] for example in index])

    @ddt.data(*collection.COLLECTIONS)
    def test_the_directory_contains_only_the_files_of_the_index(self, one):
        index = yaml.safe_load((one.folder / collection.INDEX).read_text())
        bodies = {
            example[part]['body']
            for example in index
            for part in ('request', 'response')
            if example[part]['body']
        }
        self.assertEqual(sorted(bodies | {collection.INDEX}), sorted(one.committed()))

    def test_a_name_is_the_operation_and_the_microversion(self):
        for example in EXAMPLES:
            with self.subTest(example['name']):
                version = f'-{example["microversion"]}' if example['microversion'] else ''
                if is_error(example):
                    self.assertRegex(example['name'], rf'^error-[a-z0-9-]*[a-z0-9]{version}$')
                else:
                    self.assertEqual(example['operation'] + version, example['name'])

    def test_every_operation_has_an_example(self):
        declared = {
            (path, method)
            for path, methods in handler.ROUTE_DECLARATIONS.items()
            for method in methods
            if path  # an empty path is the same as `/`
        }
        self.assertEqual(declared, {(path, method) for path in SLUGS for method in SLUGS[path]})
        shown = {example['operation'] for example in EXAMPLES if not is_error(example)}
        self.assertEqual(OPERATIONS, shown)

    def test_every_error_code_has_an_example(self):
        shown = {
            entry.get('code')
            for example in EXAMPLES
            if is_error(example) and (example['response']['body'] or '').endswith('.json')
            for entry in document(example['response']['body']).get('errors', [])
        }
        codes = {value for name, value in vars(errors).items() if name.isupper()}
        self.assertEqual(codes, shown - {None})


@ddt.ddt
class FormsTest(base.BaseTestCase):
    """Each form of a body has an example in the first microversion of the form."""

    @ddt.data(*REQUESTS)
    def test_every_form_of_a_request_has_an_example(self, operation):
        self.check_forms(operation, 'request', REQUESTS[operation])

    @ddt.data(*RESPONSES)
    def test_every_form_of_a_response_has_an_example(self, operation):
        self.check_forms(operation, 'response', RESPONSES[operation])

    def check_forms(self, operation, part, variants):
        shown = {
            version_of(example): example[part]['body'] is not None
            for example in EXAMPLES
            if example['operation'] == operation and not is_error(example)
        }
        for window in variants.windows():
            with self.subTest(str(window.since)):
                self.assertIs(window.variant is not None, shown.get(window.since))

    def test_all_other_bodies_are_empty(self):
        for example in EXAMPLES:
            with self.subTest(example['name']):
                if not is_error(example) and example['operation'] not in REQUESTS:
                    self.assertIsNone(example['request']['body'])
                if not is_error(example) and example['operation'] not in RESPONSES:
                    self.assertIsNone(example['response']['body'])

    def test_bodies_conform_to_the_schemas(self):
        checked = 0
        for example in EXAMPLES:
            if is_error(example):
                continue
            for part, schemas in (('request', REQUESTS), ('response', RESPONSES)):
                if name := example[part]['body']:
                    with self.subTest(name):
                        schema = schemas[example['operation']].pick(version_of(example))
                        self.assertIsNone(validation.problem(schema, document(name)))
                        checked += 1
        self.assertGreater(checked, 60)

    def test_error_documents_conform_to_the_schemas(self):
        for example in EXAMPLES:
            name = example['response']['body'] or ''
            if is_error(example) and name.endswith('.json'):
                with self.subTest(name):
                    self.assertIsNone(validation.problem(error_schema(example), document(name)))
