"""Serves the metrics of `exporter` over HTTP, with waitress and prometheus_client.

A read of the database, and a text, serve all requests that wait for them. Both libraries are
optional requirements; import this module only to serve.
"""

from collections.abc import Callable, Iterable
from concurrent.futures import Future
import contextlib
import functools
import logging
import signal
import socket
import threading
import time
from typing import Any, Generic, TypeVar

import prometheus_client
import waitress

from placement import messages
from placement.admin.console import CannotProceedError
from placement.admin.exporter import Collector, Samples, State

T = TypeVar('T')
# Returns the headers and the body of the response for the headers Accept and Accept-Encoding.
Page = Callable[[str, str], tuple[list[tuple[str, str]], Iterable[bytes]]]

LOG = logging.getLogger(__name__)

# The time that a request waits for the database, in seconds. Prometheus sends its own time limit in
# a header; a part of that time remains for rendering and sending the response.
WAIT_SECONDS = 60.0
SCRAPE_TIMEOUT = 'HTTP_X_PROMETHEUS_SCRAPE_TIMEOUT_SECONDS'
_PART_FOR_WAITING = 0.8
# A client can keep connections without sending a request. Each of them needs memory only.
CONNECTIONS = 512
# The number of requests that can wait for the database at the same time.
THREADS = 16
# A page keeps at most this number of texts. Prometheus servers of different versions request
# different formats.
_TEXTS = 4
# The request for which a text is rendered, without its headers.
_GET = {'REQUEST_METHOD': 'GET', 'PATH_INFO': '/metrics'}


class Shared(Generic[T]):
    """Calls a function at most once at a time, and shares the result.

    The function is called in a thread of its own, because it may take longer than a caller can
    wait. No further thread is started until this call has ended.

    :param function: returns the result, or raises an exception
    :param keep: the number of seconds since the start of a successful call for which its result is
        returned; a failure is only returned to those who wait for the call
    :ivar latest: the result of the last successful call; None before its end
    """

    def __init__(self, function: Callable[[], T], keep: float) -> None:
        self._function = function
        self._keep = keep
        self._lock = threading.Lock()
        self._started = 0.0
        self._future: Future[T] | None = None
        self.latest: T | None = None

    def result(self, seconds: float) -> T:
        """Return the result of a running or recent call, or else of a new one.

        :param seconds: the maximum time to wait
        :raises TimeoutError: the call has not ended in this time
        :raises Exception: the function raised this exception
        """
        with self._lock:
            future = self._future
            if future is None or not self._is_usable(future):
                future = self._future = Future()
                self._started = time.monotonic()
                # A daemon thread does not delay the end of the process.
                threading.Thread(target=self._execute, args=(future,), daemon=True).start()
        return future.result(seconds)

    def refreshed(self) -> T | None:
        """Return the latest result, and start a call in the background if it is too old."""
        with contextlib.suppress(TimeoutError):
            self.result(0)
        return self.latest

    def _is_usable(self, future: Future[T]) -> bool:
        if not future.done():
            return True
        return future.exception() is None and time.monotonic() - self._started < self._keep

    def _execute(self, future: Future[T]) -> None:
        try:
            self.latest = self._function()
            future.set_result(self.latest)
        except Exception as exc:
            future.set_exception(exc)


def samples(what: str, compute: Callable[[], dict[str, Samples]]) -> dict[str, Samples]:
    """Return the samples of a computation in the background; none after a failure.

    :param what: what is computed, for a message
    :param compute: returns the samples, by the name of the metric
    """
    try:
        return compute()
    except Exception as exc:
        LOG.debug('The computation of the %s failed', what, exc_info=True)
        LOG.warning('The %s cannot be computed: %s', what, messages.sentence(exc))
        return {}


def _page(collector: Collector) -> Page:
    """Return the page with the metrics of one read; each format is rendered once."""
    application = prometheus_client.make_wsgi_app(collector)

    @functools.lru_cache(_TEXTS)
    def page(accept: str, encoding: str) -> tuple[list[tuple[str, str]], Iterable[bytes]]:
        headers: list[tuple[str, str]] = []
        environ = {**_GET, 'HTTP_ACCEPT': accept, 'HTTP_ACCEPT_ENCODING': encoding}
        body = application(environ, lambda _status, found: headers.extend(found))
        return [*headers, ('Vary', 'Accept, Accept-Encoding')], body

    return page


class Application:
    """The WSGI application, which returns the metrics for all paths.

    :param read: returns what the metrics are computed from
    :param keep: the maximum age of the metrics in seconds; 0 means that each request that finds no
        running read starts one
    """

    def __init__(self, read: Callable[[], State], keep: float) -> None:
        self._read = read
        self._pages = Shared(self._read_page, keep)
        self._page_without_database = _page(Collector(None))
        self._lock = threading.Lock()
        self._is_down = False
        self._unlisted = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Send the metrics; if the database cannot be read, only `placement_up 0`."""
        if environ['REQUEST_METHOD'] != 'GET':
            # waitress would send a body in the response to HEAD.
            start_response('405 Method Not Allowed', [('Allow', 'GET'), ('Content-Length', '0')])
            return []
        page = self._page(_seconds_to_wait(environ.get(SCRAPE_TIMEOUT)))
        encoding = environ.get('HTTP_ACCEPT_ENCODING', '')
        with self._lock:
            try:
                headers, body = page(environ.get('HTTP_ACCEPT', ''), encoding)
            except (TypeError, ValueError):
                # The version in the header Accept is not a number.
                headers, body = page('', encoding)
        start_response('200 OK', headers)
        return body

    def _page(self, seconds: float) -> Page:
        """Return the page; log the first failure, and the first success after a failure."""
        page, failure = self._page_without_database, ''
        try:
            page = self._pages.result(seconds)
        except TimeoutError:
            failure = f'There is no result after {seconds:g} seconds.'
        except Exception as exc:
            LOG.debug('The read of the database failed', exc_info=True)
            failure = messages.sentence(exc)
        with self._lock:
            changed = self._is_down != bool(failure)
            self._is_down = bool(failure)
        if changed and failure:
            LOG.warning('The database cannot be read: %s', failure)
        elif changed:
            LOG.info('The database can be read again.')
        return page

    def _read_page(self) -> Page:
        state = self._read()
        unlisted = state.cloud.unlisted
        if unlisted and unlisted != self._unlisted:
            LOG.warning(
                'The metrics lack the resource providers without a root (%s). Run '
                '`placement-manage audit --only root-missing`.',
                unlisted,
            )
        self._unlisted = unlisted
        return _page(Collector(state))


def _seconds_to_wait(scrape_timeout: str | None) -> float:
    """Return how long a request can wait for the database.

    :param scrape_timeout: the header of Prometheus
    """
    seconds = 0.0
    with contextlib.suppress(ValueError):
        seconds = float(scrape_timeout or '') * _PART_FOR_WAITING
    return min(seconds, WAIT_SECONDS) if seconds > 0 else WAIT_SECONDS


def serve(application: Application, host: str, port: int, ready: Callable[[str], object]) -> None:
    """Serve requests until the process receives SIGTERM or SIGINT.

    :param port: 0 means that the system chooses a free port
    :param ready: called with the URL before the first request is served
    :raises CannotProceedError: the address cannot be used
    """
    shown = f'[{host}]' if ':' in host else host
    try:
        family = socket.AF_INET6 if ':' in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family)
    except (OSError, UnicodeError) as exc:
        # `create_server` adds the address in parentheses.
        reason = (getattr(exc, 'strerror', None) or str(exc)).partition(' (')[0]
        raise CannotProceedError(f'Cannot listen on {shown}:{port}: {reason}.') from exc
    server = waitress.create_server(
        application,
        sockets=[listener],
        threads=THREADS,
        connection_limit=CONNECTIONS,
        ident=None,
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    ready(f'http://{shown}:{listener.getsockname()[1]}/metrics')
    server.run()
    LOG.info('The exporter stops.')
