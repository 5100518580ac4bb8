"""Generations of providers and consumers: checks, increments, and touched rows.

A *generation conflict* is the fault of the client: the generation in the request is stale. The
checks report it as 409 Conflict.

An increment updates a row only if its generation is still the one that the transaction read.
Otherwise a concurrent transaction committed first, and this transaction is rolled back and
retried. On one database server, row locks make every increment succeed. A multi-master cluster
does not share row locks between nodes: it certifies a transaction by the rows that it changes. A
write that increments no generation therefore touches the row.
"""

from collections.abc import Collection, Mapping
import datetime
from typing import Any

from oslo_utils import timeutils
import sqlalchemy as sa

from placement import exception
from placement.db.sqlalchemy import models


def check_provider(uuid: str, given: int, current: int) -> None:
    """Check that the client sent the current generation of a provider.

    :raises exception.ResourceProviderGenerationConflict:
    """
    if given != current:
        raise exception.ResourceProviderGenerationConflict(uuid, given, current)


def check_consumer(uuid: str, given: int | None, current: int | None) -> None:
    """Check that the client sent the current generation of a consumer, None for a new consumer.

    :raises exception.ConsumerGenerationConflict:
    """
    if given != current:
        raise exception.ConsumerGenerationConflict(uuid, given, current)


def increment_providers(conn: sa.Connection, seen: Mapping[int, int], by: int = 1) -> None:
    """Increment the generation of providers.

    :param seen: the generation that this transaction read, by provider id
    :param by: the increment
    :raises exception.ConcurrentChange: a provider has another generation, or does not exist
    """
    _increment(conn, models.resource_providers, seen, by, {})


def increment_consumers(
    conn: sa.Connection, seen: Mapping[int, int], values: Mapping[str, Any] | None = None
) -> None:
    """Increment the generation of consumers by one, and set `values` on the same rows.

    :param seen: the generation that this transaction read, by consumer id
    :param values: new values by column name
    :raises exception.ConcurrentChange: a consumer has another generation, or does not exist
    """
    _increment(conn, models.consumers, seen, 1, values or {})


def touch(conn: sa.Connection, table: sa.Table, row_ids: Collection[int]) -> int:
    """Set `updated_at` of rows, so that a cluster certifies them although nothing else changes.

    MySQL stores whole seconds, and does not write a row whose values an UPDATE leaves as they are:
    a cluster would have nothing to certify. If a row was touched within the current second, its
    `updated_at` is set back by one second.

    :returns: the number of rows that exist
    """
    if not row_ids:
        return 0
    now = timeutils.utcnow().replace(microsecond=0)
    moment = sa.case(
        (table.c.updated_at == now, now - datetime.timedelta(seconds=1)), else_=sa.literal(now)
    )
    result = conn.execute(sa.update(table).where(table.c.id.in_(row_ids)).values(updated_at=moment))
    return int(result.rowcount)


def _increment(
    conn: sa.Connection,
    table: sa.Table,
    seen: Mapping[int, int],
    by: int,
    values: Mapping[str, Any],
) -> None:
    if not seen:
        return
    by_generation: dict[int, list[int]] = {}
    for row_id, generation in seen.items():
        by_generation.setdefault(generation, []).append(row_id)
    as_seen = [
        sa.and_(table.c.id.in_(row_ids), table.c.generation == generation)
        for generation, row_ids in by_generation.items()
    ]
    result = conn.execute(
        sa.update(table)
        .where(sa.or_(*as_seen))
        .values(generation=table.c.generation + by, **values)
    )
    if result.rowcount != len(seen):
        raise exception.ConcurrentChange('The generation of a row that this request changes')
