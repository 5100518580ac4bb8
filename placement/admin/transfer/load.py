"""Insert the contents of a file into the database."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
import contextlib
import itertools
from typing import BinaryIO

import sqlalchemy as sa

from placement import exception
from placement.admin import progress as reporting
from placement.admin.failure import CannotProceedError
from placement.admin.transfer import (
    document,
    insertion,
    model,
    references,
    statements,
    tables,
    target,
    unnameable,
    vocabulary,
)
from placement.db import engine, failures
from placement.db.sqlalchemy import migration, models

_ROWS_PER_BATCH = 1000
_PROVIDERS = models.resource_providers


def load(
    file: BinaryIO, progress: reporting.Progress, force: bool = False
) -> tuple[model.Header, target.OverCapacity]:
    """Insert all rows of a file in one transaction.

    :param force: whether the database may contain other providers and consumers
    :returns: the first line of the file, and the inventories whose usage exceeds the capacity
    :raises CannotProceedError: the file or the contents of the database prevent the import; nothing
        is inserted
    :raises exception.OutcomeUnknown: the connection was lost during COMMIT
    """
    migration.require_current()
    source = document.Document(file)
    _require_known_revision(source.header)
    with _transaction() as conn:
        statements.prepare(conn)
        before = tables.counts(conn)
        if force:
            unnameable.require_none(conn, 'Correct or delete them before the import.')
        else:
            target.require_empty(conn, before)
        known = references.known(conn)
        with progress('Importing', sum(source.header.counts.values())) as advance:
            added = dict.fromkeys(source.header.counts, 0)
            batches = _batches(source.lines())
            for kind, of_kind in itertools.groupby(batches, key=lambda lines: lines[0].kind):
                for lines in of_kind:
                    added[kind.name] += _write(conn, known, kind, lines)
                    advance(len(lines))
                statements.update_statistics(conn, kind)
        _set_roots(conn, known)
        target.require_counts(conn, {name: before[name] + number for name, number in added.items()})
        unnameable.require_none(conn, 'Nothing is imported. Stop the service, and try again.')
        return source.header, target.over_capacity(conn, known[model.PROVIDER.name].last)


def _require_known_revision(header: model.Header) -> None:
    revision = header.schema_revision
    if revision is not None and revision not in migration.revisions():
        raise document.InvalidLineError(
            1,
            f'The schema revision {document.shown(revision)} is unknown; import the file with a '
            'newer release',
        )


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
        if complete and failures.is_connection_lost(error):
            raise exception.OutcomeUnknown() from error
        if failures.is_transient(error) and not failures.is_connection_lost(error):
            raise CannotProceedError(
                'Another program uses the same rows of the database. Nothing is imported. Stop the '
                'service, and try again.'
            ) from error
        raise


def _batches(lines: Iterable[model.Line]) -> Iterator[list[model.Line]]:
    """Yield lines of the same kind in batches; a provider and its parent are in two batches."""
    batch: list[model.Line] = []
    uuids: set[str] = set()
    for line in lines:
        is_full = len(batch) >= _ROWS_PER_BATCH
        if batch and (is_full or line.kind is not batch[0].kind or _parent(line) in uuids):
            yield batch
            batch, uuids = [], set()
        batch.append(line)
        if line.kind is model.PROVIDER:
            uuids.add(line.values['uuid'])
    if batch:
        yield batch


def _parent(line: model.Line) -> str | None:
    return line.values['parent'] if line.kind is model.PROVIDER else None


def _write(
    conn: sa.Connection, known: references.Known, kind: model.Kind, lines: Sequence[model.Line]
) -> int:
    """Write the rows of lines and return the number of new rows."""
    if kind in vocabulary.KINDS:
        return vocabulary.write(conn, known, kind, lines)
    rows = references.resolve(conn, known, kind, lines)
    if kind is model.PROVIDER:
        roots = _roots(conn, {row['parent_provider_id'] for row in rows} - {None})
        for row in rows:
            row['root_provider_id'] = roots.get(row['parent_provider_id'])
    insertion.insert(conn, lines, rows)
    return len(lines)


def _roots(conn: sa.Connection, ids: set[int]) -> Mapping[int | None, int]:
    """Return the id of the root of each provider; a new root has no root yet."""
    if not ids:
        return {}
    root = sa.func.coalesce(_PROVIDERS.c.root_provider_id, _PROVIDERS.c.id)
    rows = conn.execute(sa.select(_PROVIDERS.c.id, root).where(_PROVIDERS.c.id.in_(sorted(ids))))
    return {row[0]: row[1] for row in rows}


def _set_roots(conn: sa.Connection, known: references.Known) -> None:
    """Set the root of the new roots to the providers themselves."""
    conn.execute(
        sa.update(_PROVIDERS)
        .where(
            _PROVIDERS.c.id > known[model.PROVIDER.name].last,
            _PROVIDERS.c.root_provider_id.is_(None),
        )
        .values(root_provider_id=_PROVIDERS.c.id, updated_at=_PROVIDERS.c.updated_at)
    )
