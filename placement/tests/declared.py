"""Compares responses of the service with the declarations of its operations.

`DeclaredResponses` is a WSGI middleware for the API tests. It raises an exception for a response
that contains anything that `placement.operations` does not declare.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from http import HTTPStatus
import json
from typing import Any

from placement import handler, microversion, validation
from placement.http import JSON, Application, Environ
from placement.microversion import Version
from placement.operations import OPERATIONS, responses
from placement.operations.operation import Operation
from placement.schemas import error as error_schemas

# Paths that are not part of the API.
ENDPOINTS = ('/healthcheck', '/metrics')
# Headers that HTTP defines for every response.
_OF_HTTP = {'content-type', 'content-length'}
# The statuses of a request for which no operation exists, and of one that fails before the routing.
_UNROUTED = {
    HTTPStatus.BAD_REQUEST,
    HTTPStatus.UNAUTHORIZED,
    HTTPStatus.NOT_FOUND,
    HTTPStatus.METHOD_NOT_ALLOWED,
    HTTPStatus.NOT_ACCEPTABLE,
    HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
    HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
    HTTPStatus.INTERNAL_SERVER_ERROR,
    HTTPStatus.SERVICE_UNAVAILABLE,
}
_MAPPER = handler.Mapper(OPERATIONS)

# How many responses `DeclaredResponses` has compared, by status.
compared: Counter[int] = Counter()


class UndeclaredError(AssertionError):
    """A response differs from the declaration of its operation."""


class DeclaredResponses:
    """Raises UndeclaredError for a response that differs from the declaration of its operation."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        """Serve a request."""
        started: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> None:
            started[:] = [status, headers]
            start_response(status, headers, *args)

        sent = dict(environ)
        body = b''.join(self.application(environ, start))
        status, headers = started
        problems = list(undeclared(sent, int(status.split()[0]), headers, body))
        if problems:
            summary = f'{sent["REQUEST_METHOD"]} {sent["PATH_INFO"]}?{sent.get("QUERY_STRING", "")}'
            raise UndeclaredError('\n'.join([f'{summary}: {status}', *problems]))
        compared[int(status.split()[0])] += 1
        return [body]


def undeclared(
    environ: Environ, status: int, headers: list[tuple[str, str]], body: bytes
) -> Iterator[str]:
    """Yield what a response contains, or omits, against its declaration."""
    names = {name.lower() for name, _ in headers}
    values = {name.lower(): value for name, value in headers}
    path, method = environ.get('PATH_INFO', ''), environ['REQUEST_METHOD']
    if path in ENDPOINTS or (method == 'OPTIONS' and status == HTTPStatus.OK):
        return
    version = _version(values)
    template, operation = _operation(path, method)
    if operation is None or (version is not None and version < operation.since):
        yield from _unrouted(status, version, body, values)
        return
    found = {
        one.status: one
        for one in responses.responses(template, operation, version or operation.since)
    }
    declared = found.get(HTTPStatus(status))
    if declared is None and version is None and status == HTTPStatus.BAD_REQUEST:
        declared = found[HTTPStatus.NOT_ACCEPTABLE]  # the microversion is malformed
    if declared is None:
        yield f'the status is not declared, only {sorted(found)}'
        return
    yield from _headers(declared, names, version)
    yield from _body(declared, version, body, values)


def _version(values: dict[str, str]) -> Version | None:
    """Return the microversion of a response, or None if Placement did not determine it."""
    text = values.get(microversion.HEADER)
    return microversion.parse_header(text) if text else None


def _operation(path: str, method: str) -> tuple[str, Operation | None]:
    match = _MAPPER.match(path)
    if match is None:
        return '', None
    route, _ = match
    return route.template, route.methods.get(method)


def _headers(
    declared: responses.Response, names: set[str], version: Version | None
) -> Iterator[str]:
    required = {name.lower() for name in declared.headers}
    if version is None:
        required -= {'openstack-api-version', 'vary'}
    known = required | {
        name.lower() for name in declared.optional_headers | responses.CORS_HEADERS | {'Vary'}
    }
    if required - names:
        yield f'headers are missing: {sorted(required - names)}'
    if names - known - _OF_HTTP:
        yield f'headers are not declared: {sorted(names - known - _OF_HTTP)}'


def _body(
    declared: responses.Response, version: Version | None, body: bytes, values: dict[str, str]
) -> Iterator[str]:
    if declared.body is None:
        if body:
            yield 'the response has a body'
        return
    if not values.get('content-type', '').startswith(JSON):
        if declared.status < HTTPStatus.BAD_REQUEST:
            yield 'the body is not JSON'
        return
    document = json.loads(body)
    schema = declared.body
    if version is not None and schema is error_schemas.EARLY_ERROR:
        schema = error_schemas.ERROR.pick(version)
    if problem := validation.problem(schema, document):
        yield f'the body violates the schema: {problem}'
        return
    code = document['errors'][0].get('code') if 'errors' in document else None
    if code is not None and code not in declared.codes:
        yield f'the code {code} is not declared, only {sorted(declared.codes)}'


def _unrouted(
    status: int, version: Version | None, body: bytes, values: dict[str, str]
) -> Iterator[str]:
    """Yield what is wrong with the response to a request for which no operation exists."""
    if status not in _UNROUTED:
        yield 'the status is not declared for unknown paths and methods'
    if body and values.get('content-type') == JSON:
        schema = error_schemas.EARLY_ERROR
        if status == HTTPStatus.UNAUTHORIZED:
            schema = error_schemas.UNAUTHORIZED
        elif version is not None:
            schema = error_schemas.ERROR.pick(version)
        if problem := validation.problem(schema, json.loads(body)):
            yield f'the body violates the schema of errors: {problem}'
