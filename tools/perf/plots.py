"""Draw the plots of the performance guide from its CSV files: ``python -m tools.perf.plots``."""

from collections.abc import Callable, Mapping, Sequence
import csv
from dataclasses import dataclass
from html import escape
import math
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / 'doc' / 'source' / 'admin'
# The requests in the plot of the growth, and their labels.
REQUESTS = {
    'candidates: nothing fits': 'candidates, nothing fits',
    'candidates: rare trait, limit=1000': '1,000 candidates, rare trait',
    'candidates: 1 host in 1,000 fits, limit=10': '10 candidates, 1 host in 1,000 fits',
    'candidates: limit=1000': '1,000 candidates',
    'claim': 'claim',
    'candidates: limit=10': '10 candidates',
    'provider': 'read a provider',
}
_ENGINES = {'mariadb': 'MariaDB', 'postgresql': 'PostgreSQL'}
_COLORS = ('#b35806', '#08519c', '#1b7837', '#762a83', '#a50026', '#525252', '#01665e')
_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 760, 370, 60, 500, 34, 320
_LINE_HEIGHT = 17


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines in a diagram.

    :ivar labels: what the axes show, x first
    :ivar ticks: the values with a label on each axis; the first and the last are its ends
    :ivar scale: the scale of the y axis; the x axis is logarithmic
    :ivar lines: label -> points
    """

    labels: tuple[str, str]
    ticks: tuple[Sequence[float], Sequence[float]]
    scale: Callable[[float], float]
    lines: Mapping[str, Sequence[tuple[float, float]]]

    def svg(self) -> str:
        """Return the SVG document, with a white background for dark pages."""
        parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{_HEIGHT}"'
            f' viewBox="0 0 {_WIDTH} {_HEIGHT}" font-size="14" fill="#222222"'
            ' font-family="Arial, Helvetica, Liberation Sans, sans-serif">',
            f'<rect width="{_WIDTH}" height="{_HEIGHT}" fill="white"/>',
            *(self._x_tick(value) for value in self.ticks[0]),
            *(self._y_tick(value) for value in self.ticks[1]),
            _text((_LEFT + _RIGHT) / 2, _HEIGHT - 8, self.labels[0], 'middle'),
            _text(4, _TOP - 16, self.labels[1]),
        ]
        bottom = 0.0
        for color, label in zip(_COLORS, self._from_the_top(), strict=False):
            places = [(self._x(x), self._y(y)) for x, y in self.lines[label]]
            path = ' '.join(f'{x:.1f},{y:.1f}' for x, y in places)
            parts.append(f'<polyline points="{path}" fill="none" stroke="{color}"/>')
            parts += [_point(x, y, color) for x, y in places]
            # A label never covers the one above it.
            bottom = max(places[-1][1] + 5, bottom + _LINE_HEIGHT)
            parts.append(_text(_RIGHT + 10, bottom, label, color=color))
        return '\n'.join([*parts, '</svg>', ''])

    def _from_the_top(self) -> list[str]:
        return sorted(self.lines, key=lambda label: self._y(self.lines[label][-1][1]))

    def _x(self, value: float) -> float:
        first, last = math.log(self.ticks[0][0]), math.log(self.ticks[0][-1])
        return _LEFT + (_RIGHT - _LEFT) * (math.log(value) - first) / (last - first)

    def _y(self, value: float) -> float:
        first, last = self.scale(self.ticks[1][0]), self.scale(self.ticks[1][-1])
        return _BOTTOM - (_BOTTOM - _TOP) * (self.scale(value) - first) / (last - first)

    def _x_tick(self, value: float) -> str:
        x = self._x(value)
        line = f'<path d="M{x:.1f} {_TOP}V{_BOTTOM}" stroke="#dddddd"/>'
        return line + _text(x, _BOTTOM + 18, f'{value:,}', 'middle')

    def _y_tick(self, value: float) -> str:
        y = self._y(value)
        line = f'<path d="M{_LEFT} {y:.1f}H{_RIGHT}" stroke="#dddddd"/>'
        return line + _text(_LEFT - 8, y + 5, f'{value:,}', 'end')


def _text(x: float, y: float, text: str, anchor: str = 'start', color: str = '#222222') -> str:
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" fill="{color}"'
    return f'<text {place}>{escape(text)}</text>'


def _point(x: float, y: float, color: str) -> str:
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{color}"/>'


def _rows(name: str) -> list[dict[str, str]]:
    return list(csv.DictReader((FOLDER / f'{name}.csv').read_text().splitlines()))


def growth() -> Plot:
    """Return the plot of the time of requests by the number of hosts."""
    sizes = (10_000, 100_000, 1_000_000)
    rows = {row['Request']: row for row in _rows('performance-million')}
    lines = {
        label: [(size, float(rows[name][f'{size:,} hosts, ms'].replace(',', ''))) for size in sizes]
        for name, label in REQUESTS.items()
    }
    ticks = (sizes, (0.1, 1, 10, 100, 1000, 10_000))
    return Plot(('hosts', 'milliseconds'), ticks, math.log, lines)


def boots() -> Plot:
    """Return the plot of the started instances by the number of schedulers."""
    lines: dict[str, list[tuple[float, float]]] = {}
    rows = _rows('performance-boots')
    for row in sorted(rows, key=lambda row: (int(row['limit']), row['engine'] != 'mariadb')):
        label = f'{_ENGINES[row["engine"]]}, limit={row["limit"]}'
        point = (float(row['schedulers']), float(row['boots_per_second']))
        lines.setdefault(label, []).append(point)
    ticks = ((1, 2, 4, 8, 16, 32), (0, 50, 100, 150, 200, 250))
    return Plot(('schedulers', 'instances per second'), ticks, float, lines)


PLOTS: Mapping[str, Callable[[], Plot]] = {'growth': growth, 'boots': boots}


def path(name: str) -> Path:
    """Return the path of the SVG file of a plot."""
    return FOLDER / f'performance-{name}.svg'


def main() -> None:
    """Write the SVG files."""
    for name, plot in PLOTS.items():
        path(name).write_text(plot().svg())


if __name__ == '__main__':
    main()
