"""Measure the service on generated data: ``python -m tools.perf.measure SET``.

Run the tool in the top directory of the source tree. It starts a private database server, fills a
database with each generated world of the set, and prints a line for each measurement. With
``--output``, it also writes the lines to a CSV file. These are the sets:

requests  the SQL statements, the size of the responses, the milliseconds, and the memory of each
          scenario. The application runs in the measuring process, without a web
          server. `ms` and `cpu_ms` are medians. `cpu_ms` is the part that Python and the database
          driver need; the database server needs the remaining time.
million   the same for some requests to flat worlds of up to a million hosts with one consumer each
boots     how many instances schedulers can start each second. To start an instance, a scheduler
          gets allocation candidates from uWSGI, picks one of them at random, and claims it.
          Afterwards, it deletes one instance in four. The schedulers share the processor cores with
          the service and the database.
commands  each command of `placement-manage` as a process; the processor seconds are those of the
          process, without the database server
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

from placement.tests import statements
from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands as servers
from tools import with_database
from tools.perf import scenarios, service, worlds
from tools.perf.worlds import World

Row = dict[str, Any]
Options = argparse.Namespace

_MODULE = 'placement.wsgi.api'
_WARM_UP = 2  # repetitions
# Instances that are started first, so that each thread of the service has compiled its statements.
_FIRST_BOOTS = 16
_DELETED = 0.25  # the share of instances that are deleted soon after their start
_HEADERS = {
    'X-Auth-Token': 'admin',
    'OpenStack-API-Version': 'placement latest',
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
    except (with_database.ServerStartError, service.FailedError) as error:
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
    add = parser.add_argument
    add('--engine', choices=service.ENGINES, default='sqlite', help='database system to start')
    add('--only', nargs='+', default=[''], help='texts of which "kind: name" must have one')
    add('--hosts', type=int, nargs='+', default=[1000], help='numbers of hosts')
    add('--consumers', type=int, default=10, help='number of consumers of each host')
    add('--schedulers', type=int, nargs='+', default=[1, 2, 4, 8, 16, 32])
    add('--limits', type=int, nargs='+', default=[100, 1000], help='values of limit')
    add('--processes', type=int, default=2, help='number of processes of the service')
    add('--rounds', type=int, default=7, help='number of repetitions')
    add('--seconds', type=float, default=15.0, help='time limit of each measurement')
    add('--output', type=Path, help='CSV file to write')
    parser.set_defaults(**SETS[parser.parse_args().set].defaults)
    return parser.parse_args()


def _rows(options: Options) -> Iterator[Row]:
    with service.databases(options.engine) as create:
        chosen = SETS[options.set]
        for world, everything in chosen.plans(options):
            things = {
                name: thing
                for name, thing in everything.items()
                if any(text in f'{world.kind}: {name}' for text in options.only)
            }
            if everything and not things:
                continue
            name = f'{world.kind}_{world.hosts}'
            url = create(name)
            print(f'{name}: {service.in_new_process(_loaded, url, world)}', flush=True)
            target = Target(url, world, functools.partial(create, f'{name}_imported'))
            yield from chosen.measure(target, things, options)


def _loaded(url: str, world: World) -> str:
    """Load a world, and return a sentence about the cost."""
    target = service.Service(url)
    begin = time.monotonic()
    worlds.load(target.engine, world)
    target.engine.dispose()
    return f'loaded in {time.monotonic() - begin:.0f} s, {service.peak_mib():.0f} MiB'


# Requests ---------------------------------------------------------------------


def _all_kinds(options: Options) -> Iterator[Plan]:
    """Yield a world of each kind; a host of a tree has ten times as many rows."""
    for hosts, kind in itertools.product(options.hosts, worlds.KINDS):
        number = hosts if kind == 'flat' else max(hosts // 10, 1)
        yield World(kind, number, options.consumers), scenarios.named(kind)


def _flat(options: Options, million: bool = False) -> Iterator[Plan]:
    for hosts in options.hosts:
        yield World('flat', hosts, options.consumers), scenarios.named('flat', million)


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
    prepared = prepare(_WARM_UP)
    with statements.recorded(target.engine) as recorded:
        size = sum(len(target.send(request)) for request in prepared)
    service.reset_peak()
    walls: list[float] = []
    cpus: list[float] = []
    deadline = time.monotonic() + options.seconds
    while len(walls) < options.rounds and not (walls and time.monotonic() > deadline):
        prepared = prepare(_WARM_UP + 1 + len(walls))
        wall, cpu = time.perf_counter(), time.process_time()
        for request in prepared:
            target.send(request)
        walls.append((time.perf_counter() - wall) * 1000)
        cpus.append((time.process_time() - cpu) * 1000)
    return {
        'statements': len(recorded),
        'bytes': size,
        'ms': round(statistics.median(walls), 2),
        'cpu_ms': round(statistics.median(cpus), 2),
        'peak_mib': round(service.peak_mib(), 1),
        'rounds': len(walls),
    }


# Instances --------------------------------------------------------------------


def _boots(target: Target, _things: dict[str, Any], options: Options) -> Iterator[Row]:
    command = functools.partial(servers.uwsgi, processes=options.processes, module=_MODULE)
    with contextlib.ExitStack() as running:
        server = machines.Worker(target.url, command)
        running.callback(server.stop)
        for limit in options.limits:
            _boot(server.port, limit, count=_FIRST_BOOTS)
            for schedulers in options.schedulers:
                begin = time.monotonic()
                with concurrent.futures.ThreadPoolExecutor(schedulers) as pool:
                    start = functools.partial(_boot, server.port, limit)
                    done = list(pool.map(start, [begin + options.seconds] * schedulers))
                seconds = time.monotonic() - begin
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
                for consumer in itertools.chain.from_iterable(left for _, left, _ in done):
                    _send(server.port, 'DELETE', f'/allocations/{consumer}')


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of sorted values that this share does not exceed, 0 for no values."""
    return values[max(math.ceil(len(values) * share) - 1, 0)] if values else 0.0


def _boot(
    port: int, limit: int, until: float = math.inf, count: float = math.inf
) -> tuple[list[float], list[str], int]:
    """Start instances one after the other.

    :returns: the seconds of each start, the remaining consumers, and the number of failures
    """
    failures = 0
    durations: list[float] = []
    consumers: list[str] = []
    while time.monotonic() < until and len(durations) + failures < count:
        begin = time.perf_counter()
        consumer = str(uuid.uuid4())
        if not _start_instance(port, limit, consumer):
            failures += 1
            continue
        durations.append(time.perf_counter() - begin)
        if random.random() < _DELETED:
            _send(port, 'DELETE', f'/allocations/{consumer}')
        else:
            consumers.append(consumer)
    return durations, consumers, failures


def _start_instance(port: int, limit: int, consumer: str) -> bool:
    """Claim a random candidate; return whether all requests succeeded."""
    status, body = _send(port, 'GET', scenarios.limited(limit))
    candidates = orjson.loads(body)['allocation_requests'] if status == http.client.OK else ()
    if not candidates:
        return False
    allocations = random.choice(candidates)['allocations']
    claim = scenarios.claim_body(allocations, project=f'project-{random.randrange(20)}')
    status, _ = _send(port, 'PUT', f'/allocations/{consumer}', claim)
    return status == http.client.NO_CONTENT


def _send(port: int, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
    """Send a request, and return the status and the body of the response."""
    content = None if body is None else orjson.dumps(body)
    with contextlib.closing(http.client.HTTPConnection('127.0.0.1', port, timeout=600)) as conn:
        conn.request(method, path, content, _HEADERS)
        response = conn.getresponse()
        return response.status, response.read()


# Commands ---------------------------------------------------------------------


def _each_command(options: Options) -> Iterator[Plan]:
    for hosts, kind in itertools.product(options.hosts, worlds.KINDS):
        yield World(kind, hosts, options.consumers), scenarios.commands(kind)


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


_SERVER = {'engine': 'mariadb', 'hosts': [10_000]}
SETS = {
    'requests': Set(_all_kinds, _requests),
    'million': Set(
        functools.partial(_flat, million=True),
        _requests,
        {'hosts': [10_000, 100_000, 1_000_000], 'consumers': 1, 'seconds': 20},
    ),
    'boots': Set(_flat, _boots, _SERVER | {'seconds': 8}),
    'commands': Set(_each_command, _commands, _SERVER),
}


if __name__ == '__main__':
    sys.exit(main())
