"""The commands `placement-manage export` and `placement-manage import`."""

from collections.abc import Mapping
import contextlib
import gzip
from pathlib import Path
import secrets
import shlex
import signal
import sys
from typing import Any, BinaryIO, cast

from oslo_config import cfg

from placement.admin import console
from placement.admin.console import CannotProceedError
from placement.admin.transfer.export import Pseudonyms, export
from placement.admin.transfer.load import load
from placement.cmd import output, program

# The minimum length of a key. With 16 random bytes, nobody can try all keys.
_KEY_BYTES = 16

_EXPORT = (
    'Write the contents of the database to a file. The file is independent of the database system, '
    'and `placement-manage import` reads it.'
)
_EXPORT_OPTIONS = f"""
FILE
    compressed if the name ends in .gz; the default, -, is the standard output
--anonymize
    replace the names of providers, projects and users, and custom names
--key-file KEYFILE
    with --anonymize: a file with a secret of at least {_KEY_BYTES} bytes, so that several exports
    have the same pseudonyms; by default, each export has a random key
"""
_IMPORT = 'Insert the contents of a file into an empty database. Stop the service before.'
_IMPORT_OPTIONS = """
FILE
    a file of `placement-manage export`; - is the standard input
--force
    also import into a database that contains data
"""


def add_commands(commands: Any) -> None:
    """Add the commands to the result of `ArgumentParser.add_subparsers`."""
    parser = program.add_database_command(commands, 'export', _export, _EXPORT)
    parser.epilog = 'Exit status: 0 the file is complete; 2 there is no file.'
    file = {'nargs': '?', 'default': output.STANDARD}
    program.add_options(parser, _EXPORT_OPTIONS, file=file)
    parser = program.add_database_command(commands, 'import', _import, _IMPORT)
    parser.epilog = 'Exit status: 0 everything is imported; 2 nothing is imported.'
    program.add_options(parser, _IMPORT_OPTIONS)


def _export(config: cfg.ConfigOpts) -> int:
    options = config.category
    if options.key_file is not None and not options.anonymize:
        raise CannotProceedError('--key-file has no effect without --anonymize.')
    pseudonyms = Pseudonyms(_key(options.key_file)) if options.anonymize else None
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            # Delete the temporary file also if the process receives such a signal.
            signal.signal(number, signal.default_int_handler)
    with output.destination(options.file) as file:
        counts = export(file, output.progress, pseudonyms)
    output.notify(_verdict(counts, 'exported'))
    if options.file != output.STANDARD:
        output.notify(f'Next: placement-manage import {shlex.quote(options.file)}')
    return 0


def _verdict(counts: Mapping[str, int], done: str) -> str:
    kinds = ('provider', 'consumer', 'allocation')
    providers, consumers, allocations = (console.count(counts[kind], kind) for kind in kinds)
    rows = sum(counts.values())
    return f'{rows:,} rows are {done}, with {providers}, {consumers}, and {allocations}.'


def _key(path: str | None) -> bytes:
    """Return the key in a file, or a random key if there is no file.

    :raises OSError: the file cannot be read
    :raises CannotProceedError: the key is too short
    """
    if path is None:
        return secrets.token_bytes(_KEY_BYTES)
    key = Path(path).read_bytes().strip()
    if len(key) < _KEY_BYTES:
        raise CannotProceedError(
            f'The key file {path} contains {len(key)} bytes, but a key has at least {_KEY_BYTES}.'
        )
    return key


def _import(config: cfg.ConfigOpts) -> int:
    options = config.category
    with _source(options.file) as file:
        counts, exceeded = load(file, output.progress, options.force)
    output.notify(_verdict(counts, 'imported'))
    if exceeded:
        what = 'inventory has' if exceeded == 1 else 'inventories have'
        output.notify(
            f'{exceeded} {what} more usage than capacity, as in the exported database. This is '
            'legal.'
        )
        output.notify('Next: placement-manage audit --only over-capacity')
    return 0


def _source(name: str) -> contextlib.AbstractContextManager[BinaryIO]:
    """Return the file to read from, as a context.

    :raises OSError: the file cannot be opened
    """
    if name == output.STANDARD:
        return contextlib.nullcontext(sys.stdin.buffer)
    is_compressed = name.endswith(output.COMPRESSED)
    return cast(BinaryIO, gzip.open(name) if is_compressed else Path(name).open('rb'))
