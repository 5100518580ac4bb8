"""Print the results of several database systems in a table: ``python -m tools.perf.table``.

This tool reads the files that `tools.perf --json` wrote, and prints the CSV table of
doc/source/admin/performance.rst. The durations are from all files; the number of statements, the
size, the time in Python and the memory are from the first file.

With `--hosts`, the tool instead prints how the durations grow with the number of hosts, from a file
that `tools.perf.scale` wrote. The memory is that with the most hosts.
"""

import argparse
import csv
import json
from pathlib import Path
import sys
from typing import Any

Result = dict[str, Any]


def main() -> None:
    """Print the table for the files that the command line names."""
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.table',
        description='Compare measurements of several database systems or numbers of hosts.',
    )
    parser.add_argument(
        'columns', nargs='*', metavar='NAME=JSON', help='name and result file of a column'
    )
    parser.add_argument('--hosts', type=Path, metavar='CSV', help='result file of tools.perf.scale')
    options = parser.parse_args()
    if options.hosts:
        _print_growth(options.hosts)
    else:
        _print_systems(dict(column.split('=', 1) for column in options.columns))


def _print_systems(columns: dict[str, str]) -> None:
    results_by_name = {name: _read(Path(path)) for name, path in columns.items()}
    first = next(iter(results_by_name.values()))
    writer = csv.writer(sys.stdout, lineterminator='\n')
    writer.writerow(
        [
            'Request',
            'Statements',
            'KiB',
            *(f'{name} ms' for name in results_by_name),
            'in Python ms',
            'MiB',
        ]
    )
    world = ''
    for key, result in first.items():
        if result['world'] != world:
            world = result['world']
            writer.writerow(
                [f'**{world}, {result["hosts"]:,} hosts**', *[''] * (len(results_by_name) + 4)]
            )
        writer.writerow(
            [
                result['scenario'],
                result['statements'],
                _short(result['bytes'] / 1024),
                *(
                    _short(results[key]['ms']) if key in results else ''
                    for results in results_by_name.values()
                ),
                _short(result['cpu_ms']),
                round(result['peak_mib']),
            ]
        )


def _print_growth(path: Path) -> None:
    with path.open(newline='') as file:
        points = list(csv.DictReader(file))
    sizes = sorted({int(point['hosts']) for point in points})
    writer = csv.writer(sys.stdout, lineterminator='\n')
    writer.writerow(['Request', *(f'{size:,} hosts, ms' for size in sizes), 'Growth', 'MiB'])
    for name in dict.fromkeys(point['scenario'] for point in points):
        by_size = {int(point['hosts']): point for point in points if point['scenario'] == name}
        durations = [float(by_size[size]['ms']) for size in sizes]
        growth, memory = durations[-1] / durations[0], float(by_size[sizes[-1]]['peak_mib'])
        writer.writerow([name, *map(_short, durations), _short(growth), round(memory)])


def _read(path: Path) -> dict[tuple[str, str], Result]:
    results: list[Result] = json.loads(path.read_text())['results']
    return {(result['world'], result['scenario']): result for result in results}


def _short(number: float) -> str:
    """Format a number: one decimal place if it is less than 10, otherwise no decimal places."""
    return f'{number:.1f}' if number < 10 else f'{number:,.0f}'


if __name__ == '__main__':
    main()
