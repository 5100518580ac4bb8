"""The committed examples are complete and valid.

`placement/tests/functional/test_api.py` compares each example with the response of the service. The
tests of this module need no service: no example is missing, no file is superfluous, and each form
of each body has an example.
"""

import json

import ddt
from oslotest import base
import yaml

from api_reference.operations import OPERATIONS
from placement import errors, microversion, validation
from placement.tests import where
from placement.tests.examples import collection

FOLDER = collection.FOLDER
EXAMPLES = yaml.safe_load((FOLDER / collection.INDEX).read_text())
SUCCESSES = [example for example in EXAMPLES if example['response']['status'] < 400]
FAILURES = [example for example in EXAMPLES if example not in SUCCESSES]
DECLARED = {
    operation.anchor: operation for methods in OPERATIONS.values() for operation in methods.values()
}


def forms(operation):
    """Return the last microversion of each form of the request or of the response."""
    yield microversion.MAX_VERSION
    if operation.body is not None:
        yield from (window.since.before() for window in operation.body.windows()[1:])
    for success in operation.successes:
        if success.since > operation.since:
            yield success.since.before()
        if success.body is not None:
            starts = (window.since for window in success.body.windows()[1:])
            first = max(operation.since, success.since)
            yield from (start.before() for start in starts if first < start <= success.until)


def document(name):
    return json.loads((FOLDER / name).read_text())


@where.only_on('sqlite', reason='No SQL statement is executed.')
class FilesTest(base.BaseTestCase):
    def test_the_index_lists_the_examples_of_the_gabbi_files(self):
        self.assertEqual(collection.names(), [example['name'] for example in EXAMPLES])

    def test_the_directory_contains_only_the_files_of_the_index(self):
        parts = [example[part] for example in EXAMPLES for part in ('request', 'response')]
        bodies = {part['body'] for part in parts if part['body']}
        self.assertEqual(sorted(bodies | {collection.INDEX}), sorted(collection.committed()))

    def test_a_name_is_the_operation_and_the_microversion(self):
        for example in SUCCESSES:
            expected = f'{example["operation"]}-{example["microversion"]}'
            self.assertEqual(expected, example['name'])


@where.only_on('sqlite', reason='No SQL statement is executed.')
@ddt.ddt
class FormsTest(base.BaseTestCase):
    @ddt.data(*DECLARED)
    def test_every_form_has_an_example_in_its_last_microversion(self, name):
        shown = {one['microversion'] for one in SUCCESSES if one['operation'] == name}
        expected = {str(version) for version in forms(DECLARED[name])}
        self.assertEqual(set(), expected - shown)

    def test_every_error_code_has_an_example(self):
        names = [example['response']['body'] for example in FAILURES]
        documents = [document(name) for name in names if name.endswith('.json')]
        shown = {error.get('code') for one in documents for error in one.get('errors', [])}
        codes = {value for name, value in vars(errors).items() if name.isupper()}
        self.assertEqual(set(), codes - shown)

    def test_bodies_conform_to_the_declared_schemas(self):
        for example in SUCCESSES:
            version = microversion.of_text(example['microversion'])
            operation = collection.operation_of(
                example['request']['method'], example['request']['url']
            )
            self.check(example['request']['body'], operation.body_at(version))
            [success] = [
                success
                for success in operation.successes
                if success.status == example['response']['status'] and success.applies(version)
            ]
            self.check(example['response']['body'], success.body and success.body.pick(version))

    def check(self, name, schema):
        with self.subTest(name):
            self.assertEqual(name is None, schema is None)
            self.assertIsNone(name and validation.problem(schema, document(name)))
