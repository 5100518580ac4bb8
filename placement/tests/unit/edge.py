"""Requests as a WSGI server hands them over, and what an application answers."""

import io
from typing import Any, NamedTuple

import orjson

from placement import microversion, util


class Answer(NamedTuple):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return orjson.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        (error,) = self.json['errors']
        return error


def environ(method: str = 'GET', path: str = '/', body: bytes = b'', **more: Any) -> util.Environ:
    """The environment of a request; header names are given as in WSGI (`HTTP_ACCEPT`)."""
    made = {
        'REQUEST_METHOD': method,
        'SCRIPT_NAME': '',
        'PATH_INFO': path,
        'QUERY_STRING': '',
        'SERVER_NAME': 'host',
        'SERVER_PORT': '80',
        'wsgi.url_scheme': 'http',
        'wsgi.input': io.BytesIO(body),
    }
    if body:
        made['CONTENT_LENGTH'] = str(len(body))
        made['CONTENT_TYPE'] = util.JSON
    return {**made, **more}


def at(version: microversion.Version, **more: Any) -> util.Environ:
    """The environment of a request whose microversion is settled."""
    return environ(**{microversion.ENVIRON_KEY: version}, **more)


def call(application: util.Application, wsgi_environ: util.Environ) -> Answer:
    """Send a request to an application."""
    told: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], *args: Any) -> None:
        told[:] = [status, headers]

    body = b''.join(application(wsgi_environ, start_response))
    status, headers = told
    return Answer(int(status.split()[0]), {name.lower(): value for name, value in headers}, body)


def says(wsgi_environ: util.Environ, start_response: util.StartResponse) -> list[bytes]:
    """An application that is content with everything."""
    start_response('200 OK', [('Content-Length', '2')])
    return [b'ok']
