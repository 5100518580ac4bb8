"""Consumers: who holds allocations. A consumer row exists exactly while it has some."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.objects import keys

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


def lock(conn: sa.Connection, uuids: Collection[str]) -> dict[str, Consumer]:
    """Lock the consumers that exist, and give them by the uuid that was asked for."""
    keys.require_one_spelling(conn, uuids)
    rows = conn.execute(_LOCK, {'uuids': sorted(uuids)}).all()
    found = keys.match(conn, uuids, rows, 'uuid')
    return {uuid: Consumer(*row) for uuid, row in found.items()}


def create(conn: sa.Connection, rows: Iterable[Mapping[str, Any]]) -> None:
    """Insert consumers, given by column; each is written, so each starts at generation 1.

    :raises oslo_db.exception.DBDuplicateEntry: a rival created one of them at the same time
    """
    new = sorted(({**row, 'generation': 1} for row in rows), key=lambda row: str(row['uuid']))
    if new:
        conn.execute(sa.insert(_CONSUMERS), new)


def delete(conn: sa.Connection, consumer_ids: Collection[int]) -> None:
    """Delete consumers that hold nothing any more."""
    if consumer_ids:
        conn.execute(_DELETE, {'consumer_ids': sorted(consumer_ids)})


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
