"""Clients that send requests to a server until the test stops them."""

from collections import Counter
from collections.abc import Iterator, Sequence
import http.client
import json
from pathlib import Path
import ssl
import threading
from typing import Any
import uuid

from placement.tests.functional.faults import machines
from placement.tests.functional.web.base import HEADERS, PROVIDER
from placement.tests.waiting import LONGEST, wait_until


class Client:
    """Sends requests to a server with TLS, on one connection as long as the server keeps it open.

    :param prefix: the path prefix of Placement
    :param certificate: the certificate of the server, which the client verifies
    :param source: the address of the client
    """

    def __init__(
        self, server: machines.Worker, prefix: str, certificate: Path, source: str = '127.0.0.1'
    ) -> None:
        self._connection = http.client.HTTPSConnection(
            '127.0.0.1',
            server.port,
            timeout=LONGEST,
            source_address=(source, 0),
            context=ssl.create_default_context(cafile=str(certificate)),
        )
        self._prefix = prefix

    def send(
        self, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request and return the status, the headers, and the body of the response."""
        data = None if body is None else json.dumps(body).encode()
        return self.post(path, HEADERS | (headers or {}), data, method)

    def post(
        self,
        path: str,
        headers: dict[str, str],
        body: bytes | Iterator[bytes] | None,
        method: str = 'POST',
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        """Send a request with only these headers, and return what `send` returns.

        :param body: the body, or its chunks
        """
        self._connection.request(method, self._prefix + path, body, headers)
        response = self._connection.getresponse()
        return response.status, response.headers, response.read()

    def open(self, path: str) -> http.client.HTTPResponse:
        """Send a GET request, and return the response before its body is read."""
        self._connection.request('GET', self._prefix + path, headers=HEADERS)
        return self._connection.getresponse()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


def create_provider(client: Client) -> None:
    """Create the provider that the clients read and claim from."""
    client.send('POST', '/resource_providers', {'name': 'one', 'uuid': PROVIDER})
    client.send(
        'PUT',
        f'/resource_providers/{PROVIDER}/inventories',
        {'resource_provider_generation': 0, 'inventories': {'VCPU': {'total': 1000}}},
    )


class Load:
    """Threads that read, claim, and release; each thread uses a client of its own.

    `results` counts the status of each response, and each exception.
    """

    def __init__(self, clients: Sequence[Client]) -> None:
        self.results: Counter[str] = Counter()
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._threads = [
            threading.Thread(target=self._run, args=(client,), daemon=True) for client in clients
        ]

    def __enter__(self) -> 'Load':
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join(LONGEST)

    def wait_for_more(self) -> None:
        """Wait until a number of further requests has a response."""
        goal = self.results.total() + 40
        wait_until(lambda: self.results.total() >= goal)

    def _run(self, client: Client) -> None:
        consumer = str(uuid.uuid4())
        claim = {
            'allocations': {PROVIDER: {'resources': {'VCPU': 1}}},
            'project_id': 'project',
            'user_id': 'user',
            'consumer_generation': None,
            'consumer_type': 'INSTANCE',
        }
        while not self._stop.is_set():
            self._count(client, 'GET', f'/resource_providers/{PROVIDER}/usages')
            self._count(client, 'PUT', f'/allocations/{consumer}', claim)
            self._count(client, 'DELETE', f'/allocations/{consumer}')
            # The servers that start meanwhile need the processor, too.
            self._stop.wait(0.1)

    def _count(self, client: Client, method: str, path: str, body: Any = None) -> None:
        try:
            status, _, content = client.send(method, path, body)
            result = f'{method} {status}' if status < 400 else f'{method} {status} {content!r}'
        except (OSError, http.client.HTTPException) as error:
            client.close()
            result = f'{method} {error!r}'
        with self._lock:
            self.results[result] += 1


def succeeded(results: Counter[str]) -> bool:
    """Return whether clients read, claimed, and released, and every request succeeded."""
    return set(results) == {'GET 200', 'PUT 204', 'DELETE 204'}
