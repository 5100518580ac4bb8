"""Insert the contents of a file into the database."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import itertools
from typing import Any, BinaryIO

import os_resource_classes as orc
import sqlalchemy as sa

from placement import exception
from placement.admin import console
from placement.admin.console import CannotProceedError
from placement.admin.transfer import export, kinds
from placement.admin.transfer.kinds import KINDS, Field, InvalidLineError, Kind, Line, shown
from placement.db import engine, expressions, failures
from placement.db.sqlalchemy import migration, models
from placement.objects import resource_class, sync

_ROWS_PER_BATCH = 1000
_CHANGED = (
    'Another program changes the database. Nothing is imported. Stop the service, and try again.'
)
_PROVIDERS = models.resource_providers
_INVENTORIES = models.inventories
_ALLOCATIONS = models.allocations
# Standard rows of these kinds exist in every database that a service has used.
_WITH_STANDARDS = ('resource_class', 'trait')
# Lines of these kinds may describe existing rows, which several clouds have in common.
_SHARED = (*_WITH_STANDARDS, 'aggregate', 'consumer_type', 'project', 'user')


def load(
    file: BinaryIO, progress: console.Progress, force: bool = False
) -> tuple[Mapping[str, int], int]:
    """Insert all rows of a file in one transaction.

    :param force: whether the database may contain other providers and consumers
    :returns: the number of lines of each kind, and of inventories whose usage exceeds the capacity
    :raises CannotProceedError: the file or the contents of the database prevent the import; nothing
        is inserted
    :raises exception.OutcomeUnknown: the connection was lost during COMMIT
    """
    migration.require_current()
    source = kinds.Document(file)
    with _transaction() as conn, sync.explicit_zero(conn):
        export.prepare(conn)
        expected = export.counts(conn)
        if force:
            export.require_sound(conn, 'Correct or delete them before the import.')
        else:
            _require_empty(conn, expected)
        loader = _Loader(conn)
        with progress('Importing', sum(source.counts.values())) as advance:
            for kind, lines in itertools.groupby(source.lines(), lambda line: line.kind):
                for batch in _batches(lines):
                    expected[kind.name] += loader.write(kind, batch)
                    advance(len(batch))
                if conn.dialect.name == 'postgresql':
                    # Let the planner consider the new rows. On MySQL, such a statement would commit
                    # the transaction. SQLite needs no statistics here.
                    conn.exec_driver_sql(f'ANALYZE {kind.table.name}')
        loader.set_roots()
        if export.counts(conn) != expected:
            raise CannotProceedError(_CHANGED)
        export.require_sound(conn, 'Nothing is imported. Stop the service, and try again.')
        return source.counts, _over_capacity(conn, loader.last['provider'])


@contextlib.contextmanager
def _transaction() -> Iterator[sa.Connection]:
    """Yield a connection in a transaction that excludes migrations and other imports.

    The transaction is not retried, because the file may be a pipe, which can be read only once.
    """
    complete = False
    try:
        with migration.exclusive_transaction(engine.get_placement_engine()) as conn:
            yield conn
            complete = True
    except Exception as error:
        if failures.is_connection_lost(error):
            if complete:
                raise exception.OutcomeUnknown() from error
        elif failures.is_transient(error):
            raise CannotProceedError(_CHANGED) from error
        raise


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield lines of one kind in batches; a provider and its parent are in two batches."""
    batch: list[Line] = []
    uuids: set[str | None] = set()
    for line in lines:
        if len(batch) >= _ROWS_PER_BATCH or line.values.get('parent', '') in uuids:
            yield batch
            batch, uuids = [], set()
        batch.append(line)
        uuids.add(line.values.get('uuid'))
    yield batch


# Checks ---------------------------------------------------------------------------


def _require_empty(conn: sa.Connection, counts: Mapping[str, int]) -> None:
    """Check that the database has only standard traits and resource classes.

    :raises CannotProceedError:
    """
    present = []
    for name, number in counts.items():
        if name in _WITH_STANDARDS:
            names = conn.scalars(sa.select(kinds.text(KINDS[name].table)))
            number = sum(map(resource_class.is_custom, names))
        if number:
            present.append(f'{name}: {number}')
    if present:
        raise CannotProceedError(
            f'The database is not empty ({", ".join(present)}). Import the file into an empty '
            'database, or add --force to keep the existing data.'
        )


def _over_capacity(conn: sa.Connection, last_provider: int) -> int:
    """Return the number of imported inventories whose usage exceeds the capacity.

    :param last_provider: the largest id of a provider before the import
    """
    names = ('resource_provider_id', 'resource_class_id')
    key = [_ALLOCATIONS.c[name] for name in names]
    # PERF: on MariaDB, whose statistics do not include the new rows, a subquery for each inventory
    # takes minutes (10,000 hosts, 2026-11).
    usage = (
        sa.select(*key, sa.func.sum(_ALLOCATIONS.c.used).label('used'))
        .where(_ALLOCATIONS.c.resource_provider_id > last_provider)
        .group_by(*key)
        .subquery()
    )
    is_same = sa.and_(*(_INVENTORIES.c[name] == usage.c[name] for name in names))
    select = sa.select(sa.func.count()).select_from(usage.join(_INVENTORIES, is_same))
    exceeds = usage.c.used > expressions.capacity(_INVENTORIES)
    return int(conn.execute(select.where(exceeds)).scalar_one())


# Rows -----------------------------------------------------------------------------


class _Loader:
    """Writes the rows of lines.

    A line must refer to an earlier line of the file. Therefore a row counts only if the import has
    inserted it, or if it existed before and the file contains it too.

    :ivar last: the largest id before the import, by kind
    """

    def __init__(self, conn: sa.Connection) -> None:
        self._conn = conn
        self.last = {name: self._last_id(name) for name in ('provider', 'consumer')}
        # For each kind: the ids of the rows of the file by name or UUID.
        self._shared: dict[str, dict[str, int]] = {name: {} for name in _SHARED}

    def write(self, kind: Kind, lines: Sequence[Line]) -> int:
        """Write the rows of lines of one kind, and return the number of new rows.

        :raises InvalidLineError: the database rejects a row, or a row to which it refers does not
            exist
        """
        try:
            # On PostgreSQL, a failed statement ends the transaction, except after a savepoint.
            with self._conn.begin_nested():
                return self._write(kind, lines)
        except Exception as error:
            is_repeated = failures.is_key_violation(error)
            if not is_repeated and not failures.is_bad_value(error):
                raise
            if len(lines) == 1:
                raise _rejected(lines[0], is_repeated) from error
        # Find the line that the database rejects.
        return sum(self.write(kind, [line]) for line in lines)

    def _write(self, kind: Kind, lines: Sequence[Line]) -> int:
        """Write the rows of lines.

        Existing rows that several clouds have in common are kept; standard traits and classes get
        the times of the file.
        """
        if kind.name not in _SHARED:
            self._insert(kind, lines)
            return len(lines)
        (name,) = kind.key
        texts = [line.values[name] for line in lines]
        ids = self._existing(kind, texts)
        new = [line for line in lines if line.values[name] not in ids]
        if kind.name in _WITH_STANDARDS:
            self._update_times(kind, ids, lines)
        self._insert(kind, new)
        self._shared[kind.name].update(self._existing(kind, texts))
        return len(new)

    def _last_id(self, name: str) -> int:
        """Return the largest id of a row of a kind; -1 if there is none."""
        largest = sa.func.coalesce(sa.func.max(KINDS[name].table.c.id), -1)
        return int(self._conn.execute(sa.select(largest)).scalar_one())

    def set_roots(self) -> None:
        """Set the root of the new root providers to the providers themselves."""
        self._conn.execute(
            sa.update(_PROVIDERS)
            .where(_PROVIDERS.c.root_provider_id.is_(None))
            .values(root_provider_id=_PROVIDERS.c.id, updated_at=_PROVIDERS.c.updated_at)
        )

    def _insert(self, kind: Kind, lines: Sequence[Line]) -> None:
        """Insert rows with the ids of what they refer to."""
        rows = self._resolved(kind, lines)
        if kind.name == 'provider':
            self._add_roots(rows)
        elif kind.name == 'resource_class':
            self._add_ids(lines, rows)
        if rows:
            self._conn.execute(sa.insert(kind.table), rows)

    def _add_roots(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add the root of each provider to its row; a new root has no root yet."""
        parents = {row['parent_provider_id'] for row in rows} - {None}
        root = sa.func.coalesce(_PROVIDERS.c.root_provider_id, _PROVIDERS.c.id)
        select = sa.select(_PROVIDERS.c.id, root).where(_PROVIDERS.c.id.in_(sorted(parents)))
        roots = dict(map(tuple, self._conn.execute(select)))
        for row in rows:
            row['root_provider_id'] = roots.get(row['parent_provider_id'])

    def _resolved(self, kind: Kind, lines: Sequence[Line]) -> list[dict[str, Any]]:
        """Return the rows for the database, with ids in place of names and UUIDs."""
        ids = {
            name: self._ids(field.refers_to, {line.values[name] for line in lines} - {None})
            for name, field in kind.fields.items()
            if field.refers_to
        }
        return [
            {
                field.column.name: _stored(line, field, ids.get(name, {}))
                for name, field in kind.fields.items()
            }
            for line in lines
        ]

    def _ids(self, name: str, texts: Iterable[str]) -> Mapping[str, int]:
        """Return the ids of the rows of a kind to which lines can refer."""
        if name in _SHARED:
            return self._shared[name]
        found = self._existing(KINDS[name], texts)
        return {text: id_ for text, id_ in found.items() if id_ > self.last[name]}

    def _existing(self, kind: Kind, texts: Iterable[str]) -> dict[str, int]:
        """Return the ids of the rows with exactly these texts, whatever the collation is."""
        requested = set(texts)
        text = kinds.text(kind.table)
        select = sa.select(text, kind.table.c.id).where(text.in_(sorted(requested)))
        return {row[0]: row[1] for row in self._conn.execute(select) if row[0] in requested}

    def _update_times(self, kind: Kind, ids: Mapping[str, int], lines: Iterable[Line]) -> None:
        """Set the times of existing rows with standard names."""
        standard = [
            {'row_id': ids[line.values['name']], **{one: line.values[one] for one in kinds.TIMES}}
            for line in lines
            if line.values['name'] in ids and not resource_class.is_custom(line.values['name'])
        ]
        if standard:
            is_row = kind.table.c.id == sa.bindparam('row_id')
            self._conn.execute(sa.update(kind.table).where(is_row), standard)

    def _add_ids(self, lines: Iterable[Line], rows: Iterable[dict[str, Any]]) -> None:
        """Add the ids that the service would choose to the rows of resource classes."""
        custom_ids = itertools.count(
            max(resource_class.FIRST_CUSTOM_ID, self._last_id('resource_class') + 1)
        )
        for line, row in zip(lines, rows, strict=True):
            name = row['name']
            if resource_class.is_custom(name):
                row['id'] = next(custom_ids)
            elif name in orc.STANDARDS:
                row['id'] = orc.STANDARDS.index(name)
            else:
                raise InvalidLineError(
                    line.number,
                    f'The standard resource class {shown(name)} is unknown; install a newer '
                    'version of os-resource-classes',
                )


def _stored(line: Line, field: Field, ids: Mapping[str, int]) -> Any:
    """Return the value of a field for the database.

    :param ids: the ids of the rows to which the field can refer
    """
    value = line.values[field.name]
    if not field.refers_to or value is None:
        return value
    if value not in ids:
        raise InvalidLineError(
            line.number,
            f'The {line.kind.label} refers to the {KINDS[field.refers_to].label} {shown(value)}, '
            'which no earlier line contains',
        )
    return ids[value] if isinstance(field.column.type, sa.Integer) else value


def _rejected(line: Line, is_repeated: bool) -> InvalidLineError:
    """Return the error of a line whose row the database rejects."""
    fields = line.kind.fields.values()
    own = [field.name for field in fields if field.type is str and not field.refers_to]
    texts = ', '.join(f'{name} {shown(line.values[name])}' for name in own)
    row = f'the {line.kind.label} with {texts}' if texts else f'the {line.kind.label}'
    reason = f'The database cannot store {row}'
    if is_repeated:
        reason = f'For the database, {row} is equal to an earlier line or to an existing row'
    return InvalidLineError(line.number, reason)
