"""The rows of the tables of an operation."""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

from api_reference import parameters, responses
from api_reference.pages import fields
from api_reference.pages.fields import Row
from api_reference.terms import Failure, Operation, Parameter, Success
from placement import errors
from placement.microversion import VERSIONS, Version, of_text
from placement.schemas import Schema

# The headers of all successful responses. The reference describes them once.
COMMON_HEADERS = frozenset({'X-Openstack-Request-Id', 'OpenStack-API-Version', 'Vary'})


@dataclass(frozen=True, slots=True)
class Reason:
    """A row of the table of statuses.

    :ivar code: the error code; empty if the response has none, or no code of its own
    :ivar common: whether many operations have this row
    """

    status: HTTPStatus
    when: str
    code: str
    since: Version
    until: Version
    common: bool

    @property
    def is_error(self) -> bool:
        """Return whether the request failed."""
        return self.status >= HTTPStatus.BAD_REQUEST


def versions_of(operation: Operation) -> list[Version]:
    """Return the microversions that have an operation, oldest first."""
    return [version for version in map(of_text, VERSIONS) if version >= operation.since]


# Requests -----------------------------------------------------------------------


def request_rows(operation: Operation) -> list[Row]:
    """Return the parameters of the path and of the query string, and the fields of the body."""
    versions = versions_of(operation)
    bodies = {version: operation.body_at(version) for version in versions}
    return [
        *_path_rows(operation, versions),
        *(_query_row(parameter, versions) for parameter in operation.query or ()),
        *fields.rows({version: body for version, body in bodies.items() if body is not None}),
    ]


def _path_rows(operation: Operation, versions: list[Version]) -> Iterator[Row]:
    for name, schema in parameters.path_items(operation, versions[-1]).items():
        kind = fields.type_of(schema)
        yield Row(name, 'path', kind, 'yes', versions[0], versions[-1], schema['description'])


def _query_row(parameter: Parameter, versions: list[Version]) -> Row:
    """Return the row of a parameter. Its description contains the changes of its form."""
    present = [version for version in versions if version >= parameter.since]
    required = [version for version in present if parameter.is_required(version)]
    schema: Schema = parameter.value.pick(present[-1])
    return Row(
        parameter.name + ('{suffix}' if parameter.suffix else ''),
        'query',
        fields.type_of(schema),
        fields.requirement(required, present),
        *fields.span(present),
        ' '.join([parameter.description, *_query_notes(schema)]),
    )


def _query_notes(schema: Schema) -> Iterator[str]:
    """Yield the limits of a parameter, without patterns: its description explains its form."""
    if 'enum' in schema:
        values = ', '.join(f'`{value}`' for value in schema['enum'])
        yield f'One of {values}.'
    without_pattern = {key: value for key, value in schema.items() if key != 'pattern'}
    yield from (f'{limit}.' for limit in fields.limits(without_pattern))


# Responses ----------------------------------------------------------------------


def response_rows(operation: Operation) -> list[Row]:
    """Return the headers and the fields of the bodies of the successful responses."""
    bodies: dict[Version, Schema] = {}
    headers: dict[str, list[Version]] = {}
    always: dict[str, list[Version]] = {}
    for version in versions_of(operation):
        successes = [
            response
            for response in responses.responses(operation, version)
            if response.status < HTTPStatus.BAD_REQUEST
        ]
        for response in successes:
            if response.body is not None:
                bodies[version] = response.body
        sent = [response.headers - COMMON_HEADERS for response in successes]
        for name in frozenset().union(*sent):
            headers.setdefault(name, []).append(version)
        for name in frozenset.intersection(*sent):
            always.setdefault(name, []).append(version)
    return [
        *(_header_row(name, headers[name], always.get(name, [])) for name in sorted(headers)),
        *fields.rows(bodies, limited=False),
    ]


def _header_row(name: str, present: list[Version], always: list[Version]) -> Row:
    header = responses.HEADERS[name]
    required = fields.requirement(always, present)
    span = fields.span(present)
    return Row(name, 'header', header.schema['type'], required, *span, header.description)


def reasons(operation: Operation) -> list[Reason]:
    """Return the statuses of an operation with their conditions, in the order of the status."""
    found: dict[Success | Failure, list[Version]] = {}
    for version in versions_of(operation):
        for response in responses.responses(operation, version):
            for reason in response.reasons:
                found.setdefault(reason, []).append(version)
    rows = [_reason(reason, versions, operation) for reason, versions in found.items()]
    return sorted(rows, key=lambda row: row.status)


def _reason(reason: Success | Failure, versions: list[Version], operation: Operation) -> Reason:
    code = reason.code if isinstance(reason, Failure) else errors.UNDEFINED_CODE
    return Reason(
        reason.status,
        reason.when,
        '' if code == errors.UNDEFINED_CODE else code,
        *fields.span(versions),
        common=isinstance(reason, Failure) and reason not in operation.failures,
    )
