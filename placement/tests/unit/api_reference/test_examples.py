"""The API reference shows the recorded examples of each operation."""

from http import HTTPStatus
import json
from pathlib import Path
import tempfile

from oslotest import base
import yaml

from placement.microversion import MAX_VERSION, MIN_VERSION, Version
from tools.api_reference import examples

ENTRY = {
    'name': 'show-one-1.1',
    'title': 'show one',
    'operation': 'show-one',
    'microversion': '1.1',
    'request': {'method': 'GET', 'url': '/one', 'headers': {'Accept': '*/*'}, 'body': None},
    'response': {'status': 200, 'headers': {'Vary': 'x'}, 'body': 'one.json', 'shortened': True},
}


class ReadTest(base.BaseTestCase):
    def read(self, *entries):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / 'index.yaml').write_text(yaml.safe_dump(list(entries)))
            (folder / 'one.json').write_text('{\n    "a": 1\n}\n')
            return examples.read(folder)

    def test_messages_have_the_form_of_http(self):
        example = self.read(ENTRY)['show-one-1.1']
        self.assertEqual('GET /one HTTP/1.1\nAccept: */*', example.request)
        self.assertEqual('HTTP/1.1 200 OK\nVary: x\n\n{\n    "a": 1\n}', example.response)
        self.assertEqual((HTTPStatus.OK, Version(1, 1)), (example.status, example.version))
        self.assertTrue(example.shortened)

    def test_a_request_without_a_microversion_has_the_earliest(self):
        (example,) = self.read({**ENTRY, 'microversion': None}).values()
        self.assertEqual(MIN_VERSION, example.version)

    def test_the_examples_of_an_operation(self):
        found = self.read(
            ENTRY,
            {**ENTRY, 'name': 'show-one-1.10', 'microversion': '1.10'},
            {**ENTRY, 'name': 'error-one-1.1'},
            {**ENTRY, 'name': 'show-two-1.1', 'operation': 'show-two'},
        )
        own = examples.of_operation('show-one', found)
        self.assertEqual(['show-one-1.10', 'show-one-1.1'], [one.name for one in own])
        self.assertEqual(
            [(Version(1, 10), MAX_VERSION), (Version(1, 1), Version(1, 9))], examples.ranges(own)
        )


class RecordedTest(base.BaseTestCase):
    def test_the_recorded_examples_can_be_read(self):
        found = examples.read()
        self.assertGreater(len(found), 50)
        body = found['list-usages-1.9'].response.partition('\n\n')[2]
        self.assertEqual(['usages'], list(json.loads(body)))
