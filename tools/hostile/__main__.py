"""Send random requests to a worker: ``python -m tools.hostile``, run at the top of the source tree.

With ``--kind hostile``, the requests are spoiled in every place that a client controls. With
``--kind valid``, they are valid queries of up to 8 KB. The same engine, kind, seed and count send
the same requests. The output has the memory of the worker, the status codes, the slowest requests
and every faulty response. The exit status is 1 if there is a faulty response, for example a 5xx.

The application runs in a process of its own, without a web server. The requests of
``--failures FILE`` can be sent again with ``--replay FILE``.
"""

import argparse
import base64
from collections import Counter
from collections.abc import Iterable, Iterator
import heapq
import itertools
import json
from pathlib import Path
import random
import sys
import time

from placement.tests.functional.spoil import generated, judging
from placement.tests.functional.spoil.generated import Request
from tools import with_database
from tools.hostile import worker
from tools.perf import databases

# Hostile requests delete what the cloud is made of, so it is restored this often.
RESTORED_EVERY = 1000
SLOWEST = 10
SHOWN_BYTES = 2000


class Driver:
    """Sends requests to a worker and records the responses."""

    def __init__(self, target: worker.Worker):
        self._worker = target
        self._known: dict[str, object] = {}
        self.sent = 0
        self.statuses: Counter[int] = Counter()
        self.slowest: list[tuple[float, int, Request]] = []
        self.faults: list[tuple[str, Request]] = []

    def restore_cloud(self) -> None:
        """Create what is missing of the cloud; refusals of what exists are no fault."""
        for request in generated.cloud():
            self._worker.send(request)
        self._known.clear()

    # What the generator has to know of the state of the service.

    def generation(self, uuid: str) -> int:
        return int(self._read(f'/resource_providers/{uuid}').get('generation') or 0)

    def consumer_generation(self, uuid: str) -> int | None:
        return self._read(f'/allocations/{uuid}').get('consumer_generation')

    def _read(self, path: str) -> dict[str, int]:
        if path not in self._known:
            self._known[path] = json.loads(self._worker.send(Request('GET', path)).answer.content)
        return self._known[path]  # type: ignore[return-value]

    def send(self, request: Request, only_valid: bool) -> None:
        """Send a request and judge the response.

        :param only_valid: whether any status other than 200 OK is a fault
        """
        answer, seconds, trouble = self._worker.send(request)
        self.sent += 1
        self.statuses[answer.status] += 1
        heapq.heappush(self.slowest, (seconds, self.sent, request))
        if len(self.slowest) > SLOWEST:
            heapq.heappop(self.slowest)
        fault = judging.fault(answer, request.method) or trouble
        if not fault and only_valid and answer.status != 200:
            fault = 'a valid query is refused'
        if fault:
            body = answer.content[:SHOWN_BYTES].decode(errors='replace')
            self.faults.append((f'{fault}: {answer.status} {body}\n{trouble}', request))
        if request.method != 'GET' and answer.status < 300:
            self._known.clear()


def main() -> int:
    options = _parse()
    try:
        with databases.private(options.engine) as make, worker.started(make('hostile')) as target:
            return _run(options, target)
    except with_database.ServerFailed as error:
        print(f'hostile: {error}', file=sys.stderr)
        return 1


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.hostile', description='Send random requests to a worker.'
    )
    parser.add_argument('--engine', choices=databases.ENGINES, default='sqlite', help='to start')
    parser.add_argument('--kind', choices=('hostile', 'valid'), default='hostile')
    parser.add_argument('--count', type=int, default=20_000, help='number of requests')
    parser.add_argument('--seconds', type=float, default=float('inf'), help='time limit')
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--failures', type=Path, metavar='FILE', help='write faulty requests to it')
    parser.add_argument('--replay', type=Path, metavar='FILE', help='send its requests instead')
    return parser.parse_args()


def _run(options: argparse.Namespace, target: worker.Worker) -> int:
    driver = Driver(target)
    print(f'{options.engine}, {options.kind} requests, seed {options.seed}')
    print(f'at the start: {_memory(target)}', flush=True)
    driver.restore_cloud()
    begin = last = time.monotonic()
    for request in _requests(options, driver):
        driver.send(request, only_valid=options.kind == 'valid')
        if driver.sent % RESTORED_EVERY == 0:
            now = time.monotonic()
            rate = RESTORED_EVERY / (now - last)
            print(f'after {driver.sent}: {_memory(target)}, {rate:.0f} requests/s', flush=True)
            last = now
            if options.kind == 'hostile':
                driver.restore_cloud()
        if time.monotonic() - begin > options.seconds:
            break
    _report(driver, time.monotonic() - begin)
    print(f'at the end: {_memory(target)}')
    if options.failures:
        lines = [_to_json(request) for _, request in driver.faults]
        options.failures.write_text(''.join(f'{line}\n' for line in lines))
    return 1 if driver.faults else 0


def _requests(options: argparse.Namespace, driver: Driver) -> Iterator[Request]:
    if options.replay:
        return map(_from_json, options.replay.read_text().splitlines())
    rng = random.Random(f'{options.kind} {options.seed}')
    if options.kind == 'valid':
        endless: Iterable[Request] = (generated.valid_query(rng) for _ in itertools.count())
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
    for story, request in driver.faults[:20]:
        print(f'FAULT {story}\n  {_to_json(request)[:SHOWN_BYTES]}')
    print(f'{len(driver.faults)} faulty responses')


def _to_json(request: Request) -> str:
    fields = request._asdict() | {'body': base64.b64encode(request.body).decode()}
    return json.dumps(fields)


def _from_json(line: str) -> Request:
    fields = json.loads(line)
    return Request(**fields | {'body': base64.b64decode(fields['body'])})


if __name__ == '__main__':
    sys.exit(main())
