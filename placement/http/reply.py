"""What a handler receives (`Call`) and what it returns (`Reply`): documents, headers and URLs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
import json
import re
from typing import Any, NamedTuple, Protocol
from urllib.parse import quote

import orjson
from oslo_config import cfg

from placement import microversion
from placement.http import ENVIRON_CONTEXT, JSON, Environ
from placement.microversion import Version

# Python 3.13 changed the phrases of two statuses (RFC 9110). Placement returns the earlier phrases
# with every version of Python.
PHRASES = {status.value: status.phrase for status in HTTPStatus} | {
    413: 'Request Entity Too Large',
    414: 'Request-URI Too Long',
}
STATUS_LINES = {status: f'{status} {phrase}' for status, phrase in PHRASES.items()}

# The default port of each URL scheme.
_SCHEMES = {'http': ':80', 'https': ':443'}

# A host name, an IPv4 address, or an IPv6 address in brackets, which may have a zone (RFC 6874). A
# port may follow. RFC 952 does not allow underscores in host names, but they are common.
_HOST = re.compile(r'([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(%25[A-Za-z0-9._-]+)?\])(:[0-9]*)?')


@dataclass(frozen=True, slots=True)
class Call:
    """A request that has passed the checks that its operation declares.

    :ivar path: the values of the path parameters, by name
    :ivar items: the names and values of the query parameters, in the order of the query string;
        empty if the operation ignores the query string
    :ivar query: the last value of each query parameter, validated; empty if the parameters can have
        suffixes, because then the handler parses the items
    :ivar body: the document in the body, validated; None if the operation ignores the body
    """

    environ: Environ
    version: Version
    path: Mapping[str, str]
    items: Sequence[tuple[str, str]] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    body: Any = None

    @property
    def conf(self) -> cfg.ConfigOpts:
        """Return the configuration of the service."""
        conf: cfg.ConfigOpts = self.environ[ENVIRON_CONTEXT].config
        return conf

    @property
    def mount_prefix(self) -> str:
        """Return the path at which the API is mounted. The links in responses begin with it."""
        return _mount_prefix(self.environ)


class Reply(NamedTuple):
    """The response of a handler.

    :ivar status: the status line
    :ivar body: the parts of the body
    """

    status: str
    headers: list[tuple[str, str]]
    body: Iterable[bytes]


class Timestamped(Protocol):
    """An object with a creation time and the time of its last update."""

    @property
    def created_at(self) -> datetime | None:
        """Return the creation time, or None if the database does not contain it."""

    @property
    def updated_at(self) -> datetime | None:
        """Return the time of the last update, or None if the object was never updated."""


# Responses ----------------------------------------------------------------------


def json_reply(
    call: Call,
    document: Any,
    last_modified: datetime | None = None,
    status: int = HTTPStatus.OK,
    location: str | None = None,
) -> Reply:
    """Return a response with a JSON document.

    :param document: the object to serialize, or JSON as bytes
    :param last_modified: when the objects in the document were last changed; by default, now
    :param location: path of the created object, relative to the mount point
    """
    body = document if isinstance(document, bytes) else dumps(document)
    headers = [('Content-Type', JSON), *_caching_headers(call, last_modified)]
    if location is not None:
        headers.append(('Location', absolute_url(call.environ, location)))
    headers.append(('Content-Length', str(len(body))))
    return Reply(STATUS_LINES[status], headers, [body])


def empty_reply(
    call: Call,
    status: int = HTTPStatus.NO_CONTENT,
    location: str | None = None,
    last_modified: datetime | None = None,
) -> Reply:
    """Return a response without a body.

    The response has caching headers only if `last_modified` is given.
    """
    headers = [('Content-Length', '0')]
    if last_modified is not None:
        headers += _caching_headers(call, last_modified)
    if location is not None:
        headers.append(('Location', absolute_url(call.environ, location)))
    return Reply(STATUS_LINES[status], headers, [])


def dumps(document: Any) -> bytes:
    """Return the JSON of an object."""
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        # orjson cannot serialize integers of more than 64 bits, and a capacity can be that large.
        # `json` can serialize them but is slower.
        return json.dumps(document, ensure_ascii=False, separators=(',', ':')).encode()


# Caching ------------------------------------------------------------------------


def now() -> datetime:
    """Return the current time as a timezone-aware datetime in UTC."""
    return datetime.now(UTC)


def pick_last_modified(last_modified: datetime | None, item: Timestamped) -> datetime:
    """Return `last_modified` or the time at which `item` was last changed, whichever is later.

    If the item was never updated, its creation time is used; if it has no times at all, the
    current time is used.
    """
    changed = _aware(item.updated_at or item.created_at or now())
    return changed if last_modified is None or changed > last_modified else last_modified


def newest(items: Iterable[Timestamped]) -> datetime:
    """Return the time of the most recent change to any of the items.

    If no item has a creation or update time, the current time is returned.
    """
    latest: datetime | None = None
    for item in items:
        changed = item.updated_at or item.created_at
        if changed is not None and (latest is None or changed > latest):
            latest = changed
    return now() if latest is None else _aware(latest)


def _aware(moment: datetime) -> datetime:
    """Return a timezone-aware datetime. Databases return UTC times without a time zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _caching_headers(call: Call, last_modified: datetime | None) -> list[tuple[str, str]]:
    """Return the headers Last-Modified and Cache-Control, which are new in microversion 1.15."""
    if call.version < microversion.LAST_MODIFIED:
        return []
    moment = _aware(last_modified or now())
    return [
        ('Last-Modified', format_datetime(moment, usegmt=True)),
        ('Cache-Control', 'no-cache'),
    ]


# URLs ---------------------------------------------------------------------------


def absolute_url(environ: Environ, path: str) -> str:
    """Return the absolute URL, in ASCII, of a path that is relative to the mount point.

    The URL has the scheme and the host of the request. If the Host header is missing or invalid,
    the URL has the name and the port of the server.
    """
    scheme = environ['wsgi.url_scheme'].lower()
    if scheme not in _SCHEMES:
        scheme = 'http'  # X-Forwarded-Proto can contain any text
    host = environ.get('HTTP_HOST', '')
    if not _HOST.fullmatch(host):
        host = f'{quote(environ["SERVER_NAME"], safe="[]:")}:{environ["SERVER_PORT"]}'
    # The default port is omitted, because clients compare URLs as strings.
    host = host.removesuffix(_SCHEMES[scheme])
    return f'{scheme}://{host}{_mount_prefix(environ)}{quote(path)}'


def _mount_prefix(environ: Environ) -> str:
    return quote(environ.get('SCRIPT_NAME', ''), encoding='latin-1')
