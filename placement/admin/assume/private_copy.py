"""Fills a database in memory with the providers of the database, and with their usage.

The copy has the ids of the source. It has no timestamps, and in place of most consumers, one
consumer that has the usage of each inventory.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping
import contextlib
import itertools
from typing import Any

import sqlalchemy as sa
from sqlalchemy import pool

from placement.admin.console import Progress
from placement.admin.named_trees import consumers_of_trees
from placement.db.sqlalchemy import models

# The UUID of the consumer that has the usage of all consumers that are not copied.
OTHERS = '00000000-0000-0000-0000-000000000000'
_ROWS_PER_BATCH = 10_000
_TIMES = ('created_at', 'updated_at')
_ALLOCATIONS = models.allocations
# The columns with the UUID of the consumer, by table.
_CONSUMERS = {
    column.table: column for column in (models.consumers.c.uuid, _ALLOCATIONS.c.consumer_id)
}


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
    options = {'yield_per': _ROWS_PER_BATCH}
    try:
        models.metadata.create_all(engine)
        with engine.connect() as conn, progress('Copying providers and usage') as advance:
            for table, statement in _statements(consumers_of):
                found = source.execute(statement, execution_options=options).mappings()
                for rows in found.partitions():
                    insert(conn, table, map(dict, rows))
                    advance(len(rows))
            yield conn
    finally:
        engine.dispose()


def _statements(consumers_of: Collection[int] | None) -> Iterator[tuple[sa.Table, sa.Select[Any]]]:
    """Yield each table of the copy with a SELECT of its rows."""
    for table in models.metadata.sorted_tables:
        statement = sa.select(*columns(table))
        if consumers_of is not None and table in _CONSUMERS:
            statement = statement.where(_CONSUMERS[table].in_(consumers_of_trees(consumers_of)))
        yield table, statement
    if consumers_of is None:
        return
    inventory = (_ALLOCATIONS.c.resource_provider_id, _ALLOCATIONS.c.resource_class_id)
    yield (
        _ALLOCATIONS,
        sa.select(
            *inventory,
            sa.literal(OTHERS).label('consumer_id'),
            # The type of the sum depends on the database system.
            sa.cast(sa.func.sum(_ALLOCATIONS.c.used), sa.BigInteger).label('used'),
        )
        .where(_ALLOCATIONS.c.consumer_id.not_in(consumers_of_trees(consumers_of)))
        .group_by(*inventory),
    )


def columns(table: sa.Table) -> list[sa.Column[Any]]:
    """Return the columns of a table that the copy fills: all but the timestamps."""
    return [column for column in table.c if column.name not in _TIMES]


def insert(conn: sa.Connection, table: sa.Table, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert rows into a table of the copy."""
    # A table without default values; otherwise, SQLAlchemy would compute a timestamp for each row.
    filled = sa.table(table.name, *(sa.column(one.name, one.type) for one in columns(table)))
    remaining = iter(rows)
    while batch := list(itertools.islice(remaining, _ROWS_PER_BATCH)):
        conn.execute(sa.insert(filled), batch)
