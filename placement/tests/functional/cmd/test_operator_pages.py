"""The guide pages of the tools for operators show the real output of their commands.

Each page is executed on the demo cloud, or on a cloud in the state that the page corrects, as
`console_pages` describes. After an intended change, `python -m tools.pages` writes the new
output into the pages.
"""

import difflib
import os
from pathlib import Path
import tempfile
import unittest

import ddt
from oslotest import base

from placement.tests import servers
from placement.tests.functional.cmd import console_pages
from tools import drain_picture

TEXT = """
A page
======

.. code-block:: console
   :caption: A caption

   $ printf 'a\\n\\nb'
   a

   b
   $ echo one \\
   > two
   one two

   $ false

Text

* .. code-block:: console

     $ echo $?
     ...
     1

.. code-block:: shell

   $ this is not executed
"""


@ddt.ddt
class PagesTest(base.BaseTestCase):
    @ddt.data(*console_pages.PAGES)
    def test_the_page_shows_the_output_of_its_commands(self, name):
        page = console_pages.FOLDER / f'{name}.rst'
        differences = compare(page.read_text(), session(self))
        self.assertEqual('', differences, f'The output in {page} is different:\n{differences}')

    @ddt.data(*console_pages.RUNBOOKS)
    def test_the_runbooks_repair_their_states(self, name):
        shell = session(self, name)
        page = console_pages.FOLDER / f'{name}.rst'
        differences = compare(page.read_text(), shell)
        self.assertEqual('', differences, f'The output in {page} is different:\n{differences}')
        self.assertEqual(*shell.stored_and_expected())


class DrainPictureTest(base.BaseTestCase):
    """The picture of a drain, which `tools.pictures` draws from its source."""

    def test_the_source_shows_the_moves_of_the_command_on_the_page(self):
        session(self)
        page = (console_pages.FOLDER / 'capacity.rst').read_text()
        commands = [example.shell for example in console_pages.examples(page)]
        self.assertIn(drain_picture.COMMAND, commands)
        remedy = 'Draw the pictures with: tox -e pictures'
        drawn = drain_picture.SOURCE.read_text()
        self.assertEqual(drawn, drain_picture.current_source(), remedy)


class ConsoleTest(base.BaseTestCase):
    """The functions that read and execute a page."""

    def test_a_failure_of_a_stand_in(self):
        shell = session(self, console_pages.RUNBOOKS[0])
        error = self.assertRaises(AssertionError, shell.outputs, ['openstack server purge'])
        self.assertIn('unknown command', str(error))

    def test_any_lines(self):
        for expected, actual, result in (
            ('a', 'a', True),
            ('a', 'b', False),
            ('a', 'a b', False),
            ('a b', 'a', False),
            ('...', '', True),
            ('a ... b', 'a b', True),
            ('a ... b', 'a c b d b', True),
            ('a ... b', 'a b c', False),
            ('... b ... c', 'a b c d', False),
        ):
            self.assertIs(result, console_pages.matches(expected.split(), actual.split()))

    def test_differences_are_reported(self):
        shell = session(self)
        self.assertEqual('', compare(TEXT, shell))
        wrong = TEXT.replace('   one two', '   one three')
        self.assertIn('-one three\n+one two\n', compare(wrong, shell))
        self.assertEqual(TEXT, console_pages.updated(wrong, shell))

    def test_the_shell_ends(self):
        shell = session(self)
        self.assertRaisesRegex(AssertionError, 'exit 3', shell.outputs, ['exit 3'])


def session(test: unittest.TestCase, runbook: str | None = None) -> console_pages.Session:
    if servers.ADMIN_URL in os.environ:
        test.skipTest('the demo cloud of the pages is an SQLite file')
    folder = tempfile.TemporaryDirectory(prefix='placement-pages-')
    test.addCleanup(folder.cleanup)
    return console_pages.Session(Path(folder.name), runbook)


def compare(text: str, shell: console_pages.Session) -> str:
    """Return the differences between the outputs in a page and the actual outputs."""
    examples = list(console_pages.examples(text, shell.languages))
    outputs = shell.outputs([example.shell for example in examples])
    differences = []
    for example, actual in zip(examples, outputs, strict=True):
        if not console_pages.matches(example.output, actual):
            title = f'line {example.line}: {example.shell}'
            lines = difflib.unified_diff(example.output, actual, title, 'actual', lineterm='')
            differences.append('\n'.join((*lines, '')))
    return ''.join(differences)
