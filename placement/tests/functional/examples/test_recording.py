"""The layout, the constant values, and the comparison of recorded examples."""

from pathlib import Path
import tempfile
from unittest import mock

from oslotest import base
import yaml

from placement.tests import where
from placement.tests.examples import collection, handlers, layout
from placement.tests.examples.normalize import Normalizer
from placement.tests.functional.examples import recorder

ORIGIN = 'http://0f.example:8001'
GIVEN = '5e4c1cd7-a61f-44cf-ad27-2cee38b81000'
GENERATED = '0e9d3a3f-3a94-4d51-9a23-65b7c1f6c4b7'
OTHER = 'b7f4a8b2-58ad-4a2c-8b0c-3d1f1f0f0a11'

GABBI = f"""
fixtures: [APIFixture]
defaults:
  request_headers: {{x-auth-token: admin, content-type: application/json}}
tests:
- name: create a provider
  POST: /resource_providers
  data: {{name: host, uuid: {GIVEN}}}
  status: 201
  response_example: create-a-provider
- name: read it
  GET: /resource_providers/{GIVEN}
- name: an unknown provider
  GET: /resource_providers/{OTHER}
  status: 404
  response_example: unknown-provider
"""


@where.only_on('sqlite', reason='No SQL statement is executed.')
class LayoutTest(base.BaseTestCase):
    def test_a_short_value_is_in_one_line(self):
        expected = '{\n    "a": {"b": [1, 2]},\n    "c": null\n}\n'
        self.assertEqual(expected, layout.pretty({'a': {'b': [1, 2]}, 'c': None}))

    def test_a_value_with_three_levels_is_expanded(self):
        expected = '{\n    "a": {\n        "b": {"c": [1]}\n    }\n}\n'
        self.assertEqual(expected, layout.pretty({'a': {'b': {'c': [1]}}}))

    def test_a_long_value_is_expanded(self):
        text = 'x' * 90
        expected = f'{{\n    "a": [\n        "{text}"\n    ]\n}}\n'
        self.assertEqual(expected, layout.pretty({'a': [text]}))

    def test_a_line_has_at_most_100_characters(self):
        # With its indentation, its key, its quotes, and a comma, the text has 14 characters more.
        for length, lines in ((86, 3), (87, 5)):
            with self.subTest(length=length):
                text = layout.pretty({'a': ['x' * length]})
                self.assertEqual(lines, len(text.splitlines()))

    def test_all_items_of_an_array_have_the_same_layout(self):
        text = layout.pretty([{'a': 'x' * 95}, {'a': 'b'}])
        self.assertIn('    {\n        "a": "b"\n    }\n', text)

    def test_empty_documents(self):
        self.assertEqual(['{}\n', '[]\n'], [layout.pretty({}), layout.pretty([])])


@where.only_on('sqlite', reason='No SQL statement is executed.')
class NormalizerTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / 'file.yaml'
        self.file.write_text(GABBI)
        self.normalizer = Normalizer('name', ORIGIN, self.file)

    def test_the_host_is_constant(self):
        self.assertEqual(
            'http://placement.example.com/traits',
            self.normalizer.text(f'{ORIGIN}/traits'),
        )

    def test_dates_are_constant(self):
        first, second = (
            self.normalizer.text(f'{day} Nov 2026 15:40:37 GMT') for day in ('Sun, 22', 'Mon, 23')
        )
        self.assertEqual(first, second)

    def test_the_message_about_malformed_json_does_not_depend_on_the_library(self):
        first, second = (
            self.normalizer.text(f'"detail": "\n Malformed JSON: {message}", "code": 1')
            for message in ('unexpected end of data: line 1 column 21 (char 20)', 'other: line 1')
        )
        self.assertEqual(first, second)
        self.assertTrue(first.endswith('", "code": 1'), first)

    def test_a_request_id_depends_on_the_name_of_the_example(self):
        first = self.normalizer.text(f'req-{GENERATED}')
        second = self.normalizer.text(f'req-{OTHER}')
        other = Normalizer('other', ORIGIN, self.file).text(f'req-{OTHER}')
        self.assertEqual(first, second)
        self.assertNotEqual(first, other)
        self.assertRegex(first, r'^req-[0-9a-f-]{36}$')

    def test_a_uuid_of_the_file_does_not_change(self):
        self.assertEqual(GIVEN, self.normalizer.text(GIVEN))

    def test_a_generated_uuid_is_constant_and_the_same_in_later_examples(self):
        first = self.normalizer.text(GENERATED)
        self.assertNotIn(first, (GENERATED, GIVEN))
        self.assertEqual(first, Normalizer('later', ORIGIN, self.file).text(GENERATED))
        self.assertNotEqual(first, self.normalizer.text('11111111-2222-4333-8444-555555555555'))

    def test_the_order_of_variable_keys_is_constant(self):
        document = self.normalizer.document('{"VGPU": 1, "CUSTOM_A": 1, "MEMORY_MB": 1, "VCPU": 1}')
        self.assertEqual(['VCPU', 'MEMORY_MB', 'VGPU', 'CUSTOM_A'], list(document))

    def test_the_order_of_request_groups_is_constant(self):
        document = self.normalizer.document('{"mappings": {"_gpu": [], "": [], "_NIC": []}}')
        self.assertEqual(['', '_NIC', '_gpu'], list(document['mappings']))

    def test_the_order_of_members_does_not_change(self):
        document = self.normalizer.document('{"uuid": "u", "name": "n", "generation": 0}')
        self.assertEqual(['uuid', 'name', 'generation'], list(document))

    def test_the_order_of_lists_is_constant(self):
        document = self.normalizer.document(
            '{"traits": ["CUSTOM_A", "HW_B", "HW_A"], "links": [{"rel": "self"}, {"rel": "a"}]}'
        )
        self.assertEqual(['HW_A', 'HW_B', 'CUSTOM_A'], document['traits'])
        self.assertEqual([{'rel': 'self'}, {'rel': 'a'}], document['links'])

    def test_the_list_of_classes_has_only_some_standard_classes(self):
        names = ('CUSTOM_A', 'PCPU', 'MEMORY_MB', 'VCPU')
        text = ', '.join(f'{{"name": "{name}"}}' for name in names)
        document = self.normalizer.document(f'{{"resource_classes": [{text}]}}')
        found = [item['name'] for item in document['resource_classes']]
        self.assertEqual(['VCPU', 'MEMORY_MB', 'CUSTOM_A'], found)


@where.only_on('sqlite', reason='No SQL statement is executed.')
class ComparisonTest(base.BaseTestCase):
    """The files of a recording, and the handler that compares them."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / 'some-requests.yaml'
        self.file.write_text(GABBI)
        self.collection = collection.Collection('some-', Path(folder.name) / 'examples')
        patch = mock.patch.object(collection, 'COLLECTIONS', (self.collection,))
        self.enterContext(patch)
        self.addCleanup(handlers.committed_entries.cache_clear)
        self.recordings = recorder.record_files([self.file])
        self.files = collection.all_files(self.recordings)

    def compare(self):
        """Send the requests again, and compare them with the files."""
        handlers.committed_entries.cache_clear()
        return recorder.failures(self.file, handlers.ExampleHandler)

    def test_each_body_has_a_file(self):
        self.assertEqual(
            {'create-a-provider-request.json', 'unknown-provider-response.json', 'index.yaml'},
            set(self.files),
        )
        created, unknown = yaml.safe_load(self.files['index.yaml'])
        self.assertEqual(
            ('create-resource-provider', 201, None),
            (created['operation'], created['response']['status'], created['response']['body']),
        )
        self.assertEqual(
            f'http://placement.example.com/resource_providers/{GIVEN}',
            created['response']['headers']['Location'],
        )
        self.assertEqual(
            ('1.0', 'GET', f'/resource_providers/{OTHER}', None),
            (
                unknown['microversion'],
                unknown['request']['method'],
                unknown['request']['url'],
                unknown['request']['body'],
            ),
        )

    def test_the_token_is_not_recorded(self):
        self.assertNotIn('X-Auth-Token', self.recordings[0].request.headers)

    def test_a_second_recording_is_equal(self):
        self.assertEqual(self.recordings, recorder.record_files([self.file]))

    def test_written_files_are_equal_to_the_responses(self):
        self.assertEqual(sorted(self.files), self.collection.write(self.files))
        self.assertEqual([], self.compare())
        self.assertEqual([], self.collection.write(self.files))

    def test_a_missing_file_is_a_failure(self):
        self.collection.write(self.files)
        (self.collection.folder / 'unknown-provider-response.json').unlink()
        self.assertIn('unknown-provider', self.only(self.compare()))

    def test_a_changed_file_is_a_failure(self):
        request = 'create-a-provider-request.json'
        self.collection.write({**self.files, request: self.files[request] + ' '})
        self.assertIn('create-a-provider', self.only(self.compare()))

    def test_a_changed_header_is_a_failure(self):
        index = self.files['index.yaml'].replace('/resource_providers/', '/providers/', 1)
        self.collection.write({**self.files, 'index.yaml': index})
        self.assertIn('create-a-provider', self.only(self.compare()))

    def test_superfluous_files_are_deleted(self):
        self.collection.write({**self.files, 'old-response.json': '{}\n'})
        self.assertEqual(['old-response.json'], self.collection.write(self.files))
        self.assertEqual(sorted(self.files), sorted(self.collection.committed()))

    def test_a_repeated_name_is_an_error(self):
        self.assertRaises(ValueError, collection.all_files, [*self.recordings, self.recordings[0]])

    def test_a_failed_test_is_reported(self):
        self.file.write_text(GABBI.replace('404', '403'))
        self.assertRaises(recorder.RecordingError, recorder.record_files, [self.file])

    def only(self, failures):
        self.assertEqual(1, len(failures), failures)
        return failures[0]
