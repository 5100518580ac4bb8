"""The request ID, the request log, the warnings for slow requests, and the metrics of requests."""

from collections.abc import Callable, Iterable, Iterator
import logging
import re
import time
from typing import Any
from urllib.parse import quote

from oslo_context import context

from placement import microversion, telemetry
from placement.http import JSON, Application, Environ, StartResponse, quoted
from placement.http.request import ENVIRON_REQUEST_ID, HEADER_REQUEST_ID

LOG = logging.getLogger(__name__)

# Values of the label `method`. All other methods of clients share the value `other`, because each
# value of a label needs memory.
METHODS = frozenset({'GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS'})
OTHER_METHOD = 'other'
UNMATCHED_ROUTE = 'unmatched'

_GLOBAL_ID = re.compile(r'req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}')


class RequestLog:
    """Generates a request ID, returns it in a response header, and logs the request.

    If the client accepts any media type, the middleware sets the Accept header to JSON.

    :param slow_seconds: log a warning for each request that takes longer; 0 for none
    """

    def __init__(self, application: Application, slow_seconds: float = 0) -> None:
        self.application = application
        self._slow_seconds = slow_seconds

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        is_logged = self._slow_seconds or LOG.isEnabledFor(logging.INFO)
        response = _LoggedResponse(environ, self._slow_seconds) if is_logged else None
        request_id = context.generate_request_id()
        environ[ENVIRON_REQUEST_ID] = request_id
        # The global ID links the logs of several services. It never replaces the request ID.
        sent = environ.get('HTTP_X_OPENSTACK_REQUEST_ID')
        global_id = sent if sent and _GLOBAL_ID.fullmatch(sent) else None
        if global_id:
            environ['openstack.global_request_id'] = global_id
        if environ.get('HTTP_ACCEPT', '*/*') in ('', '*/*'):
            environ['HTTP_ACCEPT'] = JSON
        # oslo.log reads the IDs from the thread-local context. Without a new context, lines that
        # are logged before authentication would contain the IDs of the thread's previous request.
        context.RequestContext(request_id=request_id, global_request_id=global_id)

        if LOG.isEnabledFor(logging.DEBUG):
            _log_arrival(environ)

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            if response is not None:
                response.start(status, headers)
            return start_response(status, [*headers, (HEADER_REQUEST_ID, request_id)], *args)

        if response is None:
            return self.application(environ, start)
        return response.of(self.application, start)


class _LoggedResponse:
    """The body of a response. `close` writes the log line.

    PERF: servers call `close` after they have sent the response (PEP 3333), so the client does not
    wait for the line. Under uWSGI, a read of one provider takes 11 % less time if the server is
    idle between the requests (2026-11).
    """

    __slots__ = ('_arrival', '_body', '_context', '_environ', '_slow_seconds', '_started')

    def __init__(self, environ: Environ, slow_seconds: float) -> None:
        # The log line contains the time from here until the response starts.
        self._arrival = time.perf_counter()
        self._environ = environ
        self._slow_seconds = slow_seconds
        self._started: tuple[str, list[tuple[str, str]], float] | None = None

    def start(self, status: str, headers: list[tuple[str, str]]) -> None:
        """Record the start of the response. If the response is replaced, the last start counts."""
        self._started = status, headers, time.perf_counter() - self._arrival

    def of(self, application: Application, start_response: StartResponse) -> Iterable[bytes]:
        """Return the response of an application to the request."""
        try:
            self._body = application(self._environ, start_response)
        except Exception:
            self._log()
            raise
        finally:
            # The context of the request has the identity of the caller.
            self._context = context.get_current()
        return self

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._body)

    def close(self) -> None:
        """Close the body and write the log line."""
        try:
            if hasattr(self._body, 'close'):
                self._body.close()
        finally:
            # Another request may have used the thread meanwhile.
            if self._context is not None:
                self._context.update_store()
            self._log()

    def _log(self) -> None:
        if self._started is None:
            return
        _log_response(self._environ, *self._started)
        seconds = self._started[-1]
        if 0 < self._slow_seconds < seconds:
            _warn_of_slow_request(self._environ, seconds)


def _log_arrival(environ: Environ) -> None:
    LOG.debug(
        'Starting request: %s "%s %s"',
        quoted(environ.get('REMOTE_ADDR', '-')),
        quoted(environ['REQUEST_METHOD']),
        _uri(environ),
    )


def _log_response(
    environ: Environ, status: str, headers: list[tuple[str, str]], seconds: float
) -> None:
    length = next((value for name, value in headers if name.lower() == 'content-length'), '-')
    code = status.split(' ', 1)[0]
    # Load balancers send these requests every few seconds.
    is_healthy = code == '200' and environ.get('PATH_INFO') == '/healthcheck'
    write = LOG.debug if is_healthy else LOG.info
    write(
        '%s "%s %s" status: %s len: %s microversion: %s time: %.6f',
        quoted(environ.get('REMOTE_ADDR', '-')),
        quoted(environ['REQUEST_METHOD']),
        _uri(environ),
        code,
        length,
        # In JSON, oslo.log writes the arguments too. A version would be a list of numbers.
        str(environ.get(microversion.ENVIRON_KEY, '-')),
        seconds,
    )


def _warn_of_slow_request(environ: Environ, seconds: float) -> None:
    LOG.warning(
        'Slow request: "%s %s" took %.1f seconds',
        quoted(environ['REQUEST_METHOD']),
        _uri(environ),
        seconds,
    )


def _uri(environ: Environ) -> str:
    """Return the percent-encoded mount prefix, path and query string of a request."""
    path = environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')
    query = environ.get('QUERY_STRING')
    # PEP 3333: the environment contains bytes decoded as latin-1.
    encoded = quote(path, encoding='latin-1', errors='replace')
    return f'{encoded}?{quoted(query)}' if query else encoded


class RequestMetrics:
    """Measures the duration of each request, and counts the requests in progress.

    This middleware exists only if metrics are enabled.

    :param template: returns the path template of the route of a request. The middleware calls this
        function itself, because other middleware can reject a request before the route is known
    """

    def __init__(self, application: Application, template: Callable[[Environ], str | None]) -> None:
        self.application = application
        self._template = template

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        started = time.perf_counter()
        route, method = self._template(environ) or UNMATCHED_ROUTE, environ['REQUEST_METHOD']
        if method not in METHODS:
            method = OTHER_METHOD
        # Without a response, the web server returns 500 Internal Server Error.
        status_class = '5xx'

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            nonlocal status_class
            status_class = f'{status[0]}xx'
            return start_response(status, headers, *args)

        telemetry.REQUESTS_IN_PROGRESS.add(1)
        try:
            return self.application(environ, start)
        except Exception:
            status_class = '5xx'
            raise
        finally:
            duration = time.perf_counter() - started
            telemetry.REQUESTS_IN_PROGRESS.add(-1)
            telemetry.REQUEST_DURATION.observe(duration, route, method, status_class)
