"""Measure the throughput of several processes and threads: ``python -m tools.perf.workers``.

For some seconds, every thread of every process calls the application on a flat world. There is no
web server, so the tool measures the throughput of the service and its database, which share the
processor cores of this machine.
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
    """Print the throughput for each number of processes and threads; return the exit status."""
    options = _parse()
    world = World('flat', options.hosts)
    try:
        with databases.private(options.engine) as create_database:
            url = create_database('flat')
            measure.in_new_process(measure.build, url, world, False)
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
        prog='python -m tools.perf.workers', description='Measure the throughput of workers.'
    )
    parser.add_argument(
        '--engine', choices=databases.ENGINES, default='sqlite', help='database system to start'
    )
    parser.add_argument('--hosts', type=int, default=1000, help='number of hosts')
    parser.add_argument(
        '--seconds', type=float, default=5, help='duration of each measurement in seconds'
    )
    parser.add_argument(
        '--processes', type=int, nargs='+', default=PROCESSES, help='numbers of processes'
    )
    parser.add_argument(
        '--threads', type=int, nargs='+', default=THREADS, help='numbers of threads'
    )
    return parser.parse_args()


def _rate(url: str, world: World, name: str, processes: int, threads: int, seconds: float) -> float:
    """Return the total number of requests per second of all threads in all processes."""
    context = multiprocessing.get_context('spawn')
    # The barrier makes all processes begin at the same time, after every process has started.
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

    def run(thread: int) -> int:
        number = 0
        while time.monotonic() < deadline:
            service.send(_request(world, name, f'{label}-{thread}', number))
            number += 1
        return number

    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        counts: Sequence[int] = list(pool.map(run, range(threads)))
    return sum(counts) / (time.monotonic() - begin)


def _request(world: World, name: str, label: str, number: int) -> Request:
    if name == 'candidates':
        return Request('GET', scenarios.limited(10))
    uuid = name_based(f'{label}-{number}')
    # Claims for random hosts seldom conflict with each other.
    host = world.host(int(uuid[:8], 16))
    return scenarios.claim(host, uuid)


if __name__ == '__main__':
    sys.exit(main())
