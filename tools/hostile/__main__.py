"""Send random requests to a worker process: ``python -m tools.hostile``.

Run the tool in the top directory of the source tree. With ``--kind hostile``, any part of a request
that a client controls can be invalid. With ``--kind valid``, the tool sends valid queries of up to
8 KB. With ``--kind expensive``, it fills the database with the large cloud of `expensive`, and
sends searches of up to 1 MiB.

Runs with the same database system, kind, seed and count send the same requests. The output shows
the memory of the worker, the status codes, the slowest requests and the defective responses. The
exit status is 1 if a response is defective, for example if its status is 5xx.

The application runs in the worker process without a web server. ``--failures FILE`` writes the
requests with defective responses to a file, and ``--replay FILE`` sends the requests in such a file
again.
"""

import argparse
import base64
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import asdict
import heapq
import itertools
import json
from pathlib import Path
import random
import sys
import time

from placement.tests.functional.invalid_requests import generated, responses
from placement.tests.wsgi_client import Request
from tools import with_database
from tools.hostile import expensive, worker
from tools.hostile.worker import NO_RESPONSE
from tools.perf import databases
from tools.perf.service import in_new_process

# Hostile requests can delete rows of the test cloud. After this number of requests, the missing
# rows are created again.
RESTORE_INTERVAL = 1000
SLOWEST = 10
SHOWN_BYTES = 2000


class Driver:
    """Sends requests to a worker and counts the responses."""

    def __init__(self, target: worker.Worker) -> None:
        self._worker = target
        self._documents: dict[str, dict[str, int]] = {}  # GET responses since the last write
        self.sent = 0
        self.statuses: Counter[int] = Counter()
        self.slowest: list[tuple[float, int, Request]] = []
        self.defects: list[tuple[str, Request]] = []

    def restore_cloud(self) -> None:
        """Create the missing rows of the test cloud; requests for existing rows fail harmlessly."""
        for request in generated.cloud():
            self._worker.send(request)
        self._documents.clear()

    def generation(self, uuid: str) -> int:
        """Return the generation of a provider."""
        return int(self._read(f'/resource_providers/{uuid}').get('generation') or 0)

    def consumer_generation(self, uuid: str) -> int | None:
        """Return the generation of a consumer, or None if the consumer does not exist."""
        return self._read(f'/allocations/{uuid}').get('consumer_generation')

    def _read(self, path: str) -> dict[str, int]:
        if path not in self._documents:
            self._documents[path] = self._worker.send(Request('GET', path)).response.json()
        return self._documents[path]

    def send(self, request: Request, only_valid: bool) -> None:
        """Send a request and check the response.

        :param only_valid: whether to treat any status except 200 OK as a defect
        """
        response, seconds, errors = self._worker.send(request)
        self.sent += 1
        self.statuses[response.status] += 1
        heapq.heappush(self.slowest, (seconds, self.sent, request))
        if len(self.slowest) > SLOWEST:
            heapq.heappop(self.slowest)
        defect = responses.defect(response, request.method) or errors
        if not defect and only_valid and response.status != 200:
            defect = 'a valid query failed'
        if defect:
            body = response.content[:SHOWN_BYTES].decode(errors='replace')
            self.defects.append((f'{defect}: {response.status} {body}\n{errors}', request))
        if request.method != 'GET' and response.status < 300:
            self._documents.clear()


def main() -> int:
    """Send the requests and return 1 if a response is defective."""
    options = _parse()
    try:
        with databases.private(options.engine) as create_database:
            url = create_database('hostile')
            if options.kind == 'expensive':
                in_new_process(expensive.load, url)
            with worker.started(url) as target:
                return _run(options, target)
    except with_database.ServerStartError as error:
        print(f'hostile: {error}', file=sys.stderr)
        return 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.hostile', description='Send random requests to a worker.'
    )
    parser.add_argument(
        '--engine', choices=databases.ENGINES, default='sqlite', help='database system to start'
    )
    parser.add_argument(
        '--kind',
        choices=('hostile', 'valid', 'expensive'),
        default='hostile',
        help='kind of requests',
    )
    parser.add_argument('--count', type=int, default=20_000, help='number of requests')
    parser.add_argument('--seconds', type=float, default=float('inf'), help='time limit in seconds')
    parser.add_argument('--seed', type=int, default=1, help='seed of the random numbers')
    parser.add_argument(
        '--failures',
        type=Path,
        metavar='FILE',
        help='write requests with defective responses to FILE',
    )
    parser.add_argument(
        '--replay',
        type=Path,
        metavar='FILE',
        help='send the requests in FILE instead of random requests',
    )
    return parser.parse_args()


def _run(options: argparse.Namespace, target: worker.Worker) -> int:
    driver = Driver(target)
    print(f'{options.engine}, {options.kind} requests, seed {options.seed}')
    print(f'at the start: {_memory(target)}', flush=True)
    if options.kind != 'expensive':
        driver.restore_cloud()
    begin = last = time.monotonic()
    for request in _requests(options, driver):
        driver.send(request, only_valid=options.kind == 'valid')
        if driver.sent % RESTORE_INTERVAL == 0:
            now = time.monotonic()
            rate = RESTORE_INTERVAL / (now - last)
            print(f'after {driver.sent}: {_memory(target)}, {rate:.0f} requests/s', flush=True)
            last = now
            if options.kind == 'hostile':
                driver.restore_cloud()
        # A worker that does not respond does not respond to further requests either.
        if driver.statuses[NO_RESPONSE] or time.monotonic() - begin > options.seconds:
            break
    _report(driver, time.monotonic() - begin)
    print(f'at the end: {_memory(target)}')
    if options.failures:
        lines = [_to_json(request) for _, request in driver.defects]
        options.failures.write_text(''.join(f'{line}\n' for line in lines))
    return 1 if driver.defects else 0


def _requests(options: argparse.Namespace, driver: Driver) -> Iterator[Request]:
    if options.replay:
        return map(_from_json, options.replay.read_text().splitlines())
    rng = random.Random(f'{options.kind} {options.seed}')
    if options.kind == 'valid':
        endless: Iterable[Request] = (generated.valid_query(rng) for _ in itertools.count())
    elif options.kind == 'expensive':
        endless = (expensive.request(rng) for _ in itertools.count())
    else:
        generator = generated.Generator(rng, driver)
        endless = (generator.request() for _ in itertools.count())
    return itertools.islice(endless, options.count)


def _memory(target: worker.Worker) -> str:
    now, peak = target.memory()
    return f'{now:.0f} MiB resident, peak {peak:.0f} MiB'


def _report(driver: Driver, seconds: float) -> None:
    print(f'{driver.sent} requests in {seconds:.0f} s')
    print('status: ' + ', '.join(f'{key}: {n}' for key, n in sorted(driver.statuses.items())))
    print('slowest:')
    for took, number, request in sorted(driver.slowest, key=lambda item: -item[0]):
        size = f'query {len(request.query)} bytes, body {len(request.body)} bytes'
        start = f'{request.method} {request.path}?{request.query}'[:150]
        print(f'  {took * 1000:8.1f} ms  request {number}, {size}: {start!r}')
    for description, request in driver.defects[:20]:
        print(f'DEFECT {description}\n  {_to_json(request)[:SHOWN_BYTES]}')
    print(f'{len(driver.defects)} defective responses')


def _to_json(request: Request) -> str:
    fields = asdict(request) | {'body': base64.b64encode(request.body).decode()}
    return json.dumps(fields)


def _from_json(line: str) -> Request:
    fields = json.loads(line)
    return Request(**fields | {'body': base64.b64decode(fields['body'])})


if __name__ == '__main__':
    sys.exit(main())
