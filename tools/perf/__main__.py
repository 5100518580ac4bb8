"""Print the cost of each request: ``python -m tools.perf``.

Run the tool in the top directory of the source tree. The tool fills a database with generated data
and calls the application without a web server. For each scenario, it prints the number of SQL
statements, the number of rows that the database returned, the size of the responses, the duration
in milliseconds, and the peak of the process memory. Durations are medians. "cpu ms" is the part of
the duration that Python and the database driver need; the remaining time is spent in the database
server.
"""

import argparse
from collections.abc import Sequence
import contextlib
from dataclasses import asdict
import json
import os
from pathlib import Path
import platform
import sys

from tools import with_database
from tools.perf import databases, loading, measure, scenarios, worlds


def main() -> int:
    """Measure the selected scenarios and return the exit status."""
    options = _parse()
    selected = scenarios.named(options.only)
    if not selected:
        print(f'No scenario name contains {options.only!r}', file=sys.stderr)
        return 1
    try:
        results = _run(options, selected)
    except (with_database.ServerStartError, loading.NotEmptyError) as error:
        print(f'perf: {error}', file=sys.stderr)
        return 1
    if options.json:
        document = {'machine': machine(), 'results': [asdict(one) for one in results]}
        options.json.write_text(json.dumps(document, indent=1) + '\n')
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf', description='Measure the cost of the requests of Placement.'
    )
    database = parser.add_mutually_exclusive_group()
    database.add_argument(
        '--engine', choices=databases.ENGINES, default='sqlite', help='database system to start'
    )
    database.add_argument('--database', metavar='URL', help='empty database to use')
    parser.add_argument(
        '--erase',
        action='store_true',
        help='delete the existing rows in the database of --database',
    )
    parser.add_argument(
        '--hosts',
        type=int,
        default=1000,
        help='number of hosts in the flat world; the other worlds have a tenth of this number',
    )
    parser.add_argument(
        '--rounds', type=int, default=7, help='number of repetitions of each scenario'
    )
    parser.add_argument(
        '--seconds', type=float, default=15, help='time limit for each scenario in seconds'
    )
    parser.add_argument(
        '--only',
        default='',
        metavar='TEXT',
        help='measure only the scenarios whose names contain TEXT',
    )
    parser.add_argument('--json', type=Path, metavar='FILE', help='also write the results to FILE')
    return parser.parse_args()


def _run(
    options: argparse.Namespace, selected: Sequence[scenarios.Scenario]
) -> list[measure.Result]:
    repetition = measure.Repetition(options.rounds, options.seconds)
    results: list[measure.Result] = []
    with contextlib.ExitStack() as stack:
        create_database = (
            (lambda _: options.database)
            if options.database
            else stack.enter_context(databases.private(options.engine))
        )
        erase = options.erase
        print(_HEADING)
        for kind, group in scenarios.kinds_of(selected):
            hosts = options.hosts if kind == 'flat' else max(options.hosts // 10, 1)
            world, url = worlds.World(kind, hosts), create_database(kind)
            measure.in_new_process(measure.build, url, world, erase)
            names = [one.name for one in group]
            of_group: list[measure.Result] = measure.in_new_process(
                measure.measure, url, world, names, repetition
            )
            print('\n'.join([f'{kind}, {hosts} hosts', *map(_line, of_group)]), flush=True)
            results += of_group
            erase = True  # With --database, the next world uses the same database.
    return results


_HEADING = (
    f'{"":44} {"statements":>10} {"rows":>7} {"bytes":>9} {"ms":>9} {"cpu ms":>9} {"peak MiB":>8}'
)


def _line(result: measure.Result) -> str:
    return (
        f'  {result.scenario:42} {result.statements:10} {result.rows:7} {result.bytes:9} '
        f'{result.ms:9.1f} {result.cpu_ms:9.1f} {result.peak_mib:8.0f}'
    )


def machine() -> dict[str, str | int | None]:
    """Return the properties of the machine and of Python that affect the durations."""
    return {
        'cores': os.cpu_count(),
        'load': round(os.getloadavg()[0]),
        'python': platform.python_version(),
        'system': platform.system(),
    }


if __name__ == '__main__':
    sys.exit(main())
