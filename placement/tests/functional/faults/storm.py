"""Clients that go on claiming until they are told to stop, and an account of what they got."""

from collections import Counter
from collections.abc import Callable
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

# What an answer that never came counts as.
NONE = 0


class Storm:
    """Claims of one VCPU each, by consumers that are used once.

    :param ask: sends the claim of a consumer and gives the status; called by many threads
    :param clients: how many threads
    """

    def __init__(self, ask: Callable[[int, str], int], clients: int = 8):
        self._ask = ask
        self._clients = clients
        self._over = threading.Event()
        self._lock = threading.Lock()
        self.consumers: dict[str, int] = {}  # the status that each got
        self.statuses: Counter[int] = Counter()

    @contextlib.contextmanager
    def raging(self):
        """Storm for as long as the context lasts."""
        with futures.ThreadPoolExecutor(self._clients) as pool:
            threads = [pool.submit(self._client, number) for number in range(self._clients)]
            try:
                yield self
            finally:
                self._over.set()
        for thread in threads:
            thread.result()

    def wait_for(self, status: int, more: int, seconds: float = 30) -> None:
        """Return when so many more answers of a status have come."""
        wanted = self.statuses[status] + more
        deadline = time.monotonic() + seconds
        while self.statuses[status] < wanted:
            if time.monotonic() > deadline:
                raise AssertionError(f'no {more} answers {status} more: {self.statuses}')
            time.sleep(0.02)

    def _client(self, number: int) -> None:
        while not self._over.is_set():
            consumer = str(uuid.uuid4())
            status = self._ask(number, consumer)
            with self._lock:
                self.consumers[consumer] = status
                self.statuses[status] += 1
            if status != 204:
                time.sleep(0.02)

    def account(self, engine: sa.Engine) -> tuple[set[str], set[str]]:
        """Compare the answers with the database.

        :returns: consumers that were granted something and have nothing; consumers that have
            something that no answer explains (503 and a missing one leave it open)
        """
        with engine.connect() as conn:
            there = set(conn.scalars(sa.select(models.allocations.c.consumer_id)))
        granted = {uuid for uuid, status in self.consumers.items() if status == 204}
        maybe = {uuid for uuid, status in self.consumers.items() if status in (503, NONE)}
        return granted - there, there - granted - maybe


def send(port: int, method: str, path: str, body: Any = None) -> int:
    """Send a request over a connection of its own and give the status, NONE without an answer."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=60)
    headers = {
        'X-Auth-Token': 'admin',
        'OpenStack-API-Version': 'placement 1.39',
        'Content-Type': 'application/json',
        'Connection': 'close',
    }
    try:
        connection.request(method, path, json.dumps(body), headers)
        response = connection.getresponse()
        response.read()
    except (OSError, http.client.HTTPException):
        return NONE
    else:
        return response.status
    finally:
        connection.close()
