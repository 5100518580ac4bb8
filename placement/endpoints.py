"""The paths that are no part of the API, for example `/healthcheck`.

They need no token and have no microversions. Their requests are not in the request log, because
monitoring programs send them every few seconds.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from oslo_context import context

from placement import exception
from placement.http import Application, Environ, StartResponse, errors
from placement.http.request import ENVIRON_REQUEST_ID, HEADER_REQUEST_ID

_METHODS = ('GET', 'HEAD')


class Endpoints:
    """Passes the requests for some paths to other applications, and all other requests to the API.

    :param application: the API
    :param endpoints: the applications by path; a path is relative to the mount point, so it is the
        same for every path prefix
    """

    def __init__(self, application: Application, endpoints: Mapping[str, Application]) -> None:
        self.application = application
        self._endpoints = dict(endpoints)

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        endpoint = self._endpoints.get(environ.get('PATH_INFO', ''))
        if endpoint is None:
            return self.application(environ, start_response)
        return _serve(endpoint, environ, start_response)


def _serve(
    endpoint: Application, environ: Environ, start_response: StartResponse
) -> Iterable[bytes]:
    """Serve a request with an endpoint; the response has a request ID, like all responses."""
    request_id = context.generate_request_id()
    environ[ENVIRON_REQUEST_ID] = request_id
    # Without a new context, log lines would contain the IDs of the thread's previous request.
    context.RequestContext(request_id=request_id)

    def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
        if not any(name.lower() == HEADER_REQUEST_ID for name, _ in headers):
            headers = [*headers, (HEADER_REQUEST_ID, request_id)]
        return start_response(status, headers, *args)

    method = environ['REQUEST_METHOD']
    if method not in _METHODS:
        refused = exception.MethodNotAllowed(method, ', '.join(_METHODS))
        endpoint = errors.response(environ, refused)
    return endpoint(environ, start)
