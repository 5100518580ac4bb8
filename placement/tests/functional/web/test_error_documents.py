"""Web servers transmit every error document completely.

Errors differ from successful responses: the application may not read the whole body, may start the
response late, or may raise an exception. Web servers handle these cases differently.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
from dataclasses import dataclass, field
import http.client
import json
import sqlite3

from placement.tests.functional.web import base, commands
from placement.tests.waiting import LONGEST

LIMIT = 1024 * 1024
ADMIN = {'X-Auth-Token': 'admin', 'X-Roles': 'admin,service'}
JSON = {'Content-Type': 'application/json'}
LATEST = {'OpenStack-API-Version': 'placement latest'}
PROVIDER = b'{"name": "one"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A request that fails with a status."""

    status: int
    method: str
    path: str = '/resource_providers'
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Callable[[], Iterator[bytes]] | None = None


def chunks() -> Iterator[bytes]:
    """Generate a body of twice the limit without a Content-Length header."""
    for _ in range(32):
        yield b'[' * (LIMIT // 16)


CURRENT = ADMIN | LATEST
CASES = (
    Case(status=400, method='POST', headers=CURRENT | JSON, body=b'{'),
    Case(status=401, method='GET'),
    Case(status=401, method='POST', headers=JSON, body=b'[' * LIMIT),
    Case(status=403, method='GET', headers={'X-Auth-Token': 'user'} | LATEST),
    Case(status=404, method='GET', path='/nowhere', headers=CURRENT),
    Case(status=405, method='PATCH', headers=CURRENT),
    Case(status=406, method='GET', headers=ADMIN | {'OpenStack-API-Version': 'placement 9.9'}),
    Case(status=409, method='POST', headers=CURRENT | JSON, body=PROVIDER),
    Case(status=413, method='POST', headers=CURRENT | JSON, body=b'[' * (LIMIT + 1)),
    Case(status=413, method='POST', headers=JSON, body=b'[' * (8 * LIMIT)),
    Case(status=415, method='POST', headers=ADMIN | {'Content-Type': 'text/plain'}, body=b'{}'),
    Case(status=415, method='POST', headers=ADMIN | {'Content-Type': 'a/b'}, body=b'[' * LIMIT),
)
CHUNKED = Case(status=413, method='POST', headers=CURRENT | JSON, body=chunks)
INTERNAL = Case(status=500, method='GET', path='/traits', headers=CURRENT)
UNAVAILABLE = Case(status=503, method='PUT', path='/traits/CUSTOM_ONE', headers=CURRENT)


class ErrorDocumentsTest(base.TestCase):
    def serve(self, command: Callable[[int], Sequence[str]]) -> None:
        """Start a server and create a provider."""
        super().serve(command)
        created = self.send(Case(status=200, method='POST', headers=CURRENT | JSON, body=PROVIDER))
        self.assertEqual(200, created[0], created)

    def send(self, case: Case) -> tuple[int, dict[str, str], bytes]:
        """Send a request on a new connection; an incomplete body raises an exception."""
        connection = http.client.HTTPConnection('127.0.0.1', self.worker.port, timeout=LONGEST)
        with contextlib.closing(connection):
            body = case.body() if callable(case.body) else case.body
            connection.request(case.method, case.path, body, case.headers)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return response.status, headers, response.read()

    def problem(self, case: Case) -> str | None:
        """Describe what is wrong with the response to a request, None if it is correct."""
        problem = self._problem(case)
        return problem and f'{case.status}: {problem}'

    def _problem(self, case: Case) -> str | None:
        try:
            status, headers, body = self.send(case)
        except (OSError, http.client.HTTPException) as error:
            return repr(error)
        if status != case.status:
            return f'{status} {body[:200]!r}'
        if headers.get('content-length') != str(len(body)):
            return f'Content-Length is {headers.get("content-length")}, received {len(body)}'
        if headers.get('content-type') != 'application/json':
            return f'the media type is {headers.get("content-type")}'
        document = json.loads(body)
        if status == 401:
            return None if document['code'] == '401 Unauthorized' else repr(document)
        (error,) = document['errors']
        complete = error['status'] == status and error['title'] and error['detail']
        return None if complete else repr(error)

    def check(self, *cases: Case) -> None:
        """Check these errors, a failure of the service, and a locked database."""
        problems = [self.problem(case) for case in cases]
        with self.without_traits():
            problems.append(self.problem(INTERNAL))
        with self.locked():
            problems.append(self.problem(UNAVAILABLE))
        self.assertEqual([], [problem for problem in problems if problem])

    @contextlib.contextmanager
    def without_traits(self) -> Iterator[None]:
        """Rename the table of the traits, so that statements of the service fail."""
        with contextlib.closing(sqlite3.connect(self.database)) as conn:
            conn.execute('ALTER TABLE traits RENAME TO lost')
            yield
            conn.execute('ALTER TABLE lost RENAME TO traits')

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Lock the database from another connection."""
        with contextlib.closing(sqlite3.connect(self.database)) as conn:
            conn.execute('BEGIN IMMEDIATE')
            yield
            conn.rollback()

    def test_errors_with_waitress(self) -> None:
        self.serve(commands.waitress)
        self.check(*CASES, CHUNKED)

    def test_errors_with_uwsgi(self) -> None:
        # uWSGI closes the connection of a client that has not sent all chunks.
        self.serve(commands.uwsgi)
        self.check(*CASES)

    def test_errors_with_apache_and_mod_wsgi(self) -> None:
        self.serve(lambda port: commands.apache(port, self.folder))
        self.check(*CASES, CHUNKED)
