"""Check and increment the generations of providers and consumers.

If the generation in a request is stale, the request fails with 409 Conflict. This error is called a
*generation conflict*.

If this transaction has read a row, an increment updates it only if the generation has not changed.
Otherwise, a concurrent transaction committed first, and this transaction is rolled back and
retried. On a single database server, row locks prevent a concurrent change of the generation. The
nodes of a Galera cluster do not share row locks. Instead, the cluster compares the rows that
concurrent transactions change, and rejects one of two conflicting transactions at COMMIT
(certification). Therefore, if a transaction depends on a row but does not increment the generation
of the row, the transaction updates the `updated_at` column of the row (see `touch`).
"""

from collections.abc import Collection, Mapping
import datetime
from typing import Any

from oslo_utils import timeutils
import sqlalchemy as sa

from placement import exception
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers


def _incremented(table: sa.Table) -> sa.Update:
    row = sa.tuple_(table.c.id, models.generation(table))
    return (
        sa.update(table)
        .where(
            # The database finds the rows by their ids, because a generation can be NULL.
            table.c.id.in_(sa.bindparam('ids', expanding=True)),
            row.in_(sa.bindparam('seen', expanding=True)),
        )
        .values(generation=models.generation(table) + 1)
    )


# PERF: building these statements for each request took longer than their execution (tools/perf,
# 2026-11).
_INCREMENT = {table.name: _incremented(table) for table in (_PROVIDERS, models.consumers)}
_LOCK_AND_INCREMENT = (
    sa.update(_PROVIDERS)
    .where(
        _PROVIDERS.c.uuid == sa.bindparam('provider_uuid'),
        _PROVIDERS.c.root_provider_id.is_not(None),
    )
    .values(generation=models.generation(_PROVIDERS) + 1)
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
    conn: sa.Connection, seen: Mapping[int, int], by: Mapping[int, int] | None = None
) -> None:
    """Increment the generation of providers.

    :param seen: the generations that this transaction read, keyed by provider id
    :param by: the amount to add to each generation, keyed by provider id; None adds 1
    :raises exception.ConcurrentChange: a concurrent transaction changed the generation of a
        provider, or deleted the provider
    """
    values = {}
    if by is not None and set(by.values()) != {1}:
        amount = sa.case(dict(by), value=_PROVIDERS.c.id)
        values['generation'] = models.generation(_PROVIDERS) + amount
    _increment(conn, _PROVIDERS, seen, values)


def lock_and_increment_provider(conn: sa.Connection, uuid: str) -> bool:
    """Increment the generation of a provider that this transaction has neither read nor locked.

    The UPDATE also locks the provider until the transaction ends. It saves the round trip of a
    separate lock, if the transaction locks no other provider.

    :returns: whether the provider exists and has a root
    """
    return conn.execute(_LOCK_AND_INCREMENT, {'provider_uuid': uuid}).rowcount == 1


def increment_consumers(
    conn: sa.Connection, seen: Mapping[int, int], values: Mapping[str, Any] | None = None
) -> None:
    """Increment the generation of consumers by one, and set `values` on the same rows.

    :param seen: the generations that this transaction read, keyed by consumer id
    :param values: new values of other columns, keyed by column name
    :raises exception.ConcurrentChange: a concurrent transaction changed the generation of a
        consumer, or deleted the consumer
    """
    _increment(conn, models.consumers, seen, values or {})


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
    conn: sa.Connection, table: sa.Table, seen: Mapping[int, int], values: Mapping[str, Any]
) -> None:
    """Increment generations, and set other columns of the same rows.

    :param values: new values, keyed by column name; that of the generation replaces the
        increment
    """
    if not seen:
        return
    statement = _INCREMENT[table.name]
    if values:
        statement = statement.values(values)
    changed = conn.execute(statement, {'ids': [*seen], 'seen': [*seen.items()]}).rowcount
    if changed != len(seen):
        raise exception.ConcurrentChange(
            'The generation of a resource provider or consumer in this request'
        )
