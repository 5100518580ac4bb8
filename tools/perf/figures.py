"""Print tables and draw diagrams of the results of `measure`: ``python -m tools.perf.figures``.

The tool reads CSV files, and writes the tables and diagrams of doc/source/admin/performance.rst.

systems  a table of the set `requests` on several database systems. The number of statements, the
         size, the time in Python and the memory are those of the first system.
growth   a table of the set `million`. The memory is that with the most hosts.
plot     the diagrams of the sets `scale`, `million` and `boots`. They show the minimum duration of
         a request, because other processes affect the minimum least. Only this needs matplotlib,
         which `tox -e perf-plot` installs.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
import csv
from pathlib import Path
import sys
from typing import Any

import yaml

Point = Mapping[str, str]
# The points of each line of a diagram by the name of the line.
Lines = dict[str, list[tuple[int, float]]]
_NAMES = {'mariadb': 'MariaDB', 'postgresql': 'PostgreSQL', 'sqlite': 'SQLite'}
# Name of a diagram -> the scenarios whose cost depends on the response, and on the number of hosts.
_BY_HOSTS: dict[str, list[list[str]]] = yaml.safe_load(
    Path(__file__).with_name('scenarios.yaml').read_text()
)['diagrams']
_STYLE = {
    'font.size': 9,
    'axes.spines.top': False,
    'axes.spines.right': False,
    'axes.grid': True,
    'grid.alpha': 0.3,
    'legend.frameon': False,
    'legend.fontsize': 8,
    'svg.fonttype': 'none',  # write text as text, not as paths
    'svg.hashsalt': 'placement',  # write identical files for identical data
}


def main() -> None:
    """Print a table, or draw all diagrams for which there is data."""
    parser = argparse.ArgumentParser(prog='python -m tools.perf.figures')
    parser.add_argument('kind', choices=('systems', 'growth', 'plot'))
    parser.add_argument('data', type=Path, nargs='+', metavar='CSV', help='files of measure')
    parser.add_argument('--output', type=Path, default=Path(), metavar='FOLDER')
    options = parser.parse_args()
    points = [row for path in options.data for row in csv.DictReader(path.read_text().splitlines())]
    if options.kind == 'plot':
        for name, panels in _diagrams(points):
            _draw(options.output / f'performance-{name}.svg', panels)
    else:
        rows = _growth if options.kind == 'growth' else _systems
        csv.writer(sys.stdout, lineterminator='\n').writerows(rows(points))


# Tables -----------------------------------------------------------------------


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


# Diagrams ---------------------------------------------------------------------


def _diagrams(points: Sequence[Point]) -> Iterator[tuple[str, list[tuple[str, str, Lines]]]]:
    """Yield the name of each diagram, and the title, the x axis and the lines of its panels."""
    engines = sorted({point['engine'] for point in points})
    by_hosts = [point for point in points if point.get('world') == 'flat']
    for engine in engines:
        found = [point for point in by_hosts if point['engine'] == engine]
        if found:
            kind = 'million' if any(point['hosts'] == '1000000' for point in found) else 'hosts'
            titles = 'Cost that depends on the response', 'Cost that depends on the number of hosts'
            panels = zip(titles, _BY_HOSTS[kind], strict=True)
            yield (
                f'{kind}-{engine}',
                [(title, 'hosts', _lines(found, 'hosts', names)) for title, names in panels],
            )
    wide = {
        engine: [one for one in points if one['engine'] == engine and one.get('world') == 'pci']
        for engine in engines
    }
    if any(wide.values()):
        yield (
            'width',
            [
                (f'Hosts with devices, {engine}', 'devices', _lines(found, 'devices', names))
                for engine, found in wide.items()
                if (names := sorted({point['scenario'] for point in found}))
            ],
        )
    limited = [
        {**point, 'limit': point['scenario'][6:], 'scenario': point['engine']}
        for point in points
        if point.get('scenario', '').startswith('limit=')
    ]
    if limited:
        title = f'Allocation candidates of {limited[0]["hosts"]} hosts'
        yield 'limit', [(title, 'limit', _lines(limited, 'limit', engines))]
    if boots := [
        {**point, 'scenario': f'{point["engine"]}, limit={point["limit"]}'}
        for point in points
        if 'schedulers' in point
    ]:
        names = sorted({point['scenario'] for point in boots})
        yield (
            'boots',
            [
                (title, 'schedulers', _lines(boots, 'schedulers', names, column))
                for title, column in (
                    ('Started instances per second', 'boots_per_second'),
                    ('Milliseconds: median', 'p50_ms'),
                    ('Milliseconds: 99th percentile', 'p99_ms'),
                )
            ],
        )


def _lines(points: Sequence[Point], x: str, names: Iterable[str], y: str = 'least_ms') -> Lines:
    return {
        name: sorted(
            (int(point[x]), float(point[y])) for point in points if point['scenario'] == name
        )
        for name in names
    }


def _draw(path: Path, panels: Sequence[tuple[str, str, Lines]]) -> None:
    import matplotlib as mpl
    from matplotlib import pyplot

    mpl.use('svg')
    with mpl.rc_context(_STYLE):
        figure, axes = pyplot.subplots(
            1, len(panels), figsize=(5 * len(panels), 4.2), squeeze=False
        )
        axis: Any
        for axis, (title, along, lines) in zip(axes[0], panels, strict=True):
            for name, line in lines.items():
                axis.plot(*zip(*line, strict=True), marker='o', markersize=3, label=name)
            axis.set(title=title, xlabel=along, xscale='log', yscale='log')
            axis.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter('%g'))
            axis.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: f'{x:,.0f}'))
            axis.legend()
        figure.tight_layout()
        # Omit the date, so that identical data produces identical files.
        figure.savefig(path, metadata={'Date': None})
        pyplot.close(figure)
    path.write_text('\n'.join(line.rstrip() for line in path.read_text().splitlines()) + '\n')


if __name__ == '__main__':
    main()
