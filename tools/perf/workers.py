"""Measure what processes and threads bring: ``python -m tools.perf.workers``.

Every thread of every process asks one thing after another for some seconds, on a flat world. The
application is called without a web server, so the numbers are those of the service and its
database; both share the cores of this machine.
"""

import argparse
from collections.abc import Sequence
import concurrent.futures
import multiprocessing
import sys
import threading
import time

from tools import with_database
from tools.perf import databases, measure, scenarios
from tools.perf.service import Request, Service
from tools.perf.worlds import World, name_based

PROCESSES = (1, 2, 4)
THREADS = (1, 2, 4, 8)


def main() -> int:
    options = _parse()
    world = World('flat', options.hosts)
    try:
        with databases.private(options.engine) as make:
            url = make('flat')
            measure.apart(measure.build, url, world, False)
            print(f'{"processes":>10} {"threads":>8} {"claims/s":>9} {"candidates/s":>13}')
            for processes in options.processes:
                for threads in options.threads:
                    rates = [
                        _rate(url, world, name, processes, threads, options.seconds)
                        for name in ('claim', 'candidates')
                    ]
                    print(
                        f'{processes:10} {threads:8} {rates[0]:9.0f} {rates[1]:13.0f}', flush=True
                    )
    except with_database.ServerStartError as error:
        print(f'perf.workers: {error}', file=sys.stderr)
        return 1
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.workers', description='Measure what workers bring.'
    )
    parser.add_argument('--engine', choices=databases.ENGINES, default='sqlite')
    parser.add_argument('--hosts', type=int, default=1000)
    parser.add_argument('--seconds', type=float, default=5, help='for each of the numbers')
    parser.add_argument('--processes', type=int, nargs='+', default=PROCESSES)
    parser.add_argument('--threads', type=int, nargs='+', default=THREADS)
    return parser.parse_args()


def _rate(url: str, world: World, name: str, processes: int, threads: int, seconds: float) -> float:
    """Requests in a second that all threads of all processes are answered together."""
    context = multiprocessing.get_context('spawn')
    # Starting takes a while, and none shall begin before all are ready.
    ready = context.Manager().Barrier(processes)
    with concurrent.futures.ProcessPoolExecutor(processes, mp_context=context) as pool:
        jobs = [
            pool.submit(
                _work, url, world, name, f'{processes}-{threads}-{n}', threads, seconds, ready
            )
            for n in range(processes)
        ]
        return sum(job.result() for job in jobs)


def _work(
    url: str,
    world: World,
    name: str,
    label: str,
    threads: int,
    seconds: float,
    ready: threading.Barrier,
) -> float:
    service = Service(url)
    for number in range(2):
        service.send(_request(world, name, f'{label}-warm', number))
    ready.wait()
    begin = time.monotonic()
    deadline = begin + seconds

    def ask(thread: int) -> int:
        number = 0
        while time.monotonic() < deadline:
            service.send(_request(world, name, f'{label}-{thread}', number))
            number += 1
        return number

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        answered: Sequence[int] = list(pool.map(ask, range(threads)))
    return sum(answered) / (time.monotonic() - begin)


def _request(world: World, name: str, label: str, number: int) -> Request:
    if name == 'candidates':
        return Request('GET', scenarios.limited(10))
    uuid = name_based(f'{label}-{number}')
    # Spread, so that they seldom meet.
    host = world.host(int(uuid[:8], 16))
    return scenarios.claim(host, uuid)


if __name__ == '__main__':
    sys.exit(main())
