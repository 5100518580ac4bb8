"""Measure how cost grows: ``python -m tools.perf.scale``, run at the top of the source tree.

With the number of hosts, with the width of trees, and with ``limit``. What was measured is written
to a CSV file, one line for each point; `tools.perf.plot` draws it. The largest world takes a while
to build: its consumers are counted in millions.
"""

import argparse
from collections.abc import Iterator
import contextlib
import csv
from dataclasses import asdict
from pathlib import Path
import sys

from tools import with_database
from tools.perf import __main__ as perf
from tools.perf import databases, measure, scenarios, worlds
from tools.perf.worlds import World

# Scenarios whose cost is followed from small clouds to large ones.
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
LIMITS = (1, 10, 30, 100, 300, 1000, 3000, 10000)
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
WIDE_HOSTS = 100

# A world, and what is measured on it: scenarios by name, or paths by a name for them.
Plan = tuple[str, World, list[str], dict[str, str]]


def main() -> int:
    options = _parse()
    try:
        results = list(_run(options))
    except (with_database.ServerStartError, worlds.NotEmpty) as error:
        print(f'perf.scale: {error}', file=sys.stderr)
        return 1
    with options.output.open('w', newline='') as file:
        writer = csv.DictWriter(file, list(results[0]), lineterminator='\n')
        writer.writeheader()
        writer.writerows(results)
    print(f'Written to {options.output}; measured on {perf.machine()}')
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.scale', description='Measure how the cost of requests grows.'
    )
    parser.add_argument('--engine', choices=databases.ENGINES, default='sqlite')
    parser.add_argument(
        '--database',
        metavar='URL',
        help='use databases that exist; {name} in it becomes the name of a world, and one that '
        'has hosts already is taken to be the world of an earlier run',
    )
    parser.add_argument(
        '--hosts', type=int, nargs='+', default=[1000, 10_000, 100_000], help='sizes of the cloud'
    )
    parser.add_argument('--rounds', type=int, default=7, help='times that each request is made')
    parser.add_argument('--seconds', type=float, default=20, help='at most for each request')
    parser.add_argument('--output', type=Path, required=True, metavar='CSV')
    return parser.parse_args()


def _plans(sizes: list[int]) -> Iterator[Plan]:
    middle = sorted(sizes)[len(sizes) // 2]
    for hosts in sizes:
        paths = {f'limit={limit}': scenarios.limited(limit) for limit in LIMITS}
        yield (
            f'flat_{hosts}',
            World('flat', hosts),
            list(BY_HOSTS),
            paths if hosts == middle else {},
        )
    for width in WIDTHS:
        world = World('pci', WIDE_HOSTS, devices=width)
        # A tree of one device has nothing for two.
        counts = [count for count in (1, 2, 4) if count <= width]
        yield (
            f'pci_{width}',
            world,
            [],
            {f'{count} of them, limit=100': scenarios.devices(count, 100) for count in counts},
        )


def _run(options: argparse.Namespace) -> Iterator[dict[str, object]]:
    effort = measure.Effort(options.rounds, options.seconds)
    with contextlib.ExitStack() as stack:
        engine, make = options.engine, None
        if options.database:
            engine = options.database.partition(':')[0].partition('+')[0]
        else:
            make = stack.enter_context(databases.private(engine))
        for name, world, names, paths in _plans(options.hosts):
            url = make(name) if make else options.database.format(name=name)
            try:
                measure.apart(measure.build, url, world, False)
            except worlds.NotEmpty:
                if make:
                    raise
            results = measure.apart(measure.measure, url, world, names, effort)
            results += measure.apart(measure.measure_paths, url, world, paths, effort)
            for result in results:
                print(
                    f'{name:14} {result.scenario:44} {result.ms:10.2f} ms '
                    f'{result.cpu_ms:10.2f} cpu ms {result.peak_mib:6.0f} MiB',
                    flush=True,
                )
                yield {'engine': engine, **asdict(result)}


if __name__ == '__main__':
    sys.exit(main())
