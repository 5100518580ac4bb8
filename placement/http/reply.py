"""Writing a response: JSON, caching headers and URLs."""

from collections.abc import Iterable
from datetime import UTC, datetime
from email.utils import format_datetime
from http import HTTPStatus
import json
import re
from typing import Any, Protocol
from urllib.parse import quote

import orjson
import webob

from placement import microversion
from placement.http import Environ
from placement.http.request import JSON, version

# Python 3.13 renamed the phrase of 413 (RFC 9110: Content Too Large).
PHRASES = {status.value: status.phrase for status in HTTPStatus} | {413: 'Request Entity Too Large'}
STATUS_LINES = {status: f'{status} {phrase}' for status, phrase in PHRASES.items()}

# Scheme -> its default port, which a URL omits.
_SCHEMES = {'http': ':80', 'https': ':443'}

# A name, an IPv4 address, or an IPv6 address (RFC 6874: with a zone) in brackets; then a port.
# RFC 952 does not allow underscores in host names, but they are common.
_HOST = re.compile(r'([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+(%25[A-Za-z0-9._-]+)?\])(:[0-9]*)?')


class Timestamped(Protocol):
    """A row with the times of its creation and of its last update."""

    @property
    def created_at(self) -> datetime | None:
        """Return the time of the creation, if it is stored."""

    @property
    def updated_at(self) -> datetime | None:
        """Return the time of the last update, if there was one."""


# Responses ----------------------------------------------------------------------


def json_reply(
    req: webob.Request,
    document: Any,
    last_modified: datetime | None = None,
    status: int = HTTPStatus.OK,
    location: str | None = None,
    cached: bool = True,
) -> webob.Response:
    """Return a response with a JSON document.

    :param last_modified: time of the last change of the shown objects; the current time if omitted
    :param location: path of the created object, below the mount point
    :param cached: whether the response has Last-Modified and Cache-Control at all
    """
    headers = [('Content-Type', JSON)]
    if cached:
        headers += _caching_headers(req, last_modified)
    if location is not None:
        headers.append(('Location', absolute_url(req.environ, location)))
    return webob.Response(body=_dumped(document), status=STATUS_LINES[status], headerlist=headers)


def empty_reply(
    req: webob.Request,
    status: int = HTTPStatus.NO_CONTENT,
    location: str | None = None,
    last_modified: datetime | None = None,
) -> webob.Response:
    """Return a response without a body, with caching headers if `last_modified` is given."""
    headers = [('Content-Length', '0')]
    if last_modified is not None:
        headers += _caching_headers(req, last_modified)
    if location is not None:
        headers.append(('Location', absolute_url(req.environ, location)))
    return webob.Response(status=STATUS_LINES[status], headerlist=headers, app_iter=[])


def _dumped(document: Any) -> bytes:
    try:
        return orjson.dumps(document)
    except orjson.JSONEncodeError:
        # orjson does not write integers above 64 bits, which a capacity can be. `json` is slow.
        return json.dumps(document, ensure_ascii=False, separators=(',', ':')).encode()


# Caching ------------------------------------------------------------------------


def now() -> datetime:
    """Return the current time, with its time zone."""
    return datetime.now(UTC)


def pick_last_modified(last_modified: datetime | None, item: Timestamped) -> datetime:
    """Return the later one of a time and the time of the last change of an item.

    An item that was never updated counts with its creation, and one without times with now.
    """
    changed = _aware(item.updated_at or item.created_at or now())
    return changed if last_modified is None or changed > last_modified else last_modified


def newest(items: Iterable[Timestamped]) -> datetime:
    """Return the time of the latest change of any item; the current time if there is none."""
    latest: datetime | None = None
    for item in items:
        changed = item.updated_at or item.created_at
        if changed is not None and (latest is None or changed > latest):
            latest = changed
    return now() if latest is None else _aware(latest)


def _aware(moment: datetime) -> datetime:
    """Return a time with its time zone. Databases return UTC without a time zone."""
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _caching_headers(req: webob.Request, last_modified: datetime | None) -> list[tuple[str, str]]:
    """Return Last-Modified and Cache-Control, new in microversion 1.15."""
    if version(req) < microversion.LAST_MODIFIED:
        return []
    moment = _aware(last_modified or now())
    return [
        ('Last-Modified', format_datetime(moment, usegmt=True)),
        ('Cache-Control', 'no-cache'),
    ]


# URLs ---------------------------------------------------------------------------


def absolute_url(environ: Environ, path: str) -> str:
    """Return the complete URL, in ASCII, of a path below the mount point.

    Scheme and host are those of the request. If the request has an invalid host, those of the
    server are used.
    """
    scheme = environ['wsgi.url_scheme'].lower()
    if scheme not in _SCHEMES:
        scheme = 'http'  # X-Forwarded-Proto can have any text
    host = environ.get('HTTP_HOST', '')
    if not _HOST.fullmatch(host):
        host = f'{quote(environ["SERVER_NAME"], safe="[]:")}:{environ["SERVER_PORT"]}'
    # Clients compare URLs as texts, so the default port is omitted.
    host = host.removesuffix(_SCHEMES[scheme])
    mount = quote(environ.get('SCRIPT_NAME', ''), encoding='latin-1')
    return f'{scheme}://{host}{mount}{quote(path)}'
