"""Fills a database in memory with the providers of the database, and with their usage.

The copy has the ids of the source. It has no timestamps, and in place of most consumers, one
consumer that has the usage of each inventory.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
import contextlib
import itertools
from typing import Any

import sqlalchemy as sa
from sqlalchemy import pool

from placement.admin.named_trees import consumers_of_trees
from placement.admin.progress import Advance, Progress
from placement.db.sqlalchemy import models

# The UUID of the consumer that has the usage of all consumers that are not copied.
OTHERS = '00000000-0000-0000-0000-000000000000'
_ROWS_PER_BATCH = 10_000
_TIMES = ('created_at', 'updated_at')
_PROVIDERS = models.resource_providers
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_OF_PROVIDERS = (
    models.resource_classes,
    models.traits,
    models.placement_aggregates,
    _PROVIDERS,
    models.inventories,
    models.resource_provider_traits,
    models.resource_provider_aggregates,
)
_OF_CONSUMERS = (models.consumer_types, models.projects, models.users)


@contextlib.contextmanager
def private_copy(
    source: sa.Connection, consumers_of: Collection[int] | None, progress: Progress
) -> Iterator[sa.Connection]:
    """Yield a connection to the copy, which ceases to exist afterwards.

    :param source: a connection on which all statements read the same snapshot of the database
    :param consumers_of: the ids of the root providers whose consumers are copied as they are, with
        their allocations on all providers; None copies all consumers
    """
    engine = sa.create_engine('sqlite://', poolclass=pool.StaticPool)
    try:
        models.metadata.create_all(engine)
        with engine.connect() as conn, progress('Copying providers and usage') as advance:
            for table in _OF_PROVIDERS:
                _copy(source, conn, table, advance)
            _copy_consumers(source, conn, consumers_of, advance)
            yield conn
    finally:
        engine.dispose()


def columns(table: sa.Table) -> list[sa.Column[Any]]:
    """Return the columns of a table that the copy fills: all but the timestamps."""
    return [column for column in table.c if column.name not in _TIMES]


def insert(conn: sa.Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows into a table of the copy."""
    # A table without default values; otherwise, SQLAlchemy would compute a timestamp for each row.
    filled = sa.table(table.name, *(sa.column(one.name, one.type) for one in columns(table)))
    statement = sa.insert(filled)
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, _ROWS_PER_BATCH)):
        conn.execute(statement, batch)


def _copy(
    source: sa.Connection,
    conn: sa.Connection,
    table: sa.Table,
    advance: Advance,
    *conditions: sa.ColumnElement[bool],
) -> None:
    statement = sa.select(*columns(table)).where(*conditions)
    options = {'yield_per': _ROWS_PER_BATCH}
    for rows in source.execute(statement, execution_options=options).mappings().partitions():
        insert(conn, table, map(dict, rows))
        advance(len(rows))


def _copy_consumers(
    source: sa.Connection,
    conn: sa.Connection,
    consumers_of: Collection[int] | None,
    advance: Advance,
) -> None:
    """Copy consumers with their allocations, and the usage of all other consumers."""
    if consumers_of is None:
        for table in (*_OF_CONSUMERS, _CONSUMERS, _ALLOCATIONS):
            _copy(source, conn, table, advance)
        return
    if consumers_of:
        for table in _OF_CONSUMERS:
            _copy(source, conn, table, advance)
        uuids = consumers_of_trees(consumers_of)
        _copy(source, conn, _CONSUMERS, advance, _CONSUMERS.c.uuid.in_(uuids))
        _copy(source, conn, _ALLOCATIONS, advance, _ALLOCATIONS.c.consumer_id.in_(uuids))
    others = _usage(source)
    others.subtract(_usage(conn))
    first = (conn.scalar(sa.select(sa.func.max(_ALLOCATIONS.c.id))) or 0) + 1
    rows = (
        {
            'id': id_,
            'resource_provider_id': provider_id,
            'resource_class_id': class_id,
            'consumer_id': OTHERS,
            'used': used,
        }
        for id_, ((provider_id, class_id), used) in enumerate(others.items(), first)
        if used
    )
    insert(conn, _ALLOCATIONS, rows)


def _usage(conn: sa.Connection) -> Counter[tuple[int, int]]:
    """Return (provider id, class id) -> usage."""
    key = (_ALLOCATIONS.c.resource_provider_id, _ALLOCATIONS.c.resource_class_id)
    rows = conn.execute(sa.select(*key, sa.func.sum(_ALLOCATIONS.c.used)).group_by(*key))
    # The type of the sum depends on the database system.
    return Counter({(row[0], row[1]): int(row[2]) for row in rows})
