"""The parts of the page of the API reference as nodes of docutils."""

from collections.abc import Iterable, Iterator, Sequence
import re
from typing import Any, TypeAlias

from docutils import nodes

Cell: TypeAlias = 'str | nodes.Node'

_CODE = re.compile(r'`([^`]+)`')
_BETWEEN_NAMES = re.compile(r'(?<=\.)(?=[a-z{])')


class details(nodes.General, nodes.Element):  # noqa: N801 - nodes have names in lower case
    """A part of the page that readers can open. It has the attribute `summary`."""


class scrollable(nodes.General, nodes.Element):  # noqa: N801
    """A table that scrolls in itself if it is too wide. It has the attribute `label`."""


def visit_details(translator: Any, node: details) -> None:
    """Write the start of a part that readers can open."""
    translator.body.append(translator.starttag(node, 'details'))
    translator.body.append(f'<summary>{translator.encode(node["summary"])}</summary>\n')


def depart_details(translator: Any, _node: details) -> None:
    """Write the end of a part that readers can open."""
    translator.body.append('</details>\n')


def visit_scrollable(translator: Any, node: scrollable) -> None:
    """Write the start of a part that scrolls. The keyboard can scroll it, too."""
    attributes = {'tabindex': '0', 'role': 'region', 'aria-label': node['label']}
    translator.body.append(translator.starttag(node, 'div', CLASS='scrollable', **attributes))


def depart_scrollable(translator: Any, _node: scrollable) -> None:
    """Write the end of a part that scrolls."""
    translator.body.append('</div>\n')


def inline(text: str) -> Iterator[nodes.Node]:
    """Yield the nodes of a text in which code is between backquotes."""
    for index, part in enumerate(_CODE.split(text)):
        if index % 2:
            yield code(part)
        elif part:
            yield nodes.Text(part)


def code(text: str) -> nodes.literal:
    """Return a text in the typeface of code. A line can end after a dot between two names."""
    node = nodes.literal(text, '')
    for index, part in enumerate(_BETWEEN_NAMES.split(text)):
        if index:
            node += nodes.raw('', '<wbr>', format='html')
        node += nodes.Text(part)
    return node


def paragraph(text: str) -> nodes.paragraph:
    """Return a paragraph of a text in which code is between backquotes."""
    return nodes.paragraph('', '', *inline(text))


def heading(text: str, anchor: str, level: int) -> nodes.rubric:
    """Return a heading that the table of contents does not list."""
    node = nodes.rubric(text, text, ids=[anchor])
    node['heading-level'] = level
    return node


def link(text: str, target: str, *content: nodes.Node) -> nodes.reference:
    """Return a link to a page, relative to the page of the reference."""
    return nodes.reference('', '', *(content or [nodes.Text(text)]), refuri=target)


def message(text: str) -> nodes.literal_block:
    """Return a request or a response in the form of HTTP."""
    return nodes.literal_block(text, text, language='http')


def table(label: str, headers: Sequence[str], rows: Iterable[Iterable[Cell]]) -> scrollable:
    """Return a table whose columns are as wide as their content.

    :param label: what the table contains, for screen readers
    :param rows: the cells: texts, in which code is between backquotes, or nodes
    """
    group = nodes.tgroup(cols=len(headers))
    group += [nodes.colspec(colwidth=1) for _ in headers]
    group += [nodes.thead('', _row(headers)), nodes.tbody('', *map(_row, rows))]
    classes = ['colwidths-auto', f'columns-{len(headers)}']
    return scrollable('', nodes.table('', group, classes=classes), label=label)


def wrap_tables(_app: Any, document: nodes.document) -> None:
    """Put each table of the hand-written text into a part that scrolls."""
    for node in list(document.findall(nodes.table)):
        if not isinstance(node.parent, scrollable):
            section = node.parent
            while not isinstance(section, nodes.section):
                section = section.parent
            label = section.next_node(nodes.title).astext()
            node.replace_self(scrollable('', node.deepcopy(), label=label))


def _row(cells: Iterable[Cell]) -> nodes.row:
    contents = (inline(one) if isinstance(one, str) else (one,) for one in cells)
    return nodes.row('', *(nodes.entry('', nodes.paragraph('', '', *one)) for one in contents))
