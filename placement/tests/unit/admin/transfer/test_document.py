"""The lines of a file, without a database: every invalid line is refused with its number."""

import gzip
import io
import json

import ddt
from hypothesis import given
from hypothesis import strategies as st
from oslotest import base

from placement.admin.transfer import document, model
from placement.tests.properties import REPEATABLE
from placement.tests.unit.admin.transfer import documents


def read(data: bytes) -> list[model.Line]:
    return list(document.Document(io.BytesIO(data)).lines())


@ddt.ddt
class DocumentTest(base.BaseTestCase):
    def refusal(self, data: bytes) -> document.InvalidLineError:
        return self.assertRaises(document.InvalidLineError, read, data)

    def test_a_valid_file(self):
        data = documents.file_of(documents.EXAMPLE)
        source = document.Document(io.BytesIO(data))
        self.assertEqual(documents.REVISION, source.header.schema_revision)
        lines = list(source.lines())
        self.assertEqual([2, 3, 4], [line.number for line in lines[:3]])
        self.assertEqual(
            [row['kind'] for row in documents.EXAMPLE], [line.kind.name for line in lines]
        )
        self.assertEqual(documents.EXAMPLE[5]['name'], lines[5].values['name'])
        self.assertEqual(5, lines[0].values['created_at'].second)
        self.assertIsNone(lines[0].values['updated_at'])

    def test_a_file_without_rows(self):
        self.assertEqual([], read(documents.file_of([])))

    def test_the_order_of_fields_and_the_spelling_of_json_do_not_matter(self):
        expected = [line.values for line in read(documents.file_of(documents.EXAMPLE))]
        lines = [documents.header(documents.EXAMPLE), *documents.EXAMPLE]
        texts = [json.dumps(dict(reversed(line.items()))).encode() + b' \r\n' for line in lines]
        self.assertEqual(expected, [line.values for line in read(b''.join(texts))])

    @ddt.named_data(*documents.INVALID)
    def test_refused(self, edit, text):
        data, number = documents.edited(edit)
        refusal = self.refusal(data)
        self.assertIn(text, str(refusal))
        self.assertEqual(number, refusal.number, refusal)
        self.assertTrue(str(refusal).startswith(f'Line {number}: '), refusal)

    def test_a_file_that_is_cut_off_is_refused(self):
        data = documents.file_of(documents.EXAMPLE)
        for length in range(len(data)):
            refusal = self.refusal(data[:length])
            self.assertLessEqual(refusal.number, data[:length].count(b'\n') + 1)

    def test_a_compressed_file_that_is_cut_off_or_damaged_is_refused(self):
        data = gzip.compress(documents.file_of(documents.random_rows(5)))
        for length in range(1, len(data), 61):
            with gzip.open(io.BytesIO(data[:length])) as file:
                self.assertRaises(
                    document.InvalidLineError, lambda f=file: list(document.Document(f).lines())
                )
        for position in range(10, len(data), 61):
            changed = bytes([data[position] ^ 0x55])
            damaged = data[:position] + changed + data[position + 1 :]
            with gzip.open(io.BytesIO(damaged)) as file:
                self.assertRaises(
                    document.InvalidLineError, lambda f=file: list(document.Document(f).lines())
                )

    def test_other_files_are_refused(self):
        data = documents.file_of(documents.EXAMPLE)
        for other, text in (
            (b'', 'empty'),
            (b'\n', 'JSON'),
            (b'CREATE TABLE a (b int);\n', 'JSON'),
            (b'{}\n', 'not an export'),
            (b'[]\n', 'not a JSON object'),
            (b'null\n', 'not a JSON object'),
            (b'\x00' * 100_000, 'longer'),
            (gzip.compress(data), 'compressed'),
            (data.decode().encode('utf-16'), 'UTF-8'),
            (b'\xef\xbb\xbf' + data, 'JSON'),
        ):
            with self.subTest(text):
                refusal = self.refusal(other)
                self.assertEqual(1, refusal.number)
                self.assertIn(text, str(refusal))

    def test_control_characters_of_the_file_are_not_printed(self):
        data, _ = documents.edited(documents.change('trait', kind='\x1b[31m' + 'x' * 1000))
        message = str(self.refusal(data))
        self.assertTrue(message.isprintable())
        self.assertLess(len(message), 200)

    @REPEATABLE
    @given(st.integers(0, 500), st.data())
    def test_any_change_of_a_byte_is_refused_or_read(self, seed, data):
        content = bytearray(documents.file_of(documents.random_rows(seed)))
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] = data.draw(st.integers(0, 255))
        try:
            read(bytes(content))
        except document.InvalidLineError as refusal:
            self.assertLessEqual(refusal.number, content.count(b'\n') + 1)
