"""Measure scrapes of the capacity metrics: ``python -m tools.perf.scrape``.

Run the tool in the top directory of the source tree. It fills a database with generated hosts of
three resource classes, and compares three ways to read their capacity over HTTP:

fresh    a scrape of `placement-manage exporter` that reads the database
cached   a scrape of `placement-manage exporter` that returns the result of an earlier read
API      the requests of an exporter that uses the API: GET /resource_providers, and for each
         provider GET /resource_providers/{uuid}, .../inventories and .../usages

For each of them, the tool prints the number of requests and of SQL statements, the seconds, the
processor seconds of the exporter or of the service, its peak memory, and the size of the responses.
The requests are sent one after the other on one connection; durations are medians. The service runs
with waitress.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
import contextlib
import csv
from dataclasses import asdict, dataclass
import functools
import http.client
import json
import os
from pathlib import Path
import statistics
import sys
import time

import sqlalchemy as sa

from placement.admin.capacity_metrics import model
from placement.tests.functional.faults.machines import Worker
from placement.tests.functional.web import commands
from tools import with_database
from tools.perf import databases, measure, worlds

_ENGINES = ('mariadb', 'mariadb-mysqlclient')
_HEADERS = {
    'X-Auth-Token': 'admin',
    'OpenStack-API-Version': 'placement latest',
    'Accept-Encoding': 'gzip',
}
_TICKS = os.sysconf('SC_CLK_TCK')


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of one scrape."""

    hosts: int
    scrape: str
    requests: int
    statements: int
    seconds: float
    cpu_seconds: float
    peak_mib: float
    mib: float


class UnexpectedResponseError(Exception):
    """A response has another status than 200."""


class Client:
    """Sends requests to a port of this machine, on one connection if the server allows it."""

    def __init__(self, port: int) -> None:
        self._connection = http.client.HTTPConnection('127.0.0.1', port, timeout=600)
        self.requests = self.bytes = 0

    def get(self, path: str) -> bytes:
        """Send a request and return the body of the response."""
        self._connection.request('GET', path, headers=_HEADERS)
        response = self._connection.getresponse()
        body = response.read()
        if response.status != http.client.OK:
            raise UnexpectedResponseError(f'{path}: {response.status} {body[:200]!r}')
        self.requests += 1
        self.bytes += len(body)
        return body


def main() -> int:
    """Measure the scrapes and return the exit status."""
    options = _parse()
    costs = []
    try:
        with databases.private(options.engine) as create_database:
            for hosts in options.hosts:
                url = create_database(f'flat_{hosts}')
                world = worlds.World('flat', hosts)
                measure.in_new_process(measure.build, url, world, False)
                for cost in _measure(url, hosts, options.rounds):
                    costs.append(cost)
                    print(*asdict(cost).values(), sep='\t', flush=True)
    except (with_database.ServerStartError, UnexpectedResponseError) as error:
        print(f'perf.scrape: {error}', file=sys.stderr)
        return 1
    if options.output:
        with options.output.open('w', newline='') as file:
            writer = csv.DictWriter(file, list(asdict(costs[0])), lineterminator='\n')
            writer.writeheader()
            writer.writerows(map(asdict, costs))
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.scrape', description='Measure scrapes of the capacity metrics.'
    )
    parser.add_argument(
        '--engine', choices=_ENGINES, default='mariadb', help='database system to start'
    )
    parser.add_argument(
        '--hosts', type=int, nargs='+', default=[1000, 10_000], help='numbers of hosts'
    )
    parser.add_argument('--rounds', type=int, default=5, help='repetitions of the exporter')
    parser.add_argument('--output', type=Path, metavar='CSV', help='file to write')
    return parser.parse_args()


def _measure(url: str, hosts: int, rounds: int) -> Iterator[Cost]:
    with sa.create_engine(url, isolation_level='AUTOCOMMIT').connect() as conn:
        measured = functools.partial(_repeat, conn, hosts)
        for name, cache in (('fresh', 0), ('cached', 3600)):
            with _running(url, functools.partial(_exporter, cache=cache)) as worker:
                Client(worker.port).get('/metrics')
                yield measured(name, worker, _scrape, rounds)
        service = functools.partial(commands.waitress, module='placement.wsgi.api')
        with _running(url, service) as worker:
            Client(worker.port).get('/resource_providers?name=a')
            yield measured('API', worker, _scrape_api, 1)


def _exporter(port: int, cache: int) -> Sequence[str]:
    address = f'127.0.0.1:{port}'
    program = (sys.executable, '-m', 'placement.cmd.manage')
    # The requests to the API do not read these metrics.
    without = ','.join(one.name for one in model.LABELED)
    options = ('--listen', address, '--cache', str(cache), '--without', without)
    return (*program, 'exporter', *options)


@contextlib.contextmanager
def _running(url: str, command: Callable[[int], Sequence[str]]) -> Iterator[Worker]:
    worker = Worker(url, command)
    try:
        yield worker
    finally:
        worker.stop()


def _scrape(client: Client) -> None:
    client.get('/metrics')


def _scrape_api(client: Client) -> None:
    listed = json.loads(client.get('/resource_providers'))['resource_providers']
    for provider in listed:
        path = f'/resource_providers/{provider["uuid"]}'
        for suffix in ('', '/inventories', '/usages'):
            client.get(path + suffix)


def _repeat(
    conn: sa.Connection,
    hosts: int,
    name: str,
    worker: Worker,
    scrape: Callable[[Client], None],
    rounds: int,
) -> Cost:
    """Return the cost of a scrape."""
    seconds = []
    statements, cpu = _statements(conn), _cpu_seconds(worker.pid)
    for _ in range(rounds):
        client = Client(worker.port)
        started = time.perf_counter()
        scrape(client)
        seconds.append(time.perf_counter() - started)
    return Cost(
        hosts,
        name,
        client.requests,
        (_statements(conn) - statements) // rounds,
        round(statistics.median(seconds), 3),
        round((_cpu_seconds(worker.pid) - cpu) / rounds, 3),
        round(_peak_mib(worker.pid), 1),
        round(client.bytes / 2**20, 2),
    )


def _statements(conn: sa.Connection) -> int:
    """Return the number of SELECT statements that the server has executed."""
    row = conn.exec_driver_sql("SHOW GLOBAL STATUS LIKE 'Com_select'").one()
    return int(row[1])


def _cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, in user and system mode."""
    fields = Path(f'/proc/{pid}/stat').read_text().rpartition(')')[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _peak_mib(pid: int) -> float:
    """Return the peak of the resident memory of a process."""
    for line in Path(f'/proc/{pid}/status').read_text().splitlines():
        if line.startswith('VmHWM:'):
            return int(line.split()[1]) / 1024
    raise ValueError(f'The process {pid} has no VmHWM')


if __name__ == '__main__':
    sys.exit(main())
