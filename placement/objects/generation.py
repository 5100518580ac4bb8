"""Check and increment the generations of providers and consumers.

If the generation in a request is stale, the request fails with 409 Conflict. This error is called a
*generation conflict*.

An increment updates a row only if the generation has not changed since this transaction read it.
Otherwise, a concurrent transaction committed first, and this transaction is rolled back and
retried. On a single database server, row locks prevent a concurrent change of the generation. The
nodes of a Galera cluster do not share row locks. Instead, the cluster compares the rows that
concurrent transactions change, and rejects one of two conflicting transactions at COMMIT
(certification). Therefore, if a transaction depends on a row but does not increment the generation
of the row, the transaction updates the `updated_at` column of the row (see `touch`).
"""

from collections.abc import Collection, Iterable, Mapping
import datetime
from typing import Any

from oslo_utils import timeutils
import sqlalchemy as sa

from placement import exception
from placement.capacity import MAX_INT
from placement.db.sqlalchemy import models


def _increment_of_one_row(table: sa.Table) -> sa.Update:
    return (
        sa.update(table)
        .where(
            table.c.id == sa.bindparam('row_id'), models.generation(table) == sa.bindparam('seen')
        )
        .values(generation=models.generation(table) + sa.bindparam('amount'))
    )


# PERF: most requests increment the generation of one provider or consumer. Without these constants,
# building the statement took longer than its execution (tools/perf, 2026-11).
_OF_ONE_ROW = {
    table.name: _increment_of_one_row(table)
    for table in (models.resource_providers, models.consumers)
}
_PROVIDERS = models.resource_providers
_LOCK_AND_INCREMENT = (
    sa.update(_PROVIDERS)
    .where(
        _PROVIDERS.c.uuid == sa.bindparam('provider_uuid'),
        _PROVIDERS.c.root_provider_id.is_not(None),
    )
    .values(generation=models.generation(_PROVIDERS) + 1)
)
_LOCK_AND_INCREMENT_GIVEN = _LOCK_AND_INCREMENT.where(
    models.generation(_PROVIDERS) == sa.bindparam('given')
)


def check_provider(uuid: str, given: int, current: int) -> None:
    """Check that the client sent the current generation of a provider.

    :raises exception.ResourceProviderGenerationConflict:
    """
    if given != current:
        raise exception.ResourceProviderGenerationConflict(uuid, given, current)


def check_consumer(uuid: str, given: int | None, current: int | None) -> None:
    """Check that the client sent the current generation of a consumer.

    :param given: the consumer generation in the request, None for a new consumer
    :param current: the stored generation, None if the consumer does not exist
    :raises exception.ConsumerGenerationConflict:
    """
    if given != current:
        raise exception.ConsumerGenerationConflict(uuid, given, current)


def increment_providers(
    conn: sa.Connection, seen: Mapping[int, int], by: int | Mapping[int, int] = 1
) -> None:
    """Increment the generation of providers.

    :param seen: the generations that this transaction read, keyed by provider id
    :param by: the amount to add to each generation, or the amounts keyed by provider id
    :raises exception.ConcurrentChange: a concurrent transaction changed the generation of a
        provider, or deleted the provider
    """
    _increment(conn, models.resource_providers, seen, by, {})


def lock_and_increment_provider(conn: sa.Connection, uuid: str) -> bool:
    """Increment the generation of a provider that this transaction has neither read nor locked.

    The UPDATE also locks the provider until the transaction ends. It saves the round trip of a
    separate lock, if the transaction locks no other provider.

    :returns: whether the provider exists and has a root
    """
    return conn.execute(_LOCK_AND_INCREMENT, {'provider_uuid': uuid}).rowcount == 1


def increment_given(conn: sa.Connection, uuid: str, given: int) -> bool:
    """Lock a provider and increment its generation, if its generation is the one in the request.

    :returns: whether the generation was incremented; if not, the provider does not exist, or its
        generation does not match
    """
    # PostgreSQL rejects larger numbers.
    if not 0 <= given <= MAX_INT:
        return False
    parameters = {'provider_uuid': uuid, 'given': given}
    return conn.execute(_LOCK_AND_INCREMENT_GIVEN, parameters).rowcount == 1


def increment_consumers(
    conn: sa.Connection, seen: Mapping[int, int], values: Mapping[str, Any] | None = None
) -> None:
    """Increment the generation of consumers by one, and set `values` on the same rows.

    :param seen: the generations that this transaction read, keyed by consumer id
    :param values: new values of other columns, keyed by column name
    :raises exception.ConcurrentChange: a concurrent transaction changed the generation of a
        consumer, or deleted the consumer
    """
    _increment(conn, models.consumers, seen, 1, values or {})


def touch(
    conn: sa.Connection,
    table: sa.Table,
    row_ids: Collection[int],
    *conditions: sa.ColumnElement[bool],
) -> int:
    """Update only `updated_at` of rows, so that a Galera cluster detects conflicting transactions.

    MySQL stores `updated_at` in whole seconds, and skips an UPDATE that does not change any value,
    so Galera would have nothing to certify. If `updated_at` of a row already is the current second,
    this function therefore sets it back by one second.

    :param conditions: further conditions that a row must satisfy
    :returns: the number of updated rows; the ids of rows that do not exist are not counted
    """
    if not row_ids:
        return 0
    now = timeutils.utcnow().replace(microsecond=0)
    moment = sa.case(
        (table.c.updated_at == now, now - datetime.timedelta(seconds=1)), else_=sa.literal(now)
    )
    result = conn.execute(
        sa.update(table).where(table.c.id.in_(row_ids), *conditions).values(updated_at=moment)
    )
    return int(result.rowcount)


def _increment(
    conn: sa.Connection,
    table: sa.Table,
    seen: Mapping[int, int],
    by: int | Mapping[int, int],
    values: Mapping[str, Any],
) -> None:
    if not seen:
        return
    if len(seen) == 1 and not values:
        changed = _increment_one(conn, table, seen, by)
    else:
        changed = _increment_many(conn, table, seen, by, values)
    if changed != len(seen):
        raise exception.ConcurrentChange(
            'The generation of a resource provider or consumer in this request'
        )


def _increment_one(
    conn: sa.Connection, table: sa.Table, seen: Mapping[int, int], by: int | Mapping[int, int]
) -> int:
    ((row_id, generation),) = seen.items()
    amount = by if isinstance(by, int) else by[row_id]
    parameters = {'row_id': row_id, 'seen': generation, 'amount': amount}
    return int(conn.execute(_OF_ONE_ROW[table.name], parameters).rowcount)


def _increment_many(
    conn: sa.Connection,
    table: sa.Table,
    seen: Mapping[int, int],
    by: int | Mapping[int, int],
    values: Mapping[str, Any],
) -> int:
    by_generation: dict[int, list[int]] = {}
    for row_id, generation in seen.items():
        by_generation.setdefault(generation, []).append(row_id)
    unchanged = [
        sa.and_(table.c.id.in_(row_ids), models.generation(table) == generation)
        for generation, row_ids in by_generation.items()
    ]
    result = conn.execute(
        sa.update(table)
        .where(sa.or_(*unchanged))
        .values(generation=models.generation(table) + _amount(table, seen, by), **values)
    )
    return int(result.rowcount)


def _amount(
    table: sa.Table, row_ids: Iterable[int], by: int | Mapping[int, int]
) -> int | sa.Case[int]:
    """Return the amount to add to the generation of a row."""
    if isinstance(by, int):
        return by
    ids_by_amount: dict[int, list[int]] = {}
    for row_id in row_ids:
        ids_by_amount.setdefault(by[row_id], []).append(row_id)
    if len(ids_by_amount) == 1:
        return next(iter(ids_by_amount))
    return sa.case(*((table.c.id.in_(ids), amount) for amount, ids in ids_by_amount.items()))
