"""The page about logging has a row for each line that Placement logs at WARNING or above."""

import ast
from collections.abc import Iterator
import pathlib
import re

from oslotest import base

import placement

PACKAGE = pathlib.Path(placement.__file__).parent
PAGE = PACKAGE.parent / 'doc' / 'source' / 'admin' / 'logging.rst'

# Method of a logger -> level of its lines.
LEVELS = {
    'warning': 'WARNING',
    'error': 'ERROR',
    'exception': 'ERROR',
    'critical': 'CRITICAL',
}
# Methods that do not show the level, and deprecated names of other methods.
FORBIDDEN = {'log', 'warn', 'fatal'}

# A message and its level, for example ('No %s', 'ERROR').
Line = tuple[str, str]


def calls() -> Iterator[tuple[str, ast.Call]]:
    """The calls of methods of loggers: the method, and the call."""
    for path in PACKAGE.rglob('*.py'):
        if PACKAGE / 'tests' in path.parents:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and isinstance(node.func.value, ast.Name)
                and node.func.value.id in ('LOG', 'log', 'logger', 'logging', 'std_logging')
            ):
                yield node.func.attr, node


def lines_of_the_code() -> list[Line]:
    return [
        (ast.literal_eval(call.args[0]), LEVELS[method])
        for method, call in calls()
        if method in LEVELS
    ]


def lines_of_the_page() -> list[Line]:
    rows = re.findall(r'^   \* - ``(.+?)`` \((\w+)\)$', PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return [(' '.join(message.split()), level) for message, level in rows]


def with_dots(line: Line) -> Line:
    """Replace the conversions of a message by dots."""
    message, level = line
    return re.sub(r'%[-+.\d]*[a-z]', '...', message), level


class LinesTest(base.BaseTestCase):
    def test_the_page_has_a_row_for_each_line(self):
        code = [with_dots(line) for line in lines_of_the_code()]
        self.assertGreater(len(code), 5)
        self.assertEqual(sorted(code), sorted(lines_of_the_page()))

    def test_methods_show_the_level(self):
        self.assertEqual([], [method for method, _ in calls() if method in FORBIDDEN])
