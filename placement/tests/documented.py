"""Compares requests and responses with the OpenAPI documents.

`Documented` is a WSGI middleware for tests. It raises an exception for a successful request that
the document of its microversion does not allow, and for any response that differs from it.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
import functools
from http import HTTPStatus
import json
import re
from typing import Any

import jsonschema_rs

from api_reference import responses
from api_reference.openapi import files
from api_reference.operations import OPERATIONS
from placement import grammar, handler, microversion, validation
from placement.http import JSON, Application
from placement.microversion import MAX_VERSION, Version

Schema = dict[str, Any]

# Paths that are not part of the API.
ENDPOINTS = ('/healthcheck', '/metrics')
# Headers that HTTP defines for every response, or that the documents describe for all responses.
_GENERAL = {'content-type', 'content-length', 'vary'} | {
    name.lower() for name in responses.CORS_HEADERS
}
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
_INTEGER = re.compile('-?[0-9]+')
# int() refuses more digits. No schema has a limit of this size.
_DIGITS = 4300
# A response to a body that violates the schema of the service contains this text.
_INVALID_BODY = b'JSON does not validate'
# A list of providers that match a query, without any provider.
_NO_PROVIDERS = b'{"resource_providers":[]}'
# The query parameters with names of traits and of resource classes.
_NAMES = ('required', 'resources')

# How many responses `Documented` has compared, by status.
compared: Counter[int] = Counter()


class UndocumentedError(AssertionError):
    """A request or a response differs from the document of its microversion."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request and its response.

    :ivar environ: the variables of the request
    :ivar sent: the part of the request body that the service read
    :ivar headers: the headers of the response, with names in lower case
    """

    environ: dict[str, Any]
    sent: bytes
    status: HTTPStatus
    headers: Mapping[str, str]
    body: bytes

    @property
    def version(self) -> Version | None:
        """Return the microversion that Placement determined, or None if it did not."""
        text = self.headers.get(microversion.HEADER)
        return microversion.parse_header(text) if text else None

    @property
    def summary(self) -> str:
        """Return the request and the status of the response, in one line."""
        path, query = self.environ['PATH_INFO'], self.environ.get('QUERY_STRING', '')
        return f'{self.environ["REQUEST_METHOD"]} {path}?{query}: {self.status.value}'

    @property
    def media_type(self) -> str:
        """Return the media type of the response."""
        return self.headers.get('content-type', '').partition(';')[0]


class _Recorded:
    """A request body that remembers what was read from it."""

    def __init__(self, body: Any) -> None:
        self._body = body
        self.content = b''

    def read(self, *size: int) -> bytes:
        part: bytes = self._body.read(*size)
        self.content += part
        return part


class Documented:
    """Raises UndocumentedError for a request or a response that differs from its document."""

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
        """Serve a request."""
        started: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> None:
            started[:] = [status, headers]
            start_response(status, headers, *args)

        sent = dict(environ)
        if 'wsgi.input' in environ:
            environ['wsgi.input'] = recorded = _Recorded(environ['wsgi.input'])
        body = b''.join(self.application(environ, start))
        status, headers = started
        exchange = Exchange(
            sent,
            recorded.content if 'wsgi.input' in sent else b'',
            HTTPStatus(int(status.split()[0])),
            {name.lower(): value for name, value in headers},
            body,
        )
        self.check(exchange)
        return [body]

    def check(self, exchange: Exchange) -> None:
        """Compare a request and its response with the document.

        :raises UndocumentedError: they differ
        """
        if problems := list(undocumented(exchange)):
            raise UndocumentedError('\n'.join([exchange.summary, *problems]))
        compared[exchange.status] += 1


def undocumented(exchange: Exchange) -> Iterator[str]:
    """Yield what a request or a response contains, or omits, against the document."""
    environ, version = exchange.environ, exchange.version
    path, method = environ.get('PATH_INFO', ''), environ['REQUEST_METHOD']
    if path in ENDPOINTS or (method == 'OPTIONS' and exchange.status == HTTPStatus.OK):
        return
    match = _MAPPER.match(path)
    declared = None if match is None else match[0].methods.get(method)
    if match is None or declared is None or (version or MAX_VERSION) < declared.since:
        yield from _unrouted(exchange)
        return
    operation = described(str(version or MAX_VERSION), match[0].template, method)
    if exchange.status < HTTPStatus.MULTIPLE_CHOICES:
        yield from operation.request_problems(exchange, match[1])
    elif _INVALID_BODY in exchange.body and not any(operation.body_problems(exchange)):
        yield 'the document allows the body, which the service rejects'
    yield from operation.response_problems(exchange)


class Described:
    """An operation in a document.

    :param document: the document of a microversion
    """

    def __init__(self, document: Schema, path: str, method: str) -> None:
        self._document = document
        self._operation = document['paths'][path][method.lower()]
        parameters = [self._plain(one) for one in self._operation['parameters']]
        self._in_path = [one for one in parameters if one['in'] == 'path']
        self._in_query = [one for one in parameters if one['in'] == 'query']
        self._body = self._plain(self._operation.get('requestBody'))
        # Status -> response; it is filled when it is used.
        self._responses: dict[int, Schema] = {}
        # The documents do not describe which error codes occur with a status, except in texts.
        version = microversion.of_text(document['info']['version'])
        self._codes = {
            response.status: response.codes
            for response in responses.responses(OPERATIONS[path][method], version)
        }

    def _plain(self, part: Any) -> Any:
        """Return a part of the document without references."""
        if isinstance(part, list):
            return [self._plain(one) for one in part]
        if not isinstance(part, dict):
            return part
        if '$ref' in part:
            _, _, kind, name = part['$ref'].split('/')
            return self._plain(self._document['components'][kind][name])
        return {key: self._plain(one) for key, one in part.items() if key != 'examples'}

    # Requests

    def request_problems(self, exchange: Exchange, in_path: Mapping[str, str]) -> Iterator[str]:
        """Yield why the document does not allow a request.

        The header with the microversion selects the document, so it is not compared.
        """
        environ = exchange.environ
        if self._operation.get('security') != [] and 'HTTP_X_AUTH_TOKEN' not in environ:
            yield 'the request has no token'
        for parameter in self._in_path:
            value = in_path[parameter['name']].encode('latin-1').decode(errors='replace')
            yield from _problems(parameter['schema'], value, f'{parameter["name"]} in the path')
        if self._in_query:
            yield from self._query_problems(exchange)
        yield from self.body_problems(exchange)

    def _query_problems(self, exchange: Exchange) -> Iterator[str]:
        pairs = grammar.parse_query_string(exchange.environ.get('QUERY_STRING', ''))
        # After a filter that matches no provider, names that cannot exist are not looked up.
        unused = _NAMES if exchange.body == _NO_PROVIDERS else ()
        values: dict[str, list[str]] = {}
        for name, value in pairs:
            # Amounts can have the digits of any script, which no pattern of all languages matches.
            ascii_value = re.sub(r'\d', lambda digit: str(int(digit[0])), value)
            values.setdefault(name, []).append(ascii_value)
        for parameter in self._in_query:
            schema = parameter['schema']
            if schema['type'] == 'object':
                (names,) = schema['propertyNames'].values()
                for name in [name for name in values if re.search(names, name)]:
                    for value in values.pop(name):
                        yield from _problems(schema, {name: value}, 'a parameter with a suffix')
            elif parameter['name'] in values:
                value = _deserialized(values.pop(parameter['name']), schema['type'])
                if parameter['name'] in unused:
                    continue
                yield from _problems(schema, value, f'{parameter["name"]} in the query')
            elif parameter['required']:
                yield f'{parameter["name"]} is missing in the query'
        if values:
            yield f'the query has other parameters: {sorted(values)}'

    def body_problems(self, exchange: Exchange) -> Iterator[str]:
        """Yield why the document does not allow the body of a request."""
        body, environ = self._body, exchange.environ
        if not exchange.sent and (environ.get('CONTENT_LENGTH') or '0') == '0':
            if body and body['required']:
                yield 'the request has no body'
            return
        if body is None:
            # HTTP does not define what the body of these requests means.
            if environ['REQUEST_METHOD'] not in ('GET', 'DELETE'):
                yield 'the request has a body'
            return
        schema = body['content'][JSON]['schema']
        if not schema:
            return  # The service ignores a body of any type. Code generators support only JSON.
        media_type = environ.get('CONTENT_TYPE', '').partition(';')[0]
        if media_type != JSON:
            yield f'the request has the media type {media_type}'
            return
        document = json.loads(exchange.sent)
        yield from _problems(schema, document, 'the body of the request')
        if validation.has_nul(document):
            yield 'a text in the body contains a NUL character'  # which no schema can express

    # Responses

    def response_problems(self, exchange: Exchange) -> Iterator[str]:
        """Yield how a response differs from the document."""
        documented = self._operation['responses'].get(str(exchange.status.value))
        if documented is None:
            yield f'the status is not documented, only {sorted(self._operation["responses"])}'
            return
        response = self._responses.get(exchange.status)
        if response is None:
            response = self._responses[exchange.status] = self._plain(documented)
        yield from _header_problems(response['headers'], exchange.headers)
        content = response.get('content', {})
        if exchange.body and exchange.media_type not in content:
            yield f'the media type {exchange.media_type} is not documented'
        elif content and not exchange.body:
            yield 'the response has no body'
        elif exchange.media_type == JSON:
            document = json.loads(exchange.body)
            yield from _problems(content[JSON]['schema'], document, 'the body of the response')
            yield from self._code_problems(exchange.status, document)

    def _code_problems(self, status: HTTPStatus, document: Any) -> Iterator[str]:
        code = document['errors'][0].get('code') if 'errors' in document else None
        if code is not None and code not in self._codes[status]:
            yield f'the code {code} is not declared, only {sorted(self._codes[status])}'


@functools.cache
def described(version: str, path: str, method: str) -> Described:
    """Return an operation in the document of a microversion.

    :param path: the path with the names of its parameters
    """
    return Described(_document(version), path, method)


_document = functools.cache(files.content)


def _deserialized(values: list[str], kind: str) -> Any:
    """Return the value of a query parameter. If it must not be repeated, the last value counts."""
    if kind == 'array':
        return values
    if kind == 'integer' and _INTEGER.fullmatch(values[-1]):
        return int(values[-1][:_DIGITS])
    return values[-1]


def _header_problems(documented: Schema, headers: Mapping[str, str]) -> Iterator[str]:
    names = {name.lower() for name in documented}
    if unknown := headers.keys() - names - _GENERAL:
        yield f'headers are not documented: {sorted(unknown)}'
    for name, header in documented.items():
        value = headers.get(name.lower())
        if value is not None:
            yield from _problems(header['schema'], value, f'the header {name}')
        elif header.get('required'):
            yield f'the header {name} is missing'


# id() of a schema of a document -> the schema and its validator.
_validators: dict[int, tuple[Schema, jsonschema_rs.Validator]] = {}


def _problems(schema: Schema, value: Any, place: str) -> Iterator[str]:
    """Yield a description of the first violation of a schema, as other tools find it."""
    cached = _validators.get(id(schema))
    if cached is None:
        validator = jsonschema_rs.Draft202012Validator(schema, validate_formats=True)
        cached = _validators[id(schema)] = schema, validator
    try:
        cached[1].validate(value)
    except jsonschema_rs.ValidationError as error:
        yield f'{place}: {error.message[:1000]} (at {error.instance_path})'


def _unrouted(exchange: Exchange) -> Iterator[str]:
    """Yield what is wrong with the response to a request for which no operation exists."""
    if exchange.status not in _UNROUTED:
        yield 'the status is not documented for unknown paths and methods'
    if exchange.body and exchange.media_type == JSON:
        name = 'EarlyError' if exchange.version is None else 'Error'
        if exchange.status == HTTPStatus.UNAUTHORIZED:
            name = 'Unauthorized'
        schema = _component(str(exchange.version or MAX_VERSION), name)
        yield from _problems(schema, json.loads(exchange.body), 'the body violates its schema')


@functools.cache
def _component(version: str, name: str) -> Schema:
    """Return a schema in the document of a microversion, with those to which it refers."""
    components = _document(version)['components']
    return {'$ref': f'#/components/schemas/{name}', 'components': components}
