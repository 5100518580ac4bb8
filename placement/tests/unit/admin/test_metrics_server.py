"""The HTTP server of the metrics."""

from collections.abc import Iterator
import contextlib
import logging
import socket
import threading
import types

import ddt
import fixtures
from oslotest import base
import requests

from placement.admin.capacity_metrics import server
from placement.admin.failure import CannotProceedError

LONG = 60
BODY = b'placement_providers 7.0\n'
TEXT = 'text/plain; version=0.0.4; charset=utf-8'


class StubExporter:
    """Returns itself as a page as soon as `proceed` is set."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.entered = threading.Semaphore(0)
        self.proceed = threading.Event()
        self.proceed.set()
        self.error: Exception | None = None
        self.body = BODY
        self.headers: list[str] = []

    def page(self, seconds: float) -> 'StubExporter':
        self.seconds.append(seconds)
        self.entered.release()
        self.proceed.wait(LONG)
        if self.error:
            raise self.error
        return self

    def render(self, *headers: str) -> types.SimpleNamespace:
        self.headers += headers
        return types.SimpleNamespace(content_type=TEXT, encoding='br', body=self.body)


class ServerTestCase(base.BaseTestCase):
    address = '127.0.0.1:0'

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger(level=logging.INFO))
        self.log = self.useFixture(
            fixtures.FakeLogger('placement.admin.capacity_metrics', logging.INFO)
        )
        self.exporter = StubExporter()
        self.server = self.listen(self.address)
        self.port = self.server.server_address[1]
        thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.shutdown)
        self.addCleanup(self.exporter.proceed.set)

    def listen(self, address: str) -> server.Server:
        host, _, port = address.rpartition(':')
        parsed = server.ListenAddress(host.strip('[]'), int(port))
        created = server.Server(parsed, self.exporter)
        self.addCleanup(created.server_close)
        return created

    def send(self, method: str = 'GET', path: str = '/metrics', **headers: str):
        url = self.server.url.removesuffix('/metrics') + path
        headers = {'Accept-Encoding': 'identity', **headers}
        return requests.request(method, url, headers=headers, timeout=LONG)

    @contextlib.contextmanager
    def connected(self) -> Iterator[socket.socket]:
        with socket.create_connection(('127.0.0.1', self.port), LONG) as connection:
            yield connection


@ddt.ddt
class ResponseTest(ServerTestCase):
    def test_metrics(self):
        for path in ('/metrics', '/metrics?a=/b'):
            headers = {'Accept': 'a/b', 'Accept-Encoding': 'br'}
            response = requests.get(
                self.server.url.removesuffix('/metrics') + path,
                headers=headers,
                timeout=LONG,
                stream=True,
            )
            self.assertEqual(200, response.status_code)
            self.assertEqual(BODY, response.raw.read())
            self.assertEqual(list(headers.values()), self.exporter.headers[-2:])
            for name, value in (
                ('Content-Type', TEXT),
                ('Content-Encoding', 'br'),
                ('Content-Length', str(len(BODY))),
                ('Vary', 'Accept, Accept-Encoding'),
            ):
                self.assertEqual(value, response.headers[name])

    @ddt.data('/', '/metrics', '/nowhere')
    def test_head(self, path):
        heads = []
        for method in ('GET', 'HEAD'):
            with self.connected() as connection:
                connection.sendall(f'{method} {path} HTTP/1.1\r\n\r\n'.encode())
                head, separator, body = read_all(connection).partition(b'\r\n\r\n')
            heads.append([line for line in head.split(b'\r\n') if b'Date:' not in line])
            self.assertEqual((b'\r\n\r\n', method == 'GET'), (separator, bool(body)))
        self.assertEqual(heads[0], heads[1])

    def test_the_index_refers_to_the_metrics(self):
        response = self.send(path='/')
        self.assertEqual(200, response.status_code)
        self.assertIn('<a href="/metrics">', response.text)

    @ddt.data('/metrics/', '/Metrics', '/metrics%20', '/favicon.ico', '/a/metrics')
    def test_unknown_paths(self, path):
        response = self.send(path=path)
        self.assertEqual(
            (404, 'The metrics are at /metrics.\n'), (response.status_code, response.text)
        )

    @ddt.data('POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'TRACE')
    def test_other_methods(self, method):
        response = self.send(method)
        self.assertEqual((405, 'GET, HEAD'), (response.status_code, response.headers['Allow']))
        self.assertEqual([], self.exporter.seconds)

    @ddt.data(
        (b'GARBAGE\r\n\r\n', b'400'),
        (b'\x16\x03\x01\x02\x00\x01\r\n\r\n', b'400'),
        (b'BREW /metrics HTTP/1.1\r\n\r\n', b'501'),
        (b'GET /metrics HTTP/2.0\r\n\r\n', b'505'),
        (b'GET /' + b'a' * 70_000 + b' HTTP/1.1\r\n\r\n', b'414'),
        (b'GET / HTTP/1.1\r\nA: ' + b'a' * 70_000 + b'\r\n\r\n', b'431'),
    )
    @ddt.unpack
    def test_malformed_requests(self, request, status):
        with self.connected() as connection:
            connection.sendall(request)
            self.assertIn(status, read_all(connection))
        self.assertEqual('', self.log.output)
        self.assertEqual(200, self.send().status_code)

    @ddt.data(
        (None, server.WAIT_SECONDS),
        ('10', 8.0),
        ('0.5', 0.4),
        ('100000', server.WAIT_SECONDS),
        ('inf', server.WAIT_SECONDS),
        ('nan', server.WAIT_SECONDS),
        ('-1', server.WAIT_SECONDS),
        ('0', server.WAIT_SECONDS),
        ('soon', server.WAIT_SECONDS),
        ('', server.WAIT_SECONDS),
    )
    @ddt.unpack
    def test_the_wait_is_shorter_than_the_time_limit_of_prometheus(self, timeout, seconds):
        self.send(**({} if timeout is None else {server.SCRAPE_TIMEOUT: timeout}))
        self.assertEqual([seconds], self.exporter.seconds)

    def test_a_defect_is_logged_and_closes_only_its_connection(self):
        self.exporter.error = ValueError('defect')
        self.assertRaises(requests.ConnectionError, self.send)
        self.assertIn('ValueError: defect', self.log.output)
        self.exporter.error = None
        self.assertEqual(200, self.send().status_code)

    def test_idle_connections_do_not_delay_a_request(self):
        self.useFixture(fixtures.MockPatchObject(server, 'REQUEST_SECONDS', 10 * LONG))
        with contextlib.ExitStack() as stack:
            idle = [stack.enter_context(self.connected()) for _ in range(200)]
            self.assertEqual(200, self.send().status_code)
            for connection in idle:
                connection.setblocking(False)
                # The server has not closed it.
                self.assertRaises(BlockingIOError, connection.recv, 1)


class SlowClientTest(ServerTestCase):
    def setUp(self):
        for name, value in (
            ('REQUEST_SECONDS', 0.5),
            ('RESPONSE_SECONDS', 0.5),
            ('CONNECTIONS', 2),
        ):
            self.useFixture(fixtures.MockPatchObject(server, name, value))
        super().setUp()

    def test_a_client_that_sends_nothing_is_disconnected(self):
        with self.connected() as connection:
            self.assertEqual(b'', connection.recv(1))

    def test_a_client_that_sends_one_byte_after_the_other_is_disconnected(self):
        stop = threading.Event()

        def trickle(connection: socket.socket) -> None:
            with contextlib.suppress(OSError):
                connection.sendall(b'GET /metrics HTTP/1.1\r\nA: ')
                while not stop.wait(0.05):
                    connection.sendall(b'a')

        with self.connected() as connection:
            thread = threading.Thread(target=trickle, args=(connection,))
            thread.start()
            with contextlib.suppress(ConnectionResetError):
                self.assertEqual(b'', connection.recv(1))
            stop.set()
            thread.join()

    def test_a_client_that_does_not_receive_is_disconnected(self):
        self.useFixture(fixtures.MockPatchObject(server, 'REQUEST_SECONDS', 10 * LONG))
        self.exporter.body = body = b'a' * 50_000_000
        with self.connected() as first, self.connected() as second:
            for connection in (first, second):
                connection.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
            # All threads are in use until the time limit.
            self.assertEqual(200, self.send('HEAD').status_code)
            for connection in (first, second):
                self.assertLess(len(read_all(connection)), len(body))
        self.assertEqual('', self.log.output)

    def test_clients_that_disconnect_are_not_logged(self):
        self.exporter.proceed.clear()
        with self.connected() as connection:
            connection.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
            self.exporter.entered.acquire()
        self.exporter.proceed.set()
        self.assertEqual(200, self.send().status_code)
        self.assertEqual('', self.log.output)

    def test_further_connections_wait_for_a_free_thread(self):
        self.exporter.proceed.clear()
        with contextlib.ExitStack() as stack:
            connections = [stack.enter_context(self.connected()) for _ in range(5)]
            for connection in connections:
                connection.sendall(b'GET /metrics HTTP/1.1\r\n\r\n')
            for _ in range(server.CONNECTIONS):
                self.exporter.entered.acquire()
            self.assertFalse(self.exporter.entered.acquire(timeout=0.2))
            self.exporter.proceed.set()
            for connection in connections:
                self.assertIn(b'placement_providers 7.0', read_all(connection))


@ddt.ddt
class AddressTest(ServerTestCase):
    def test_an_address_in_use(self):
        error = self.assertRaises(CannotProceedError, self.listen, f'127.0.0.1:{self.port}')
        self.assertEqual(
            f'Cannot listen on 127.0.0.1:{self.port}: Address already in use.', str(error)
        )

    @ddt.data('192.0.2.1:9180', 'placement.invalid:9180', f'{"a" * 64}.org:9180', 'a..b:9180')
    def test_an_address_that_cannot_be_used(self, address):
        error = self.assertRaises(CannotProceedError, self.listen, address)
        self.assertRegex(str(error), rf'^Cannot listen on {address}: [^:]+\.$')

    def test_ipv6(self):
        if not has_ipv6():
            self.skipTest('the system has no IPv6')
        created = self.listen('[::1]:0')
        self.assertEqual(f'http://[::1]:{created.server_address[1]}/metrics', created.url)
        thread = threading.Thread(target=created.handle_request)
        thread.start()
        self.assertEqual(200, requests.get(created.url, timeout=LONG).status_code)
        thread.join()


def read_all(connection: socket.socket) -> bytes:
    """Return what the server sends until it closes the connection."""
    return b''.join(iter(lambda: connection.recv(65536), b''))


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(('::1', 0))
    except OSError:
        return False
    return True
