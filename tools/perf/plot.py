"""Draw diagrams from the results of `measure`: ``python -m tools.perf.plot``.

This tool writes the SVG files of doc/source/admin/performance.rst. From the results of the sets
`scale` and `million`, it draws the minimum duration of each request, because other processes affect
the minimum least. From the results of the set `boots`, it draws how many instances schedulers start
each second. Only this tool needs matplotlib, which `tox -e perf-plot` installs.
"""

import argparse
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
import re
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

from tools.perf import scenarios
from tools.perf.table import Point, read

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
# Name of a diagram -> the scenarios whose cost depends on the response, and on the number of hosts.
_BY_HOSTS = {
    'hosts': (
        (
            'provider: inventories',
            'candidates: limit=10',
            'candidates: limit=1000',
            'candidates: 1 host in 100 fits, limit=10',
            'claim',
            'register a host, 4 requests',
        ),
        (
            'providers: that fit, trait',
            'providers: all',
            'project usages',
            'candidates: nothing fits',
        ),
    ),
    'million': (
        (
            'provider: inventories',
            'claim',
            'candidates: limit=10',
            'candidates: limit=1000',
            'candidates: trait of 1 host, limit=10',
            'candidates: 1 host in 1,000 fits, limit=10',
        ),
        (
            'candidates: 1 aggregate of 20, limit=1000',
            'candidates: rare trait, limit=1000',
            'candidates: 1 host fits, limit=10',
            'candidates: nothing fits',
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Diagram:
    """A part of a picture, with a line for each name.

    :ivar x: the column with the x coordinate
    :ivar names: the names of the lines
    :ivar name: returns the name of the line of a point
    :ivar ticks: the marks of the x axis, whose scale then has the base 2
    """

    title: str
    x: str
    points: Sequence[Point]
    names: Iterable[str]
    name: Callable[[Point], str] = lambda point: point['scenario']
    ticks: Sequence[int] = ()


def main() -> None:
    """Draw all diagrams from the CSV files that the command line names."""
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.plot', description='Draw the results of measurements.'
    )
    for name, count in (('data', '*'), ('--million', '+')):
        parser.add_argument(
            name, type=Path, nargs=count, default=[], metavar='CSV', help='files of tools.perf'
        )
    parser.add_argument('--output', type=Path, required=True, metavar='FOLDER')
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    mpl.use('svg')
    with mpl.rc_context(_STYLE):
        points = read(options.data)
        scaled = [point for point in points if 'scenario' in point]
        for title, found in (('hosts', scaled), ('million', read(options.million))):
            for engine in sorted({point['engine'] for point in found}):
                of_engine = [point for point in found if point['engine'] == engine]
                path = options.output / f'performance-{title}-{engine}.svg'
                _draw(path, (10, 4.4), _by_hosts(title, of_engine))
        if scaled:
            _draw(options.output / 'performance-limit.svg', (5.6, 3.8), [_by_limit(scaled)])
            widths = _by_width(scaled)
            size = (4.6 * len(widths), 3.8)
            _draw(options.output / 'performance-width.svg', size, widths)
        if boots := [point for point in points if 'schedulers' in point]:
            _draw_boots(boots, options.output / 'performance-boots.svg')


def _by_hosts(title: str, points: Sequence[Point]) -> list[Diagram]:
    response, hosts = _BY_HOSTS[title]
    return [
        Diagram('Cost that depends on the response', 'hosts', points, response),
        Diagram('Cost that depends on the number of hosts', 'hosts', points, hosts),
    ]


def _by_limit(points: Sequence[Point]) -> Diagram:
    limited = [
        {**point, 'limit': match[1]}
        for point in points
        if (match := re.fullmatch(r'limit=(\d+)', point['scenario']))
    ]
    title = f'Allocation candidates of {limited[0]["hosts"]} hosts'
    engines = sorted({point['engine'] for point in limited})
    return Diagram(title, 'limit', limited, engines, lambda point: point['engine'])


def _by_width(points: Sequence[Point]) -> list[Diagram]:
    diagrams = []
    for engine in sorted({point['engine'] for point in points}):
        wide = [one for one in points if one['world'] == 'pci' and one['engine'] == engine]
        names = sorted({point['scenario'] for point in wide})
        title = f'{scenarios.WIDE_HOSTS} hosts with devices, {engine}'
        diagrams.append(Diagram(title, 'devices', wide, names, ticks=scenarios.WIDTHS))
    return diagrams


def _draw(path: Path, size: tuple[float, float], diagrams: Sequence[Diagram]) -> None:
    figure, axes = pyplot.subplots(1, len(diagrams), figsize=size, sharey=True, squeeze=False)
    for axis, diagram in zip(axes[0], diagrams, strict=True):
        for name in diagram.names:
            line = sorted(
                (int(point[diagram.x]), float(point['least_ms']))
                for point in diagram.points
                if diagram.name(point) == name
            )
            axis.plot([x for x, _ in line], [y for _, y in line], **_MARKED, label=name)
        _finish(axis, diagram.title, 'devices of a host' if diagram.ticks else diagram.x)
        if diagram.ticks:
            axis.set_ylim(bottom=1)
            _set_ticks(axis, diagram.ticks)
    axes[0][0].set_ylabel('milliseconds')
    _save(figure, path)


def _draw_boots(points: Sequence[Point], path: Path) -> None:
    """Draw the started instances per second, and the time of one, by the number of schedulers."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4))
    for engine, limit in sorted({(point['engine'], int(point['limit'])) for point in points}):
        line = [one for one in points if (one['engine'], int(one['limit'])) == (engine, limit)]
        line.sort(key=lambda point: int(point['schedulers']))
        x = [int(point['schedulers']) for point in line]
        name = f'{engine}, limit={limit}'
        rates = [float(point['boots_per_second']) for point in line]
        (drawn,) = axes[0].plot(x, rates, **_MARKED, label=name)
        for column, style, label in (('p50_ms', '-', name), ('p99_ms', ':', None)):
            values = [float(point[column]) for point in line]
            axes[1].plot(x, values, style, color=drawn.get_color(), label=label)
    _finish(axes[0], 'Started instances per second', 'schedulers')
    _finish(axes[1], 'Milliseconds: median, and 99th percentile (dotted)', 'schedulers')
    axes[0].set(yscale='linear', ylim=(0, None))
    for axis in axes:
        _set_ticks(axis, sorted({int(point['schedulers']) for point in points}))
    _save(figure, path)


_MARKED = {'marker': 'o', 'markersize': 3}


def _finish(axis: Any, title: str, along: str) -> None:
    axis.set(title=title, xlabel=along, xscale='log', yscale='log')
    axis.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter('%g'))
    axis.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: f'{x:,.0f}'))
    axis.legend()


def _set_ticks(axis: Any, numbers: Sequence[int]) -> None:
    axis.set_xscale('log', base=2)
    axis.set_xticks(numbers, [str(number) for number in numbers])


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    # Omit the date, so that identical data produces identical files.
    figure.savefig(path, metadata={'Date': None})
    pyplot.close(figure)
    path.write_text('\n'.join(line.rstrip() for line in path.read_text().splitlines()) + '\n')


if __name__ == '__main__':
    main()
