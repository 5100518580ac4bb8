"""The import rules and the size limits of the contributor guide."""

import ast
from collections.abc import Iterator
import contextlib
import io
import pathlib
import re
from unittest import mock

from importlinter import cli
from oslotest import base

import placement

PACKAGE = pathlib.Path(placement.__file__).parent
RULES = PACKAGE.parent / '.importlinter'
GUIDE = PACKAGE.parent / 'doc' / 'source' / 'contributor' / 'testing.rst'
MODULE_LINES = 450
# A list of classes, most of which have no function.
UNLIMITED = (PACKAGE / 'exception.py',)
FUNCTION_LINES = 50


def modules() -> list[pathlib.Path]:
    """Return the modules of the service, without tests and migrations."""
    return [
        path
        for path in sorted(PACKAGE.rglob('*.py'))
        if not {'tests', 'versions'} & set(path.relative_to(PACKAGE).parts)
    ]


def functions(path: pathlib.Path) -> Iterator[ast.FunctionDef]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            yield node


def lines(function: ast.FunctionDef) -> int:
    """Return the number of lines of a function, without its docstring."""
    count = function.end_lineno - function.lineno + 1
    if ast.get_docstring(function) is None:
        return count
    docstring = function.body[0]
    return count - (docstring.end_lineno - docstring.lineno + 1)


class ImportsTest(base.BaseTestCase):
    def test_imports_follow_the_rules(self):
        output = io.StringIO()
        # Import Linter would disable all existing loggers, and tests that run later would fail.
        logging = mock.patch('logging.config.dictConfig')
        with logging, contextlib.redirect_stdout(output):
            status = cli.lint_imports(str(RULES), no_cache=True, no_logo=True)
        self.assertEqual(cli.EXIT_STATUS_SUCCESS, status, output.getvalue())


def imported(path: pathlib.Path) -> Iterator[str]:
    """Yield the modules of this package, and the names in them, that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            yield from (f'{node.module}.{alias.name}' for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


class SeamsTest(base.BaseTestCase):
    """Tests import only the seams that the guide lists."""

    def test_no_test_imports_what_is_behind_a_seam(self):
        _, _, text = GUIDE.read_text().partition('\nSeams\n=====\n')
        section, _, _ = text.partition('\n=====')
        seams = {'placement.tests', *re.findall('``(placement[.][a-z0-9_.]+)``', section)}
        seams -= {'placement.db', 'placement.http'}
        self.assertIn('placement.candidates.search', seams)
        for path in sorted((PACKAGE / 'tests').rglob('*.py')):
            allowed = seams | ({'placement.db'} if 'db' in path.parts else set())
            for name in imported(path):
                is_type = re.fullmatch(r'placement[.]http[.][A-Z]\w+', name)
                if name.startswith('placement.') and not is_type:
                    with self.subTest(str(path.relative_to(PACKAGE)), name=name):
                        self.assertTrue(f'{name}.'.startswith(tuple(f'{s}.' for s in allowed)))


class SizeTest(base.BaseTestCase):
    def test_modules_and_functions_are_read(self):
        self.assertIn(PACKAGE / 'objects' / 'inventory.py', modules())
        self.assertIn('loadapp', [function.name for function in functions(PACKAGE / 'deploy.py')])

    def test_no_module_is_too_long(self):
        for path in set(modules()).difference(UNLIMITED):
            with self.subTest(str(path.relative_to(PACKAGE))):
                self.assertLessEqual(len(path.read_text().splitlines()), MODULE_LINES)

    def test_no_function_is_too_long(self):
        for path in modules():
            for function in functions(path):
                with self.subTest(f'{path.relative_to(PACKAGE)}: {function.name}'):
                    self.assertLessEqual(lines(function), FUNCTION_LINES)
