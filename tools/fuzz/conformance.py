"""Compares a request and its response with an OpenAPI document."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

from schemathesis import checks
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks as openapi_checks

from placement import handler
from placement.tests import documented

# The classes of schemathesis have type parameters that its documentation does not describe.
Case = Any
Response = Any
Document = dict[str, Any]

_CHECKS = [
    checks.not_a_server_error,
    openapi_checks.status_code_conformance,
    openapi_checks.content_type_conformance,
    openapi_checks.response_headers_conformance,
    openapi_checks.response_schema_conformance,
]
_MAPPER = handler.Mapper(handler.ROUTE_DECLARATIONS)


def problems(case: Case, response: Response, prefix: str) -> Iterator[str]:
    """Yield a description of each difference; the first line is the kind of the difference.

    :param prefix: the path at which the service is mounted
    """
    exchange = _exchange(response, prefix)
    yield from documented.undocumented(exchange)
    match = _MAPPER.match(exchange.environ['PATH_INFO'])
    # A value in the path can contain a slash, so that the path is one of another operation.
    if match is None or match[0].template != case.path:
        return
    try:
        case.validate_response(response, checks=_CHECKS)
    except FailureGroup as failures:
        yield from (f'{one.title}\n{one.message}' for one in failures.exceptions)


def _exchange(response: Response, prefix: str) -> documented.Exchange:
    """Return a request and its response, as the service received and sent them."""
    request = response.request
    url = urlsplit(request.url)
    sent = request.body.encode() if isinstance(request.body, str) else request.body or b''
    environ = {
        'PATH_INFO': unquote_to_bytes(url.path).decode('latin-1').removeprefix(prefix),
        'QUERY_STRING': url.query,
        'REQUEST_METHOD': request.method,
        'CONTENT_LENGTH': str(len(sent)),
        'CONTENT_TYPE': request.headers.get('Content-Type', ''),
    }
    if 'X-Auth-Token' in request.headers:
        environ['HTTP_X_AUTH_TOKEN'] = request.headers['X-Auth-Token']
    headers = {name: values[0] for name, values in response.headers.items() if name != 'connection'}
    status = HTTPStatus(response.status_code)
    return documented.Exchange(environ, sent, status, headers, response.content)
