"""Print tables of the results of `measure`: ``python -m tools.perf.table KIND CSV ...``.

The tool reads CSV files, and prints the data of doc/source/admin/performance.rst.

systems  a table of the set `requests` on several database systems. The number of statements, the
         size, the time in Python and the memory are those of the first system.
growth   a table of the set `million`. The memory is that with the most hosts.
"""

import argparse
from collections.abc import Iterator, Mapping, Sequence
import csv
from pathlib import Path
import sys

Point = Mapping[str, str]
_NAMES = {'mariadb': 'MariaDB', 'postgresql': 'PostgreSQL', 'sqlite': 'SQLite'}


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog='python -m tools.perf.table')
    parser.add_argument('kind', choices=_KINDS)
    parser.add_argument('data', type=Path, nargs='+', metavar='CSV', help='files of measure')
    options = parser.parse_args()
    points = [row for path in options.data for row in csv.DictReader(path.read_text().splitlines())]
    csv.writer(sys.stdout, lineterminator='\n').writerows(_KINDS[options.kind](points))


def _systems(points: Sequence[Point]) -> Iterator[Sequence[object]]:
    engines = list(dict.fromkeys(point['engine'] for point in points))
    milliseconds = {
        (point['world'], point['scenario'], point['engine']): _short(point['ms'])
        for point in points
    }
    columns = [f'{_NAMES.get(engine, engine)} ms' for engine in engines]
    yield ['Request', 'Statements', 'KiB', *columns, 'in Python ms', 'MiB']
    world = ''
    for point in (one for one in points if one['engine'] == engines[0]):
        if point['world'] != world:
            world = point['world']
            heading = f'**{world}, {int(point["hosts"]):,} hosts**'
            yield [heading, *[''] * (len(engines) + 4)]
        yield [
            point['scenario'],
            point['statements'],
            _short(int(point['bytes']) / 1024),
            *(milliseconds.get((world, point['scenario'], engine), '') for engine in engines),
            _short(point['cpu_ms']),
            round(float(point['peak_mib'])),
        ]


def _growth(points: Sequence[Point]) -> Iterator[Sequence[object]]:
    sizes = sorted({int(point['hosts']) for point in points})
    yield ['Request', *(f'{size:,} hosts, ms' for size in sizes), 'Growth', 'MiB']
    for name in dict.fromkeys(point['scenario'] for point in points):
        by_size = {int(point['hosts']): point for point in points if point['scenario'] == name}
        durations = [float(by_size[size]['ms']) for size in sizes]
        memory = round(float(by_size[sizes[-1]]['peak_mib']))
        yield [name, *map(_short, durations), _short(durations[-1] / durations[0]), memory]


def _short(number: str | float) -> str:
    """Format a number: one decimal place if it is less than 10, otherwise no decimal places."""
    return f'{float(number):.1f}' if float(number) < 10 else f'{float(number):,.0f}'


_KINDS = {'systems': _systems, 'growth': _growth}

if __name__ == '__main__':
    main()
