"""The checks of ``placement-status preflight``, with the docstrings of their functions.

``.. preflight-checks:: MODULE ...`` describes the checks of these modules. This module is an
extension of Sphinx.
"""

from collections.abc import Collection, Iterator
import inspect
import sys
from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from placement.admin.preflight import report
from placement.admin.preflight.database import ALL, TITLES

_PACKAGE = report.__name__.rpartition('.')[0]


def setup(app: Any) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive('preflight-checks', PreflightChecks)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}


class PreflightChecks(SphinxDirective):
    """A definition list of checks."""

    required_arguments = 1
    final_argument_whitespace = True

    def run(self) -> list[nodes.Node]:
        """Return the list."""
        modules = [f'{_PACKAGE}.{name}' for name in self.arguments[0].split()]
        for name in modules:
            self.env.note_dependency(str(sys.modules[name].__file__))
        parent = nodes.Element()
        self.state.nested_parse(StringList(list(lines(modules)), ''), self.content_offset, parent)
        return parent.children


def lines(modules: Collection[str]) -> Iterator[str]:
    """Yield the source of the list."""
    for name, check in report.CHECKS.items():
        if check.run.__module__ not in modules:
            continue
        yield name
        systems = ', '.join(TITLES[engine] for engine in check.engines if check.engines != ALL)
        text = inspect.getdoc(check.run) or ''
        text = f'{systems}: {text}' if systems else text
        yield from (f'    {line}' for line in (*text.splitlines(), ''))
