"""The table of the codes of `placement-manage audit`, made from the checks.

This module is an extension of Sphinx. The page needs a section for each code.
"""

from typing import Any

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util.docutils import SphinxDirective

from placement.admin.audit.model import CODES, Code


def setup(app: Any) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive('audit-codes', Table)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}


class Table(SphinxDirective):
    """A row for each code, with a link to its section."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the table."""
        lines = ['.. list-table::', '   :header-rows: 1', '']
        rows = [('Code', 'Severity', 'Finds', 'Correction'), *map(_row, CODES.values())]
        for first, *rest in rows:
            lines += [f'   * - {first}', *(f'     - {text}' for text in rest)]
        table = nodes.Element()
        self.state.nested_parse(StringList(lines, __file__), self.content_offset, table)
        return table.children


def _row(code: Code) -> tuple[str, ...]:
    text = f'``{code.option}``' if code.fixes else 'by hand'
    return f'`{code.name}`_', code.severity, code.meaning, text
