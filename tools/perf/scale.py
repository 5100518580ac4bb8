"""Measure how the cost of requests grows with the data: ``python -m tools.perf.scale``.

Run the tool in the top directory of the source tree. It measures the cost for different numbers of
hosts, devices per host, and values of ``limit``. The tool writes each measurement as a line of a
CSV file, from which `tools.perf.plot` draws diagrams. By default, the largest world has a million
consumers, so the tool runs for a long time.

With `--million`, the tool measures flat worlds of up to a million hosts instead. Each host has one
consumer. The tool also prints how long it took to load each world, and the size of the database.
"""

import argparse
from collections.abc import Iterator, Sequence
import contextlib
import csv
from dataclasses import asdict, dataclass, field
from pathlib import Path
import sys

from tools import with_database
from tools.perf import __main__ as perf
from tools.perf import databases, loading, measure, scenarios
from tools.perf.worlds import World

# The names of the scenarios that are measured on worlds with different numbers of hosts.
BY_HOSTS = (
    'provider: inventories',
    'providers: by name',
    'providers: that fit, trait',
    'providers: all',
    'project usages',
    'candidates: limit=10',
    'candidates: limit=1000',
    'candidates: rare trait, limit=10',
    'candidates: 1 host in 100 fits, limit=10',
    'candidates: nothing fits',
    'claim',
    'register a host, 4 requests',
)
# The names of the scenarios of `--million`. None of them returns all hosts.
MILLION = (
    'provider',
    'provider: inventories',
    'provider: usages',
    'provider: traits',
    'provider: aggregates',
    'provider: allocations',
    'consumer: allocations',
    'providers: by name',
    'claim',
    'release',
    'register a host, 4 requests',
    'candidates: limit=10',
    'candidates: limit=1000',
    'candidates: common trait, limit=1000',
    'candidates: 1 aggregate of 20, limit=1000',
    'candidates: rare trait, limit=10',
    'candidates: rare trait, limit=1000',
    'candidates: trait of 1 host, limit=10',
    'candidates: 1 host in 100 fits, limit=10',
    'candidates: 1 host in 1,000 fits, limit=10',
    'candidates: 1 host fits, limit=10',
    'candidates: nothing fits',
)
SIZES = (1000, 10_000, 100_000)
MILLION_SIZES = (10_000, 100_000, 1_000_000)
LIMITS = (1, 10, 30, 100, 300, 1000, 3000, 10000)
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
WIDE_HOSTS = 100


@dataclass(frozen=True, slots=True)
class Plan:
    """A world and the measurements on that world.

    :param name: the name of the database
    :param scenarios: the names of the scenarios to measure
    :param paths: the paths to measure, by scenario name
    """

    name: str
    world: World
    scenarios: tuple[str, ...] = ()
    paths: dict[str, str] = field(default_factory=dict)


def main() -> int:
    """Measure all worlds, write the results to a file, and return the exit status."""
    options = _parse()
    try:
        results = list(_run(options))
    except (with_database.ServerStartError, loading.NotEmptyError) as error:
        print(f'perf.scale: {error}', file=sys.stderr)
        return 1
    with options.output.open('w', newline='') as file:
        writer = csv.DictWriter(file, list(results[0]), lineterminator='\n')
        writer.writeheader()
        writer.writerows(results)
    print(f'Wrote {options.output}; machine: {perf.machine()}')
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.scale',
        description='Measure how the cost of requests grows with the data.',
    )
    parser.add_argument(
        '--engine', choices=databases.ENGINES, default='sqlite', help='database system to start'
    )
    parser.add_argument(
        '--database',
        metavar='URL',
        help='use existing databases; {name} in the URL is replaced with the name of the world; a '
        'database that already contains hosts is used without changes',
    )
    parser.add_argument('--hosts', type=int, nargs='+', help=f'numbers of hosts; default: {SIZES}')
    parser.add_argument(
        '--million',
        action='store_true',
        help='measure flat worlds with one consumer on each host; default of --hosts: '
        f'{MILLION_SIZES}',
    )
    parser.add_argument(
        '--rounds', type=int, default=7, help='number of repetitions of each request'
    )
    parser.add_argument(
        '--seconds', type=float, default=20, help='time limit for each request in seconds'
    )
    parser.add_argument('--output', type=Path, required=True, metavar='CSV', help='file to write')
    return parser.parse_args()


def _plans(options: argparse.Namespace) -> Iterator[Plan]:
    if not options.million:
        return _growth(options.hosts or SIZES)
    sizes = options.hosts or MILLION_SIZES
    return (Plan(f'flat_{hosts}', World('flat', hosts, consumers=1), MILLION) for hosts in sizes)


def _growth(sizes: Sequence[int]) -> Iterator[Plan]:
    middle = sorted(sizes)[len(sizes) // 2]
    for hosts in sizes:
        paths = {f'limit={limit}': scenarios.limited(limit) for limit in LIMITS}
        yield Plan(
            f'flat_{hosts}', World('flat', hosts), BY_HOSTS, paths if hosts == middle else {}
        )
    for width in WIDTHS:
        world = World('pci', WIDE_HOSTS, devices=width)
        # A request for more devices than a host has returns no candidates.
        counts = [count for count in (1, 2, 4) if count <= width]
        paths = {f'{count} of them, limit=100': scenarios.devices(count, 100) for count in counts}
        yield Plan(f'pci_{width}', world, paths=paths)


def _run(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    repetition = measure.Repetition(options.rounds, options.seconds)
    with contextlib.ExitStack() as stack:
        engine, create_database = options.engine, None
        if options.database:
            engine = options.database.partition(':')[0].partition('+')[0]
        else:
            create_database = stack.enter_context(databases.private(engine))
        for plan in _plans(options):
            name, world = plan.name, plan.world
            url = create_database(name) if create_database else options.database.format(name=name)
            try:
                cost = measure.in_new_process(measure.build, url, world, False)
                print(_loaded(name, cost), flush=True)
            except loading.NotEmptyError:
                if create_database:
                    raise
            results = measure.in_new_process(
                measure.measure, url, world, plan.scenarios, repetition
            )
            results += measure.in_new_process(
                measure.measure_paths, url, world, plan.paths, repetition
            )
            for result in results:
                print(
                    f'{name:14} {result.scenario:44} {result.ms:10.2f} ms '
                    f'{result.cpu_ms:10.2f} cpu ms {result.peak_mib:6.0f} MiB',
                    flush=True,
                )
                yield {'engine': engine, **asdict(result)}


def _loaded(name: str, cost: measure.Loading) -> str:
    size = '' if cost.database_mib is None else f', database {cost.database_mib:.0f} MiB'
    return f'{name:14} loaded in {cost.seconds:.0f} s, {cost.peak_mib:.0f} MiB{size}'


if __name__ == '__main__':
    sys.exit(main())
