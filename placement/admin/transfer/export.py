"""Write the contents of the database to a file."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import functools
import hashlib
import hmac
import itertools
import json
from typing import Any, BinaryIO

import sqlalchemy as sa

from placement.admin import console
from placement.admin.audit import providers
from placement.admin.console import CannotProceedError
from placement.admin.transfer import database, kinds
from placement.admin.transfer.kinds import KINDS, Kind
from placement.db import engine, failures, sql
from placement.db.sqlalchemy import migration, models

_ROWS_PER_BATCH = 1000
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(',', ':'))

# In bits: 80. Two of a million names have the same pseudonym with a probability of 4e-13.
_DIGITS = 20
_CUSTOM = 'CUSTOM_'
# The default project and user of consumers that old releases created without an owner.
_INCOMPLETE = '00000000-0000-0000-0000-000000000000'
# The kinds whose names are replaced by digests.
_RENAMED = {'resource_class', 'trait', 'consumer_type', 'project', 'user'}
# The consumer types of Nova.
_KNOWN_TYPES = {'INSTANCE', 'MIGRATION'}

# The values of the fields of a kind, in the order of the fields.
Values = Sequence[Any]


class Pseudonyms:
    """Replaces names by pseudonyms; with one key, the same name always has the same pseudonym.

    The name of a provider becomes its UUID, so it cannot be guessed. The other pseudonyms are
    digests of the names. For those who have the key, the digest confirms a guess of a name.

    :param key: the secret key of the digests
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._pseudonym = functools.lru_cache(maxsize=10_000)(self._compute)

    def renamed(self, kind: Kind, rows: Iterable[Values]) -> Iterable[Values]:
        """Return rows with pseudonyms in place of names, in the order of the pseudonyms."""
        if kind.name == 'provider':
            return ([row[0], f'provider-{row[0]}', *row[2:]] for row in rows)
        # What each field names. A kind with one key field has its own name in this field.
        subjects = [field.refers_to for field in kind.fields.values()]
        if len(kind.key) == 1:
            subjects[0] = kind.name
        renamed = (self._rename(subjects, row) for row in rows)
        # UUIDs, which can also precede a name in the key, have not changed.
        if kind.key == ('uuid',):
            return renamed
        first = len(kind.key) - 1
        groups = itertools.groupby(renamed, lambda row: row[:first])
        return itertools.chain.from_iterable(
            sorted(group, key=lambda row: row[first]) for _, group in groups
        )

    def _rename(self, subjects: Sequence[str | None], row: Values) -> list[Any]:
        return [
            self._pseudonym(subject, value) if subject in _RENAMED and value is not None else value
            for subject, value in zip(subjects, row, strict=True)
        ]

    def _compute(self, kind: str, name: str) -> str:
        text = f'{kind}\0{name}'.encode()
        digest = hmac.new(self._key, text, hashlib.sha256).hexdigest()[:_DIGITS]
        if kind in {'project', 'user'}:
            return name if name == _INCOMPLETE else f'{kind}-{digest}'
        if kind == 'consumer_type':
            return name if name in _KNOWN_TYPES else f'TYPE_{digest.upper()}'
        return f'{_CUSTOM}{digest.upper()}' if name.startswith(_CUSTOM) else name


def export(
    file: BinaryIO, progress: console.Progress, pseudonyms: Pseudonyms | None = None
) -> Mapping[str, int]:
    """Write all rows to a file, and return the number of rows of each kind.

    All statements read the same state of the database.

    :param pseudonyms: replaces the names; None to keep them
    :raises CannotProceedError: a file cannot describe the contents of the database
    """
    migration.require_current()
    with engine.snapshot() as conn, _abandoning(conn):
        database.prepare(conn)
        database.require_sound(conn, 'Correct or delete them before the export.')
        counts = database.counts(conn)
        header = {
            'format': kinds.FORMAT,
            'version': kinds.VERSION,
            'schema_revision': migration.read_version(conn),
            'counts': counts,
        }
        file.write(_line(header))
        with progress('Exporting', sum(counts.values())) as advance:
            for kind in KINDS.values():
                # After an error, no variable refers to the rows, so that PyMySQL can close its
                # cursor before the connection.
                for line in _lines(conn, kind, pseudonyms):
                    file.write(line)
                    advance(1)
        return counts


@contextlib.contextmanager
def _abandoning(conn: sa.Connection) -> Iterator[None]:
    """After an error, close the connection to MySQL.

    Otherwise, the driver would read the remaining rows of the current statement.
    """
    try:
        yield
    except BaseException:
        if conn.dialect.name == 'mysql':
            conn.invalidate()
        raise


def _lines(conn: sa.Connection, kind: Kind, pseudonyms: Pseudonyms | None) -> Iterator[bytes]:
    """Yield the line of each row of a kind, in the order of the file.

    :raises CannotProceedError: a column contains a value that is not valid
    """
    rows: Iterable[Values] = _rows(conn, kind)
    if pseudonyms:
        rows = pseudonyms.renamed(kind, rows)
    names = (kinds.KIND, *kind.fields)
    try:
        for row in rows:
            yield _line(dict(zip(names, (kind.name, *row), strict=True)))
    except Exception as error:
        if not isinstance(error, kinds.InvalidValueError) and not failures.is_bad_value(error):
            raise
        raise CannotProceedError(
            f'The table {kind.table.name} has a value that is not valid: {failures.reason(error)}.'
        ) from error


def _rows(conn: sa.Connection, kind: Kind) -> Iterator[Values]:
    """Yield the values of the rows of a kind in the order of the file."""
    options = {'stream_results': True, 'yield_per': _ROWS_PER_BATCH}
    previous: Values = ()
    for row in conn.execute(_select(kind), execution_options=options):
        fields = zip(kind.fields.values(), row, strict=True)
        values = [field.write(value) for field, value in fields]
        key = values[: len(kind.key)]
        if key and key == previous:
            names = ', '.join(f'{name} {text!r}' for name, text in zip(kind.key, key, strict=True))
            raise CannotProceedError(
                f'The table {kind.table.name} has several rows with {names}. Delete all but one of '
                'them before the export.'
            )
        previous = key
        yield values


def _select(kind: Kind) -> sa.Select[Any]:
    """Return a select of the values of the fields of a kind, in the order of the file."""
    source: sa.FromClause = kind.table
    values: dict[str, sa.ColumnElement[Any]] = {}
    for name, field in kind.fields.items():
        values[name] = field.column
        if field.refers_to:
            other = KINDS[field.refers_to]
            named = other.table.alias()
            values[name] = named.c[other.text.name]
            key = values[name] if field.is_text_in_database else named.c.id
            source = source.outerjoin(named, key == field.column)
        elif name == 'generation':
            values[name] = models.generation(kind.table)
    order: list[sa.ColumnElement[Any]] = [sql.CodePointOrder(values[name]) for name in kind.key]
    if not kind.key:
        depth = providers.TREE.c.depth
        source = source.join(providers.TREE, providers.TREE.c.id == kind.table.c.id)
        order = [depth, sql.CodePointOrder(values['uuid'])]
    return sa.select(*values.values()).select_from(source).order_by(*order)


def _line(document: Any) -> bytes:
    return f'{_ENCODER.encode(document)}\n'.encode()
