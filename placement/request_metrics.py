"""The middleware that measures requests, if metrics are enabled."""

from collections.abc import Callable, Iterable
import time
from typing import Any

from placement import telemetry
from placement.http import Application, Environ, StartResponse


class RequestMetrics:
    """Measures the duration of each request, and counts the requests in progress.

    :param template: returns the path template of the route of a request. The middleware calls this
        function itself, because other middleware can reject a request before the route is known
    """

    def __init__(self, application: Application, template: Callable[[Environ], str | None]) -> None:
        self.application = application
        self._template = template

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        started = time.perf_counter()
        route, method = self._template(environ), environ['REQUEST_METHOD']
        # Without a response, the web server returns 500 Internal Server Error.
        status_class = '5xx'

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            nonlocal status_class
            status_class = f'{status[0]}xx'
            return start_response(status, headers, *args)

        telemetry.request_started(environ.get('wsgi.multiprocess', False))
        try:
            return self.application(environ, start)
        except Exception:
            status_class = '5xx'
            raise
        finally:
            duration = time.perf_counter() - started
            telemetry.request_ended(route, method, status_class, duration)
