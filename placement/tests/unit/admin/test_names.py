"""Names of UUIDs, from the output of the OpenStack client."""

import json
import pathlib

import fixtures
from oslotest import base

from placement.admin import audit, names
from placement.admin.failure import CannotProceedError

HOST, PROJECT = '7d2c8c1e-2f0b-4c55-9a6e-5f0d5c9b1a01', '0123456789abcdef0123456789abcdef'
SERVER = '6f0a8c1e-2f0b-4c55-9a6e-5f0d5c9b1a02'


class NamesTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)

    def file(self, content: object, name: str = 'names.json') -> str:
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return str(path)

    def test_the_columns_of_the_client(self):
        for row in (
            {'ID': HOST, 'Name': 'one', 'Status': 'ACTIVE'},
            {'ID': HOST.upper(), 'Hypervisor Hostname': 'one', 'State': 'up'},
            {'ID': 7, 'UUID': HOST, 'Name': 'one'},
            {'UUID': 'seven', 'id': HOST, 'name': 'one'},
            {'Id': HOST, 'Name': None, 'name': 'one'},
        ):
            with self.subTest(row):
                self.assertEqual('one', names.read([self.file([row])]).of(HOST))

    def test_several_files(self):
        known = names.read(
            [
                self.file([{'ID': HOST, 'Name': 'one'}, {'ID': PROJECT, 'Name': 'shop'}], 'a'),
                self.file([{'ID': HOST, 'Name': 'two\x1b'}], 'b'),
            ]
        )
        self.assertEqual(('two\\x1b', 'shop'), (known.of(HOST), known.of(PROJECT)))
        self.assertEqual(('shop', None), (known.of(PROJECT.upper()), known.of(SERVER)))
        self.assertEqual({}, names.read([self.file([])]).names)

    def test_the_name_stands_before_each_uuid(self):
        known = names.read([self.file([{'ID': HOST, 'Name': 'fast'}])])
        for text, expected in (
            (HOST, f'fast {HOST}'),
            (f'member_of:in:{HOST},{SERVER}', f'member_of:in:fast {HOST},{SERVER}'),
            (f'member_of:!{HOST}', f'member_of:!fast {HOST}'),
            (f'{HOST}0', f'{HOST}0'),
            (f'x-{HOST}', f'x-{HOST}'),
            ('', ''),
        ):
            with self.subTest(text):
                self.assertEqual(expected, known.in_text(text))
                self.assertEqual(text, names.Names().in_text(text))

    def test_values(self):
        known = names.read([self.file([{'ID': HOST, 'Name': 'fast'}])])
        row = {'uuid': HOST, 'before': {'root': HOST}, 'aggregates': [HOST], 'count': 7}
        with_name = f'fast {HOST}'
        finding = audit.Finding('unused', 'notice', 1, rows=(row, {'name': 'fast', 'uuid': HOST}))
        expected = {
            'uuid': with_name,
            'before': {'root': with_name},
            'aggregates': [with_name],
            'count': 7,
        }
        # The name is not repeated.
        self.assertEqual((expected, {'name': 'fast', 'uuid': HOST}), known.in_values(finding).rows)
        self.assertIs(finding, names.Names().in_values(finding))

    def test_files_that_are_refused(self):
        for content, sentence in (
            ('[', 'is not valid JSON'),
            ('[' * 100_000, 'is not valid JSON'),
            ({'ID': HOST, 'Name': 'one'}, 'is not a list'),
            ([HOST], 'is not a list'),
            ([{'ID': 7, 'Hypervisor Hostname': 'one'}], 'Row 1 .*--os-compute-api-version 2.53'),
            ([{'ID': HOST, 'Name': 'one'}, {'ID': HOST}], 'Row 2 .* has no name'),
        ):
            with self.subTest(sentence):
                self.assertRaisesRegex(
                    CannotProceedError, sentence, names.read, [self.file(content)]
                )
        (self.folder / 'latin').write_bytes(b'["\xe4"]')
        for path in ('latin', 'missing', ''):
            self.assertRaises(CannotProceedError, names.read, [str(self.folder / path)])
