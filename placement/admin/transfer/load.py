"""Insert the contents of a file into the database."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import itertools
from typing import Any, BinaryIO, NamedTuple

import os_resource_classes as orc
import sqlalchemy as sa

from placement import exception
from placement.admin import progress as reporting
from placement.admin.failure import CannotProceedError
from placement.admin.transfer import database, kinds
from placement.admin.transfer.document import Document, InvalidLineError, Line, shown
from placement.admin.transfer.kinds import KINDS, Kind
from placement.db import engine, expressions, failures
from placement.db.sqlalchemy import migration, models
from placement.objects import resource_class, sync

_ROWS_PER_BATCH = 1000
_PROVIDERS = models.resource_providers
_INVENTORIES = models.inventories
_ALLOCATIONS = models.allocations
_CLASSES = models.resource_classes
# Standard rows of these kinds exist in every database that a service has used.
_WITH_STANDARDS = ('resource_class', 'trait')
# Lines of these kinds may describe existing rows, which several clouds have in common.
_SHARED = (*_WITH_STANDARDS, 'aggregate', 'consumer_type', 'project', 'user')


class OverCapacity(NamedTuple):
    """An inventory whose usage exceeds its capacity."""

    provider: str
    name: str | None
    resource_class: str
    used: int
    capacity: float


def load(
    file: BinaryIO, progress: reporting.Progress, force: bool = False
) -> tuple[Mapping[str, int], list[OverCapacity]]:
    """Insert all rows of a file in one transaction.

    :param force: whether the database may contain other providers and consumers
    :returns: the number of lines of each kind, and the inventories whose usage exceeds the capacity
    :raises CannotProceedError: the file or the contents of the database prevent the import; nothing
        is inserted
    :raises exception.OutcomeUnknown: the connection was lost during COMMIT
    """
    migration.require_current()
    source = Document(file)
    with _transaction() as conn, sync.explicit_zero(conn):
        database.prepare(conn)
        before = database.counts(conn)
        if force:
            database.require_sound(conn, 'Correct or delete them before the import.')
        else:
            _require_empty(conn, before)
        loader = _Loader(conn)
        expected = dict(before)
        with progress('Importing', sum(source.counts.values())) as advance:
            for name, batches in itertools.groupby(_batches(source.lines()), _kind_of):
                for lines in batches:
                    expected[name] += loader.write(lines)
                    advance(len(lines))
                _update_statistics(conn, KINDS[name].table)
        loader.set_roots()
        _require_counts(conn, expected)
        database.require_sound(conn, 'Nothing is imported. Stop the service, and try again.')
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
        is_lost = failures.is_connection_lost(error)
        if complete and is_lost:
            raise exception.OutcomeUnknown() from error
        if failures.is_transient(error) and not is_lost:
            raise CannotProceedError(
                'Another program uses the same rows of the database. Nothing is imported. Stop the '
                'service, and try again.'
            ) from error
        raise


def _batches(lines: Iterable[Line]) -> Iterator[list[Line]]:
    """Yield lines of the same kind in batches; a provider and its parent are in two batches."""
    batch: list[Line] = []
    uuids: set[str] = set()
    for line in lines:
        is_full = len(batch) >= _ROWS_PER_BATCH or line.values.get('parent') in uuids
        if batch and (is_full or line.kind is not batch[0].kind):
            yield batch
            batch, uuids = [], set()
        batch.append(line)
        if line.kind.name == 'provider':
            uuids.add(line.values['uuid'])
    if batch:
        yield batch


def _kind_of(lines: Sequence[Line]) -> str:
    return lines[0].kind.name


def _update_statistics(conn: sa.Connection, table: sa.Table) -> None:
    """Let the planner of the server consider the new rows.

    On MySQL, such a statement would commit the transaction. SQLite needs no statistics here.
    """
    if conn.dialect.name == 'postgresql':
        conn.exec_driver_sql(f'ANALYZE {table.name}')


# Checks ---------------------------------------------------------------------------


def _require_empty(conn: sa.Connection, counts: Mapping[str, int]) -> None:
    """Check that the database has only standard traits and resource classes.

    :raises CannotProceedError:
    """
    present = []
    for name, number in counts.items():
        if name in _WITH_STANDARDS:
            number = sum(map(resource_class.is_custom, conn.scalars(sa.select(KINDS[name].text))))
        if number:
            present.append(f'{name}: {number}')
    if present:
        raise CannotProceedError(
            f'The database is not empty ({", ".join(present)}). Import the file into an empty '
            'database, or add --force to keep the existing data.'
        )


def _require_counts(conn: sa.Connection, expected: Mapping[str, int]) -> None:
    """Check the number of rows of each kind.

    :raises CannotProceedError: another program has changed the database during the import
    """
    for name, number in database.counts(conn).items():
        if number != expected[name]:
            raise CannotProceedError(
                f'The table {KINDS[name].table.name} has {number} rows instead of '
                f'{expected[name]}, because another program changes the database. Nothing is '
                'imported. Stop the service, and try again.'
            )


def _over_capacity(conn: sa.Connection, last_provider: int) -> list[OverCapacity]:
    """Return the imported inventories whose usage exceeds the capacity.

    :param last_provider: the largest id of a provider before the import
    """
    key = (_ALLOCATIONS.c.resource_provider_id, _ALLOCATIONS.c.resource_class_id)
    # PERF: on MariaDB, whose statistics do not include the new rows, a subquery for each inventory
    # takes minutes (10,000 hosts, 2026-11).
    usage = (
        sa.select(*key, sa.func.sum(_ALLOCATIONS.c.used).label('used'))
        .where(_ALLOCATIONS.c.resource_provider_id > last_provider)
        .group_by(*key)
        .subquery()
    )
    capacity = expressions.capacity(_INVENTORIES)
    of_usage = sa.and_(
        _INVENTORIES.c.resource_provider_id == usage.c.resource_provider_id,
        _INVENTORIES.c.resource_class_id == usage.c.resource_class_id,
    )
    rows = conn.execute(
        sa.select(_PROVIDERS.c.uuid, _PROVIDERS.c.name, _CLASSES.c.name, usage.c.used, capacity)
        .select_from(usage)
        .join(_INVENTORIES, of_usage)
        .join(_PROVIDERS, _PROVIDERS.c.id == _INVENTORIES.c.resource_provider_id)
        .join(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
        .where(usage.c.used > capacity)
        .order_by(_PROVIDERS.c.uuid, _CLASSES.c.name)
    )
    # The type of a sum depends on the database system.
    return [OverCapacity(row[0], row[1], row[2], int(row[3]), row[4]) for row in rows]


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

    def write(self, lines: Sequence[Line]) -> int:
        """Write the rows of lines of one kind, and return the number of new rows.

        Existing rows that several clouds have in common are kept; standard traits and classes get
        the times of the file.

        :raises InvalidLineError: the database rejects a row, or a row to which it refers does not
            exist
        """
        kind = lines[0].kind
        if kind.name not in _SHARED:
            self._insert_new(kind, lines)
            return len(lines)
        (name,) = kind.key
        texts = [line.values[name] for line in lines]
        ids = self._existing(kind, texts)
        new = [line for line in lines if line.values[name] not in ids]
        if kind.name in _WITH_STANDARDS:
            self._update_times(kind, ids, lines)
        self._insert_new(kind, new)
        self._shared[kind.name].update(self._existing(kind, texts))
        return len(new)

    def _last_id(self, name: str) -> int:
        """Return the largest id of a row of a kind; -1 if there is none."""
        largest = sa.func.coalesce(sa.func.max(KINDS[name].table.c.id), -1)
        return int(self._conn.execute(sa.select(largest)).scalar_one())

    def set_roots(self) -> None:
        """Set the root of the new root providers to the providers themselves."""
        is_new = _PROVIDERS.c.id > self.last['provider']
        self._conn.execute(
            sa.update(_PROVIDERS)
            .where(is_new, _PROVIDERS.c.root_provider_id.is_(None))
            .values(root_provider_id=_PROVIDERS.c.id, updated_at=_PROVIDERS.c.updated_at)
        )

    def _insert_new(self, kind: Kind, lines: Sequence[Line]) -> None:
        """Insert rows with the ids of what they refer to."""
        rows = self._resolved(kind, lines)
        if kind.name == 'provider':
            self._add_roots(rows)
        elif kind.name == 'resource_class':
            self._add_ids(lines, rows)
        self._insert(lines, rows)

    def _add_roots(self, rows: Sequence[dict[str, Any]]) -> None:
        """Add the root of each provider to its row; a new root has no root yet."""
        parents = {row['parent_provider_id'] for row in rows} - {None}
        root = sa.func.coalesce(_PROVIDERS.c.root_provider_id, _PROVIDERS.c.id)
        select = sa.select(_PROVIDERS.c.id, root).where(_PROVIDERS.c.id.in_(sorted(parents)))
        rows_of_parents = self._conn.execute(select) if parents else ()
        roots = {row[0]: row[1] for row in rows_of_parents}
        for row in rows:
            row['root_provider_id'] = roots.get(row['parent_provider_id'])

    def _resolved(self, kind: Kind, lines: Sequence[Line]) -> list[dict[str, Any]]:
        """Return the rows for the database, with ids in place of names and UUIDs."""
        rows: list[dict[str, Any]] = [{} for _ in lines]
        for name, field in kind.fields.items():
            ids: Mapping[str, int] = {}
            if field.refers_to:
                texts = {line.values[name] for line in lines} - {None}
                ids = self._ids(field.refers_to, texts)
            for line, row in zip(lines, rows, strict=True):
                value = line.values[name]
                if field.refers_to and value is not None:
                    if value not in ids:
                        raise InvalidLineError(
                            line.number,
                            f'The {kind.label} refers to the {KINDS[field.refers_to].label} '
                            f'{shown(value)}, which no earlier line contains',
                        )
                    value = value if field.is_text_in_database else ids[value]
                row[field.column.name] = value
        return rows

    def _ids(self, name: str, texts: Iterable[str]) -> Mapping[str, int]:
        """Return the ids of the rows of a kind to which lines can refer."""
        if name in _SHARED:
            return self._shared[name]
        found = self._existing(KINDS[name], texts)
        return {text: id_ for text, id_ in found.items() if id_ > self.last[name]}

    def _existing(self, kind: Kind, texts: Iterable[str]) -> dict[str, int]:
        """Return the ids of the rows with exactly these texts, whatever the collation is."""
        requested = sorted(texts)
        select = sa.select(kind.text, kind.table.c.id).where(kind.text.in_(requested))
        try:
            # On PostgreSQL, a failed statement ends the transaction, except after a savepoint.
            with self._conn.begin_nested():
                found = {row[0]: row[1] for row in self._conn.execute(select)}
        except Exception as error:
            if not failures.is_bad_value(error):
                raise
            # The column cannot contain one of the texts.
            single = [[text] for text in requested] if len(requested) > 1 else []
            found = {k: v for text in single for k, v in self._existing(kind, text).items()}
        return {text: found[text] for text in requested if text in found}

    def _insert(self, lines: Sequence[Line], rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert the rows of lines of one kind; find the line that the database rejects."""
        if not lines:
            return
        try:
            with self._conn.begin_nested():
                self._conn.execute(sa.insert(lines[0].kind.table), list(rows))
        except Exception as error:
            is_repeated = failures.is_key_violation(error)
            if not is_repeated and not failures.is_bad_value(error):
                raise
            if len(lines) == 1:
                raise _rejected(lines[0], is_repeated) from error
            for line, row in zip(lines, rows, strict=True):
                self._insert([line], [row])

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
