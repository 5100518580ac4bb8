"""Lock, insert and delete consumers. Placement stores a consumer only while it has allocations."""

from collections.abc import Collection, Mapping

from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement import exception
from placement.claims import statements
from placement.claims.model import Consumer
from placement.db import failures, names
from placement.db.sqlalchemy import models

_UUID = models.consumers.c.uuid


def lock(
    conn: sa.Connection, uuids: Collection[str], new: Collection[str] = ()
) -> dict[str, Consumer]:
    """Lock the requested consumers that exist, and return them keyed by requested UUID.

    :param new: the UUIDs of consumers that the caller inserts if they do not exist; if the database
        contains such a UUID in another spelling, the unique key rejects the insert
    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same consumer
    """
    rows = conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(uuids)})
    stored = {row.uuid: Consumer(*row) for row in rows}
    requested = set(uuids)
    if stored.keys() <= requested and requested - stored.keys() <= set(new):
        return stored
    ids = names.ids(
        conn, _UUID, requested, {uuid: consumer.id for uuid, consumer in stored.items()}
    )
    names.require_distinct(ids)
    by_id = {consumer.id: consumer for consumer in stored.values()}
    return {uuid: by_id[id_] for uuid, id_ in ids.items()}


def create(
    conn: sa.Connection,
    owners: Mapping[str, tuple[int, int, int | None]],
    requested: Collection[str],
) -> None:
    """Insert consumers with generation 1.

    The generation starts at 1 instead of 0, because the same request also writes allocations.

    :param owners: the ids of the project, user and consumer type of each new consumer, keyed by
        consumer UUID
    :param requested: the UUIDs of all consumers in the request
    :raises exception.AmbiguousKeys: two of the requested UUIDs refer to the same consumer; the
        transaction is rolled back
    :raises oslo_db.exception.DBDuplicateEntry: a concurrent transaction inserted one of the
        consumers
    """
    if not owners:
        return
    rows = [
        {
            'uuid': uuid,
            'generation': 1,
            'project_id': project_id,
            'user_id': user_id,
            'consumer_type_id': type_id,
        }
        for uuid, (project_id, user_id, type_id) in sorted(owners.items())
    ]
    try:
        conn.execute(statements.INSERT_CONSUMERS, rows)
    except db_exc.DBError as exc:
        if failures.is_key_violation(exc) and len(requested) > 1:
            # If two requested UUIDs refer to the same consumer, every retry would violate the key
            # again, so reject the request now.
            conn.rollback()
            names.require_different(conn, _UUID, requested)
        raise


def delete(conn: sa.Connection, consumer_ids: Collection[int]) -> None:
    """Delete consumers that have no allocations after the request.

    :raises exception.ConcurrentChange: a concurrent transaction deleted one of the consumers
    """
    if not consumer_ids:
        return
    result = conn.execute(statements.DELETE_CONSUMERS, {'consumer_ids': sorted(consumer_ids)})
    if result.rowcount != len(consumer_ids):
        raise exception.ConcurrentChange('A consumer in this request')
