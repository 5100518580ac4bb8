"""Draw the dashboard of the exporter: ``python -m tools.dashboard_picture``.

The tool registers the demo cloud, and starts the exporter and Prometheus. While consumers come and
go, Prometheus reads the metrics. The tool then executes the queries of the dashboard and draws the
results with matplotlib, which `pip install matplotlib` installs.
"""

from collections.abc import Callable, Iterator, Mapping
import contextlib
import functools
import json
import logging
import os
from pathlib import Path
import random
import sys
import tempfile
import time
from typing import Any
import urllib.parse
import urllib.request
import uuid

import matplotlib as mpl
from matplotlib import pyplot

from placement.tests.functional.faults import machines
from placement.tests.functional.web import commands, prometheus_pages
from tools.perf import plot

PICTURE = prometheus_pages.FOLDER / 'exporter-dashboard.svg'
CLASS = 'VCPU'
SECONDS = 90
HEADROOM = {
    'small': 'resources=VCPU:2,MEMORY_MB:4096&root_required=!COMPUTE_STATUS_DISABLED',
    'large': 'resources=VCPU:8,MEMORY_MB:16384&root_required=!COMPUTE_STATUS_DISABLED',
}
CLAIM = '/allocation_candidates?limit=200&resources=VCPU:4,MEMORY_MB:4096,DISK_GB:20'
# The number of columns of a dashboard, and the height of a row in inches.
COLUMNS, ROW = 24, 0.3
# A legend of more series stands beside the diagram.
_LEGEND = 4

Panel = Mapping[str, Any]
# Sends a request to Placement: the method, the path, and the body.
Send = Callable[[str, str, Any], tuple[int, Any]]


def main() -> None:
    """Run the demo cloud for some time, and draw the dashboard."""
    mpl.use('svg')
    with tempfile.TemporaryDirectory(prefix='placement-dashboard-') as folder:
        send = _demo_cloud(Path(folder))
        with _prometheus(Path(folder)) as url:
            _come_and_go(send)
            with mpl.rc_context(plot.STYLE):
                _draw(url)
    print(PICTURE)


def _demo_cloud(folder: Path) -> Send:
    """Register the demo cloud in a new database; return what sends requests to it."""
    os.environ['OS_PLACEMENT_DATABASE__CONNECTION'] = f'sqlite:///{folder}/placement.db'
    sys.path.insert(0, str(Path(__file__).parent))
    import demo

    application = demo.application(None)
    demo.register_in(application)
    logging.disable(logging.WARNING)
    send: Send = demo.application_sender(application)
    return send


@contextlib.contextmanager
def _prometheus(folder: Path) -> Iterator[str]:
    """Start the exporter and Prometheus, and yield the URL of its API."""
    options = [f'--headroom={name}={query}' for name, query in HEADROOM.items()]
    manage = (sys.executable, '-m', 'placement.cmd.manage', 'exporter', '--cache', '0')
    exporter = machines.Worker(
        os.environ['OS_PLACEMENT_DATABASE__CONNECTION'],
        lambda port: [
            *(*manage, *options, '--headroom-interval', '1'),
            *('--listen', f'127.0.0.1:{port}'),
        ],
    )
    try:
        command = functools.partial(commands.prometheus, targets=[exporter.port], folder=folder)
        monitor = machines.Worker('', command)
        try:
            yield f'http://127.0.0.1:{monitor.port}/api/v1'
        finally:
            monitor.stop()
    finally:
        exporter.stop()


def _come_and_go(send: Send) -> None:
    """Claim and delete allocations. In the first part, more consumers come than go."""
    draw = random.Random(5)
    consumers: list[str] = []
    start = time.monotonic()
    while (elapsed := time.monotonic() - start) < SECONDS:
        if draw.random() < (0.75 if elapsed < SECONDS * 0.6 else 0.35):
            consumers.append(str(uuid.UUID(int=draw.getrandbits(128), version=4)))
            found = send('GET', CLAIM, None)[1]['allocation_requests']
            body = {
                **draw.choice(found),
                'project_id': draw.choice(('web-shop', 'research', 'tools')),
                'user_id': 'dashboard',
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            }
            send('PUT', f'/allocations/{consumers[-1]}', body)
        elif consumers:
            send('DELETE', f'/allocations/{consumers.pop(draw.randrange(len(consumers)))}', None)
        time.sleep(0.5)


def _get(url: str, **parameters: Any) -> list[dict[str, Any]]:
    with urllib.request.urlopen(f'{url}?{urllib.parse.urlencode(parameters)}') as response:
        result: list[dict[str, Any]] = json.load(response)['data']['result']
    return result


def _draw(url: str) -> None:
    text = prometheus_pages.DASHBOARD.read_text().replace('$resourcetype', CLASS)
    panels = json.loads(text)['panels']
    rows = max(panel['gridPos']['y'] + panel['gridPos']['h'] for panel in panels)
    figure = pyplot.figure(figsize=(11, rows * ROW))
    for panel in panels:
        place = panel['gridPos']
        left, right = (place['x'] + 2.6) / COLUMNS, (place['x'] + place['w'] - 0.5) / COLUMNS
        top, bottom = 1 - (place['y'] + 1.2) / rows, 1 - (place['y'] + place['h'] - 1.2) / rows
        axes = figure.add_axes((left, bottom, right - left, top - bottom))
        title = f'{panel["title"]}, %' if _factor(panel) == 100 else panel['title']
        axes.set_title(title, loc='left', fontsize=10, fontweight='bold')
        _DRAW[panel['type']](axes, panel, url)
    figure.savefig(PICTURE, metadata={'Date': None, 'Creator': None})


def _label(panel: Panel, number: int, metric: Mapping[str, str]) -> str:
    """Return the label of a series; of a UUID, only the start."""
    label = str(panel['targets'][number]['legendFormat'])
    for name, value in metric.items():
        label = label.replace(f'{{{{{name}}}}}', value[:8] if name == 'aggregate' else value)
    return label


def _draw_series(axes: Any, panel: Panel, url: str) -> None:
    end = time.time()
    for number, target in enumerate(panel['targets']):
        found = _get(
            f'{url}/query_range', query=target['expr'], start=end - SECONDS, end=end, step=1
        )
        for series in found:
            times, values = zip(*series['values'], strict=True)
            points = [float(value) * _factor(panel) for value in values]
            label = _label(panel, number, series['metric'])
            axes.plot([one - end for one in times], points, label=label)
    axes.set(ylim=(0, None), xlim=(-SECONDS, 0))
    axes.set_xlabel('seconds', loc='right', fontsize=7, labelpad=-1)
    if len(axes.lines) <= _LEGEND:
        axes.legend(loc='lower left', ncols=2)
        return
    place = axes.get_position()
    axes.set_position((place.x0, place.y0, place.width * 0.6, place.height))
    axes.legend(loc='center left', bbox_to_anchor=(1, 0.5))


def _draw_bars(axes: Any, panel: Panel, url: str) -> None:
    found = _get(f'{url}/query', query=panel['targets'][0]['expr'])
    found.sort(key=lambda one: float(one['value'][1]))
    values = [float(one['value'][1]) * _factor(panel) for one in found]
    labels = [_label(panel, 0, one['metric']) for one in found]
    axes.barh(labels, values)
    axes.grid(visible=False, axis='y')


def _factor(panel: Panel) -> int:
    return 100 if panel['fieldConfig']['defaults'].get('unit') == 'percentunit' else 1


def _draw_number(axes: Any, panel: Panel, url: str) -> None:
    (found,) = _get(f'{url}/query', query=panel['targets'][0]['expr'])
    text = found['value'][1]
    for mapping in panel['fieldConfig']['defaults'].get('mappings', ()):
        text = mapping['options'][text]['text']
    axes.axis('off')
    axes.text(0, 0.4, text, fontsize=20, verticalalignment='center')


def _draw_table(axes: Any, panel: Panel, url: str) -> None:
    found = _get(f'{url}/query', query=panel['targets'][0]['expr'])
    names = list(found[0]['metric'])
    axes.axis('off')
    cells = [[*(one['metric'][name] for name in names), one['value'][1]] for one in found]
    axes.table(cells, colLabels=[*names, 'Value'], loc='upper left', cellLoc='left')


_DRAW: Mapping[str, Callable[[Any, Panel, str], None]] = {
    'timeseries': _draw_series,
    'bargauge': _draw_bars,
    'stat': _draw_number,
    'table': _draw_table,
}


if __name__ == '__main__':
    main()
