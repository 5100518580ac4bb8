"""Put the results of several engines side by side: ``python -m tools.perf.table NAME=JSON ...``.

Takes files that `tools.perf --json` wrote and prints CSV, as doc/source/admin/performance.rst
includes it. Statements, sizes, time in Python and memory are those of the first file.
"""

import argparse
import csv
import json
from pathlib import Path
import sys
from typing import Any

Result = dict[str, Any]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf.table', description='Compare measurements of several engines.'
    )
    parser.add_argument('columns', nargs='+', metavar='NAME=JSON')
    columns = dict(column.split('=', 1) for column in parser.parse_args().columns)
    found = {name: _read(Path(path)) for name, path in columns.items()}
    first = next(iter(found.values()))
    writer = csv.writer(sys.stdout, lineterminator='\n')
    writer.writerow(
        ['Request', 'Statements', 'KiB', *(f'{name} ms' for name in found), 'in Python ms', 'MiB']
    )
    world = ''
    for key, result in first.items():
        if result['world'] != world:
            world = result['world']
            writer.writerow([f'**{world}, {result["hosts"]:,} hosts**', *[''] * (len(found) + 4)])
        writer.writerow(
            [
                result['scenario'],
                result['statements'],
                _short(result['bytes'] / 1024),
                *(
                    _short(results[key]['ms']) if key in results else ''
                    for results in found.values()
                ),
                _short(result['cpu_ms']),
                round(result['peak_mib']),
            ]
        )


def _read(path: Path) -> dict[tuple[str, str], Result]:
    results: list[Result] = json.loads(path.read_text())['results']
    return {(result['world'], result['scenario']): result for result in results}


def _short(number: float) -> str:
    """A number with about two digits that mean something."""
    return f'{number:.1f}' if number < 10 else f'{number:,.0f}'


if __name__ == '__main__':
    main()
