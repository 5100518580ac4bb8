"""Read requests: headers, path, query string and body.

An invalid request raises an exception; `placement.http.errors` returns its response.
"""

from collections.abc import Callable, Iterable, Mapping
import functools
from types import MappingProxyType
from typing import Any, TypeVar

import orjson
import webob
from webob.acceptparse import create_accept_header

from placement import exception, grammar, validation
from placement.http import ENVIRON_CONTEXT, JSON, Environ
from placement.microversion import Version
from placement.schemas import TEXT

try:
    from uwsgi import chunked_read
except ImportError:  # the web server is not uWSGI
    chunked_read = None

ENVIRON_REQUEST_ID = 'openstack.request_id'
HEADER_REQUEST_ID = 'x-openstack-request-id'

Handler = TypeVar('Handler', bound=Callable[[webob.Request], webob.Response])


# Decorators for code outside of this repository ---------------------------------


def require_content(content_type: str) -> Callable[[Handler], Handler]:
    """Return a decorator that rejects requests whose Content-Type is not `content_type`.

    For such a request, the decorated handler raises UnsupportedMediaType.
    """

    def decorator(function: Handler) -> Handler:
        @functools.wraps(function)
        def checked(req: webob.Request) -> webob.Response:
            check_content_type(req.environ, content_type)
            return function(req)

        return checked  # type: ignore[return-value]  # has the signature of the function

    return decorator


def check_accept(*offers: str) -> Callable[[Handler], Handler]:
    """Return a decorator that rejects requests whose Accept header allows none of the offers.

    For such a request, the decorated handler raises NotAcceptable.

    :param offers: the media types that the handler can return
    """

    def decorator(function: Handler) -> Handler:
        @functools.wraps(function)
        def checked(req: webob.Request) -> webob.Response:
            check_acceptable(req.environ, offers)
            return function(req)

        return checked  # type: ignore[return-value]  # has the signature of the function

    return decorator


# Headers ------------------------------------------------------------------------


def check_content_type(environ: Environ, content_type: str = JSON) -> None:
    """Check the media type of the body.

    :raises UnsupportedMediaType: the Content-Type header differs from `content_type`
    """
    header = environ.get('CONTENT_TYPE') or None
    # No space is allowed between the media type and a semicolon after it.
    if header != content_type and (header is None or header.partition(';')[0] != content_type):
        raise exception.UnsupportedMediaType(header, content_type)


def check_acceptable(environ: Environ, offers: tuple[str, ...] = (JSON,)) -> None:
    """Check the media types that the client accepts.

    :raises NotAcceptable: the Accept header allows none of the offers
    """
    header = environ.get('HTTP_ACCEPT')
    if header and header != JSON and not acceptable(header, offers):
        raise exception.NotAcceptable(', '.join(offers))


def acceptable(header: str, offers: tuple[str, ...]) -> list[str]:
    """Return the offered media types that an Accept header allows, in order of preference."""
    return [offer for offer, _ in create_accept_header(header).acceptable_offers(list(offers))]


# Body ---------------------------------------------------------------------------


def check_length(environ: Environ, limit: int) -> None:
    """Check the size of a body that has a Content-Length, without reading it.

    :raises BodyTooLarge: the body is larger than the limit
    """
    try:
        length = int(environ.get('CONTENT_LENGTH') or 0)
    except ValueError:
        return  # the dispatcher returns 400 Bad Request
    if length > limit:
        raise exception.BodyTooLarge(limit)


def read_body(environ: Environ) -> bytes:
    """Return the bytes of a request body.

    :raises MalformedBody: the client did not send the complete body
    :raises BodyTooLarge: the body has no Content-Length and exceeds the configured limit
    """
    try:
        length = int(environ.get('CONTENT_LENGTH') or 0)
        if length > 0:
            body: bytes = environ['wsgi.input'].read(length)
        elif chunked_read and _has_chunks(environ):
            # `wsgi.input` of uWSGI does not contain them. A chunk has any size.
            body = _read_limited(lambda _: chunked_read(), environ)
        elif environ.get('wsgi.input_terminated'):
            body = _read_limited(environ['wsgi.input'].read, environ)
        else:
            return b''
    except (OSError, OverflowError) as exc:  # OverflowError: Content-Length exceeds 64 bits
        raise exception.MalformedBody('the request body could not be read') from exc
    return body


def _has_chunks(environ: Environ) -> bool:
    """Return whether uWSGI itself has received the body of a request in chunks."""
    chunked: bool = environ.get('HTTP_TRANSFER_ENCODING', '').lower() == 'chunked'
    return chunked and not environ.get('CONTENT_LENGTH')


def _read_limited(read: Callable[[int], bytes], environ: Environ) -> bytes:
    """Return the bytes of a body without Content-Length.

    :param read: returns the next bytes, or nothing at the end
    :raises BodyTooLarge: the body is larger than the limit
    """
    limit = environ[ENVIRON_CONTEXT].config.oslo_middleware.max_request_body_size
    body = bytearray()
    # To detect that the body is too large, it is enough to read one byte beyond the limit.
    while part := read(limit + 1 - len(body)):
        body += part
        if len(body) > limit:
            raise exception.BodyTooLarge(limit)
    return bytes(body)


def extract_json(req: webob.Request, schema: validation.Schema) -> Any:
    """Do the same as `read_json`, for code outside of this repository."""
    return read_json(req.environ, schema)


def read_json(environ: Environ, schema: validation.Schema) -> Any:
    """Parse the JSON body of a request, validate it against the schema, and return it.

    Every route rejects NUL characters, because PostgreSQL cannot store them.

    :raises MalformedBody: the body is incomplete or not valid JSON
    :raises InvalidDocument: the body violates the schema or contains a NUL character
    """
    body = read_body(environ)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise exception.MalformedBody(exc) from exc
    # PERF: hardly any body contains the escape sequence, so the parsed document is searched only if
    # the raw bytes contain it.
    if b'\\u0000' in body and validation.has_nul(document):
        raise exception.InvalidDocument('strings must not contain NUL characters')
    problem = validation.problem(schema, document)
    if problem:
        raise exception.InvalidDocument(problem)
    return document


def check_body_headers(environ: Environ) -> None:
    """Check the Content-Length and Content-Type headers of a request.

    :raises InvalidBodyHeader: Content-Length is not an integer, or the request has a body but no
        Content-Type
    """
    text = environ.get('CONTENT_LENGTH')
    if not text:
        return
    try:
        length = int(text)
    except ValueError:
        raise exception.InvalidBodyHeader('The Content-Length header must be an integer.') from None
    if length > 0 and not environ.get('CONTENT_TYPE'):
        raise exception.InvalidBodyHeader('A request with a body requires the Content-Type header.')


# Query string -------------------------------------------------------------------


def check_query(environ: Environ) -> None:
    """Check that the web server has passed on the query string of the URL.

    If the URL and the query string together exceed the buffer of uWSGI, uWSGI passes on the URL
    only.

    :raises QueryLost: the URL has a query string, and `environ` has none
    """
    if environ.get('QUERY_STRING'):
        return
    url, _, _ = environ.get('REQUEST_URI', '').partition('#')
    if url.partition('?')[2]:
        raise exception.QueryLost


def query_items(environ: Environ) -> list[tuple[str, str]]:
    """Return the names and values of the query parameters, in the order of the query string.

    :raises InvalidQuery: the query string is not valid UTF-8 or contains a NUL character
    """
    text = environ.get('QUERY_STRING')
    if not text:
        return []
    return grammar.parse_query_string(text)


def validate_query(
    items: Iterable[tuple[str, str]],
    schema: validation.Schema,
    later: Mapping[str, Version] = MappingProxyType({}),
) -> dict[str, str]:
    """Return the last value of each query parameter, after validating the values by the schema.

    :param later: the parameters that later microversions have, with their first microversion
    :raises UnknownParameter: the schema does not have a parameter
    :raises InvalidQuery: a parameter is missing or has an invalid value; the message names it
    """
    last = dict(items)
    # PERF: most reads have parameters that can have any text (14 % of a list with a name, 2026-11).
    rules = schema['properties']
    if 'required' not in schema and all(rules.get(name) == TEXT for name in last):
        return last
    for name in last:
        if name not in rules:
            raise exception.UnknownParameter(name, later.get(name), rules)
    problem = validation.problem(schema, last)
    if problem:
        raise exception.InvalidQuery(problem)
    return last
