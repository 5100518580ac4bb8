"""Export and import between all database systems: ``python -m tools.transfer_pairs``.

Run the tool in the top directory of the source tree. For each pair of database systems, the tool
exports a generated cloud from the first one, imports the file into the second one, exports it
again, and compares both files. For each database system, it also kills imports at random moments,
and checks that the database is empty afterwards.

The tool prints the duration in seconds, the CPU time of the command in seconds, and the peak of its
memory in MiB. The memory of the database server is not included.
"""

import argparse
from collections.abc import Sequence
import contextlib
import hashlib
from pathlib import Path
import random
import subprocess
import sys
import tempfile
import time

import sqlalchemy as sa

from placement.admin import tables
from placement.admin.transfer import tables as kinds
from placement.db.sqlalchemy import models
from tools import with_database
from tools.perf import databases, service, worlds

ENGINES = ('sqlite', 'mariadb', 'postgresql')
_TITLES = ('Step', 'From', 'To', 'Seconds', 'CPU', 'MiB', 'Result')
_NUMBERS = ('Seconds', 'CPU', 'MiB')
# Seconds within which the server must have rolled back a killed import.
_ROLLBACK = 300


class DifferenceError(Exception):
    """Two files differ, or a database is not empty."""


def main() -> int:
    """Execute the steps and return the exit status."""
    options = _parse()
    rows: list[Sequence[str]] = []
    try:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='transfer-')))
            create = {
                engine: stack.enter_context(databases.private(engine))
                for engine in dict.fromkeys((*options.sources, *options.targets))
            }
            world = worlds.World(options.kind, options.hosts, options.consumers)
            for source in options.sources:
                rows += _pairs(source, options.targets, create, world, folder)
            for target in options.targets if options.kills else ():
                file = folder / f'{options.sources[0]}.jsonl'
                rows += _kills(target, create[target], file, options.kills, options.seed)
    except (with_database.ServerStartError, service.FailedError, DifferenceError) as error:
        print(f'transfer_pairs: {error}', file=sys.stderr)
        return 1
    print(tables.table(_TITLES, rows, _NUMBERS))
    return 0


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog='python -m tools.transfer_pairs',
        description='Export and import between all database systems.',
    )
    parser.add_argument('--hosts', type=int, default=1000, help='default: %(default)s')
    parser.add_argument('--kind', choices=worlds.KINDS, default='flat')
    parser.add_argument('--consumers', type=int, default=10, help='for each host')
    for name in ('sources', 'targets'):
        parser.add_argument(f'--{name}', nargs='+', choices=databases.ENGINES, default=ENGINES)
    parser.add_argument('--kills', type=int, default=10, help='killed imports for each target')
    parser.add_argument('--seed', type=int, default=1, help='selects the moments of kills')
    return parser.parse_args()


def _pairs(
    source: str,
    targets: Sequence[str],
    create: dict[str, databases.CreateDatabase],
    world: worlds.World,
    folder: Path,
) -> list[Sequence[str]]:
    url = create[source]('world')
    service.in_new_process(_load, url, world)
    _vary(url)
    file, again = folder / f'{source}.jsonl', folder / 'again.jsonl'
    rows: list[Sequence[str]] = []
    rows.append(
        ('export', source, '', *_cells(service.manage(url, 'export', str(file))), _size(file))
    )
    _show(rows[-1])
    for target in targets:
        copy = create[target](f'copy_of_{source}'.replace('-', '_'))
        service.manage(copy, 'db', 'sync')
        imported = service.manage(copy, 'import', str(file))
        service.manage(copy, 'export', str(again))
        if _digest(file) != _digest(again):
            raise DifferenceError(f'The files of {source} and {target} differ.')
        rows.append(('import', source, target, *_cells(imported), 'equal'))
        _show(rows[-1])
    return rows


def _kills(
    target: str, create: databases.CreateDatabase, file: Path, kills: int, seed: int
) -> list[Sequence[str]]:
    """Kill imports that have read random parts of the file from a pipe."""
    url = _create_synced(create, 'killed')
    moments = random.Random(seed)
    content = file.read_bytes()
    rows: list[Sequence[str]] = []
    for _ in range(kills):
        part = moments.random()
        process = service.start(url, ('import', '-'), stdin=subprocess.PIPE)
        assert process.stdin is not None  # See the arguments of `start`.
        process.stdin.write(content[: int(part * len(content))])
        process.kill()
        process.wait()
        _require_empty(url)
        rows.append(('kill', '', target, '', '', '', f'empty, after {part:.0%}'))
        _show(rows[-1])
    rows.append(
        ('import', '', target, *_cells(service.manage(url, 'import', str(file))), 'complete')
    )
    _show(rows[-1])
    return rows


def _create_synced(create: databases.CreateDatabase, name: str) -> str:
    """Create a database with all tables and return its URL."""
    url = create(name)
    service.manage(url, 'db', 'sync')
    return url


def _vary(url: str) -> None:
    """Change rows of the world, so that columns have different values and NULL."""
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    consumers, providers = models.consumers, models.resource_providers
    with engine.begin() as conn:
        for table in models.metadata.sorted_tables:
            (number, *_) = table.primary_key.columns
            conn.execute(sa.update(table).where(number % 3 == 0).values(updated_at=None))
        untyped = sa.update(consumers).where(consumers.c.id % 7 == 0)
        conn.execute(untyped.values(consumer_type_id=None, updated_at=consumers.c.updated_at))
        renamed = sa.update(providers).where(providers.c.id % 5 == 0)
        name = providers.c.name.concat(' \N{GRINNING FACE} "é\\')
        conn.execute(renamed.values(name=name, updated_at=providers.c.updated_at))
    engine.dispose()


def _load(url: str, world: worlds.World) -> None:
    engine = service.Service(url).engine
    worlds.load(engine, world)
    engine.dispose()


def _cells(cost: service.Cost) -> tuple[str, str, str]:
    """Return the cells of a cost in the table."""
    return f'{cost.seconds:.1f}', f'{cost.cpu_seconds:.1f}', f'{cost.peak_mib:.0f}'


def _require_empty(url: str) -> None:
    """Check that the database is empty, and wait until the server has released all locks.

    :raises DifferenceError: the database is not empty
    """
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    deadline = time.monotonic() + _ROLLBACK
    while True:
        with engine.connect() as conn:
            counts = {name: number for name, number in kinds.counts(conn).items() if number}
            if counts:
                raise DifferenceError(f'After a kill, the database has {counts}.')
            try:
                conn.execute(sa.insert(models.projects), {'external_id': 'project-1'})
            except (sa.exc.IntegrityError, sa.exc.OperationalError):
                if time.monotonic() > deadline:
                    raise
            else:
                break
    engine.dispose()


def _digest(file: Path) -> str:
    """Return the digest of a file without its first line."""
    with file.open('rb') as lines:
        lines.readline()
        return hashlib.file_digest(lines, 'sha256').hexdigest()


def _size(file: Path) -> str:
    return f'{file.stat().st_size / 1024 / 1024:.0f} MiB'


def _show(row: Sequence[str]) -> None:
    """Print a row at once, because all rows together can take an hour."""
    print('  '.join(filter(None, row)), file=sys.stderr, flush=True)


if __name__ == '__main__':
    sys.exit(main())
