"""What a handler needs of HTTP: reading a request, writing a reply, the error document.

There is neither SQL nor domain logic here.
"""

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
import functools
import html
from http import HTTPStatus
import json
import re
from typing import Any, Protocol, TypeVar
from urllib.parse import parse_qsl, quote
import uuid as uuid_lib

import orjson
from oslo_utils import uuidutils
import webob
from webob.acceptparse import create_accept_header
import webob.exc

from placement import errors, exception, microversion, validation

JSON = 'application/json'
ENVIRON_CONTEXT = 'placement.context'
ENVIRON_REQUEST_ID = 'openstack.request_id'

Environ = dict[str, Any]
StartResponse = Callable[..., Any]
Application = Callable[[Environ, StartResponse], Iterable[bytes]]
Handler = TypeVar('Handler', bound=Callable[[webob.Request], webob.Response])


class Timestamped(Protocol):
    """A row or record that knows when it was made and last changed."""

    @property
    def created_at(self) -> datetime | None: ...

    @property
    def updated_at(self) -> datetime | None: ...


# Decorators of handlers ---------------------------------------------------------


def require_content(content_type: str) -> Callable[[Handler], Handler]:
    """Answer 415 to requests whose body is not of exactly this media type."""

    def decorator(function: Handler) -> Handler:
        @functools.wraps(function)
        def checked(req: webob.Request) -> webob.Response:
            header = req.environ.get('CONTENT_TYPE') or None
            # Nothing may stand between the media type and the semicolon.
            if header != content_type and (
                header is None or header.partition(';')[0] != content_type
            ):
                raise webob.exc.HTTPUnsupportedMediaType(
                    f'The media type {header} is not supported, use {content_type}'
                )
            return function(req)

        return checked  # type: ignore[return-value]

    return decorator


def check_accept(*offers: str) -> Callable[[Handler], Handler]:
    """Answer 406 to requests whose Accept header admits none of these media types."""

    def decorator(function: Handler) -> Handler:
        @functools.wraps(function)
        def checked(req: webob.Request) -> webob.Response:
            header = req.environ.get('HTTP_ACCEPT')
            if header and header != JSON and not _acceptable(header, offers):
                raise webob.exc.HTTPNotAcceptable(f'Only {", ".join(offers)} is provided')
            return function(req)

        return checked  # type: ignore[return-value]

    return decorator


# Clients send a few short headers over and over, and can send long ones.
_LONGEST_CACHED = 256


def _acceptable(header: str, offers: tuple[str, ...]) -> list[tuple[str, float]]:
    """The offers that an Accept header admits, the preferred one first."""
    read = _cached_offers if len(header) <= _LONGEST_CACHED else _offers
    return read(header, offers)


def _offers(header: str, offers: tuple[str, ...]) -> list[tuple[str, float]]:
    return list(create_accept_header(header).acceptable_offers(list(offers)))


_cached_offers = functools.lru_cache(maxsize=256)(_offers)


# Reading a request --------------------------------------------------------------


def context(req: webob.Request) -> Any:
    """The RequestContext of a request."""
    return req.environ[ENVIRON_CONTEXT]


def version(req: webob.Request) -> microversion.Version:
    """The microversion of a request."""
    return req.environ[microversion.ENVIRON_KEY]


def path_item(req: webob.Request, name: str) -> str:
    """The text in the path that stands where the route has `{name}`."""
    return req.environ['wsgiorg.routing_args'][1][name]


def read_body(environ: Environ) -> bytes:
    """The bytes of a request body. Raises BadInput when the client does not send them all."""
    try:
        length = int(environ.get('CONTENT_LENGTH') or 0)
        if length > 0:
            body = environ['wsgi.input'].read(length)
        elif environ.get('wsgi.input_terminated'):
            body = environ['wsgi.input'].read()
        else:
            return b''
    except (OSError, OverflowError) as exc:  # OverflowError: nothing is as long as it says
        raise MalformedBody('the request body could not be read') from exc
    return body


class MalformedBody(exception.BadInput):
    """The bytes of a body are no JSON."""

    def __init__(self, reason: object):
        super().__init__(f'Malformed JSON: {reason}')


class InvalidDocument(exception.BadInput):
    """A body is JSON, but not what this route takes."""

    def __init__(self, reason: str):
        super().__init__(f'JSON does not validate: {reason}')


class InvalidQuery(exception.BadInput):
    """A query string has parameters that this route does not take, or not in this form."""

    def __init__(self, reason: str):
        super().__init__(f'Invalid query string parameters: {reason}')


def extract_json(req: webob.Request, schema: validation.Schema) -> Any:
    """The document in the body of a request, valid against the schema.

    Raises BadInput when the body is no JSON or breaks the schema. Texts with NUL characters
    are refused for every route: not every database can store them.
    """
    body = read_body(req.environ)
    try:
        document = orjson.loads(body)
    except orjson.JSONDecodeError as exc:
        raise MalformedBody(exc) from exc
    # A quick search in the bytes first: hardly any body has the escape sequence at all.
    if b'\\u0000' in body and validation.has_nul(document):
        raise InvalidDocument('texts must not contain NUL characters')
    problem = validation.problem(schema, document)
    if problem:
        raise InvalidDocument(problem)
    return document


def query_items(environ: Environ) -> list[tuple[str, str]]:
    """The keys and values of the query string, in order. Raises BadInput for bytes that are no
    UTF-8 and for NUL characters."""
    text = environ.get('QUERY_STRING')
    if not text:
        return []
    try:
        # PEP 3333 gives bytes as latin-1 text; bytes sent without percent-encoding count too.
        raw = text if text.isascii() else quote(text.encode('latin-1'), safe="%&=+;/:,!~*'()?@$")
        # Parameters may be parted the old way (HTML 4.01, appendix B.2.2).
        raw = raw.replace(';', '&')
        items = parse_qsl(raw, keep_blank_values=True, encoding='utf-8', errors='strict')
    except ValueError as exc:
        raise InvalidQuery('it is not valid UTF-8') from exc
    if '%00' in text or '\0' in text:
        raise InvalidQuery('values must not contain NUL characters')
    return items


def validate_query(items: Iterable[tuple[str, str]], schema: validation.Schema) -> dict[str, str]:
    """The last value of each key of a query, valid against the schema.

    Raises BadInput, naming the parameter that the route does not know or take in this form.
    """
    last = dict(items)
    problem = validation.problem(schema, last)
    if problem:
        raise InvalidQuery(problem)
    return last


def is_uuid(text: str) -> bool:
    """Whether a text is a uuid, in any of its usual forms."""
    return uuidutils.is_uuid_like(text)


def normalize_uuid(text: str) -> str:
    """A uuid in any of its usual forms, as lower-case text with hyphens. Raises ValueError."""
    return str(uuid_lib.UUID(text))


# Writing a reply ----------------------------------------------------------------


def now() -> datetime:
    """The time of the server, aware of its zone."""
    return datetime.now(UTC)


def pick_last_modified(last_modified: datetime | None, item: Timestamped) -> datetime:
    """The later one of a time and the time an item was last changed (or made, or now)."""
    changed = item.updated_at or item.created_at or now()
    if changed.tzinfo is None:
        # Databases hand out UTC without saying so.
        changed = changed.replace(tzinfo=UTC)
    return changed if last_modified is None or changed > last_modified else last_modified


def newest(items: Iterable[Timestamped]) -> datetime:
    """The time of the latest change to any of the items; now when there is none."""
    latest: datetime | None = None
    for item in items:
        changed = item.updated_at or item.created_at
        if changed is not None and (latest is None or changed > latest):
            latest = changed
    if latest is None:
        return now()
    return latest if latest.tzinfo else latest.replace(tzinfo=UTC)


def _caching_headers(req: webob.Request, last_modified: datetime | None) -> list[tuple[str, str]]:
    """Last-Modified and Cache-Control, from the microversion on that has them."""
    if version(req) < microversion.LAST_MODIFIED:
        return []
    moment = last_modified or now()
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return [
        ('Last-Modified', format_datetime(moment, usegmt=True)),
        ('Cache-Control', 'no-cache'),
    ]


def json_reply(
    req: webob.Request,
    document: Any,
    last_modified: datetime | None = None,
    status: int = HTTPStatus.OK,
    location: str | None = None,
    cached: bool = True,
) -> webob.Response:
    """A reply with a JSON document.

    :param last_modified: when what is shown last changed; now when left out
    :param location: path of the object that was made, below the mount point
    :param cached: whether this reply carries Last-Modified and Cache-Control at all
    """
    headers = [('Content-Type', JSON)]
    if cached:
        headers += _caching_headers(req, last_modified)
    if location is not None:
        headers.append(('Location', absolute_url(req.environ, location)))
    return webob.Response(body=_dumped(document), status=_STATUS_LINES[status], headerlist=headers)


def _dumped(document: Any) -> bytes:
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        # A capacity may be any number, as the ratio that it comes from; this is slow.
        return json.dumps(document, ensure_ascii=False, separators=(',', ':')).encode()


def empty_reply(
    req: webob.Request,
    status: int = HTTPStatus.NO_CONTENT,
    location: str | None = None,
    last_modified: datetime | None = None,
) -> webob.Response:
    """A reply without a body; with caching headers when `last_modified` is given."""
    headers = [('Content-Length', '0')]
    if last_modified is not None:
        headers += _caching_headers(req, last_modified)
    if location is not None:
        headers.append(('Location', absolute_url(req.environ, location)))
    return webob.Response(status=_STATUS_LINES[status], headerlist=headers, app_iter=[])


def mount_prefix(req: webob.Request) -> str:
    """The path below which the application is mounted; links begin with it."""
    return req.environ.get('SCRIPT_NAME', '')


# Schemes with the port that need not be named.
_SCHEMES = {'http': ':80', 'https': ':443'}

# A name, an IPv4 address, or an IPv6 address (RFC 6874: with a zone) in brackets; then a port.
# Underscores are not valid in names of hosts, but common.
_HOST = re.compile(r'([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(%25[A-Za-z0-9._-]+)?\])(:[0-9]*)?')


def absolute_url(environ: Environ, path: str) -> str:
    """A complete URL, in ASCII, for a path below the mount point.

    Scheme and host are those of the request, or of the server if the request names a host that
    cannot be one.
    """
    scheme = environ['wsgi.url_scheme'].lower()
    if scheme not in _SCHEMES:
        scheme = 'http'  # X-Forwarded-Proto can have any text
    host = environ.get('HTTP_HOST', '')
    if not _HOST.fullmatch(host):
        host = f'{quote(environ["SERVER_NAME"], safe="[]:")}:{environ["SERVER_PORT"]}'
    # Clients compare URLs as texts: the port that goes without saying is not said.
    host = host.removesuffix(_SCHEMES[scheme])
    mount = quote(environ.get('SCRIPT_NAME', ''), encoding='latin-1')
    return f'{scheme}://{host}{mount}{quote(path)}'


# Python 3.13 has another phrase for 413.
_PHRASES = {status.value: status.phrase for status in HTTPStatus} | {
    413: 'Request Entity Too Large'
}
_STATUS_LINES = {status: f'{status} {phrase}' for status, phrase in _PHRASES.items()}


# Errors -------------------------------------------------------------------------


def error_response(
    environ: Environ,
    status: int,
    detail: str,
    code: str = errors.UNDEFINED_CODE,
    headers: Iterable[tuple[str, str]] = (),
    more: Mapping[str, Any] | None = None,
) -> webob.Response:
    """The reply to a request that failed, in the form that its Accept header prefers.

    :param detail: what went wrong, for the client
    :param code: told from the microversion on that has codes
    :param more: further members of the JSON form
    """
    error = {'status': status, 'title': _PHRASES[status], 'detail': detail}
    if environ.get(microversion.ENVIRON_KEY, ()) >= microversion.ERROR_CODES:
        error['code'] = code
    if ENVIRON_REQUEST_ID in environ:
        error['request_id'] = environ[ENVIRON_REQUEST_ID]
    error.update(more or {})
    return failure(environ, status, detail, {'errors': [error]}, headers)


def failure(
    environ: Environ,
    status: int,
    detail: str,
    document: Mapping[str, Any],
    headers: Iterable[tuple[str, str]] = (),
) -> webob.Response:
    """A reply that shows a document to those who want JSON, and to others a page or a text."""
    content_type = _error_content_type(environ)
    if environ.get('REQUEST_METHOD') == 'HEAD':
        body = b''
    elif content_type == JSON:
        body = orjson.dumps(document)
    else:
        heading = _STATUS_LINES[status]
        text = f'{heading}\n\n{detail}\n'
        if content_type == 'text/html':
            text = (
                f'<html>\n <head><title>{heading}</title></head>\n'
                f' <body>\n  <h1>{heading}</h1>\n  <p>{html.escape(detail)}</p>\n </body>\n'
                '</html>\n'
            )
        body = text.encode()
    charset = '' if content_type == JSON else '; charset=UTF-8'
    return webob.Response(
        body=body,
        status=_STATUS_LINES[status],
        headerlist=[('Content-Type', content_type + charset), *headers],
    )


def _error_content_type(environ: Environ) -> str:
    if environ.get('REQUEST_METHOD') == 'HEAD':
        # No route has HEAD, and there is no body to be of any type: clients have always been
        # told this one.
        return 'text/html'
    accept = environ.get('HTTP_ACCEPT')
    if not accept or accept == JSON:
        return JSON
    acceptable = _acceptable(accept, ('text/html', JSON))
    return acceptable[0][0] if acceptable else 'text/plain'
