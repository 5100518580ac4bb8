"""Serve the metrics over HTTP.

The server closes each connection after one response. The number of connections, and the time that
a client can take for its request and for the response, are limited.
"""

from collections.abc import Callable
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
import io
import logging
import signal
import socket
import socketserver
import sys
import threading
import time
from typing import Any

from placement.admin.capacity_metrics.exporter import Exporter
from placement.admin.capacity_metrics.listen_address import ListenAddress
from placement.admin.failure import CannotProceedError

LOG = logging.getLogger(__name__)

PATH = '/metrics'
# The number of connections that are served at the same time. Further connections wait. A client can
# keep connections without sending a request, so the number is as large as the usual limit of 1,024
# open files permits. 512 idle connections need 13 MiB of memory (2026-11).
CONNECTIONS = 512
# The time limits for receiving a request and for sending a response, in seconds.
REQUEST_SECONDS = 10.0
RESPONSE_SECONDS = 60.0
# The time that a request waits for the database, in seconds. Prometheus sends its own time limit in
# a header; a part of that time remains for rendering and sending the response.
WAIT_SECONDS = 60.0
SCRAPE_TIMEOUT = 'X-Prometheus-Scrape-Timeout-Seconds'
_PART_FOR_WAITING = 0.8

_INDEX = (
    '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
    '<title>Placement exporter</title></head>\n'
    f'<body><h1>Placement exporter</h1><p><a href="{PATH}">Metrics</a></p></body></html>\n'
)


class Server(socketserver.ThreadingMixIn, socketserver.TCPServer):
    """Listens on an address as soon as it is created.

    :raises CannotProceedError: the address cannot be used
    """

    allow_reuse_address = True
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: ListenAddress, exporter: Exporter) -> None:
        self.exporter = exporter
        self._free = threading.Semaphore(CONNECTIONS)
        try:
            self.address_family, sockaddr = _resolve(address)
            super().__init__(sockaddr, _Handler)
        except OSError as exc:
            reason = exc.strerror or exc
            raise CannotProceedError(f'Cannot listen on {address}: {reason}.') from exc
        except UnicodeError as exc:
            raise CannotProceedError(f'Cannot listen on {address}: invalid host name.') from exc
        self.url = f'http://{ListenAddress(address.host, self.server_address[1])}{PATH}'

    def serve(self, ready: Callable[[], object]) -> None:
        """Serve requests until the process receives SIGTERM or SIGINT.

        :param ready: is called before the first request is served
        """
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        try:
            ready()
            self.serve_forever()
        except KeyboardInterrupt:
            LOG.info('The exporter stops.')
        finally:
            self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection; if too many connections are open, wait."""
        self._free.acquire()
        try:
            super().process_request(request, client_address)
        except BaseException:
            self._free.release()
            raise

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve a connection and close it."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log the exception of a connection. A client can disconnect at any time."""
        del request
        if isinstance(sys.exception(), OSError):
            LOG.debug('The connection of %s failed.', client_address[0], exc_info=True)
        else:
            LOG.exception('The request of %s failed.', client_address[0])


def _resolve(address: ListenAddress) -> tuple[socket.AddressFamily, Any]:
    found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
    family, _, _, _, sockaddr = found[0]
    return family, sockaddr


class _RequestReader(io.RawIOBase):
    """Receives a request, with a limit for the total time.

    The time limit of a socket applies to each part that arrives, so that a client could send one
    byte after the other.
    """

    def __init__(self, connection: socket.socket, seconds: float) -> None:
        self._connection = connection
        self._deadline = time.monotonic() + seconds

    def readable(self) -> bool:
        """Return that the stream can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive bytes, and return their number.

        :raises TimeoutError: the time is over
        """
        remaining = self._deadline - time.monotonic()
        if remaining <= 0:
            raise TimeoutError('The client did not send the request in time')
        self._connection.settimeout(remaining)
        return self._connection.recv_into(buffer)


class _Handler(BaseHTTPRequestHandler):
    """Serves one request."""

    server: Server
    server_version = 'placement-exporter'
    sys_version = ''

    def setup(self) -> None:
        """Set the time limit for the request."""
        super().setup()
        self.rfile = io.BufferedReader(_RequestReader(self.connection, REQUEST_SECONDS))

    def do_GET(self) -> None:
        """Send the metrics, or the page that refers to them."""
        path = self.path.partition('?')[0]
        if path == PATH:
            self._send_metrics()
        elif path == '/':
            self._send(HTTPStatus.OK, 'text/html; charset=utf-8', _INDEX.encode())
        else:
            self._send_text(HTTPStatus.NOT_FOUND, f'The metrics are at {PATH}.')

    do_HEAD = do_GET  # noqa: N815 - the name that the base class looks up

    def _refuse(self) -> None:
        self._send_text(
            HTTPStatus.METHOD_NOT_ALLOWED, 'Use the method GET or HEAD.', Allow='GET, HEAD'
        )

    do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_TRACE = do_CONNECT = _refuse  # noqa: N815

    def _send_metrics(self) -> None:
        page = self.server.exporter.page(_seconds_to_wait(self.headers.get(SCRAPE_TIMEOUT)))
        result = page.render(
            self.headers.get('Accept', ''), self.headers.get('Accept-Encoding', '')
        )
        headers = {'Vary': 'Accept, Accept-Encoding'}
        if result.encoding:
            headers['Content-Encoding'] = result.encoding
        self._send(HTTPStatus.OK, result.content_type, result.body, **headers)

    def _send_text(self, status: HTTPStatus, text: str, **headers: str) -> None:
        self._send(status, 'text/plain; charset=utf-8', f'{text}\n'.encode(), **headers)

    def _send(self, status: HTTPStatus, content_type: str, body: bytes, **headers: str) -> None:
        # The limit applies to the transmission of the whole body.
        self.connection.settimeout(RESPONSE_SECONDS)
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header('Content-Type', content_type)
        self.send_header('Content-Length', str(len(body)))
        self.end_headers()
        if self.command != 'HEAD':
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Log a request at level DEBUG. `repr` escapes control characters."""
        LOG.debug('%s: %r', self.client_address[0], format % args)


def _seconds_to_wait(scrape_timeout: str | None) -> float:
    """Return how long a request can wait for the database.

    :param scrape_timeout: the header of Prometheus
    """
    try:
        seconds = float(scrape_timeout or '') * _PART_FOR_WAITING
    except ValueError:
        return WAIT_SECONDS
    return min(seconds, WAIT_SECONDS) if seconds > 0 else WAIT_SECONDS
