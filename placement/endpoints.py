"""The paths that are no part of the API, for example `/healthcheck`.

They need no token and have no microversions.
"""

from collections.abc import Iterable, Mapping

from placement import exception
from placement.http import Application, Environ, StartResponse, errors

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
        method = environ['REQUEST_METHOD']
        if method not in _METHODS:
            refused = exception.MethodNotAllowed(method, ', '.join(_METHODS))
            endpoint = errors.response(environ, refused)
        return endpoint(environ, start_response)
