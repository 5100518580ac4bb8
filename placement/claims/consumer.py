"""Consumer rows. A consumer has a row exactly as long as it has allocations."""

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
    """Lock the consumers that exist, and return them by requested UUID.

    :param new: UUIDs that the caller passes to `create` if no consumer is returned for them: the
        unique key decides whether they equal another one
    :raises exception.AmbiguousKeys: two of the UUIDs are one consumer
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
    """Insert consumers with generation 1: the request that creates a consumer also writes it.

    :param owners: the ids of project, user and consumer type, by UUID of the new consumer
    :param requested: the UUIDs of all consumers of the request
    :raises exception.AmbiguousKeys: two of the requested UUIDs are one consumer; the transaction
        is rolled back
    :raises oslo_db.exception.DBDuplicateEntry: a concurrent transaction inserted one of them
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
            # Without a concurrent transaction, a retry would fail in the same way.
            conn.rollback()
            names.require_different(conn, _UUID, requested)
        raise


def delete(conn: sa.Connection, consumer_ids: Collection[int]) -> None:
    """Delete consumers that have no allocations after the request.

    :raises exception.ConcurrentChange: one of them was deleted by a concurrent transaction
    """
    if not consumer_ids:
        return
    result = conn.execute(statements.DELETE_CONSUMERS, {'consumer_ids': sorted(consumer_ids)})
    if result.rowcount != len(consumer_ids):
        raise exception.ConcurrentChange('A consumer')
