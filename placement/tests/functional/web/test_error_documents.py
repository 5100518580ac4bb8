"""Web servers transmit every error document completely.

Errors differ from successful responses: the application may not read the whole body, may start the
response late, or may raise an exception. Web servers handle these cases differently.
"""

from collections.abc import Iterator
import contextlib
import http.client
import json
import sqlite3
from typing import Any

from placement.tests.functional.web import base, commands
from placement.tests.waiting import LONGEST

LIMIT = 1024 * 1024
ADMIN = {'X-Auth-Token': 'admin', 'X-Roles': 'admin,service'}
JSON = {'Content-Type': 'application/json'}
LATEST = {'OpenStack-API-Version': 'placement latest'}
PROVIDER = b'{"name": "one"}'


def chunks() -> Iterator[bytes]:
    """Generate a body of twice the limit without a Content-Length header."""
    for _ in range(32):
        yield b'[' * (LIMIT // 16)


CURRENT = ADMIN | LATEST
POST = CURRENT | JSON
# The status, the method, the headers, and the body, or a function that generates it.
CASES = (
    (400, 'POST', POST, b'{'),
    (401, 'GET', {}, None),
    (401, 'POST', JSON, b'[' * LIMIT),
    (403, 'GET', {'X-Auth-Token': 'user'} | LATEST, None),
    (405, 'PATCH', CURRENT, None),
    (406, 'GET', ADMIN | {'OpenStack-API-Version': 'placement 9.9'}, None),
    (409, 'POST', POST, PROVIDER),
    (413, 'POST', POST, b'[' * (LIMIT + 1)),
    (413, 'POST', JSON, b'[' * (8 * LIMIT)),
    (415, 'POST', ADMIN | {'Content-Type': 'text/plain'}, b'{}'),
    (415, 'POST', ADMIN | {'Content-Type': 'a/b'}, b'[' * LIMIT),
)
CHUNKED = (413, 'POST', POST, chunks)


class ErrorDocumentsTest(base.TestCase):
    def send(
        self, method: str, headers: dict[str, str], body: Any
    ) -> tuple[int, dict[str, str], bytes]:
        """Send a request on a new connection; an incomplete body raises an exception."""
        connection = http.client.HTTPConnection('127.0.0.1', self.worker.port, timeout=LONGEST)
        with contextlib.closing(connection):
            body = body() if callable(body) else body
            connection.request(method, '/resource_providers', body, headers)
            response = connection.getresponse()
            found = {name.lower(): value for name, value in response.getheaders()}
            return response.status, found, response.read()

    def check_error(self, expected: int, *request: Any) -> None:
        """Send a request that fails, and check its response."""
        status, headers, body = self.send(*request)
        self.assertEqual(expected, status, body)
        length = str(len(body))
        self.assertEqual(length, headers.get('content-length'))
        self.assertEqual('application/json', headers.get('content-type'))
        document = json.loads(body)
        if status == 401:
            self.assertEqual('401 Unauthorized', document['code'])
        else:
            (error,) = document['errors']
            self.assertEqual(status, error['status'])
            self.assertTrue(error['title'] and error['detail'])

    def check(self, *cases: tuple[int, str, dict[str, str], Any]) -> None:
        """Check these errors, and a failure of the service."""
        self.assertEqual(200, self.send('POST', POST, PROVIDER)[0])
        for case in cases:
            with self.subTest(case[0], method=case[1]):
                self.check_error(*case)
        with contextlib.closing(sqlite3.connect(self.database)) as conn:
            conn.execute('DROP TABLE resource_providers')
        self.check_error(500, 'GET', CURRENT, None)

    def test_errors_with_waitress(self) -> None:
        self.serve(commands.waitress)
        self.check(*CASES, CHUNKED)

    def test_errors_with_uwsgi(self) -> None:
        # uWSGI closes the connection of a client that has not sent all chunks.
        self.serve(commands.uwsgi)
        self.check(*CASES)

    def test_errors_with_apache_and_mod_wsgi(self) -> None:
        self.serve(lambda port: commands.mod_wsgi(port, self.folder))
        self.check(*CASES, CHUNKED)
