"""The request ID and the request log."""

from collections.abc import Callable, Iterable
import logging
import re
import time
from typing import Any
from urllib.parse import quote

from oslo_context import context

from placement import microversion
from placement.http import Application, Environ, StartResponse
from placement.http.log_text import quoted
from placement.http.request import ENVIRON_REQUEST_ID, HEADER_REQUEST_ID, JSON

LOG = logging.getLogger(__name__)

_GLOBAL_ID = re.compile(r'req-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}')


class RequestLog:
    """Generates a request ID, returns it in a response header, and logs the request.

    If the client accepts any media type, the middleware sets the Accept header to JSON.
    """

    def __init__(self, application: Application) -> None:
        self.application = application

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve a request."""
        # The log line contains the time from here until the response starts.
        arrival = time.perf_counter() if LOG.isEnabledFor(logging.INFO) else None
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
            _write(_arrival, environ)

        def start(status: str, headers: list[tuple[str, str]], *args: Any) -> Any:
            if arrival is not None:
                _write(_response, environ, status, headers, time.perf_counter() - arrival)
            return start_response(status, [*headers, (HEADER_REQUEST_ID, request_id)], *args)

        return self.application(environ, start)


def _write(line: Callable[..., None], *arguments: Any) -> None:
    """Write a log line. A failure to do so is not a failure of the request."""
    try:
        line(*arguments)
    except Exception:
        LOG.exception('Failed to log a request')


def _arrival(environ: Environ) -> None:
    LOG.debug(
        'Starting request: %s "%s %s"',
        quoted(environ.get('REMOTE_ADDR', '-')),
        quoted(environ['REQUEST_METHOD']),
        _uri(environ),
    )


def _response(
    environ: Environ, status: str, headers: list[tuple[str, str]], seconds: float
) -> None:
    length = next((value for name, value in headers if name.lower() == 'content-length'), '-')
    LOG.info(
        '%s "%s %s" status: %s len: %s microversion: %s time: %.6f',
        quoted(environ.get('REMOTE_ADDR', '-')),
        quoted(environ['REQUEST_METHOD']),
        _uri(environ),
        status.split(' ', 1)[0],
        length,
        # In JSON, oslo.log writes the arguments too. A version would be a list of numbers.
        str(environ.get(microversion.ENVIRON_KEY, '-')),
        seconds,
    )


def _uri(environ: Environ) -> str:
    """Return the percent-encoded mount prefix, path and query string of a request."""
    path = environ.get('SCRIPT_NAME', '') + environ.get('PATH_INFO', '')
    query = environ.get('QUERY_STRING')
    # PEP 3333: the environment contains bytes decoded as latin-1.
    return quote(path, encoding='latin-1') + (f'?{quoted(query)}' if query else '')
