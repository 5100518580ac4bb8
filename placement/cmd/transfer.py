"""The commands `placement-manage export` and `placement-manage import`."""

from collections.abc import Iterator
import contextlib
from pathlib import Path
import secrets
import signal
from typing import Any, NoReturn

from oslo_config import cfg

from placement.admin import tables
from placement.admin.failure import CannotProceedError
from placement.admin.transfer import files, load, pseudonyms, target
from placement.admin.transfer.export import export
from placement.cmd import output, program

# The minimum length of a key. With 16 random bytes, nobody can try all keys.
_KEY_BYTES = 16


def add_commands(commands: Any) -> None:
    """Add the commands to the result of `ArgumentParser.add_subparsers`."""
    export_ = program.add_database_command(
        commands,
        'export',
        _export,
        'Write the contents of the database to a file. The file is independent of the database '
        'system, and `placement-manage import` reads it.',
    )
    export_.add_argument(
        'file',
        nargs='?',
        default=files.STANDARD,
        metavar='FILE',
        help='compressed if the name ends in .gz; the default, -, is the standard output',
    )
    export_.add_argument(
        '--anonymize',
        action='store_true',
        help='replace the names of providers, projects and users, and custom names',
    )
    export_.add_argument(
        '--key-file',
        metavar='KEYFILE',
        help='with --anonymize: a file with a secret of at least '
        f'{_KEY_BYTES} bytes, so that several exports have the same pseudonyms; by default, each '
        'export has a random key',
    )
    export_.epilog = 'Exit status: 0 the file is complete; 2 there is no file.'
    import_ = program.add_database_command(
        commands,
        'import',
        _import,
        'Insert the contents of a file into an empty database. Stop the service before.',
    )
    import_.add_argument(
        'file',
        metavar='FILE',
        help='a file of `placement-manage export`; - is the standard input',
    )
    import_.add_argument(
        '--force', action='store_true', help='also import into a database that contains data'
    )
    import_.epilog = 'Exit status: 0 everything is imported; 2 nothing is imported.'


def _export(config: cfg.ConfigOpts) -> int:
    options = config.category
    rename = None
    if options.anonymize:
        rename = pseudonyms.Pseudonyms(_key(options.key_file))
    elif options.key_file is not None:
        raise CannotProceedError('--key-file has no effect without --anonymize.')
    with stoppable(), files.destination(options.file) as file:
        export(file, output.progress, rename)
    return 0


def _key(path: str | None) -> bytes:
    """Return the key in a file, or a random key if there is no file."""
    if path is None:
        return secrets.token_bytes(_KEY_BYTES)
    try:
        key = Path(path).read_bytes().strip()
    except OSError as error:
        raise CannotProceedError(
            f'The key file {path} cannot be read: {error.strerror or error}.'
        ) from error
    if len(key) < _KEY_BYTES:
        raise CannotProceedError(
            f'The key file {path} contains {len(key)} bytes, but a key has at least {_KEY_BYTES}.'
        )
    return key


def _import(config: cfg.ConfigOpts) -> int:
    options = config.category
    with files.source(options.file) as file:
        header, exceeded = load.load(file, output.progress, options.force)
    output.notify(f'{sum(header.counts.values())} rows are imported.')
    if exceeded.count:
        _report(exceeded)
    return 0


def _report(exceeded: target.OverCapacity) -> None:
    output.notify(
        f'Inventories with more usage than capacity, as in the exported database: {exceeded.count}.'
    )
    for one in exceeded.first:
        name, class_ = (tables.printable(text or '') for text in (one.name, one.resource_class))
        output.notify(
            f'Provider {tables.printable(one.provider)} ({name}): {one.used} of {one.capacity:g} '
            f'{class_} are in use.'
        )
    if exceeded.count > len(exceeded.first):
        output.notify('`placement-manage audit --only over-capacity` lists all of them.')


@contextlib.contextmanager
def stoppable() -> Iterator[None]:
    """Delete the temporary file also if the process receives SIGTERM or SIGHUP."""
    signals = (signal.SIGTERM, signal.SIGHUP)
    previous = [signal.signal(number, _interrupt) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, previous, strict=True):
            signal.signal(number, handler)


def _interrupt(_number: int, _frame: object) -> NoReturn:
    raise KeyboardInterrupt
