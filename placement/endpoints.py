"""The paths that are no part of the API, for example `/healthcheck`.

They need no token and have no microversions. A proxy can reject requests for them, so that a client
cannot use them. But a proxy and a web server can decode the same unusual URL in different ways.
Therefore a request is served only if the client has sent the path itself.
"""

from collections.abc import Iterable, Mapping

from placement import exception
from placement.http import Application, Environ, StartResponse, errors

_METHODS = ('GET', 'HEAD')

# The keys with the URL as it arrived, of uWSGI, mod_wsgi and waitress, and of gunicorn. PEP 3333
# does not define them.
_URLS = ('REQUEST_URI', 'RAW_URI')


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
        path = environ.get('PATH_INFO', '')
        endpoint = self._endpoints.get(path)
        if endpoint is None:
            return self.application(environ, start_response)
        method = environ['REQUEST_METHOD']
        if not _is_sent_as(path, environ):
            endpoint = errors.response(environ, exception.RouteNotFound())
        elif method not in _METHODS:
            refused = exception.MethodNotAllowed(method, ', '.join(_METHODS))
            endpoint = errors.response(environ, refused)
        return endpoint(environ, start_response)


def _is_sent_as(path: str, environ: Environ) -> bool:
    """Return whether the URL of a request ends in a path, without encoding and dot segments.

    If the web server does not pass the URL, the result is true.
    """
    url = next((environ[key] for key in _URLS if key in environ), None)
    if url is None:
        return True
    sent = url.partition('?')[0]
    return sent.endswith(path) and '%' not in sent and not {'.', '..'} & set(sent.split('/'))
