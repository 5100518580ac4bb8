"""Consumers: who holds allocations. A consumer row exists exactly while it has some."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement import exception
from placement.db import failures, names
from placement.db.sqlalchemy import models

_CONSUMERS = models.consumers

_LOCK = (
    sa.select(
        _CONSUMERS.c.id,
        _CONSUMERS.c.uuid,
        _CONSUMERS.c.generation,
        _CONSUMERS.c.project_id,
        _CONSUMERS.c.user_id,
        _CONSUMERS.c.consumer_type_id,
    )
    .where(_CONSUMERS.c.uuid.in_(sa.bindparam('uuids', expanding=True)))
    .order_by(_CONSUMERS.c.uuid)
    .with_for_update()
)
_DELETE = sa.delete(_CONSUMERS).where(
    _CONSUMERS.c.id.in_(sa.bindparam('consumer_ids', expanding=True))
)


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer with the ids of its owners."""

    id: int
    uuid: str
    generation: int
    project_id: int
    user_id: int
    consumer_type_id: int | None


def lock(
    conn: sa.Connection, uuids: Collection[str], new: Collection[str] = ()
) -> dict[str, Consumer]:
    """Lock the consumers that exist, and return them by requested UUID.

    :param new: UUIDs that the caller passes to `create` if no consumer is returned for them: the
        unique key decides whether they equal another one
    :raises exception.AmbiguousKeys: two of the UUIDs are one consumer
    """
    rows = conn.execute(_LOCK, {'uuids': sorted(uuids)})
    stored = {row.uuid: Consumer(*row) for row in rows}
    requested = set(uuids)
    if stored.keys() <= requested and requested - stored.keys() <= set(new):
        return stored
    ids = names.ids(
        conn, _CONSUMERS.c.uuid, requested, {uuid: known.id for uuid, known in stored.items()}
    )
    names.require_distinct(ids)
    by_id = {known.id: known for known in stored.values()}
    return {uuid: by_id[id_] for uuid, id_ in ids.items()}


def create(
    conn: sa.Connection, rows: Iterable[Mapping[str, Any]], requested: Collection[str]
) -> None:
    """Insert consumers, given by column; each is written, so each starts at generation 1.

    :param requested: the UUIDs of all consumers of the request
    :raises exception.AmbiguousKeys: two of the requested UUIDs are one consumer; the transaction
        is rolled back
    :raises oslo_db.exception.DBDuplicateEntry: a rival created one of them at the same time
    """
    new = sorted(({**row, 'generation': 1} for row in rows), key=lambda row: str(row['uuid']))
    if not new:
        return
    try:
        conn.execute(sa.insert(_CONSUMERS), new)
    except db_exc.DBError as exc:
        if failures.is_key_violation(exc) and len(requested) > 1:
            # Without a concurrent transaction, a retry would fail in the same way.
            conn.rollback()
            names.require_different(conn, _CONSUMERS.c.uuid, requested)
        raise


def delete(conn: sa.Connection, consumer_ids: Collection[int]) -> None:
    """Delete consumers that hold nothing any more.

    :raises exception.ConcurrentChange: one of them is gone already
    """
    if not consumer_ids:
        return
    result = conn.execute(_DELETE, {'consumer_ids': sorted(consumer_ids)})
    if result.rowcount != len(consumer_ids):
        raise exception.ConcurrentChange('A consumer')


def changed_owners(wanted: Iterable[Consumer], current: Mapping[int, Consumer]) -> dict[str, Any]:
    """The column values, as expressions over all `wanted` rows, that give each its new owners.

    Empty when no consumer changes hands, which is the rule.
    """
    values: dict[str, Any] = {}
    targets = list(wanted)
    for column in ('project_id', 'user_id', 'consumer_type_id'):
        news = {
            consumer.id: getattr(consumer, column)
            for consumer in targets
            if getattr(consumer, column) != getattr(current[consumer.id], column)
        }
        if news:
            values[column] = sa.case(news, value=_CONSUMERS.c.id, else_=_CONSUMERS.c[column])
    return values
