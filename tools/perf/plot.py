"""Draw diagrams from the results of other tools: ``python -m tools.perf.plot``.

This tool writes the SVG files of doc/source/admin/performance.rst. From the results of
`tools.perf.scale`, it draws the minimum duration of each request, because other processes affect
the minimum least. From the results of `tools.perf.boots`, it draws how many instances schedulers
start each second. Only this tool needs matplotlib, which `tox -e perf-plot` installs.
"""

import argparse
from collections.abc import Callable, Iterable
import csv
from pathlib import Path
import re
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot

from tools.perf import scale

Point = dict[str, str]

STYLE = {
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
_GROWS_WITH_RESPONSE = (
    'provider: inventories',
    'candidates: limit=10',
    'candidates: limit=1000',
    'candidates: 1 host in 100 fits, limit=10',
    'claim',
    'register a host, 4 requests',
)
_GROWS_WITH_CLOUD = (
    'providers: that fit, trait',
    'providers: all',
    'project usages',
    'candidates: nothing fits',
)
# The same for the measurements of `--million`.
_SAME_WITH_A_MILLION = (
    'provider: inventories',
    'claim',
    'candidates: limit=10',
    'candidates: limit=1000',
    'candidates: trait of 1 host, limit=10',
    'candidates: 1 host in 1,000 fits, limit=10',
)
_MORE_WITH_A_MILLION = (
    'candidates: 1 aggregate of 20, limit=1000',
    'candidates: rare trait, limit=1000',
    'candidates: 1 host fits, limit=10',
    'candidates: nothing fits',
)


def main() -> None:
    """Draw all diagrams from the CSV files that the command line names."""
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.plot',
        description='Draw how the cost of requests grows with the data.',
    )
    parser.add_argument(
        'data',
        type=Path,
        nargs='*',
        metavar='CSV',
        help='result files of tools.perf.scale or tools.perf.boots',
    )
    parser.add_argument(
        '--million',
        type=Path,
        nargs='+',
        default=[],
        metavar='CSV',
        help='result files of tools.perf.scale --million',
    )
    parser.add_argument(
        '--output', type=Path, required=True, metavar='FOLDER', help='directory for the SVG files'
    )
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    mpl.use('svg')
    with mpl.rc_context(STYLE):
        points, million = _read(options.data), _read(options.million)
        if scaled := [point for point in points if 'scenario' in point]:
            draw_hosts(scaled, options.output, 'hosts', _GROWS_WITH_RESPONSE, _GROWS_WITH_CLOUD)
            draw_limits(scaled, options.output / 'performance-limit.svg')
            draw_widths(scaled, options.output / 'performance-width.svg')
        draw_hosts(million, options.output, 'million', _SAME_WITH_A_MILLION, _MORE_WITH_A_MILLION)
        if boots := [point for point in points if 'schedulers' in point]:
            draw_boots(boots, options.output / 'performance-boots.svg')


def draw_boots(points: list[Point], path: Path) -> None:
    """Draw the started instances per second, and the time of one, by the number of schedulers."""
    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4))
    numbers = sorted({int(point['schedulers']) for point in points})
    for engine, limit in sorted({(point['engine'], int(point['limit'])) for point in points}):
        line = [
            point for point in points if (point['engine'], int(point['limit'])) == (engine, limit)
        ]
        line.sort(key=lambda point: int(point['schedulers']))
        x = [int(point['schedulers']) for point in line]
        name = f'{engine}, limit={limit}'
        rates = [float(point['boots_per_second']) for point in line]
        (drawn,) = axes[0].plot(x, rates, marker='o', markersize=3, label=name)
        for column, style, label in (('p50_ms', '-', name), ('p99_ms', ':', None)):
            values = [float(point[column]) for point in line]
            axes[1].plot(x, values, style, color=drawn.get_color(), label=label)
    _finish(axes[0], 'Started instances per second', 'schedulers')
    _finish(axes[1], 'Milliseconds: median, and 99th percentile (dotted)', 'schedulers')
    axes[0].set(yscale='linear', ylim=(0, None))
    for axis in axes:
        axis.set_xscale('log', base=2)
        axis.set_xticks(numbers, [str(number) for number in numbers])
    _save(figure, path)


def _read(paths: Iterable[Path]) -> list[Point]:
    points: list[Point] = []
    for path in paths:
        with path.open(newline='') as file:
            points += csv.DictReader(file)
    return points


def draw_hosts(
    points: list[Point], folder: Path, title: str, left: Iterable[str], right: Iterable[str]
) -> None:
    """Draw two diagrams for each database system: costs by the number of hosts.

    :param title: a part of the file name
    :param left: the scenarios whose cost depends on the response
    :param right: the scenarios whose cost depends on the number of hosts
    """
    for engine in sorted({point['engine'] for point in points}):
        of_engine = [point for point in points if point['engine'] == engine]
        figure, axes = pyplot.subplots(1, 2, figsize=(10, 4.4), sharey=True)
        for axis, heading, names in (
            (axes[0], 'Cost that depends on the response', left),
            (axes[1], 'Cost that depends on the number of hosts', right),
        ):
            for name in names:
                _line(axis, of_engine, name, lambda point: point['scenario'], 'hosts')
            _finish(axis, heading, 'hosts')
        axes[0].set_ylabel('milliseconds')
        _save(figure, folder / f'performance-{title}-{engine}.svg')


def draw_limits(points: list[Point], path: Path) -> None:
    """Draw the cost by the value of `limit`, with one line for each database system."""
    figure, axis = pyplot.subplots(figsize=(5.6, 3.8))
    limited = [
        {**point, 'limit': match[1]}
        for point in points
        if (match := re.fullmatch(r'limit=(\d+)', point['scenario']))
    ]
    for engine in sorted({point['engine'] for point in limited}):
        _line(axis, limited, engine, lambda point: point['engine'], 'limit')
    _finish(axis, f'Allocation candidates of {limited[0]["hosts"]} hosts', 'limit')
    axis.set_ylabel('milliseconds')
    _save(figure, path)


def draw_widths(points: list[Point], path: Path) -> None:
    """Draw the cost by the number of devices of a host, with one line for each number of groups."""
    engines = sorted({point['engine'] for point in points})
    figure, axes = pyplot.subplots(1, len(engines), figsize=(4.6 * len(engines), 3.8), sharey=True)
    for axis, engine in zip(axes if len(engines) > 1 else [axes], engines, strict=True):
        wide = [one for one in points if one['world'] == 'pci' and one['engine'] == engine]
        for name in sorted({point['scenario'] for point in wide}):
            _line(axis, wide, name, lambda point: point['scenario'], 'devices')
        _finish(axis, f'{scale.WIDE_HOSTS} hosts with devices, {engine}', 'devices of a host')
        axis.set_xscale('log', base=2)
        axis.set_ylim(bottom=1)
        axis.set_xticks(scale.WIDTHS, [str(width) for width in scale.WIDTHS])
    (axes[0] if len(engines) > 1 else axes).set_ylabel('milliseconds')
    _save(figure, path)


def _line(
    axis: Any, points: Iterable[Point], name: str, named: Callable[[Point], str], along: str
) -> None:
    coordinates = sorted(
        (int(point[along]), float(point['least_ms'])) for point in points if named(point) == name
    )
    axis.plot(
        [x for x, _ in coordinates],
        [y for _, y in coordinates],
        marker='o',
        markersize=3,
        label=name,
    )


def _finish(axis: Any, title: str, along: str) -> None:
    axis.set(title=title, xlabel=along, xscale='log', yscale='log')
    axis.yaxis.set_major_formatter(mpl.ticker.FormatStrFormatter('%g'))
    axis.xaxis.set_major_formatter(mpl.ticker.FuncFormatter(lambda x, _: f'{x:,.0f}'))
    axis.legend()


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    # Omit the date, so that identical data produces identical files.
    figure.savefig(path, metadata={'Date': None})
    pyplot.close(figure)
    path.write_text('\n'.join(line.rstrip() for line in path.read_text().splitlines()) + '\n')


if __name__ == '__main__':
    main()
