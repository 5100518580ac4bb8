"""Compare-and-swap of generations, and touching rows that have none to raise.

A lost swap means that a rival committed between reading and writing: the transaction is rolled
back and run again. On one server the row locks make every swap succeed; on a multi-master
cluster the swapped row is what certification compares, which is why a write that raises no
generation touches the row instead.
"""

from collections.abc import Collection, Mapping
import datetime
from typing import Any

from oslo_utils import timeutils
import sqlalchemy as sa

from placement import exception
from placement.db.sqlalchemy import models


def increment_providers(conn: sa.Connection, seen: Mapping[int, int], by: int = 1) -> None:
    """Raise the generation of providers.

    :param seen: the generation that was read, by provider id
    :param by: how much to raise it
    :raises exception.ConcurrentChange: one of them has another generation by now
    """
    _swap(conn, models.resource_providers, seen, by, {})


def increment_consumers(
    conn: sa.Connection, seen: Mapping[int, int], values: Mapping[str, Any] | None = None
) -> None:
    """Raise the generation of consumers by one, and set `values` on the same rows.

    :param seen: the generation that was read, by consumer id
    :raises exception.ConcurrentChange: one of them has another generation by now
    """
    _swap(conn, models.consumers, seen, 1, values or {})


def touch(conn: sa.Connection, table: sa.Table, row_ids: Collection[int]) -> int:
    """Change rows in nothing but `updated_at`, so that a rival's certification meets them.

    MySQL keeps whole seconds, and does not write a row that an UPDATE leaves as it is: the node
    of a cluster would have nothing to certify. A row that was touched in this second already
    goes back by one.

    :returns: how many of them there are
    """
    if not row_ids:
        return 0
    now = timeutils.utcnow().replace(microsecond=0)
    moment = sa.case(
        (table.c.updated_at == now, now - datetime.timedelta(seconds=1)), else_=sa.literal(now)
    )
    result = conn.execute(sa.update(table).where(table.c.id.in_(row_ids)).values(updated_at=moment))
    return int(result.rowcount)


def _swap(
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
