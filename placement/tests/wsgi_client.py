"""Sends requests to a WSGI application in this process, without a web server.

Every variable of a request can be set, also to values that no HTTP client sends.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
import io
import json
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]


@dataclass(frozen=True, slots=True)
class Request:
    """A request with the roles admin and service, as a web server passes it to the application.

    :param path: PATH_INFO, in which each character is one byte (PEP 3333)
    :param query: the query string, percent-encoded or not
    :param environ: variables to replace; None removes a variable
    """

    method: str
    path: str
    query: str = ''
    body: bytes = b''
    version: str = 'latest'
    environ: Mapping[str, str | None] = field(default_factory=dict)

    def variables(self) -> dict[str, str]:
        """Return the CGI variables of the request."""
        variables: dict[str, str | None] = {
            'REQUEST_METHOD': self.method,
            'SCRIPT_NAME': '',
            'PATH_INFO': self.path,
            'QUERY_STRING': self.query,
            'SERVER_NAME': 'localhost',
            'SERVER_PORT': '8778',
            'SERVER_PROTOCOL': 'HTTP/1.1',
            'REMOTE_ADDR': '127.0.0.1',
            'HTTP_HOST': 'localhost:8778',
            'CONTENT_TYPE': 'application/json',
            'CONTENT_LENGTH': str(len(self.body)),
            'HTTP_X_AUTH_TOKEN': 'admin',
            'HTTP_X_ROLES': 'admin,service',
            'HTTP_OPENSTACK_API_VERSION': f'placement {self.version}',
            **self.environ,
        }
        return {name: value for name, value in variables.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Response:
    """A response; the names of its headers are in lower case."""

    status: int
    headers: dict[str, str]
    content: bytes

    def json(self) -> Any:
        """Return the parsed body.

        :raises ValueError: the body is not JSON, for example because it has NaN
        """
        return json.loads(self.content, parse_constant=_reject_constant)


def _reject_constant(name: str) -> None:
    raise ValueError(f'{name} is not JSON')


def send(application: Application, request: Request) -> Response:
    """Send a request and return the response; whatever the application raises is raised."""
    return respond(application, request.variables(), request.body)


def environ_of(variables: Mapping[str, str], body: bytes) -> dict[str, Any]:
    """Return the WSGI environment of a request of CGI variables and a body."""
    return {
        **variables,
        'wsgi.version': (1, 0),
        'wsgi.url_scheme': 'http',
        'wsgi.input': io.BytesIO(body),
        'wsgi.errors': io.StringIO(),
        'wsgi.multithread': False,
        'wsgi.multiprocess': False,
        'wsgi.run_once': False,
    }


def respond(application: Application, variables: Mapping[str, str], body: bytes) -> Response:
    """Return the response to a request of CGI variables and a body."""
    environ = environ_of(variables, body)
    # An application may call start_response again for an error: the last call is valid.
    calls: list[tuple[str, list[tuple[str, str]]]] = []
    content = b''.join(application(environ, lambda *arguments: calls.append(arguments[:2])))
    status, headers = calls[-1]
    return Response(
        int(status.split()[0]), {name.lower(): value for name, value in headers}, content
    )
