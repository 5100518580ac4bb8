"""Compares a response with an OpenAPI document and with the declarations of the operations."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

import jsonschema_rs
from oslo_utils import uuidutils
from schemathesis import checks
from schemathesis.core.failures import FailureGroup
from schemathesis.specs.openapi import checks as openapi_checks

from placement import handler, validation
from placement.tests import declared

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
# The message of a response to a body that violates the schema of the service contains this text.
_INVALID_BODY = 'JSON does not validate'


class Conformance:
    """Compares responses with one document.

    :param prefix: the path at which the service is mounted
    """

    def __init__(self, document: Document, prefix: str) -> None:
        self._prefix = prefix
        self._validators = {
            (path, method.upper()): _validator(document, operation['requestBody'])
            for path, operations in document['paths'].items()
            for method, operation in operations.items()
            if 'requestBody' in operation
        }

    def problems(self, case: Case, response: Response) -> Iterator[str]:
        """Yield a description of each difference; the first line is the kind of the difference."""
        path = unquote_to_bytes(urlsplit(response.request.url).path).decode('latin-1')
        path = path.removeprefix(self._prefix)
        environ = {'PATH_INFO': path, 'REQUEST_METHOD': case.method}
        headers = [
            (name, values[0]) for name, values in response.headers.items() if name != 'connection'
        ]
        yield from declared.undeclared(environ, response.status_code, headers, response.content)
        match = _MAPPER.match(path)
        # A value in the path can contain a slash, so that the path is one of another operation.
        if match is None or match[0].template != case.path:
            return
        try:
            case.validate_response(response, checks=_CHECKS)
        except FailureGroup as failures:
            yield from (f'{one.title}\n{one.message}' for one in failures.exceptions)
        yield from self._body_problems(case, response)

    def _body_problems(self, case: Case, response: Response) -> Iterator[str]:
        """Yield a description if the service and the document disagree whether a body is valid."""
        validator = self._validators.get((case.path, case.method))
        if validator is None or not isinstance(case.body, (dict, list)):
            return
        valid = validator.is_valid(case.body)
        text = response.content.decode()
        # A schema cannot express that no text may contain a NUL character.
        if valid and _INVALID_BODY in text and not validation.has_nul(case.body):
            yield f'the service rejects a valid body\n{text}'
        if not valid and response.status_code < 400:
            yield 'the service accepts a body that violates the schema'


def _validator(document: Document, body: Document) -> jsonschema_rs.Validator:
    (content,) = body['content'].values()
    schema = {**content['schema'], 'components': document['components']}
    formats = {'uuid': uuidutils.is_uuid_like}
    return jsonschema_rs.Draft202012Validator(schema, validate_formats=True, formats=formats)
