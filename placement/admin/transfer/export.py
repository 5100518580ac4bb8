"""Write the contents of the database to a file."""

from collections.abc import Callable, Iterable, Iterator, Sequence
import itertools
import json
from typing import Any, BinaryIO

import sqlalchemy as sa

from placement.admin import progress as reporting
from placement.admin.failure import CannotProceedError
from placement.admin.transfer import model, sorting, statements, tables, unnameable
from placement.admin.transfer.pseudonyms import Rename
from placement.db import engine, failures
from placement.db.sqlalchemy import migration

_ROWS_PER_BATCH = 1000
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(',', ':'))
_REMEDY = 'Correct or delete them before the export.'

Values = Sequence[Any]


def export(
    file: BinaryIO, progress: reporting.Progress, rename: Rename | None = None
) -> model.Header:
    """Write all rows to a file and return the first line of the file.

    All statements read the same state of the database.

    :param rename: replaces the names in a row by pseudonyms; None to keep the names
    :raises CannotProceedError: a file cannot describe the contents of the database
    """
    migration.require_current()
    with engine.snapshot() as conn:
        try:
            return _export(conn, file, progress, rename)
        except BaseException:
            if conn.dialect.name == 'mysql':
                # Otherwise, the driver would read the remaining rows of the current statement.
                conn.invalidate()
            raise


def _export(
    conn: sa.Connection, file: BinaryIO, progress: reporting.Progress, rename: Rename | None
) -> model.Header:
    statements.prepare(conn)
    unnameable.require_none(conn, _REMEDY)
    header = model.Header(migration.read_version(conn), tables.counts(conn))
    file.write(_line(header.document()))
    with progress('Exporting', sum(header.counts.values())) as advance:
        for kind in model.KINDS:
            written = 0
            for rows in _batches(kind, _rows(conn, kind, rename)):
                file.write(b''.join(rows))
                written += len(rows)
                advance(len(rows))
            if written != header.counts[kind.name]:
                raise CannotProceedError(
                    f'The database has {header.counts[kind.name]} rows of the kind {kind.name}, '
                    f'but {written} can be exported.'
                )
    return header


def _rows(conn: sa.Connection, kind: model.Kind, rename: Rename | None) -> Iterator[Values]:
    """Yield the rows of a kind in the order of the file."""
    options = {'stream_results': True, 'yield_per': _ROWS_PER_BATCH}
    rows: Iterable[Values] = conn.execute(statements.select(kind), execution_options=options)
    if rename is not None:
        rows = _in_order(kind, (rename(kind, row) for row in rows))
    previous: tuple[Any, ...] = ()
    key = _key(kind)
    for row in rows:
        current = key(row)
        if current <= previous and kind.key:
            raise CannotProceedError(_repeated(kind, current))
        previous = current
        yield row


def _in_order(kind: model.Kind, rows: Iterable[Values]) -> Iterable[Values]:
    """Return renamed rows in the order of their new names."""
    key = _key(kind)
    if kind.key == ('uuid',) or not kind.key:
        return rows
    if len(kind.key) == 1:
        return sorting.everything(rows, key)
    # The UUIDs, which precede the names in the key, have not changed.
    return sorting.within_groups(rows, lambda row: key(row)[:-1], key)


def _key(kind: model.Kind) -> Callable[[Values], tuple[Any, ...]]:
    # The fields of a key are the first fields of a kind.
    length = len(kind.key)
    return lambda row: tuple(row[:length])


def _repeated(kind: model.Kind, key: tuple[Any, ...]) -> str:
    names = ', '.join(f'{name} {text!r}' for name, text in zip(kind.key, key, strict=True))
    return (
        f'The table {tables.of(kind).table.name} has several rows with {names}. Delete all but one '
        'of them before the export.'
    )


def _batches(kind: model.Kind, rows: Iterator[Values]) -> Iterator[list[bytes]]:
    """Yield the lines of the rows in batches.

    :raises CannotProceedError: a column contains a value that is not valid
    """
    lines = _lines(kind, rows)
    while True:
        try:
            batch = list(itertools.islice(lines, _ROWS_PER_BATCH))
        except Exception as error:
            if not isinstance(error, model.InvalidValueError) and not failures.is_bad_value(error):
                raise
            table = tables.of(kind).table.name
            raise CannotProceedError(
                f'The table {table} has a value that is not valid: {failures.reason(error)}.'
            ) from error
        if not batch:
            return
        yield batch


def _lines(kind: model.Kind, rows: Iterable[Values]) -> Iterator[bytes]:
    """Yield the line of each row."""
    names = (model.KIND, *kind.fields)
    # PERF: most types write the value as it is.
    converted = [
        (position, type_.write)
        for position, type_ in enumerate(kind.fields.values())
        if not isinstance(type_, (model.Text, model.Integer))
    ]
    for row in rows:
        values = list(row)
        for position, write in converted:
            values[position] = write(values[position])
        yield _line(dict(zip(names, (kind.name, *values), strict=True)))


def _line(document: Any) -> bytes:
    return f'{_ENCODER.encode(document)}\n'.encode()
