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

from placement.admin import audit, console
from placement.admin.console import CannotProceedError
from placement.admin.transfer import kinds
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

# The findings of `placement-manage audit` about rows that a file cannot describe.
_DAMAGE = (
    'orphan-allocation',
    'orphan-provider',
    'unknown-class',
    'owner-missing',
    'root-missing',
    'parent-missing',
    'parent-cycle',
)
# The links that the audit does not check, and what they refer to.
_LINKS = (('provider_trait', 'trait'), ('provider_aggregate', 'aggregate'))

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
    with engine.snapshot() as conn, contextlib.ExitStack() as stack:
        if conn.dialect.name == 'mysql':
            # After an error, the driver would read the remaining rows of the current statement.
            stack.callback(conn.invalidate)
        prepare(conn)
        require_sound(conn, 'Correct or delete them before the export.')
        numbers = counts(conn)
        header = {
            'format': kinds.FORMAT,
            'version': kinds.VERSION,
            'schema_revision': migration.read_version(conn),
            'counts': numbers,
        }
        file.write(_line(header))
        with progress('Exporting', sum(numbers.values())) as advance:
            for kind in KINDS.values():
                # After an error, no variable refers to the rows, so that PyMySQL can close its
                # cursor before the connection.
                for line in _lines(conn, kind, pseudonyms):
                    file.write(line)
                    advance(1)
        return numbers


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
            values[name] = named.c[kinds.text(other.table).name]
            is_id = isinstance(field.column.type, sa.Integer)
            key = named.c.id if is_id else values[name]
            source = source.outerjoin(named, key == field.column)
        elif name == 'generation':
            values[name] = models.generation(kind.table)
    order: list[Any] = [sql.CodePointOrder(values[name]) for name in kind.key or ('uuid',)]
    if not kind.key:
        source = source.join(audit.providers.TREE, audit.providers.TREE.c.id == kind.table.c.id)
        order.insert(0, audit.providers.TREE.c.depth)
    return sa.select(*values.values()).select_from(source).order_by(*order)


def _line(document: Any) -> bytes:
    return f'{_ENCODER.encode(document)}\n'.encode()


# What export and import have in common --------------------------------------------


def prepare(conn: sa.Connection) -> None:
    """Set the session variables of the server that the statements need."""
    if conn.dialect.name == 'postgresql':
        # PERF: the statements read whole tables. If the statistics are old, for example after an
        # import that was rolled back, a nested loop takes minutes instead of a second
        # (10,000 hosts, 2026-11).
        conn.exec_driver_sql('SET LOCAL enable_nestloop = off')
    if conn.dialect.name == 'mysql':
        # While the reader of a pipe pauses, the server waits for this process.
        conn.exec_driver_sql('SET SESSION net_write_timeout = 31536000')


def counts(conn: sa.Connection) -> dict[str, int]:
    """Return the number of rows of each kind."""
    columns = (
        sa.select(sa.func.count()).select_from(kind.table).scalar_subquery().label(name)
        for name, kind in KINDS.items()
    )
    return dict(conn.execute(sa.select(*columns)).mappings().one())


def require_sound(conn: sa.Connection, remedy: str) -> None:
    """Check that no row refers to a missing row, and that the providers form trees.

    :param remedy: the sentence that follows the description of the rows
    :raises CannotProceedError: the message names the `audit` command that displays the rows
    """
    found = audit.findings(conn, _DAMAGE)
    if found:
        raise CannotProceedError(
            'The database has rows that refer to missing rows. `placement-manage audit --only '
            f'{",".join(one.code for one in found)}` lists them. {remedy}'
        )
    for name, target in _LINKS:
        column, ids = KINDS[name].fields[target].column, KINDS[target].table.c.id
        if conn.scalar(sa.select(sa.exists().where(column.not_in(sa.select(ids))))):
            raise CannotProceedError(
                f'The table {column.table.name} has a row whose {column.name} refers to no row. '
                f'{remedy}'
            )
