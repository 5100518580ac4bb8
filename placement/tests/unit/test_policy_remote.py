"""Rules with a policy server (`http:` and `https:`), and a real server on loopback."""

from http import server
import logging
import socket
import ssl
import threading
from typing import Any

import fixtures

from placement import exception
from placement.tests.unit import test_policy
from placement.tests.unit.test_policy import USAGES

ALLOWED = '/projects/allowed'


class PolicyServer(fixtures.Fixture):
    """Permits requests for the path `/projects/allowed` and for `/allow-all`.

    :param tls: the context of an HTTPS server
    :ivar headers: further headers of each response
    """

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self._tls = tls
        self.paths: list[str] = []
        self.headers: dict[str, str] = {}

    def _setUp(self) -> None:
        paths, headers = self.paths, self.headers

        class Handler(server.BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                paths.append(self.path)
                self.rfile.read(int(self.headers['Content-Length']))
                body = b'True' if self.path in (ALLOWED, '/allow-all') else b'False'
                self.send_response(302 if 'Location' in headers else 200)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header('Content-Length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                pass

        httpd = server.ThreadingHTTPServer(('127.0.0.1', 0), Handler)
        if self._tls:
            httpd.socket = self._tls.wrap_socket(httpd.socket, server_side=True)
        self.address = f'127.0.0.1:{httpd.server_address[1]}'
        thread = threading.Thread(target=httpd.serve_forever, args=(0.05,))
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(httpd.server_close)
        self.addCleanup(httpd.shutdown)


class ServersTestCase(test_policy.PolicyTestCase):
    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger('placement.policy', logging.INFO))

    def use(self, rule: str, **options: Any) -> None:
        self.policy_file.write_text(f'"{USAGES}": "{rule}"\n')
        self.restart(policy_dirs=[], **options)

    def permitted(self, **target: Any) -> bool:
        return self.permits(USAGES, target)


class QuotingTest(ServersTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.useFixture(PolicyServer())
        self.url = f'http://{self.server.address}/projects/%(project_id)s'
        self.use(self.url)

    def test_a_value_cannot_change_the_path(self):
        for value, path in (
            ('allowed', 'allowed'),
            ('another', 'another'),
            ('../../allow-all#', '..%2F..%2Fallow-all%23'),
            ('../allow-all?', '..%2Fallow-all%3F'),
            ('/../../allow-all', '%2F..%2F..%2Fallow-all'),
            ('a b', 'a%20b'),
            ('%2e%2e', '%252e%252e'),
            ('ü\ud800', '%C3%BC%ED%A0%80'),
        ):
            self.assertEqual(value == 'allowed', self.permitted(project_id=value), value)
            self.assertEqual(f'/projects/{path}', self.server.paths.pop())

    def test_values_without_a_path_segment_are_denied_without_a_request(self):
        for target in ({}, *({'project_id': value} for value in ('', '.', '..', '...'))):
            self.assertFalse(self.permitted(**target), target)
        self.assertEqual([], self.server.paths)

    def test_servers_in_parts_of_an_expression(self):
        for rule in (
            f'role:nobody or {self.url}',
            f'role:admin and {self.url}',
            f'not {self.url}',
            f'rule:remote"\n"remote": "{self.url}',
        ):
            self.use(rule)
            self.assertEqual(rule.startswith('not'), self.permitted(project_id='../../allow-all#'))


class UnavailableTest(ServersTestCase):
    def setUp(self):
        super().setUp()
        refusing, silent = socket.socket(), socket.create_server(('127.0.0.1', 0))
        refusing.bind(('127.0.0.1', 0))  # It does not listen, so connections are refused.
        self.refusing, self.silent = [
            f'127.0.0.1:{one.getsockname()[1]}' for one in (refusing, silent)
        ]
        self.addCleanup(refusing.close)
        self.addCleanup(silent.close)

    def assert_unavailable(self, **target: str) -> None:
        self.assertRaises(exception.PolicyServerUnavailable, self.permitted, **target)

    def test_the_log_contains_no_secret(self):
        self.use(f'http://user:secret@{self.refusing}/%(project_id)s?key=hidden')
        self.assert_unavailable(project_id='confidential')
        self.assertIn(f'The policy server of the rule {USAGES} is unavailable', self.log.output)
        for part in ('secret', 'hidden', 'user:', 'confidential'):
            self.assertNotIn(part, self.log.output)

    def test_reasons(self):
        for rule, options in (
            # The negation of no response permits nothing.
            (f'not http://{self.refusing}/', {}),
            (f'http://{self.silent}/', {'remote_timeout': 0.2}),
            (f'https://{self.refusing}/', {'remote_ssl_client_crt_file': '/does/not/exist'}),
            ('http://[half/', {}),
            ('http:///', {}),
        ):
            self.use(rule, **options)
            self.assert_unavailable()

    def test_responses_that_cannot_be_interpreted(self):
        server = self.useFixture(PolicyServer())
        self.use(f'http://{server.address}{ALLOWED}')
        for name, values in (
            ('Content-Type', [f'text/plain; charset={text}' for text in ('idna', 'a\0')]),
            ('Location', ['http://[', 'http://.a/', 'http://a..b/', '\xff', 'ftp://a/']),
            ('Content-Encoding', ['gzip']),
        ):
            for value in values:
                server.headers[name] = value
                self.assert_unavailable()
            server.headers.clear()
        self.assertTrue(self.permitted())
