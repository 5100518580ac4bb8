"""The log escapes control characters of requests, so that a terminal does not execute them."""

import contextlib
import socket

from placement.tests.functional.web import base, commands
from placement.tests.waiting import LONGEST

# uWSGI passes control characters on, both in the request line and in headers.
REQUEST = (
    b'GET /traits?name=in:\x1b[31m\x9b"A" HTTP/1.1\r\n'
    b'Host: placement\r\n'
    b'X-Auth-Token: admin\x1b]0;title\x07\r\n'
    b'OpenStack-API-Version: placement 1.6\r\n'
    b'\r\n'
)


class LogTest(base.TestCase):
    def test_control_characters_are_escaped(self) -> None:
        self.serve(commands.uwsgi)
        connection = socket.create_connection(('127.0.0.1', self.worker.port), timeout=LONGEST)
        with contextlib.closing(connection):
            connection.sendall(REQUEST)
            response = connection.makefile('rb').read()
        self.assertIn(b'403 Forbidden', response)  # the token is not admin

        log = (self.folder / 'server.log').read_bytes()
        (line,) = (line for line in log.splitlines() if b'"GET /traits' in line)
        self.assertIn(b'"GET /traits?name=in:%1B[31m%9B%22A%22" status: 403', line)
        self.assertIn(rb'admin\u001b]0;title\u0007', line)
        self.assertNotRegex(log, rb'[\x00-\x08\x0b-\x1f\x7f]')
