"""The directives of the API reference.

``.. operation:: GET /traits`` writes what `api_reference` states about an operation: path,
statuses, parameters, fields, and examples. The content of the directive follows the description.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from docutils import nodes
import request_tabs
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective

from api_reference import examples
from api_reference.examples import Example
from api_reference.openapi import names
from api_reference.operations import OPERATIONS
from api_reference.pages import fields, markup, tables
from api_reference.pages.fields import Row
from api_reference.pages.tables import Reason
from api_reference.terms import Operation
from placement.http.reply import STATUS_LINES
from placement.microversion import MAX_VERSION, MIN_VERSION
from tools.request_forms import Request

# Relative to the pages of the API reference.
POLICY_RULES = '../../../doc/build/html/admin/configuration.html#rules'
OPENAPI_PAGE = 'browse.html'

_Ranged = TypeVar('_Ranged', Row, Reason)


@dataclass(frozen=True, slots=True)
class _Place:
    """The section of an operation.

    :ivar level: the level of the headings in the section
    """

    operation: Operation
    level: int

    def heading(self, title: str) -> nodes.rubric:
        """Return a heading in the section. Its anchor contains the last word of the title."""
        anchor = f'{self.operation.anchor}-{title.lower().split()[-1]}'
        return markup.heading(title, anchor, self.level)

    def label(self, content: str) -> str:
        """Return a label of a part of the section that is unique on the page."""
        return f'{self.operation.title}: {content}'


class OperationDirective(SphinxDirective):
    """Writes the description of an operation into the section with its title."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the description."""
        method, _, path = self.arguments[0].partition(' ')
        operation = OPERATIONS.get(path, {}).get(method)
        if operation is None:
            raise self.error(f'There is no operation {self.arguments[0]}')
        section = self.state_machine.node
        if section.get('ids', [])[:1] != [operation.anchor]:
            raise self.error(f'The title of the section must be: {operation.title}')
        place = _Place(operation, _depth(section) + 1)
        latest, *earlier = examples.of_operation(operation.anchor)
        requests, responses = tables.request_rows(operation), tables.response_rows(operation)
        reasons = tables.reasons(operation)
        return [
            _method_and_path(method, path),
            _facts(operation),
            markup.paragraph(operation.description),
            *_example(latest, place),
            *_successes(_current(reasons), place),
            *_parameters('Request', _current(requests), place),
            *_parameters('Response', _current(responses), place),
            *self.parse_content_to_nodes(),
            *_errors(_current(reasons), place),
            *_earlier(earlier, [*requests, *responses], reasons, place),
        ]


class ExampleDirective(SphinxDirective):
    """Writes a recorded example."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the request and the response."""
        example = examples.read().get(self.arguments[0])
        if example is None:
            raise self.error(f'There is no example {self.arguments[0]}')
        return list(_messages(example))


class ErrorExamplesDirective(SphinxDirective):
    """Writes all recorded examples of errors, which readers can open."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the examples, in the order of the status."""
        errors = [
            example
            for example in examples.read().values()
            if example.name.startswith(examples.ERROR)
        ]
        return [
            markup.details(
                '',
                *_messages(example),
                summary=f'{STATUS_LINES[example.status]}: {example.title}',
            )
            for example in sorted(errors, key=lambda example: example.status)
        ]


class OperationsDirective(SphinxDirective):
    """Writes a table of all operations with links to their sections."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the table."""
        rows = (
            (_badge(method), _reference(operation), markup.code(path), str(operation.since))
            for path, methods in OPERATIONS.items()
            for method, operation in methods.items()
            if path
        )
        headers = ('Method', 'Operation', 'Path', 'Since')
        return [markup.table('All operations', headers, rows)]


# The parts of an operation ------------------------------------------------------


def _badge(method: str) -> nodes.inline:
    return nodes.inline(method, method, classes=['method', f'method-{method.lower()}'])


def _method_and_path(method: str, path: str) -> nodes.paragraph:
    content = (_badge(method), nodes.Text(' '), markup.code(path))
    return nodes.paragraph('', '', *content, classes=['operation'])


def _facts(operation: Operation) -> nodes.paragraph:
    """Return the first microversion, the policy rule, and a link to the OpenAPI document."""
    facts: list[list[nodes.Node]] = []
    if operation.since > MIN_VERSION:
        facts.append([nodes.Text(f'New in microversion {operation.since}')])
    if operation.declared.rule is not None:
        rule = markup.link('', POLICY_RULES, markup.code(operation.declared.rule.name))
        facts.append([nodes.Text('Policy rule '), rule])
    target = f'{OPENAPI_PAGE}?microversion={MAX_VERSION}#{names.function_name(operation.title)}'
    facts.append([markup.link('OpenAPI', target)])
    items = [nodes.inline('', '', *fact, classes=['fact']) for fact in facts]
    spaced = [node for item in items for node in (item, nodes.Text(' '))]
    return nodes.paragraph('', '', *spaced[:-1], classes=['facts'])


def _depth(section: nodes.Node) -> int:
    """Return the level of the title of a section."""
    depth = 0
    while isinstance(section, nodes.section):
        section = section.parent
        depth += 1
    return depth


def _example(example: Example, place: _Place) -> Iterator[nodes.Node]:
    """Yield the request in all forms, and the response."""
    yield place.heading('Example')
    request = Request(example.method, example.url, str(example.version), example.document)
    yield request_tabs.tabs(markup.message(example.request), request)
    yield from _response(example)


def _response(example: Example) -> Iterator[nodes.Node]:
    yield markup.message(example.response)
    if example.shortened:
        yield markup.paragraph('The response in this example is shortened.')


def _messages(example: Example) -> Iterator[nodes.Node]:
    yield markup.message(example.request)
    yield from _response(example)


def _current(rows: list[_Ranged]) -> list[_Ranged]:
    """Return the rows that apply to the latest microversion."""
    return [row for row in rows if row.until == MAX_VERSION]


def _successes(reasons: list[Reason], place: _Place) -> Iterator[nodes.Node]:
    yield place.heading('Success')
    own = [one for one in reasons if not one.is_error]
    yield _status_table(own, place.label('success'), place)


def _errors(reasons: list[Reason], place: _Place) -> Iterator[nodes.Node]:
    yield place.heading('Error codes')
    own = [one for one in reasons if one.is_error and not one.common]
    if own:
        yield _status_table(own, place.label('error codes'), place)
    common = [one for one in reasons if one.common]
    statuses = ', '.join(dict.fromkeys(str(one.status.value) for one in common))
    summary = f'Errors that many operations have in common: {statuses}'
    table = _status_table(common, place.label('common errors'), place)
    yield markup.details('', table, summary=summary)


def _status_table(reasons: list[Reason], label: str, place: _Place) -> nodes.Node:
    """Return a table of statuses; without the column of codes if no row has a code."""
    width = 3 if any(one.code for one in reasons) else 2
    rows = (
        (
            STATUS_LINES[one.status],
            f'{one.when} {fields.note(one.since, one.until, place.operation.since)}',
            f'`{one.code}`' if one.code else '',
        )[:width]
        for one in reasons
    )
    return markup.table(label, ('Code', 'Condition', 'Error code')[:width], rows)


def _parameters(title: str, rows: list[Row], place: _Place) -> Iterator[nodes.Node]:
    if rows:
        yield place.heading(title)
        yield _parameter_table(rows, place.label(title.lower()), place)


def _parameter_table(rows: list[Row], label: str, place: _Place) -> nodes.Node:
    first = place.operation.since
    cells = (
        (
            row.name if row.name == fields.BODY else f'`{row.name}`',
            row.location,
            row.type,
            row.required,
            f'{row.description} {fields.note(row.since, row.until, first)}',
        )
        for row in rows
    )
    return markup.table(label, ('Name', 'In', 'Type', 'Required', 'Description'), cells)


def _earlier(
    found: list[Example], rows: list[Row], reasons: list[Reason], place: _Place
) -> Iterator[nodes.Node]:
    """Yield what only earlier microversions have; it is closed at first."""
    content: list[nodes.Node] = []
    ended = [one for one in reasons if one.until < MAX_VERSION]
    if ended:
        content.append(_status_table(ended, place.label('earlier response codes'), place))
    former = [row for row in rows if row.until < MAX_VERSION]
    if former:
        content.append(_parameter_table(former, place.label('earlier fields'), place))
    for example, (since, until) in zip(
        found, examples.ranges(found, place.operation.since), strict=True
    ):
        content += [markup.paragraph(f'{fields.period(since, until)}:'), *_messages(example)]
    if content:
        yield markup.details('', *content, summary='Earlier microversions')


def _reference(operation: Operation) -> addnodes.pending_xref:
    return addnodes.pending_xref(
        '',
        nodes.inline('', operation.title),
        refdomain='std',
        reftype='ref',
        reftarget=operation.title.lower(),
        refexplicit=True,
        refwarn=True,
    )
