"""Measure the service on generated data: ``python -m tools.perf.measure SET``.

Run the tool in the top directory of the source tree. It starts a private database server, fills a
database with each generated world of the set, and prints a line for each measurement. With
``--output``, it also writes the lines to a CSV file. These are the sets:

requests  the SQL statements, the returned rows, the size of the responses, the milliseconds and
          the memory of each scenario. The application runs in the measuring process, without a web
          server. `ms` and `cpu_ms` are medians. `cpu_ms` is the part that Python and the database
          driver need; the database server needs the remaining time.
scale     the same for some scenarios and different numbers of hosts, devices per host, and values
          of ``limit``. By default, the largest world has a million consumers, so it runs for long.
million   the same on flat worlds of up to a million hosts with one consumer each
boots     how many instances schedulers can start each second. To start an instance, a scheduler
          gets allocation candidates from uWSGI, picks one of them at random, and claims it.
          Afterwards, it deletes one instance in four. The schedulers share the processor cores with
          the service and the database.
workers   requests per second of all threads in all processes that call the application, without a
          web server. The processes share the processor cores with the database.
commands  each command of `placement-manage` as a process; the processor seconds are those of the
          process, without the database server
scrape    three ways to read the capacity of all hosts over HTTP, on MariaDB: a scrape of
          `placement-manage exporter` that reads the database ("fresh"), one that returns an earlier
          result ("cached"), and the requests of an exporter that uses the API of waitress
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Sequence
import concurrent.futures
import contextlib
import csv
from dataclasses import dataclass, field
import functools
import http.client
import itertools
import math
import multiprocessing
import os
from pathlib import Path
import platform
import random
import statistics
import sys
import tempfile
import time
from typing import Any
import uuid

import orjson
import sqlalchemy as sa

from placement.admin.capacity_metrics import model
from placement.tests.functional.web import commands as servers
from tools import with_database
from tools.perf import databases, scenarios, service, worlds
from tools.perf.worlds import World

Row = dict[str, Any]
Options = argparse.Namespace

_MODULE = 'placement.wsgi.api'
_WARM_UP = 2  # repetitions
# Instances that are started first, so that each thread of the service has compiled its statements.
_FIRST_BOOTS = 16
# The maximum number of schedulers in one process. More would wait for each other.
_PER_PROCESS = 8
_DELETED = 0.25  # the share of instances that are deleted soon after their start
_HEADERS = {
    'X-Auth-Token': 'admin',
    'OpenStack-API-Version': 'placement latest',
    'Accept': 'application/json, text/plain',
    'Accept-Encoding': 'gzip',  # for the metrics
    'Content-Type': 'application/json',
}


@dataclass(frozen=True, slots=True)
class Target:
    """A database with a world.

    :ivar another: creates an empty database on the same server and returns its URL
    """

    url: str
    world: World
    another: Callable[[], str]


# A world, and the things to measure on it, by name; some sets measure only one thing.
Plan = tuple[World, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Set:
    """The plans of a set, the function that measures each of them, and the default options."""

    plans: Callable[[Options], Iterator[Plan]]
    measure: Callable[[Target, dict[str, Any], Options], Iterator[Row]]
    defaults: dict[str, Any] = field(default_factory=dict)


def main() -> int:
    """Print the measurements of a set, and return the exit status."""
    options = _parse()
    rows: list[Row] = []
    try:
        for row in _rows(options):
            if not rows:
                print(_line(row, row))
            print(_line(row, row.values()), flush=True)
            rows.append(row)
    except (with_database.ServerStartError, worlds.NotEmptyError, service.FailedError) as error:
        print(f'perf: {error}', file=sys.stderr)
        return 1
    if not rows:
        print('Nothing in this set has such a name', file=sys.stderr)
        return 1
    if options.output:
        with options.output.open('w', newline='') as file:
            writer = csv.DictWriter(file, list(rows[0]), lineterminator='\n')
            writer.writeheader()
            writer.writerows(rows)
    load, python = round(os.getloadavg()[0]), platform.python_version()
    print(f'{os.cpu_count()} cores, load {load}, {platform.system()}, Python {python}')
    return 0


def _line(names: Iterable[str], values: Iterable[Any]) -> str:
    return '  '.join(
        f'{value!s:>{_WIDE.get(name, max(len(name), 8))}}'
        for name, value in zip(names, values, strict=True)
    )


_WIDE = {'scenario': 43, 'Command': 24}


def _parse() -> Options:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.measure', description='Measure Placement on generated data.'
    )
    parser.add_argument('set', choices=SETS, help='what to measure')
    whole = {'type': int}
    several = {'type': int, 'nargs': '+'}
    for name, meaning, more in (
        ('engine', 'database system to start', {'choices': databases.ENGINES}),
        ('database', 'URL of existing databases; {name} stands for the name of a world', {}),
        ('existing', 'use or erase existing hosts of --database', {'choices': ('use', 'erase')}),
        ('only', 'texts of which "kind of world: name" must have one', {'nargs': '+'}),
        ('hosts', 'numbers of hosts', several),
        ('consumers', 'number of consumers of each host', whole),
        ('schedulers', 'numbers of schedulers', several),
        ('limits', 'values of the parameter limit', several),
        ('processes', 'numbers of processes of the service', several),
        ('threads', 'numbers of threads of the service', several),
        ('rounds', 'number of repetitions', whole),
        ('seconds', 'time limit of each measurement', {'type': float}),
        ('output', 'CSV file to write', {'type': Path}),
    ):
        parser.add_argument(f'--{name}', help=meaning, **more)
    parser.set_defaults(
        engine='sqlite', only=[''], hosts=[1000], consumers=10, rounds=7, seconds=15.0
    )
    parser.set_defaults(**SETS[parser.parse_args().set].defaults)
    options = parser.parse_args()
    if options.set == 'scrape' and 'mariadb' not in options.engine:
        parser.error('the set scrape needs MariaDB')
    return options


def _rows(options: Options) -> Iterator[Row]:
    with contextlib.ExitStack() as stack:
        if options.database:
            options.engine = sa.make_url(options.database).get_backend_name()
            create: databases.CreateDatabase = functools.partial(_url_of, options.database)
        else:
            create = stack.enter_context(databases.private(options.engine))
        used: set[str] = set()
        chosen = SETS[options.set]
        for world, everything in chosen.plans(options):
            things = {
                name: thing
                for name, thing in everything.items()
                if any(text in f'{world.kind}: {name}' for text in options.only)
            }
            if everything and not things:
                continue
            name = f'{world.kind}_{world.hosts}_{world.devices}'
            url = create(name)
            _load(name, url, world, 'erase' if url in used else options.existing)
            used.add(url)
            target = Target(url, world, functools.partial(create, f'{name}_imported'))
            yield from chosen.measure(target, things, options)


def _url_of(pattern: str, name: str) -> str:
    return pattern.format(name=name)


def _load(name: str, url: str, world: World, existing: str | None) -> None:
    try:
        loaded = service.in_new_process(_loaded, url, world, existing == 'erase')
    except worlds.NotEmptyError:
        if existing != 'use':
            raise
        return
    print(f'{name}: {loaded}', flush=True)


def _loaded(url: str, world: World, erase: bool) -> str:
    """Load a world, and return a sentence about the cost."""
    target = service.Service(url)
    begin = time.monotonic()
    worlds.load(target.engine, world, erase)
    seconds, size = time.monotonic() - begin, worlds.size_mib(target.engine)
    target.engine.dispose()
    database = f', database {size:.0f} MiB' if size else ''
    return f'loaded in {seconds:.0f} s, {service.peak_mib():.0f} MiB{database}'


# Requests ---------------------------------------------------------------------


def _all_kinds(options: Options) -> Iterator[Plan]:
    """Yield a world of each kind; a host of a tree has ten times as many rows."""
    for hosts, kind in itertools.product(options.hosts, worlds.KINDS):
        number = hosts if kind == 'flat' else max(hosts // 10, 1)
        yield World(kind, number, options.consumers), scenarios.SCENARIOS[kind]


def _flat(options: Options) -> Iterator[Plan]:
    for hosts in options.hosts:
        yield World('flat', hosts, options.consumers), {}


def _growing(options: Options) -> Iterator[Plan]:
    middle = sorted(options.hosts)[len(options.hosts) // 2]
    limits = {f'limit={limit}': scenarios.limited(limit) for limit in scenarios.LIMITS}
    flat = {name: scenarios.SCENARIOS['flat'][name] for name in scenarios.BY_HOSTS}
    for hosts in options.hosts:
        yield World('flat', hosts, options.consumers), flat | (limits if hosts == middle else {})
    for width in scenarios.WIDTHS:
        # A request for more devices than a host has returns no candidates.
        counts = [count for count in (1, 2, 4) if count <= width]
        paths = {f'{count} of them, limit=100': scenarios.devices(count, 100) for count in counts}
        yield World('pci', scenarios.WIDE_HOSTS, options.consumers, width), paths


def _millions(options: Options) -> Iterator[Plan]:
    flat = scenarios.SCENARIOS['flat']
    things = {name: flat[name] for name in flat if name not in scenarios.NOT_WITH_A_MILLION}
    for hosts in options.hosts:
        yield World('flat', hosts, options.consumers), things


def _requests(target: Target, things: dict[str, Any], options: Options) -> Iterator[Row]:
    rows: list[Row] = service.in_new_process(
        _measure_all, target.url, target.world, things, options
    )
    yield from rows


def _measure_all(url: str, world: World, things: dict[str, Any], options: Options) -> list[Row]:
    target = service.Service(url)
    rows = []
    for name, scenario in things.items():
        row = {
            'engine': options.engine,
            'world': world.kind,
            'hosts': world.hosts,
            'devices': world.devices,
            'scenario': name,
        }
        prepare = functools.partial(scenarios.requests, scenario, target.send, world)
        rows.append(row | _measured(target, prepare, options))
    target.engine.dispose()
    return rows


def _measured(
    target: service.Service, prepare: Callable[[int], list[service.Request]], options: Options
) -> Row:
    for number in range(_WARM_UP):
        for request in prepare(number):
            target.send(request)
    requests = prepare(_WARM_UP)
    with target.counted() as counts:
        size = sum(len(target.send(request)) for request in requests)
    service.reset_peak()
    walls: list[float] = []
    cpus: list[float] = []
    deadline = time.monotonic() + options.seconds
    while len(walls) < options.rounds and not (walls and time.monotonic() > deadline):
        requests = prepare(_WARM_UP + 1 + len(walls))
        wall, cpu = time.perf_counter(), time.process_time()
        for request in requests:
            target.send(request)
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    return {
        'statements': counts['statements'],
        'rows': counts['rows'],
        'bytes': size,
        'ms': round(statistics.median(walls), 2),
        'least_ms': round(min(walls), 2),
        'cpu_ms': round(statistics.median(cpus), 2),
        'peak_mib': round(service.peak_mib(), 1),
        'rounds': len(walls),
    }


# Throughput -------------------------------------------------------------------

# A function that works until a moment, and returns what it did.
Act = Callable[[float], Any]


def _concurrently(
    threads: Sequence[int], seconds: float, prepare: Callable[..., Act], *arguments: Any
) -> tuple[float, list[Any]]:
    """Act in a process for each of these numbers of threads at the same time.

    :param prepare: returns, in each process, the function that each thread calls
    :returns: the elapsed seconds, and the results of all threads
    """
    context = multiprocessing.get_context('spawn')
    # The barrier makes all processes begin at the same time, after every process has started.
    ready = context.Manager().Barrier(len(threads))
    with concurrent.futures.ProcessPoolExecutor(len(threads), mp_context=context) as pool:
        jobs = [
            pool.submit(_act, number, seconds, ready, prepare, *arguments) for number in threads
        ]
        done = [job.result() for job in jobs]
    return max(elapsed for elapsed, _ in done), [one for _, results in done for one in results]


def _act(
    threads: int, seconds: float, ready: Any, prepare: Callable[..., Act], *arguments: Any
) -> tuple[float, list[Any]]:
    act = prepare(*arguments)
    ready.wait()
    begin = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        results = list(pool.map(act, [begin + seconds] * threads))
    return time.monotonic() - begin, results


class Client:
    """Sends requests to a port of this machine.

    :param keep: whether to use one connection for all requests, if the server allows it
    """

    def __init__(self, port: int, keep: bool = False) -> None:
        self._connection = http.client.HTTPConnection('127.0.0.1', port, timeout=600)
        self._keep = keep
        self.requests = self.bytes = 0

    def send(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Send a request, and return the status and the body of the response."""
        content = None if body is None else orjson.dumps(body)
        self._connection.request(method, path, content, _HEADERS)
        response = self._connection.getresponse()
        received = response.read()
        if not self._keep:
            self._connection.close()
        self.requests += 1
        self.bytes += len(received)
        return response.status, received

    def get(self, path: str) -> bytes:
        """Return the body of a resource.

        :raises FailedError: the status is not 200 OK
        """
        status, body = self.send('GET', path)
        if status != http.client.OK:
            raise service.FailedError(f'{path}: {status} {body[:200]!r}')
        return body


def _boots(target: Target, _things: dict[str, Any], options: Options) -> Iterator[Row]:
    command = functools.partial(servers.uwsgi, processes=options.processes[0], module=_MODULE)
    with service.running(target.url, command) as server:
        for limit in options.limits:
            _boot(server.port, limit, count=_FIRST_BOOTS)
            for schedulers in options.schedulers:
                groups = [
                    min(_PER_PROCESS, schedulers - first)
                    for first in range(0, schedulers, _PER_PROCESS)
                ]
                seconds, done = _concurrently(
                    groups, options.seconds, functools.partial, _boot, server.port, limit
                )
                durations = sorted(one * 1000 for started, _, _ in done for one in started)
                yield {
                    'engine': options.engine,
                    'hosts': target.world.hosts,
                    'limit': limit,
                    'schedulers': schedulers,
                    'boots': len(durations),
                    'failures': sum(failures for _, _, failures in done),
                    'boots_per_second': round(len(durations) / seconds, 1),
                    'p50_ms': round(percentile(durations, 0.5), 1),
                    'p99_ms': round(percentile(durations, 0.99), 1),
                }
                # The next measurement begins with the same allocations.
                client = Client(server.port)
                for consumer in itertools.chain.from_iterable(left for _, left, _ in done):
                    client.send('DELETE', f'/allocations/{consumer}')


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of sorted values that this share does not exceed, 0 for no values."""
    return values[max(math.ceil(len(values) * share) - 1, 0)] if values else 0.0


def _boot(
    port: int, limit: int, until: float = math.inf, count: float = math.inf
) -> tuple[list[float], list[str], int]:
    """Start instances one after the other.

    :returns: the seconds of each start, the remaining consumers, and the number of failures
    """
    client, failures = Client(port), 0
    durations: list[float] = []
    consumers: list[str] = []
    while time.monotonic() < until and len(durations) + failures < count:
        begin = time.perf_counter()
        consumer = str(uuid.uuid4())
        if not _start_instance(client, limit, consumer):
            failures += 1
            continue
        durations.append(time.perf_counter() - begin)
        if random.random() < _DELETED:
            client.send('DELETE', f'/allocations/{consumer}')
        else:
            consumers.append(consumer)
    return durations, consumers, failures


def _start_instance(client: Client, limit: int, consumer: str) -> bool:
    """Claim a random candidate; return whether all requests succeeded."""
    status, body = client.send('GET', scenarios.limited(limit))
    candidates = orjson.loads(body)['allocation_requests'] if status == http.client.OK else ()
    if not candidates:
        return False
    allocations = random.choice(candidates)['allocations']
    claim = scenarios.claim_body(allocations, project=f'project-{random.randrange(20)}')
    status, _ = client.send('PUT', f'/allocations/{consumer}', claim)
    return status == http.client.NO_CONTENT


def _workers(target: Target, _things: dict[str, Any], options: Options) -> Iterator[Row]:
    for processes, threads in itertools.product(options.processes, options.threads):
        row = {'processes': processes, 'threads': threads}
        for name in ('claims', 'candidates'):
            seconds, counts = _concurrently(
                [threads] * processes, options.seconds, _caller, target.url, target.world, name
            )
            row[f'{name}/s'] = round(sum(counts) / seconds)
        yield row


def _caller(url: str, world: World, name: str) -> Act:
    target = service.Service(url)

    def send() -> None:
        consumer = str(uuid.uuid4())
        # Claims for random hosts seldom conflict with each other.
        claim = scenarios.claim(world.host(int(consumer[:8], 16)), consumer)
        read = service.Request('GET', scenarios.limited(10))
        target.send(claim if name == 'claims' else read)

    def act(until: float) -> int:
        count = 0
        while time.monotonic() < until:
            send()
            count += 1
        return count

    for _ in range(_WARM_UP):
        send()
    return act


# Commands and scrapes ---------------------------------------------------------


def _each_command(options: Options) -> Iterator[Plan]:
    for hosts, kind in itertools.product(options.hosts, worlds.KINDS):
        yield World(kind, hosts, options.consumers), dict(scenarios.commands(kind))


def _commands(target: Target, things: dict[str, Any], options: Options) -> Iterator[Row]:
    imported = ''
    with tempfile.TemporaryDirectory(prefix='placement-commands-') as folder:
        for name, arguments in things.items():
            if 'import' in name and not imported:
                imported = target.another()
                service.manage(imported, 'db', 'sync')
            url = imported if 'import' in name else target.url
            # Some commands report what they found with the status 1.
            cost = service.manage(url, *arguments, highest=1, cwd=folder)
            yield {
                'Database': options.engine,
                'World': target.world.kind,
                'Hosts': target.world.hosts,
                'Command': name,
                'Seconds': f'{cost.seconds:.1f}',
                'Processor seconds': f'{cost.cpu_seconds:.1f}',
                'MiB': f'{cost.peak_mib:.0f}',
            }


# Name -> the seconds for which the exporter may return an earlier result; None uses the API.
_SCRAPES = {'fresh': 0, 'cached': 3600, 'API': None}


def _scrapes(target: Target, _things: dict[str, Any], options: Options) -> Iterator[Row]:
    with sa.create_engine(target.url, isolation_level='AUTOCOMMIT').connect() as conn:
        for name, cache in _SCRAPES.items():
            command: Callable[[int], Sequence[str]] = (
                functools.partial(servers.waitress, module=_MODULE)
                if cache is None
                else functools.partial(_exporter, cache=cache)
            )
            rounds = 1 if cache is None else options.rounds
            with service.running(target.url, command) as server:
                # The first request connects to the database, and fills the cache.
                Client(server.port).get('/traits' if cache is None else '/metrics')
                statements, cpu = _statements(conn), service.cpu_seconds(server.pid)
                seconds = []
                for _ in range(rounds):
                    client = Client(server.port, keep=True)
                    started = time.perf_counter()
                    _scrape(client, cache is None)
                    seconds.append(time.perf_counter() - started)
                yield {
                    'hosts': target.world.hosts,
                    'scrape': name,
                    'requests': client.requests,
                    'statements': (_statements(conn) - statements) // rounds,
                    'seconds': round(statistics.median(seconds), 3),
                    'cpu_seconds': round((service.cpu_seconds(server.pid) - cpu) / rounds, 3),
                    'peak_mib': round(service.peak_mib(server.pid), 1),
                    'mib': round(client.bytes / 2**20, 2),
                }


def _exporter(port: int, cache: int) -> Sequence[str]:
    # The requests to the API do not read these metrics.
    without = ','.join(one.name for one in model.LABELED)
    options = ('--listen', f'127.0.0.1:{port}', '--cache', str(cache), '--without', without)
    return (sys.executable, '-m', 'placement.cmd.manage', 'exporter', *options)


def _scrape(client: Client, api: bool) -> None:
    if not api:
        client.get('/metrics')
        return
    for provider in orjson.loads(client.get('/resource_providers'))['resource_providers']:
        for suffix in ('', '/inventories', '/usages'):
            client.get(f'/resource_providers/{provider["uuid"]}{suffix}')


def _statements(conn: sa.Connection) -> int:
    """Return the number of SELECT statements that the server has executed."""
    return int(conn.exec_driver_sql("SHOW GLOBAL STATUS LIKE 'Com_select'").one()[1])


_SERVER = {'engine': 'mariadb', 'hosts': [10_000]}
SETS = {
    'requests': Set(_all_kinds, _requests),
    'scale': Set(_growing, _requests, {'hosts': [1000, 10_000, 100_000], 'seconds': 20}),
    'million': Set(
        _millions, _requests, {'hosts': [10_000, 100_000, 1_000_000], 'consumers': 1, 'seconds': 20}
    ),
    'boots': Set(
        _flat,
        _boots,
        _SERVER
        | {
            'processes': [2],
            'limits': [100, 1000],
            'schedulers': [1, 2, 4, 8, 16, 32],
            'seconds': 8,
        },
    ),
    'workers': Set(
        _flat, _workers, {'processes': [1, 2, 4], 'threads': [1, 2, 4, 8], 'seconds': 5}
    ),
    'commands': Set(_each_command, _commands, _SERVER),
    'scrape': Set(_flat, _scrapes, _SERVER | {'hosts': [1000, 10_000], 'rounds': 5}),
}


if __name__ == '__main__':
    sys.exit(main())
