"""Long request lines, bodies in chunks, and clients that read slowly, with the files in etc/."""

from collections.abc import Iterable, Iterator, Mapping
from concurrent import futures
import contextlib
import http.client
import json
import time

import requests
import sqlalchemy as sa

from placement.tests import where, worlds
from placement.tests.functional.deployment import base, load
from placement.tests.functional.faults import machines
from placement.tests.waiting import LONGEST
from placement.tests.worlds import rows

# The longest request line that web servers in front of uWSGI pass on, and longer ones, in bytes.
LONGEST_LINE = 30_000
TOO_LONG = (32_700, 45_000, 65_000, 65_600, 100_000)
LONGEST_OF_MOD_WSGI = 65_535
ATTEMPTS = 20
HEADERS = {'X-Long': 'y' * 4_000}

# The list of these providers, 20 MB, exceeds the buffers between uWSGI and a client.
PROVIDERS = 20_000
# Longer than the default of `socket-timeout`, 4 seconds.
PAUSE = 9


def query(length: int, prefix: str = '') -> str:
    """Return a path with a query for a name that no provider has.

    :param length: the length of the request line of a GET request
    """
    path = '/resource_providers?name='
    return path + 'x' * (length - len(f'GET {prefix}{path} HTTP/1.1'))


def chunks(size: int) -> Iterator[bytes]:
    """Generate the document of a provider in several parts."""
    yield b'{"name": "'
    for _ in range(size // 1_000):
        yield b'x' * 1_000
    yield b'"}'


# The size of a name, and the end of the error if a provider has this name.
NAMES = {0: 'must not be empty', 1_000: 'is too long', 1_000_000: 'is too long'}


@where.at_night('The servers take minutes.')
class LimitsTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.uwsgi = self.started(self.stack().uwsgi())

    def new_client(self, server: machines.Worker) -> contextlib.closing[load.Client]:
        """Return a client without a connection, which the context closes."""
        prefix, certificate = self.servers.prefix, self.servers.certificate
        return contextlib.closing(load.Client(server, prefix, certificate))

    def test_uwsgi_discards_a_query_string(self) -> None:
        url = f'http://127.0.0.1:{self.uwsgi.port}{self.servers.prefix}'
        response = requests.get(
            url + query(45_000, self.servers.prefix), headers=load.HEADERS, timeout=LONGEST
        )
        (error,) = response.json()['errors']
        self.assertEqual((414, 'placement.undefined_code'), (error['status'], error['code']))
        self.assertIn('unable to add QUERY_STRING', (self.folder / 'uwsgi.log').read_text())

    def test_web_servers(self) -> None:
        servers = {
            'nginx': self.started(self.servers.nginx()),
            'Apache': self.started(self.servers.apache('uwsgi')),
            'HAProxy': self.started(self.servers.haproxy(self.uwsgi)),
        }
        self.haproxy().wait_until_up(1)
        wsgi = {'mod_wsgi': self.started(self.servers.apache('wsgi'))}
        self.create_providers()
        self.check_lines(servers, LONGEST_LINE, TOO_LONG)
        self.check_lines(wsgi, LONGEST_OF_MOD_WSGI, TOO_LONG[-2:])
        self.check_chunks(servers | wsgi)
        self.check_pauses(servers | wsgi)

    def check_lines(
        self, servers: Mapping[str, machines.Worker], longest: int, too_long: Iterable[int]
    ) -> None:
        """Check the limit of request lines. The client does not name the server in TLS."""
        for name, server in servers.items():
            self.assertEqual((200, 0), self.filtered(server, longest), name)
            statuses = [self.refusal(server, length) for length in too_long]
            self.assertEqual([414] * len(statuses), statuses, name)

    def refusal(self, server: machines.Worker, length: int) -> int | None:
        """Send a request line of a length, and return the status.

        A server can close the connection before the client has sent the whole line. The client
        then sends it again.
        """
        for _ in range(ATTEMPTS):
            with contextlib.suppress(OSError):
                return self.filtered(server, length)[0]
        return None

    def filtered(self, server: machines.Worker, length: int) -> tuple[int, int | None]:
        """Send a request line of a length and many headers.

        :returns: the status, and the number of providers in the response
        """
        with self.new_client(server) as client:
            path = query(length, self.servers.prefix)
            status, _, content = client.send('GET', path, headers=HEADERS)
        return status, len(json.loads(content)['resource_providers']) if status == 200 else None

    def check_chunks(self, servers: Mapping[str, machines.Worker]) -> None:
        """Check that Placement receives bodies in chunks."""
        for name, server in servers.items():
            for size, text in NAMES.items():
                with self.new_client(server) as client:
                    status, _, content = client.post(
                        '/resource_providers', load.HEADERS, chunks(size)
                    )
                self.assertEqual(400, status, (name, content))
                self.assertIn(text, json.loads(content)['errors'][0]['detail'], name)
            # The length of both headers together would be wrong.
            headers = load.HEADERS | {'Content-Length': '9', 'Transfer-Encoding': 'chunked'}
            with self.new_client(server) as client:
                status, *_ = client.post('/resource_providers', headers, b'2\r\n{}\r\n0\r\n\r\n')
            self.assertEqual(400, status, name)

    def check_pauses(self, servers: Mapping[str, machines.Worker]) -> None:
        """Check that a client receives all of a large response, although it pauses."""
        with futures.ThreadPoolExecutor(len(servers)) as threads:
            missing = dict(zip(servers, threads.map(self.read_late, servers.values()), strict=True))
        self.assertEqual(dict.fromkeys(servers, 0), missing)

    def read_late(self, server: machines.Worker) -> int:
        """Read a list of all providers after a pause; return the number of missing bytes."""
        with self.new_client(server) as client:
            response = client.open('/resource_providers')
            time.sleep(PAUSE)
            try:
                response.read()
            except http.client.IncompleteRead as error:
                return error.expected or 0
            return 0

    def create_providers(self) -> None:
        """Store the providers in the database."""
        world = worlds.World(tuple(worlds.Host(f'{one:0200}') for one in range(PROVIDERS)))
        engine = sa.create_engine(f'sqlite:///{self.folder}/placement.db', poolclass=sa.NullPool)
        rows.fill(engine, world)
