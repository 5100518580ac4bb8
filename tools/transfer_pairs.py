"""Export and import between all database systems: ``python -m tools.transfer_pairs``.

Run the tool in the top directory of the source tree. For each pair of database systems, the tool
exports a generated cloud from the first one, imports the file into the second one, exports it
again, and compares both files. ``tools.perf.measure commands`` measures the commands.
"""

import argparse
import contextlib
import hashlib
from pathlib import Path
import sys
import tempfile

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from tools import with_database
from tools.perf import service, worlds

ENGINES = ('sqlite', 'mariadb', 'postgresql')


def main() -> int:
    """Transfer between all pairs, and return 1 if two files differ."""
    parser = argparse.ArgumentParser(prog='python -m tools.transfer_pairs')
    parser.add_argument('--hosts', type=int, default=1000, help='default: %(default)s')
    parser.add_argument('--kind', choices=worlds.KINDS, default='flat')
    for name in ('sources', 'targets'):
        parser.add_argument(f'--{name}', nargs='+', choices=service.ENGINES, default=ENGINES)
    options = parser.parse_args()
    different = False
    try:
        with contextlib.ExitStack() as stack:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix='transfer-')))
            create = {
                engine: stack.enter_context(service.databases(engine))
                for engine in dict.fromkeys((*options.sources, *options.targets))
            }
            for source in options.sources:
                url, file, again = create[source]('world'), folder / source, folder / 'again'
                service.in_new_process(_load, url, worlds.World(options.kind, options.hosts))
                _vary(url)
                service.manage(url, 'export', str(file))
                for target in options.targets:
                    copy = create[target](f'copy_of_{source}'.replace('-', '_'))
                    for command in (('db', 'sync'), ('import', str(file)), ('export', str(again))):
                        service.manage(copy, *command)
                    equal = _digest(file) == _digest(again)
                    different |= not equal
                    print(f'{source} to {target}: {"equal" if equal else "DIFFERENT"}', flush=True)
    except (with_database.ServerStartError, service.FailedError) as error:
        print(f'transfer_pairs: {error}', file=sys.stderr)
        return 1
    return int(different)


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


def _digest(file: Path) -> str:
    """Return the digest of a file without its first line."""
    with file.open('rb') as lines:
        lines.readline()
        return hashlib.file_digest(lines, 'sha256').hexdigest()


if __name__ == '__main__':
    sys.exit(main())
