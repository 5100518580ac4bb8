"""Every error document arrives whole through real web servers.

An error is not like a success: a body is left unread, a response starts late, a handler fails.
Servers differ in what they make of that.
"""

from collections.abc import Callable, Iterator, Sequence
import contextlib
from dataclasses import dataclass, field
import http.client
import json
import sqlite3

from placement.tests.functional.web import base, commands

LIMIT = 1024 * 1024
ADMIN = {'X-Auth-Token': 'admin', 'X-Roles': 'admin,service'}
JSON = {'Content-Type': 'application/json'}
LATEST = {'OpenStack-API-Version': 'placement 1.39'}
PROVIDER = b'{"name": "one"}'


@dataclass(frozen=True, slots=True)
class Case:
    """A request that ends in an error."""

    status: int
    method: str
    path: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | Callable[[], Iterator[bytes]] | None = None


def chunks() -> Iterator[bytes]:
    """A body that is twice as large as the limit, without telling so in advance."""
    for _ in range(32):
        yield b'[' * (LIMIT // 16)


CASES = (
    Case(400, 'POST', '/resource_providers', ADMIN | LATEST | JSON, b'{'),
    Case(401, 'GET', '/resource_providers'),
    Case(401, 'POST', '/resource_providers', JSON, b'[' * LIMIT),
    Case(403, 'GET', '/resource_providers', {'X-Auth-Token': 'user'} | LATEST),
    Case(404, 'GET', '/nowhere', ADMIN | LATEST),
    Case(405, 'PATCH', '/resource_providers', ADMIN | LATEST),
    Case(406, 'GET', '/resource_providers', ADMIN | {'OpenStack-API-Version': 'placement 9.9'}),
    Case(409, 'POST', '/resource_providers', ADMIN | LATEST | JSON, PROVIDER),
    Case(413, 'POST', '/resource_providers', ADMIN | LATEST | JSON, b'[' * (LIMIT + 1)),
    Case(413, 'POST', '/resource_providers', JSON, b'[' * (8 * LIMIT)),
    Case(415, 'POST', '/resource_providers', ADMIN | {'Content-Type': 'text/plain'}, b'{}'),
    Case(415, 'POST', '/resource_providers', ADMIN | {'Content-Type': 'a/b'}, b'[' * LIMIT),
)
CHUNKED = Case(413, 'POST', '/resource_providers', ADMIN | LATEST | JSON, chunks)
INTERNAL = Case(500, 'GET', '/traits', ADMIN | LATEST)
UNAVAILABLE = Case(503, 'PUT', '/traits/CUSTOM_ONE', ADMIN | LATEST)


class ErrorDocumentsTest(base.TestCase):
    def serve(self, command: Callable[[int], Sequence[str]]) -> None:
        """Start a server and create a provider."""
        super().serve(command)
        created = self.send(
            Case(200, 'POST', '/resource_providers', ADMIN | LATEST | JSON, PROVIDER)
        )
        self.assertEqual(200, created[0], created)

    def send(self, case: Case) -> tuple[int, dict[str, str], bytes]:
        """Send a request on a connection of its own; a body that is cut short raises."""
        connection = http.client.HTTPConnection('127.0.0.1', self.worker.port, timeout=60)
        with contextlib.closing(connection):
            body = case.body() if callable(case.body) else case.body
            connection.request(case.method, case.path, body, case.headers)
            response = connection.getresponse()
            headers = {name.lower(): value for name, value in response.getheaders()}
            return response.status, headers, response.read()

    def problem(self, case: Case) -> str | None:
        """What is wrong with the response to a request, after the status that is due."""
        found = self._problem(case)
        return found and f'{case.status}: {found}'

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
        """Provoke these errors, a failure of the service, and a locked database."""
        problems = [self.problem(case) for case in cases]
        with self.without_traits():
            problems.append(self.problem(INTERNAL))
        with self.locked():
            problems.append(self.problem(UNAVAILABLE))
        self.assertEqual([], [problem for problem in problems if problem])

    @contextlib.contextmanager
    def without_traits(self) -> Iterator[None]:
        """A database that is damaged: the statements of the service fail."""
        with contextlib.closing(sqlite3.connect(self.database)) as conn:
            conn.execute('ALTER TABLE traits RENAME TO lost')
            yield
            conn.execute('ALTER TABLE lost RENAME TO traits')

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """A database that another program has locked."""
        with contextlib.closing(sqlite3.connect(self.database)) as conn:
            conn.execute('BEGIN IMMEDIATE')
            yield
            conn.rollback()

    def test_waitress(self) -> None:
        self.serve(commands.waitress)
        self.check(*CASES, CHUNKED)

    def test_uwsgi(self) -> None:
        # It hands chunked bodies to applications that call its own API only.
        self.serve(commands.uwsgi)
        self.check(*CASES)

    def test_apache_with_mod_wsgi(self) -> None:
        self.serve(lambda port: commands.apache(port, self.folder))
        self.check(*CASES, CHUNKED)
