"""Measure how many instances a cloud can start each second: ``python -m tools.perf.boots``.

Run the tool in the top directory of the source tree. It starts a private database server with a
flat world, and a uWSGI server with the settings of the deployment guide. Then schedulers start
instances at the same time. To start an instance, a scheduler gets allocation candidates, picks one
of them at random, and claims it. Afterwards, it deletes one instance in four. The tool measures
different numbers of schedulers with different values of `limit`. It writes each measurement as a
line of a CSV file, from which `tools.perf.plot` draws a diagram.

The schedulers share the processor cores with the service and the database. Therefore they do as
little work as possible: they use sockets directly, and a fast JSON parser.
"""

import argparse
from collections.abc import Iterator, Sequence
import concurrent.futures
import csv
from dataclasses import asdict, dataclass
import functools
from http import HTTPStatus
import math
import multiprocessing
from pathlib import Path
import random
import socket
import sys
import time
from typing import Any
import uuid

import orjson

from placement.tests.functional.faults.machines import Worker
from placement.tests.functional.web import commands
from tools import with_database
from tools.perf import __main__ as perf
from tools.perf import databases, measure, scenarios, worlds

SCHEDULERS = (1, 2, 4, 8, 16, 32)
LIMITS = (100, 1000)
# The maximum number of schedulers in one process. More would wait for each other.
_PER_PROCESS = 8
_WARM_UP = 16  # instances, so that each thread of the service has compiled its statements
_DELETED = 0.25  # the share of instances that are deleted soon after their start
_READ_BYTES = 2**18


@dataclass(frozen=True, slots=True)
class Point:
    """The result for a number of schedulers.

    :param boots: the number of started instances
    :param failures: the number of instances for which a request failed
    :param p50_ms: the median of the time to get candidates and to claim one of them
    """

    engine: str
    hosts: int
    limit: int
    schedulers: int
    boots: int
    failures: int
    boots_per_second: float
    p50_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True)
class Run:
    """The work of one scheduler.

    :param durations: the seconds that each started instance took
    :param failures: the number of instances for which a request failed
    """

    durations: Sequence[float]
    failures: int


class Client:
    """Sends requests to a port of this machine; each request uses a new connection."""

    def __init__(self, port: int) -> None:
        self._address = ('127.0.0.1', port)

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the response."""
        with socket.create_connection(self._address, timeout=600) as connection:
            connection.sendall(request(method, path, body))
            # A server that speaks HTTP/1.0 closes the connection at the end of the response.
            received = b''.join(iter(functools.partial(connection.recv, _READ_BYTES), b''))
        return response(received)


def request(method: str, path: str, body: Any = None) -> bytes:
    """Return the bytes of a request with the roles admin and service."""
    content = b'' if body is None else orjson.dumps(body)
    headers = [
        f'{method} {path} HTTP/1.0',
        'Host: localhost',
        'X-Auth-Token: admin',
        'OpenStack-API-Version: placement latest',
        'Accept: application/json',
    ]
    if content:
        headers += ['Content-Type: application/json', f'Content-Length: {len(content)}']
    return '\r\n'.join([*headers, '', '']).encode() + content


def response(received: bytes) -> tuple[int, bytes]:
    """Return the status and the body of a response."""
    head, _, body = received.partition(b'\r\n\r\n')
    return int(head.split(b' ', 2)[1]), body


def claim(candidate: dict[str, Any], project: str) -> dict[str, Any]:
    """Return the body of a claim of a new consumer for an allocation request."""
    return {
        'allocations': candidate['allocations'],
        'project_id': project,
        'user_id': 'boots',
        'consumer_generation': None,
        'consumer_type': 'INSTANCE',
    }


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest value that is not exceeded by this share of the values, 0 for none."""
    if not values:
        return 0.0
    return sorted(values)[max(math.ceil(len(values) * share) - 1, 0)]


def main() -> int:
    """Measure all points, write them to a file, and return the exit status."""
    options = _parse()
    try:
        with databases.private(options.engine) as create_database:
            url = create_database('boots')
            measure.in_new_process(measure.build, url, worlds.World('flat', options.hosts), False)
            points = list(_measure(url, options))
    except with_database.ServerStartError as error:
        print(f'perf.boots: {error}', file=sys.stderr)
        return 1
    with options.output.open('w', newline='') as file:
        writer = csv.DictWriter(file, list(asdict(points[0])), lineterminator='\n')
        writer.writeheader()
        writer.writerows(map(asdict, points))
    print(f'Wrote {options.output}; machine: {perf.machine()}')
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.boots',
        description='Measure how many instances a cloud can start each second.',
    )
    parser.add_argument(
        '--engine',
        choices=with_database.ENGINES,
        default='mariadb',
        help='database system to start',
    )
    parser.add_argument('--hosts', type=int, default=10_000, help='number of hosts')
    parser.add_argument(
        '--schedulers', type=int, nargs='+', default=SCHEDULERS, help='numbers of schedulers'
    )
    parser.add_argument(
        '--limits', type=int, nargs='+', default=LIMITS, help='values of the parameter limit'
    )
    parser.add_argument(
        '--seconds', type=float, default=8, help='duration of each measurement in seconds'
    )
    parser.add_argument(
        '--processes', type=int, default=2, help='processes of the service, with 4 threads each'
    )
    parser.add_argument('--output', type=Path, required=True, metavar='CSV', help='file to write')
    return parser.parse_args()


def _measure(url: str, options: argparse.Namespace) -> Iterator[Point]:
    command = functools.partial(
        commands.uwsgi, processes=options.processes, module='placement.wsgi.api'
    )
    service = Worker(url, command)
    try:
        for limit in options.limits:
            _start_instances(Client(service.port), limit, count=_WARM_UP)
            for schedulers in options.schedulers:
                seconds, runs = _run(service.port, limit, schedulers, options.seconds)
                point = _point(options, limit, seconds, runs)
                print(*asdict(point).values(), sep='\t', flush=True)
                yield point
    finally:
        service.stop()


def _point(options: argparse.Namespace, limit: int, seconds: float, runs: Sequence[Run]) -> Point:
    milliseconds = [duration * 1000 for run in runs for duration in run.durations]
    return Point(
        engine=options.engine,
        hosts=options.hosts,
        limit=limit,
        schedulers=len(runs),
        boots=len(milliseconds),
        failures=sum(run.failures for run in runs),
        boots_per_second=round(len(milliseconds) / seconds, 1),
        p50_ms=round(percentile(milliseconds, 0.5), 1),
        p99_ms=round(percentile(milliseconds, 0.99), 1),
    )


def _run(port: int, limit: int, schedulers: int, seconds: float) -> tuple[float, list[Run]]:
    """Run schedulers at the same time, and return the elapsed seconds and the work of each."""
    groups = [
        range(first, min(first + _PER_PROCESS, schedulers))
        for first in range(0, schedulers, _PER_PROCESS)
    ]
    context = multiprocessing.get_context('spawn')
    # The barrier makes all processes begin at the same time, after every process has started.
    ready = context.Manager().Barrier(len(groups))
    with concurrent.futures.ProcessPoolExecutor(len(groups), mp_context=context) as pool:
        jobs = [
            pool.submit(_run_group, port, limit, len(group), seconds, ready) for group in groups
        ]
        results = [job.result() for job in jobs]
    return max(elapsed for elapsed, _ in results), [run for _, runs in results for run in runs]


def _run_group(
    port: int, limit: int, schedulers: int, seconds: float, ready: Any
) -> tuple[float, list[Run]]:
    client = Client(port)
    ready.wait()
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(schedulers) as pool:
        jobs = [
            pool.submit(_start_instances, client, limit, until=begin + seconds)
            for _ in range(schedulers)
        ]
        started = [job.result() for job in jobs]
    elapsed = time.monotonic() - begin
    # The next measurement begins with the same allocations.
    for _, consumers in started:
        for consumer in consumers:
            client.send('DELETE', f'/allocations/{consumer}')
    return elapsed, [run for run, _ in started]


def _start_instances(
    client: Client, limit: int, count: int | None = None, until: float = math.inf
) -> tuple[Run, list[str]]:
    """Start instances one after the other, and return the work and the remaining consumers."""
    durations: list[float] = []
    consumers: list[str] = []
    failures = 0
    while time.monotonic() < until and (count is None or len(durations) + failures < count):
        begin = time.perf_counter()
        consumer = _start_instance(client, limit)
        if consumer is None:
            failures += 1
            continue
        durations.append(time.perf_counter() - begin)
        consumers.append(consumer)
        if random.random() < _DELETED:
            client.send('DELETE', f'/allocations/{consumers.pop()}')
    return Run(durations, failures), consumers


def _start_instance(client: Client, limit: int) -> str | None:
    """Claim a random candidate; return the UUID of the consumer, or None if a request failed."""
    status, body = client.send('GET', scenarios.limited(limit))
    if status != HTTPStatus.OK:
        return None
    candidates = orjson.loads(body)['allocation_requests']
    if not candidates:
        return None
    consumer = str(uuid.uuid4())
    project = f'project-{random.randrange(20)}'
    claimed = claim(random.choice(candidates), project)
    status, _ = client.send('PUT', f'/allocations/{consumer}', claimed)
    return consumer if status == HTTPStatus.NO_CONTENT else None


if __name__ == '__main__':
    sys.exit(main())
