"""Concurrent clients that send claims, and a comparison of their responses with the database."""

from collections import Counter
from collections.abc import Callable, Iterator
from concurrent import futures
import contextlib
import http.client
import json
import threading
import time
from typing import Any
import uuid

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.tests.waiting import LONGEST, wait_until

# The status of a request without a response.
NO_RESPONSE = 0


class Storm:
    """Sends claims of one VCPU each, with a new consumer for each claim.

    :param send_claim: sends the claim of a consumer and returns the status; it is called with the
        number of the client by many threads
    :param clients: the number of threads
    """

    def __init__(self, send_claim: Callable[[int, str], int], clients: int = 8):
        self._send_claim = send_claim
        self._clients = clients
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.consumers: dict[str, int] = {}  # the status of each claim
        self.statuses: Counter[int] = Counter()

    @contextlib.contextmanager
    def running(self) -> Iterator['Storm']:
        """Send claims for the duration of the context."""
        with futures.ThreadPoolExecutor(self._clients) as pool:
            threads = [pool.submit(self._client, number) for number in range(self._clients)]
            try:
                yield self
            finally:
                self._over.set()
        for thread in threads:
            thread.result()

    def wait_for(self, status: int, more: int) -> None:
        """Wait until the number of responses with a status has increased by `more`."""
        expected = self.statuses[status] + more
        failure = f'fewer than {more} further responses {status}'
        wait_until(lambda: self.statuses[status] >= expected, failure)

    def _client(self, number: int) -> None:
        while not self._over.is_set():
            consumer = str(uuid.uuid4())
            status = self._send_claim(number, consumer)
            with self._lock:
                self.consumers[consumer] = status
                self.statuses[status] += 1
            if status != 204:
                time.sleep(0.02)

    def compare(self, engine: sa.Engine) -> tuple[set[str], set[str]]:
        """Compare the responses with the database.

        :returns: the consumers without allocations although their response was 204; the consumers
            with allocations although their response was an error (except 503 and a missing
            response, after which allocations may exist)
        """
        with engine.connect() as conn:
            stored = set(conn.scalars(sa.select(models.allocations.c.consumer_id)))
        granted = {uuid for uuid, status in self.consumers.items() if status == 204}
        unknown = {uuid for uuid, status in self.consumers.items() if status in (503, NO_RESPONSE)}
        return granted - stored, stored - granted - unknown


def send(port: int, method: str, path: str, body: Any = None) -> int:
    """Send a request over a new connection and return the status, or NO_RESPONSE."""
    return exchange(port, method, path, body)[0]


def exchange(port: int, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    """Like `send`; also return the body of the response."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=LONGEST)
    headers = {
        'X-Auth-Token': 'admin',
        'OpenStack-API-Version': 'placement latest',
        'Content-Type': 'application/json',
        'Connection': 'close',
    }
    try:
        connection.request(method, path, json.dumps(body), headers)
        response = connection.getresponse()
        content = response.read()
    except (OSError, http.client.HTTPException):
        return NO_RESPONSE, b''
    else:
        return response.status, content
    finally:
        connection.close()
