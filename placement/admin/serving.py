"""Serves the metrics of `exporter` over HTTP, with waitress and prometheus_client.

A read of the database, and a text, serve all requests that wait for them. Both libraries are
optional requirements; import this module only to serve.
"""

from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future
import contextlib
import functools
import logging
import signal
import socket
import threading
import time
from typing import Any, Generic, NamedTuple, TypeVar

import prometheus_client
import waitress

from placement import messages
from placement.admin.cloud import Cloud
from placement.admin.exporter import Collector, Computed, State
from placement.admin.failure import CannotProceedError

T = TypeVar('T')

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


class Shared(Generic[T]):
    """Calls a function at most once at a time, and shares the result.

    The function is called in a thread of its own, because it may take longer than a caller can
    wait. No further thread is started until this call has ended.

    :param function: returns the result, or raises an exception
    :param keep: the number of seconds since the start of a successful call for which its result is
        returned; a failure is only returned to those who wait for the call
    """

    def __init__(self, function: Callable[[], T], keep: float) -> None:
        self._function = function
        self._keep = keep
        self._lock = threading.Lock()
        self._started = 0.0
        self._future: Future[T] | None = None

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

    def _is_usable(self, future: Future[T]) -> bool:
        if not future.done():
            return True
        return future.exception() is None and time.monotonic() - self._started < self._keep

    def _execute(self, future: Future[T]) -> None:
        try:
            future.set_result(self._function())
        except Exception as exc:
            future.set_exception(exc)


class Latest(Generic[T]):
    """The result of the last computation, which runs in the background.

    :param what: what is computed, for a message
    :param compute: returns the result
    :param interval: the minimum number of seconds between the starts of two computations
    :param nothing: the result before the end of the first computation, and after a failure
    """

    def __init__(self, what: str, compute: Callable[[], T], interval: float, nothing: T) -> None:
        self._what = what
        self._compute = compute
        self._shared = Shared(self._keep_result, interval)
        self._nothing = self._latest = nothing

    def value(self) -> T:
        """Return the last result, and start a computation if it is too old."""
        with contextlib.suppress(TimeoutError):
            self._shared.result(0)
        return self._latest

    def _keep_result(self) -> None:
        try:
            self._latest = self._compute()
        except Exception as exc:
            self._latest = self._nothing
            LOG.debug('The computation of the %s failed', self._what, exc_info=True)
            LOG.warning('The %s cannot be computed: %s', self._what, messages.sentence(exc))


class Response(NamedTuple):
    """A response of the application of prometheus_client."""

    status: str
    headers: list[tuple[str, str]]
    body: Iterable[bytes]


class _Page:
    """The responses with the metrics of one read; each is rendered for the first request of it."""

    def __init__(self, collector: Collector) -> None:
        registry = prometheus_client.CollectorRegistry()
        registry.register(collector)
        self._application = prometheus_client.make_wsgi_app(registry)
        self._lock = threading.Lock()
        self._cached = functools.lru_cache(_TEXTS)(self._render)

    def response(self, accept: str, encoding: str) -> Response:
        """Return the response in the format that a request prefers."""
        with self._lock:
            try:
                return self._cached(accept, encoding)
            except (TypeError, ValueError):
                # The version in the header Accept is not a number.
                return self._cached('', encoding)

    def _render(self, accept: str, encoding: str) -> Response:
        started: list[Any] = []
        environ = {
            'REQUEST_METHOD': 'GET',
            'PATH_INFO': '/metrics',
            'HTTP_ACCEPT': accept,
            'HTTP_ACCEPT_ENCODING': encoding,
        }
        body = self._application(environ, lambda *arguments: started.extend(arguments))
        status, headers = started
        return Response(status, [*headers, ('Vary', 'Accept, Accept-Encoding')], body)


class Application:
    """The WSGI application, which returns the metrics for all paths.

    :param read: reads the state of the cloud
    :param computed: returns what is computed in the background
    :param keep: the maximum age of the metrics in seconds; 0 means that each request that finds no
        running read starts one
    :param without: the names of metrics to leave out
    """

    def __init__(
        self,
        read: Callable[[], Cloud],
        computed: Callable[[], Computed],
        keep: float,
        without: Collection[str] = (),
    ) -> None:
        self._read = read
        self._computed = computed
        self._without = without
        self._pages = Shared(self._read_page, keep)
        self._page_without_database = _Page(Collector(None, without))
        self._lock = threading.Lock()
        self._available = True
        self._unlisted = 0

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Send the metrics; if the database cannot be read, only `placement_up 0`."""
        if environ['REQUEST_METHOD'] != 'GET':
            # waitress would send a body in the response to HEAD.
            start_response('405 Method Not Allowed', [('Allow', 'GET'), ('Content-Length', '0')])
            return []
        page = self._page(_seconds_to_wait(environ.get(SCRAPE_TIMEOUT)))
        response = page.response(
            environ.get('HTTP_ACCEPT', ''), environ.get('HTTP_ACCEPT_ENCODING', '')
        )
        start_response(response.status, response.headers)
        return response.body

    def _page(self, seconds: float) -> _Page:
        try:
            page = self._pages.result(seconds)
        except TimeoutError:
            self._log_change(f'There is no result after {seconds:g} seconds.')
        except Exception as exc:
            LOG.debug('The read of the database failed', exc_info=True)
            self._log_change(messages.sentence(exc))
        else:
            self._log_change(None)
            return page
        return self._page_without_database

    def _read_page(self) -> _Page:
        found = self._read()
        if found.unlisted and found.unlisted != self._unlisted:
            LOG.warning(
                'The metrics lack the resource providers without a root (%s). Run '
                '`placement-manage audit --only root-missing`.',
                found.unlisted,
            )
        self._unlisted = found.unlisted
        return _Page(Collector(State.of(found, self._computed()), self._without))

    def _log_change(self, failure: str | None) -> None:
        """Log the first failure, and the first success after a failure."""
        available = failure is None
        with self._lock:
            changed = available != self._available
            self._available = available
        if changed and available:
            LOG.info('The database can be read again.')
        elif changed:
            LOG.warning('The database cannot be read: %s', failure)


def _seconds_to_wait(scrape_timeout: str | None) -> float:
    """Return how long a request can wait for the database.

    :param scrape_timeout: the header of Prometheus
    """
    try:
        seconds = float(scrape_timeout or '') * _PART_FOR_WAITING
    except ValueError:
        return WAIT_SECONDS
    return min(seconds, WAIT_SECONDS) if seconds > 0 else WAIT_SECONDS


def serve(application: Application, host: str, port: int, ready: Callable[[str], object]) -> None:
    """Serve requests until the process receives SIGTERM or SIGINT.

    :param port: 0 means that the system chooses a free port
    :param ready: called with the URL before the first request is served
    :raises CannotProceedError: the address cannot be used
    """
    shown = f'[{host}]' if ':' in host else host
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        family, *_, address = found[0]
        listener = socket.create_server(address, family=family)
    except OSError as exc:
        # `create_server` adds the address in parentheses.
        reason = (exc.strerror or str(exc)).partition(' (')[0]
        raise CannotProceedError(f'Cannot listen on {shown}:{port}: {reason}.') from exc
    except UnicodeError as exc:
        raise CannotProceedError(f'Cannot listen on {shown}:{port}: invalid host name.') from exc
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
