"""Clients that read, claim, and release while `rolling_swap.py` replaces servers."""

from collections import Counter
from collections.abc import Iterator
import contextlib
import threading
import time
from typing import Any
import uuid

import equivalence
from equivalence_data import LATEST
import requests

CLIENTS = 4
PER_PHASE = 120  # the number of requests that each phase must complete at least
PROVIDERS = tuple(f'00000000-0000-4000-8000-00000000000{number}' for number in (1, 2))
# No number of claims reaches this total. Therefore 409 is always a generation conflict.
TOTAL = 1_000_000


class Traffic:
    """Sends requests from several threads while the context is active.

    :param url: the URL of Placement behind the load balancer
    """

    def __init__(self, url: str) -> None:
        self.failures: list[str] = []
        self._url = url
        self._results: Counter[str] = Counter()
        self._earlier: Counter[str] = Counter()
        self._granted: set[str] = set()
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._pauses = [threading.Lock() for _ in range(CLIENTS)]
        self._threads = [
            threading.Thread(target=self._run, args=(number,), daemon=True)
            for number in range(CLIENTS)
        ]

    def __enter__(self) -> 'Traffic':
        client = equivalence.Client(self._url)
        for number, provider in enumerate(PROVIDERS):
            body: dict[str, Any] = {'uuid': provider, 'name': f'provider {number}'}
            client.send('POST', '/resource_providers', LATEST, body).raise_for_status()
            path = f'/resource_providers/{provider}/inventories'
            body = {
                'resource_provider_generation': 0,
                'inventories': {'VCPU': {'total': TOTAL, 'max_unit': 1}},
            }
            client.send('PUT', path, LATEST, body).raise_for_status()
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join(60)

    def finish_phase(self, name: str) -> None:
        """Wait for a number of further requests, and print the results of the phase."""
        goal = self._results.total() + PER_PHASE
        deadline = time.monotonic() + 120
        while self._results.total() < goal:
            if time.monotonic() > deadline:
                raise RuntimeError(f'{name}: the clients receive no responses')
            time.sleep(0.1)
        with self._lock:
            results = self._results - self._earlier
            self._earlier = self._results.copy()
        print(f'{name}: {describe(results)}', flush=True)

    def summary(self) -> str:
        """Return the results of all phases in one line."""
        return (
            f'total: {self._results.total()} requests, {len(self.failures)} failed '
            f'({describe(self._results)}); {len(self._granted)} granted claims present at the end'
        )

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Send no requests while the context is active."""
        with contextlib.ExitStack() as stack:
            for pause in self._pauses:
                stack.enter_context(pause)
            yield

    def missing(self, url: str) -> list[str]:
        """Return a sentence for each granted claim that a server does not show."""
        client = equivalence.Client(url)
        problems = []
        for consumer in sorted(self._granted):
            shown = client.send('GET', f'/allocations/{consumer}', LATEST).json()
            amounts = [one['resources'] for one in shown['allocations'].values()]
            if amounts != [{'VCPU': 1}]:
                problems.append(f'{url} shows {amounts} of consumer {consumer}')
        used = sum(
            client.send('GET', f'/resource_providers/{provider}/usages', LATEST).json()['usages'][
                'VCPU'
            ]
            for provider in PROVIDERS
        )
        if used != len(self._granted):
            problems.append(f'{url} shows usage {used} of {len(self._granted)} claims')
        return problems

    def _run(self, number: int) -> None:
        client = equivalence.Client(self._url)
        while not self._stopped.is_set():
            with self._pauses[number]:
                self._cycle(client)
            time.sleep(0.05)

    def _cycle(self, client: equivalence.Client) -> None:
        """Read, claim twice, and release one of the claims."""
        self._send(client, 'GET', f'/allocation_candidates?resources=VCPU:1&limit={len(PROVIDERS)}')
        consumers = [str(uuid.uuid4()) for _ in PROVIDERS]
        granted = [
            consumer
            for consumer, provider in zip(consumers, PROVIDERS, strict=True)
            if self._send(client, 'PUT', f'/allocations/{consumer}', claim(provider)) == 204
        ]
        with self._lock:
            self._granted.update(granted)
        for consumer in granted[1:]:
            self._send(client, 'GET', f'/allocations/{consumer}')
            if self._send(client, 'DELETE', f'/allocations/{consumer}') == 204:
                with self._lock:
                    self._granted.discard(consumer)

    def _send(self, client: equivalence.Client, method: str, path: str, body: Any = None) -> int:
        """Send a request and count its result; return the status, 0 if there is no response."""
        try:
            response = client.send(method, path, LATEST, body)
        except requests.RequestException as error:
            self._count(f'{method} without response', f'{method} {path}: {error!r}')
            return 0
        conflict = response.status_code == 409 and 'placement.concurrent_update' in response.text
        failed = not (response.ok or conflict)
        self._count(
            f'{method} {response.status_code}',
            f'{method} {path}: {response.status_code} {response.text}' if failed else None,
        )
        return int(response.status_code)

    def _count(self, result: str, failure: str | None) -> None:
        with self._lock:
            self._results[result] += 1
            if failure is not None:
                self.failures.append(failure)


def claim(provider: str) -> dict[str, Any]:
    """Return the body of a claim for one VCPU of a provider, for a new consumer."""
    return {
        'allocations': {provider: {'resources': {'VCPU': 1}}},
        'project_id': 'project',
        'user_id': 'user',
        'consumer_generation': None,
        'consumer_type': 'INSTANCE',
    }


def describe(results: Counter[str]) -> str:
    """Return the number of each result, for example `GET 200: 12, PUT 204: 7`."""
    return ', '.join(f'{result}: {count}' for result, count in sorted(results.items()))
