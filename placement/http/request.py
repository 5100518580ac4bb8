"""Reading a request: headers, path, query string and body.

Each refusal is an exception whose status `placement.http.errors` looks up.
"""

from collections.abc import Callable, Iterable
import functools
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote
import uuid as uuid_lib

import orjson
from oslo_utils import uuidutils
import webob
from webob.acceptparse import create_accept_header

from placement import exception, microversion, validation
from placement.bounded_cache import cache_short_texts
from placement.http import Environ

JSON = 'application/json'
ENVIRON_CONTEXT = 'placement.context'
ENVIRON_REQUEST_ID = 'openstack.request_id'

Handler = TypeVar('Handler', bound=Callable[[webob.Request], webob.Response])


class MalformedBody(exception.BadInput):
    """The body is not JSON, or the client did not send all of it."""

    def __init__(self, reason: object) -> None:
        super().__init__(f'Malformed JSON: {reason}')


class InvalidDocument(exception.BadInput):
    """The body is JSON but violates the schema of the route."""

    def __init__(self, reason: str) -> None:
        super().__init__(f'JSON does not validate: {reason}')


class InvalidQuery(exception.BadInput):
    """The query string violates the schema of the route, or cannot be decoded."""

    def __init__(self, reason: str) -> None:
        super().__init__(f'Invalid query string parameters: {reason}')


class InvalidBodyHeader(exception.BadInput):
    """Content-Length or Content-Type of a request is invalid or missing."""


class BodyTooLarge(exception.PlacementException):
    """The body is larger than the configured limit."""

    def __init__(self, limit: int) -> None:
        super().__init__(f'The request body is larger than {limit} bytes.')


class UnsupportedMediaType(exception.PlacementException):
    """The route requires another media type of the body."""

    def __init__(self, received: str | None, required: str) -> None:
        super().__init__(f'The media type {received} is not supported, use {required}')


class NotAcceptable(exception.PlacementException):
    """The Accept header admits no media type that the route returns."""

    def __init__(self, offers: Iterable[str]) -> None:
        super().__init__(f'Only {", ".join(offers)} is provided')


# Decorators of handlers ---------------------------------------------------------


def require_content(content_type: str) -> Callable[[Handler], Handler]:
    """Return a decorator that rejects request bodies of any other media type.

    The decorated handler raises UnsupportedMediaType.
    """

    def decorator(function: Handler) -> Handler:
        @functools.wraps(function)
        def checked(req: webob.Request) -> webob.Response:
            header = req.environ.get('CONTENT_TYPE') or None
            # No blank is allowed between the media type and the semicolon.
            if header != content_type and (
                header is None or header.partition(';')[0] != content_type
            ):
                raise UnsupportedMediaType(header, content_type)
            return function(req)

        return checked  # type: ignore[return-value]  # has the signature of the function

    return decorator


def check_accept(*offers: str) -> Callable[[Handler], Handler]:
    """Return a decorator that rejects requests whose Accept header admits none of the offers.

    The decorated handler raises NotAcceptable.
    """

    def decorator(function: Handler) -> Handler:
        @functools.wraps(function)
        def checked(req: webob.Request) -> webob.Response:
            header = req.environ.get('HTTP_ACCEPT')
            if header and header != JSON and not acceptable(header, offers):
                raise NotAcceptable(offers)
            return function(req)

        return checked  # type: ignore[return-value]  # has the signature of the function

    return decorator


@cache_short_texts(longest=256)
def acceptable(header: str, offers: tuple[str, ...]) -> list[str]:
    """Return the media types that an Accept header admits, the preferred one first."""
    return [offer for offer, _ in create_accept_header(header).acceptable_offers(list(offers))]


# Environment and path -----------------------------------------------------------


def context(req: webob.Request) -> Any:
    """Return the RequestContext of a request."""
    return req.environ[ENVIRON_CONTEXT]


def version(req: webob.Request) -> microversion.Version:
    """Return the microversion of a request."""
    negotiated: microversion.Version = req.environ[microversion.ENVIRON_KEY]
    return negotiated


def path_item(req: webob.Request, name: str) -> str:
    """Return the text of the path segment that the route declares as `{name}`."""
    text: str = req.environ['wsgiorg.routing_args'][1][name]
    return text


def mount_prefix(req: webob.Request) -> str:
    """Return the path below which the application is mounted; links begin with it."""
    prefix: str = req.environ.get('SCRIPT_NAME', '')
    return prefix


def is_uuid(text: str) -> bool:
    """Return whether a text is a uuid, in any of its usual forms."""
    return uuidutils.is_uuid_like(text)


def normalize_uuid(text: str) -> str:
    """Return a uuid in lower case with hyphens.

    :param text: a uuid in any of its usual forms
    :raises ValueError: the text is not a uuid
    """
    return str(uuid_lib.UUID(text))


# Body ---------------------------------------------------------------------------


def read_body(environ: Environ) -> bytes:
    """Return the bytes of a request body.

    :raises MalformedBody: the client did not send all of it
    :raises BodyTooLarge: it has no Content-Length and exceeds the limit
    """
    try:
        length = int(environ.get('CONTENT_LENGTH') or 0)
        if length > 0:
            body: bytes = environ['wsgi.input'].read(length)
        elif environ.get('wsgi.input_terminated'):
            body = environ['wsgi.input'].read()
        else:
            return b''
    except (OSError, OverflowError) as exc:  # OverflowError: Content-Length exceeds 64 bits
        raise MalformedBody('the request body could not be read') from exc
    return body


def extract_json(req: webob.Request, schema: validation.Schema) -> Any:
    """Return the document in the body of a request, valid against the schema.

    NUL characters are rejected on every route: PostgreSQL cannot store them.

    :raises MalformedBody: the body is not JSON
    :raises InvalidDocument: the document violates the schema
    """
    body = read_body(req.environ)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise MalformedBody(exc) from exc
    # PERF: the bytes are searched first, because hardly any body has the escape sequence.
    if b'\\u0000' in body and validation.has_nul(document):
        raise InvalidDocument('texts must not contain NUL characters')
    problem = validation.problem(schema, document)
    if problem:
        raise InvalidDocument(problem)
    return document


def check_body_headers(environ: Environ) -> None:
    """Check the headers that announce a body.

    :raises InvalidBodyHeader: Content-Length is not an integer, or Content-Type is missing
    """
    text = environ.get('CONTENT_LENGTH')
    if not text:
        return
    try:
        length = int(text)
    except ValueError:
        raise InvalidBodyHeader('The header Content-Length must be an integer.') from None
    if length > 0 and not environ.get('CONTENT_TYPE'):
        raise InvalidBodyHeader('A request with a body needs the header Content-Type.')


# Query string -------------------------------------------------------------------


def query_items(environ: Environ) -> list[tuple[str, str]]:
    """Return the keys and values of the query string, in order.

    :raises InvalidQuery: it is not UTF-8, or it contains NUL characters
    """
    text = environ.get('QUERY_STRING')
    if not text:
        return []
    try:
        # PEP 3333 passes bytes as latin-1 text. Bytes without percent-encoding are accepted.
        raw = text if text.isascii() else quote(text.encode('latin-1'), safe="%&=+;/:,!~*'()?@$")
        # HTML 4.01, appendix B.2.2: a semicolon may separate parameters too.
        raw = raw.replace(';', '&')
        items = parse_qsl(raw, keep_blank_values=True, encoding='utf-8', errors='strict')
    except ValueError as exc:
        raise InvalidQuery('it is not valid UTF-8') from exc
    if '%00' in text or '\0' in text:
        raise InvalidQuery('values must not contain NUL characters')
    return items


def validate_query(items: Iterable[tuple[str, str]], schema: validation.Schema) -> dict[str, str]:
    """Return the last value of each key of a query, valid against the schema.

    :raises InvalidQuery: names the parameter that is unknown or has an invalid value
    """
    last = dict(items)
    problem = validation.problem(schema, last)
    if problem:
        raise InvalidQuery(problem)
    return last
