"""Print what each request costs: ``python -m tools.perf``, run at the top of the source tree.

Fixed worlds are built in a database, and each kind of request is asked of them inside this
process, without a web server: a table tells statements, rows that the database handed out, bytes
of the answer, milliseconds, and the most memory that the process had meanwhile. Times are
medians. "cpu" is the part of the time that was spent in Python and the driver; the rest is the
database's.
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
from tools.perf import databases, measure, scenarios, worlds


def main() -> int:
    options = _parse()
    wanted = scenarios.named(options.only)
    if not wanted:
        print(f'No scenario is named like {options.only!r}', file=sys.stderr)
        return 1
    try:
        results = _run(options, wanted)
    except (with_database.ServerStartError, worlds.NotEmpty) as error:
        print(f'perf: {error}', file=sys.stderr)
        return 1
    if options.json:
        document = {'machine': machine(), 'results': [asdict(one) for one in results]}
        options.json.write_text(json.dumps(document, indent=1) + '\n')
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.perf', description='Measure what each request of Placement costs.'
    )
    place = parser.add_mutually_exclusive_group()
    place.add_argument('--engine', choices=databases.ENGINES, default='sqlite', help='to start')
    place.add_argument('--database', metavar='URL', help='an empty database to use instead')
    parser.add_argument(
        '--erase', action='store_true', help='delete what the database of --database has'
    )
    parser.add_argument(
        '--hosts', type=int, default=1000, help='of the flat world; the others have a tenth'
    )
    parser.add_argument('--rounds', type=int, default=7, help='times that each request is made')
    parser.add_argument(
        '--seconds', type=float, default=15, help='at most for each kind of request'
    )
    parser.add_argument('--only', default='', metavar='TEXT', help='those with it in their names')
    parser.add_argument('--json', type=Path, metavar='FILE', help='write the results to it too')
    return parser.parse_args()


def _run(options: argparse.Namespace, wanted: Sequence[scenarios.Scenario]) -> list[measure.Result]:
    effort = measure.Effort(options.rounds, options.seconds)
    results: list[measure.Result] = []
    with contextlib.ExitStack() as stack:
        make = (
            (lambda name: options.database)
            if options.database
            else stack.enter_context(databases.private(options.engine))
        )
        erase = options.erase
        print(_HEADING)
        for kind, group in scenarios.kinds_of(wanted):
            hosts = options.hosts if kind == 'flat' else max(options.hosts // 10, 1)
            world, url = worlds.World(kind, hosts), make(kind)
            measure.apart(measure.build, url, world, erase)
            names = [one.name for one in group]
            found: list[measure.Result] = measure.apart(measure.measure, url, world, names, effort)
            print('\n'.join([f'{kind}, {hosts} hosts', *map(_line, found)]), flush=True)
            results += found
            erase = True  # the next world in the same database
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
    """What the times depend on."""
    return {
        'cores': os.cpu_count(),
        'load': round(os.getloadavg()[0]),
        'python': platform.python_version(),
        'system': platform.system(),
    }


if __name__ == '__main__':
    sys.exit(main())
