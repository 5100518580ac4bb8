"""Create WSGI environments like a server, and call applications with them."""

from collections.abc import Iterator
import io
from typing import Any, NamedTuple

import orjson
from oslo_config import cfg

from placement import conf, microversion
from placement.http import JSON, Application

Environ = dict[str, Any]


class Response(NamedTuple):
    """The response of an application. Header names are in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the document in the body."""
        return orjson.loads(self.body)

    @property
    def error(self) -> dict[str, Any]:
        """Return the error in an error document, which contains exactly one."""
        (error,) = self.json['errors']
        return error


def configuration() -> cfg.ConfigOpts:
    """Return a configuration with SQLite in memory and without authentication."""
    config = cfg.ConfigOpts()
    conf.register_opts(config)
    config.set_default('connection', 'sqlite://', 'placement_database')
    config([], default_config_files=[], default_config_dirs=[])
    config.set_override('auth_strategy', 'noauth2', 'api')
    return config


def environ(method: str = 'GET', path: str = '/', body: bytes = b'', **more: Any) -> Environ:
    """Return the environment of a request.

    :param more: other keys, for example the header `HTTP_ACCEPT`
    """
    basic: Environ = {
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
        basic['CONTENT_LENGTH'] = str(len(body))
        basic['CONTENT_TYPE'] = JSON
    return {**basic, **more}


def at(version: microversion.Version, **more: Any) -> Environ:
    """Return the environment of a request with a microversion."""
    return environ(**{microversion.ENVIRON_KEY: version}, **more)


def call(application: Application, wsgi_environ: Environ) -> Response:
    """Send a request to an application."""
    started: list[Any] = []

    def start_response(status: str, headers: list[tuple[str, str]], *args: Any) -> None:
        started[:] = [status, headers]

    chunks = application(wsgi_environ, start_response)
    body = b''.join(chunks)
    if hasattr(chunks, 'close'):
        chunks.close()
    status, headers = started
    return Response(int(status.split()[0]), {name.lower(): value for name, value in headers}, body)


def ok(wsgi_environ: Environ, start_response: Any) -> list[bytes]:
    """A WSGI application that returns 200 OK for every request."""
    start_response('200 OK', [('Content-Length', '2')])
    return [b'ok']


def parts(value: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each dictionary and list in a value, with each of its keys or indexes."""
    for name in list(value) if isinstance(value, dict) else range(len(value)):
        yield value, name
        if isinstance(value[name], (dict, list)):
            yield from parts(value[name])
