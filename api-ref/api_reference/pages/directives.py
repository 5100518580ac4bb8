"""The directives of the API reference.

``.. operation:: GET /traits`` writes what `api_reference` states about an operation: path,
statuses, parameters, fields, and examples. The content of the directive follows the description.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from docutils import nodes
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
from placement.microversion import MAX_VERSION, MIN_VERSION, Version

# Relative to the pages of the API reference.
POLICY_RULES = '../../../doc/build/html/admin/policy.html#rules'
OPENAPI_PAGE = 'browse.html'


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
        own = examples.of_operation(operation.anchor)
        return [
            _method_and_path(method, path),
            _facts(operation),
            markup.paragraph(operation.description),
            *self.parse_content_to_nodes(),
            *_statuses(tables.reasons(operation), place),
            *_parameters('Request', tables.request_rows(operation), place),
            *_parameters('Response', tables.response_rows(operation), place),
            *_examples(own, place),
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


def _statuses(reasons: list[Reason], place: _Place) -> Iterator[nodes.Node]:
    yield place.heading('Response codes')
    own = [one for one in reasons if not one.common]
    yield _status_table(own, place.label('response codes'))
    common = [one for one in reasons if one.common]
    statuses = ', '.join(dict.fromkeys(str(one.status.value) for one in common))
    summary = f'Errors that many operations have in common: {statuses}'
    table = _status_table(common, place.label('common errors'))
    yield markup.details('', table, summary=summary)


def _status_table(reasons: list[Reason], label: str) -> nodes.Node:
    rows = (
        (
            STATUS_LINES[one.status],
            one.when,
            f'`{one.code}`' if one.code else '',
            *_limits(one.since, one.until),
        )
        for one in reasons
    )
    return markup.table(label, ('Code', 'Condition', 'Error code', 'Min', 'Max'), rows)


def _parameters(title: str, rows: list[Row], place: _Place) -> Iterator[nodes.Node]:
    if not rows:
        return
    yield place.heading(title)
    headers = ('Name', 'In', 'Type', 'Required', 'Min', 'Max', 'Description')
    cells = (
        (
            row.name if row.name == fields.BODY else f'`{row.name}`',
            row.location,
            row.type,
            row.required,
            *_limits(row.since, row.until),
            row.description,
        )
        for row in rows
    )
    yield markup.table(place.label(title.lower()), headers, cells)


def _limits(since: Version, until: Version) -> tuple[str, str]:
    """Return the first and the last microversion; the last one only if it is not the latest."""
    return str(since), str(until) if until < MAX_VERSION else ''


def _examples(found: list[Example], place: _Place) -> Iterator[nodes.Node]:
    """Yield the examples; those of earlier microversions are closed at first."""
    for index, (example, (since, until)) in enumerate(
        zip(found, examples.ranges(found), strict=True)
    ):
        if index == 0:
            yield place.heading('Example')
            yield from _messages(example)
            continue
        summary = f'Example in microversions {since} to {until}'
        if since == until:
            summary = f'Example in microversion {since}'
        yield markup.details('', *_messages(example), summary=summary)


def _messages(example: Example) -> Iterator[nodes.Node]:
    yield markup.message(example.request)
    yield markup.message(example.response)
    if example.shortened:
        yield markup.paragraph('The response in this example is shortened.')


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
