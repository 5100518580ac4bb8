"""The output of the commands."""

import io
from unittest import mock

import fixtures
from oslotest import base

from placement.cmd import output


class Terminal(io.StringIO):
    """Standard error that is a terminal."""

    def isatty(self) -> bool:
        return True


class TextTest(base.BaseTestCase):
    def test_characters_that_the_encoding_lacks_are_escaped(self):
        stdout = io.TextIOWrapper(io.BytesIO(), encoding='latin-1')
        self.useFixture(fixtures.MonkeyPatch('sys.stdout', stdout))
        output.print_text('h\u00f6st \u8a08')
        stdout.flush()
        self.assertEqual(b'h\xf6st \\u8a08\n', stdout.buffer.getvalue())


class ProgressTest(base.BaseTestCase):
    def show(self, stderr: io.StringIO) -> str:
        self.useFixture(fixtures.MonkeyPatch('sys.stderr', stderr))
        self.useFixture(fixtures.MonkeyPatch('placement.cmd.output.DELAY', 0))
        with output.progress('Reading providers', 3) as advance:
            advance(2)
            advance(1)
        return stderr.getvalue()

    def test_a_terminal_shows_a_bar(self):
        self.assertIn('Reading providers', self.show(Terminal()))

    def test_a_file_shows_no_bar(self):
        self.assertEqual('', self.show(io.StringIO()))

    def test_a_terminal_without_the_library_shows_no_bar(self):
        with mock.patch.dict('sys.modules', {'tqdm': None}):
            self.assertEqual('', self.show(Terminal()))
