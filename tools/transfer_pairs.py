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
from dataclasses import dataclass
import hashlib
import os
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
from tools.perf import databases, measure, worlds

ENGINES = ('sqlite', 'mariadb', 'postgresql')
_TITLES = ('Step', 'From', 'To', 'Seconds', 'CPU', 'MiB', 'Result')
_NUMBERS = ('Seconds', 'CPU', 'MiB')
# Seconds between two readings of the memory peak of a command.
_INTERVAL = 0.05
# Seconds within which the server must have rolled back a killed import.
_ROLLBACK = 300


class FailedError(Exception):
    """A command failed, or two files differ."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a command needed: elapsed seconds, CPU seconds, and its memory peak in MiB."""

    seconds: float
    cpu: float
    mib: float

    def cells(self) -> tuple[str, str, str]:
        """Return the cells of a table."""
        return f'{self.seconds:.1f}', f'{self.cpu:.1f}', f'{self.mib:.0f}'


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
    except (with_database.ServerStartError, FailedError) as error:
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
    measure.in_new_process(measure.build, url, world, False)
    _vary(url)
    file, again = folder / f'{source}.jsonl', folder / 'again.jsonl'
    rows: list[Sequence[str]] = []
    rows.append(('export', source, '', *_manage(url, 'export', str(file)).cells(), _size(file)))
    _show(rows[-1])
    for target in targets:
        copy = create[target](f'copy_of_{source}'.replace('-', '_'))
        _manage(copy, 'db', 'sync')
        imported = _manage(copy, 'import', str(file))
        _manage(copy, 'export', str(again))
        if _digest(file) != _digest(again):
            raise FailedError(f'The files of {source} and {target} differ.')
        rows.append(('import', source, target, *imported.cells(), 'equal'))
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
        process = _start(url, 'import', '-', stdin=subprocess.PIPE)
        assert process.stdin is not None  # See the arguments of `_start`.
        process.stdin.write(content[: int(part * len(content))])
        process.kill()
        process.wait()
        _require_empty(url)
        rows.append(('kill', '', target, '', '', '', f'empty, after {part:.0%}'))
        _show(rows[-1])
    rows.append(('import', '', target, *_manage(url, 'import', str(file)).cells(), 'complete'))
    _show(rows[-1])
    return rows


def _create_synced(create: databases.CreateDatabase, name: str) -> str:
    """Create a database with all tables and return its URL."""
    url = create(name)
    _manage(url, 'db', 'sync')
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


def _start(url: str, *arguments: str, stdin: int | None = None) -> subprocess.Popen[bytes]:
    environment = {**os.environ, 'OS_PLACEMENT_DATABASE__CONNECTION': url}
    command = [sys.executable, '-m', 'placement.cmd.manage', *arguments]
    return subprocess.Popen(
        command,
        env=environment,
        stdin=stdin,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def _manage(url: str, *arguments: str) -> Cost:
    """Execute a command of placement-manage.

    :raises FailedError: its exit status is not 0
    """
    started = time.perf_counter()
    process = _start(url, *arguments)
    peak = 0.0
    status = Path(f'/proc/{process.pid}/status')
    while True:
        ended, code, usage = os.wait4(process.pid, os.WNOHANG)
        if ended:
            break
        peak = max(peak, _peak(status))
        time.sleep(_INTERVAL)
    process.returncode = os.waitstatus_to_exitcode(code)
    assert process.stderr is not None  # `_start` creates the pipe.
    messages = process.stderr.read().decode()
    process.stderr.close()
    if process.returncode:
        raise FailedError(f'placement-manage {" ".join(arguments)}: {messages}')
    return Cost(time.perf_counter() - started, usage.ru_utime + usage.ru_stime, peak)


def _peak(status: Path) -> float:
    """Return the memory peak of a process in MiB; 0 after its end."""
    # `ru_maxrss` would include the memory of this process, from which the command was started.
    with contextlib.suppress(OSError):
        for line in status.read_text().splitlines():
            if line.startswith('VmHWM:'):
                return int(line.split()[1]) / 1024
    return 0.0


def _require_empty(url: str) -> None:
    """Check that the database is empty, and wait until the server has released all locks.

    :raises FailedError: the database is not empty
    """
    engine = sa.create_engine(url, poolclass=sa.NullPool)
    deadline = time.monotonic() + _ROLLBACK
    while True:
        with engine.connect() as conn:
            counts = {name: number for name, number in kinds.counts(conn).items() if number}
            if counts:
                raise FailedError(f'After a kill, the database has {counts}.')
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
