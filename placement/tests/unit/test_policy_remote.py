"""Rules with a policy server (`http:` and `https:`), and a real server on loopback."""

from http import server
import logging
import pathlib
import shutil
import socket
import ssl
import subprocess
import threading
from typing import Any

import fixtures
from oslo_context import context

from placement import exception, policy
from placement.tests.unit import test_policy

USAGES = 'placement:usages'
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
        self.log = self.useFixture(fixtures.FakeLogger('placement.policy_remote', logging.INFO))

    def use(self, rule: str, **options: Any) -> None:
        self.policy_file.write_text(f'"{USAGES}": "{rule}"\n')
        policy.reset()
        policy.init(self.configure(policy_dirs=[], **options))

    def permits(self, **target: Any) -> bool:
        caller = context.RequestContext(user_id='user', project_id='project', roles=['admin'])
        return policy.authorize(caller, USAGES, target, do_raise=False)


class QuotingTest(ServersTestCase):
    def setUp(self):
        super().setUp()
        self.server = self.useFixture(PolicyServer())
        self.use(f'http://{self.server.address}/projects/%(project_id)s')

    def test_a_plain_value(self):
        self.assertTrue(self.permits(project_id='allowed'))
        self.assertFalse(self.permits(project_id='another'))
        self.assertEqual([ALLOWED, '/projects/another'], self.server.paths)

    def test_a_value_cannot_change_the_path(self):
        values = (
            '../../allow-all#',
            '../allow-all?',
            '/../../allow-all',
            'a b',
            '%2e%2e',
            'ü\ud800',
        )
        for value in values:
            self.assertFalse(self.permits(project_id=value), value)
        self.assertEqual('/projects/..%2F..%2Fallow-all%23', self.server.paths[0])
        self.assertEqual(len(values), len(self.server.paths))
        for path in self.server.paths:
            self.assertRegex(path, r'^/projects/[^/?#]+$')

    def test_values_that_would_remove_a_segment_are_denied_without_a_request(self):
        for value in ('', '.', '..', '...'):
            self.assertFalse(self.permits(project_id=value), value)
        self.assertEqual([], self.server.paths)

    def test_a_missing_value_is_denied(self):
        self.assertFalse(self.permits())
        self.assertEqual([], self.server.paths)

    def test_servers_in_parts_of_an_expression(self):
        url = f'http://{self.server.address}/projects/%(project_id)s'
        for rule in (
            f'role:nobody or {url}',
            f'role:admin and {url}',
            f'not {url}',
            f'rule:remote"\n"remote": "{url}',
        ):
            self.use(rule)
            self.assertEqual(rule.startswith('not'), self.permits(project_id='../../allow-all#'))


class UnavailableTest(ServersTestCase):
    def setUp(self):
        super().setUp()
        listener = socket.socket()
        self.addCleanup(listener.close)
        listener.bind(('127.0.0.1', 0))  # It does not listen, so connections are refused.
        self.address = f'127.0.0.1:{listener.getsockname()[1]}'

    def test_the_exception_and_the_log(self):
        self.use(f'http://user:secret@{self.address}/%(project_id)s?key=hidden')
        self.assertRaises(
            exception.PolicyServerUnavailable, self.permits, project_id='confidential'
        )
        self.assertIn(f'The policy server http://{self.address} is unavailable', self.log.output)
        for part in ('secret', 'hidden', 'user:', 'confidential'):
            self.assertNotIn(part, self.log.output)

    def test_negation_does_not_permit(self):
        self.use(f'not http://{self.address}/')
        self.assertRaises(exception.PolicyServerUnavailable, self.permits)

    def test_a_server_without_a_response(self):
        listener = socket.create_server(('127.0.0.1', 0))
        self.addCleanup(listener.close)
        self.use(f'http://127.0.0.1:{listener.getsockname()[1]}/', remote_timeout=0.2)
        self.assertRaises(exception.PolicyServerUnavailable, self.permits)

    def test_a_missing_client_certificate(self):
        self.use(f'https://{self.address}/', remote_ssl_client_crt_file='/does/not/exist')
        self.assertRaises(exception.PolicyServerUnavailable, self.permits)

    def test_invalid_addresses(self):
        for address in ('[half', ''):
            self.use(f'http://{address}/')
            self.assertRaises(exception.PolicyServerUnavailable, self.permits)

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
                self.assertRaises(exception.PolicyServerUnavailable, self.permits)
            server.headers.clear()
        self.assertTrue(self.permits())


class CertificatesTest(ServersTestCase):
    def setUp(self):
        super().setUp()
        if not shutil.which('openssl'):
            self.skipTest('openssl is not installed')
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.right, self.wrong = self.certificate('right'), self.certificate('wrong')
        tls.load_cert_chain(self.right, self.right.with_suffix('.key'))
        self.server = self.useFixture(PolicyServer(tls))
        self.rule = f'https://{self.server.address}{ALLOWED}'

    def certificate(self, name: str) -> pathlib.Path:
        path = self.directory / f'{name}.crt'
        subprocess.run(
            (
                *('openssl', 'req', '-x509', '-nodes', '-days', '2', '-subj', f'/CN={name}'),
                *('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1'),
                *('-addext', 'subjectAltName=IP:127.0.0.1'),
                *('-out', path, '-keyout', path.with_suffix('.key')),
            ),
            check=True,
            capture_output=True,
        )
        return path

    def test_any_certificate_is_accepted_by_default(self):
        self.use(self.rule)
        self.assertTrue(self.permits())

    def test_only_the_right_certificate_is_accepted_if_it_is_verified(self):
        for file, accepted in ((self.right, True), (self.wrong, False)):
            self.use(self.rule, remote_ssl_verify_server_crt=True, remote_ssl_ca_crt_file=str(file))
            if accepted:
                self.assertTrue(self.permits())
            else:
                self.assertRaises(exception.PolicyServerUnavailable, self.permits)
        self.assertEqual([ALLOWED], self.server.paths)
        self.assertIn('CERTIFICATE_VERIFY_FAILED', self.log.output)
