"""Print the most expensive requests: ``python -m tools.hostile.costs``.

Run the tool in the top directory of the source tree, on Linux. The tool fills an SQLite database
with a large cloud (see `cloud`) and sends designed and random requests of at most 1 MiB. Each
request runs in a new process. For the most expensive requests, the tool prints the CPU time, the
peak of the memory above the memory of an idle process, and the sizes of the request and of the
response.
"""

import argparse
from collections.abc import Iterator
import itertools
import logging
import os
from pathlib import Path
import pickle
import random
import tempfile
import time
from typing import NamedTuple

from placement.tests import wsgi_client
from placement.tests.wsgi_client import Request
from tools.hostile import cloud, expensive
from tools.perf import service as perf
from tools.perf.service import Service

_HEADER = '  CPU s   MiB above idle   response MB   request KB   status   request'


class Cost(NamedTuple):
    """The cost of one request.

    :ivar mib: the peak of the memory, above the memory before the request
    """

    name: str
    cpu_s: float
    mib: float
    sent: int
    received: int
    status: int

    def __str__(self) -> str:
        return (
            f'{self.cpu_s:7.1f} {self.mib:16.0f} {self.received / 1e6:13.1f} '
            f'{self.sent / 1e3:12.1f} {self.status:8}   {self.name}'
        )


def main() -> None:
    """Measure the requests, and print the most expensive ones."""
    options = _parse()
    logging.disable()
    with tempfile.TemporaryDirectory(prefix='placement-costs-') as folder:
        path = options.database or Path(folder, 'cloud.db')
        is_new = not path.exists()
        service = Service(f'sqlite:///{path}')
        if is_new:
            cloud.load(service.engine, options.hosts)
        service.engine.dispose()
        costs = []
        print(_HEADER)
        for name, request in _requests(options):
            cost = _in_new_process(service, name, request)
            print(cost, flush=True)
            costs.append(cost)
    for title, key in (('CPU time', lambda cost: cost.cpu_s), ('memory', lambda cost: cost.mib)):
        print(f'\nthe most {title}\n{_HEADER}')
        for cost in sorted(costs, key=key, reverse=True)[:10]:
            print(cost)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.hostile.costs', description='Print the most expensive requests.'
    )
    parser.add_argument('--hosts', type=int, default=10_000, help='number of hosts')
    parser.add_argument(
        '--random', type=int, default=0, metavar='N', help='also send N random requests'
    )
    parser.add_argument('--seed', type=int, default=1, help='seed of the random numbers')
    parser.add_argument('--only', default='', help='send only requests whose name has this text')
    parser.add_argument(
        '--database', type=Path, help='SQLite file with the cloud; it is created if it is missing'
    )
    return parser.parse_args()


def _requests(options: argparse.Namespace) -> Iterator[tuple[str, Request]]:
    designed = expensive.designed()
    rng = random.Random(options.seed)
    random_ones = (expensive.random_request(rng) for _ in range(options.random))
    for name, request in itertools.chain(designed, random_ones):
        if options.only in name:
            yield name, request


def _in_new_process(service: Service, name: str, request: Request) -> Cost:
    """Send a request in a copy of this process."""
    reader, writer = os.pipe()
    child = os.fork()
    if not child:
        os.close(reader)
        with os.fdopen(writer, 'wb') as pipe:
            pickle.dump(_cost(service, name, request), pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, 'rb') as pipe:
        cost: Cost = pickle.load(pipe)
    os.waitpid(child, 0)
    return cost


def _cost(service: Service, name: str, request: Request) -> Cost:
    wsgi_client.send(service.application, Request('GET', '/resource_classes'))
    perf.reset_peak()
    before, cpu = perf.peak_mib(), time.process_time()
    status, received = _consume(service.application, request)
    return Cost(
        name,
        time.process_time() - cpu,
        perf.peak_mib() - before,
        len(request.query) + len(request.body),
        received,
        status,
    )


def _consume(application: wsgi_client.Application, request: Request) -> tuple[int, int]:
    """Send a request, and read the response like a web server, which does not keep its parts.

    :returns: the status, and the size of the response in bytes
    """
    statuses: list[str] = []
    environ = wsgi_client.environ_of(request.variables(), request.body)
    parts = application(environ, lambda status, *_: statuses.append(status))
    size = sum(len(part) for part in parts)
    return int(statuses[-1].split()[0]), size


if __name__ == '__main__':
    main()
