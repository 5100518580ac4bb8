"""The API reference names a test for each of its rules.

A comment `.. tested: FILE, "NAME"` below a rule names a test in a gabbi file, or in a module below
`placement/tests`.
"""

from collections.abc import Iterator
import functools
import pathlib
import re

from oslotest import base
import yaml

import placement
from placement.handlers import OPERATIONS
from placement.handlers.operation import Operation
from placement.microversion import MAX_VERSION, MIN_VERSION, Version, of_text

PACKAGE = pathlib.Path(placement.__file__).parent
TESTS = PACKAGE / 'tests'
GABBITS = TESTS / 'functional' / 'gabbits'
PAGES = PACKAGE.parent / 'api-ref' / 'source'
# The pages in which every section states rules.
RULES = ('conventions.rst', 'errors.rst')

_COMMENT = re.compile(r'^ *\.\. tested: ([\w./-]+),\s+"([^"\n]+)"$', re.MULTILINE)
_MENTION = re.compile(r'\.\. *tested')
# A title with the characters below it, which can also be above it.
_TITLE = re.compile(r'^(?!\.\.)(\S.*)\n([=~-])\2+\n', re.MULTILINE)

# A row of the table of checks: the path, or a backslash for the one above; the method, which may
# have a range of microversions; and the checks.
_ORDER = re.compile(
    r'^(?:``(/\S*)``|\\) +([A-Z]+)(?:, (1\.\d+)[\w .]*?)?  +((?:[A-Z] ?)+|no checks)$', re.MULTILINE
)


def pages() -> list[pathlib.Path]:
    return sorted(PAGES.glob('*.rst'))


@functools.cache
def names(file: str) -> set[str]:
    """The names of the tests in a file, or an empty set if the file does not exist."""
    path = (TESTS if file.endswith('.py') else GABBITS) / file
    if not path.is_file():
        return set()
    if file.endswith('.py'):
        return set(re.findall(r'^    def (test_\w+)\(', path.read_text(), re.MULTILINE))
    return {test['name'] for test in yaml.load(path.read_text(), yaml.CSafeLoader)['tests']}


def sections(text: str) -> Iterator[tuple[str, str]]:
    """The title of each section with its text, without the text of its subsections."""
    titles = list(_TITLE.finditer(text))
    ends = [title.start() for title in titles[1:]] + [len(text)]
    for title, end in zip(titles, ends, strict=True):
        yield title[1], text[title.end() : end].strip(' \n=')


class TestedRulesTest(base.BaseTestCase):
    def test_every_named_test_exists(self):
        wrong = [
            (page.name, *comment)
            for page in pages()
            for comment in _COMMENT.findall(page.read_text())
            if comment[1] not in names(comment[0])
        ]
        self.assertEqual([], wrong)

    def test_every_comment_has_the_expected_form(self):
        for page in pages():
            text = page.read_text()
            self.assertEqual(len(_MENTION.findall(text)), len(_COMMENT.findall(text)), page.name)

    def test_every_section_with_rules_names_a_test(self):
        wrong = [
            (name, title)
            for name in RULES
            for title, text in list(sections((PAGES / name).read_text()))[1:]
            if text and not _COMMENT.search(text)
        ]
        self.assertEqual([], wrong)


class OrderOfChecksTest(base.BaseTestCase):
    def test_the_table_has_the_declared_order(self):
        rows = list(_orders())
        self.assertEqual(
            {(path, method) for path, methods in OPERATIONS.items() for method in methods if path},
            {(path, method) for path, method, _, _ in rows},
        )
        for path, method, version, order in rows:
            operation = OPERATIONS[path][method]
            declared = _declared_order(operation, version or MAX_VERSION)
            if version is not None and version > operation.since:
                declared.remove('V')
            self.assertEqual(declared, order[: len(declared)], (path, method))


def _orders() -> Iterator[tuple[str, str, Version | None, list[str]]]:
    """The path, the method, the microversion and the checks of each row of the table."""
    text = (PAGES / 'conventions.rst').read_text()
    path = ''
    for row in _ORDER.finditer(text):
        path = row[1] or path
        order = [] if row[4] == 'no checks' else row[4].split()
        yield path, row[2], of_text(row[3]) if row[3] else None, order


def _declared_order(operation: Operation, version: Version) -> list[str]:
    """The checks of an operation, without those that follow the last declared one."""
    body = operation.body_at(version)
    checks = ['V'] if operation.since > MIN_VERSION else []
    checks += ['A'] if operation.accepts else ['C'] if body is not None else []
    if operation.media_type_first:
        checks.reverse()
    checks += ['P'] if operation.rule is not None else []
    checks += ['Q'] if operation.query is not None else []
    in_path = operation.path_check is not None and version >= operation.path_check.since
    found = body is not None and '{uuid}' in operation.path and not operation.body_first
    checks += ['N'] if in_path or found else []
    return checks + (['B'] if body is not None else [])
