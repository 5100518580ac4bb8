"""Create missing consumers, and delete consumers without allocations."""

from collections.abc import Sequence
import functools

from oslo_config import cfg
import sqlalchemy as sa

from placement.admin.audit import batches, consumers, rows
from placement.admin.audit.model import IDLE_CONSUMER, ORPHAN_ALLOCATION, Change
from placement.admin.progress import Progress
from placement.claims import rows as claim_rows
from placement.claims import statements
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import online_data_migrations

_CONSUMERS = models.consumers
_UUID = models.allocations.c.consumer_id


def create_missing(conf: cfg.ConfigOpts, report: Progress) -> list[Change]:
    """Create the consumers to which allocations refer, owned by the incomplete-consumer project."""
    missing = online_data_migrations.select_without_consumer(_UUID).distinct().order_by(_UUID)
    with engine.snapshot() as conn:
        uuids = conn.scalars(missing).all()
    return batches.write(ORPHAN_ALLOCATION, uuids, functools.partial(_create, conf), report)


def delete_idle(_conf: cfg.ConfigOpts, report: Progress) -> list[Change]:
    """Delete the consumers without allocations."""
    idle = sa.select(_CONSUMERS.c.uuid).where(consumers.is_idle()).order_by(_CONSUMERS.c.uuid)
    with engine.snapshot() as conn:
        uuids = conn.scalars(idle).all()
    return batches.write(IDLE_CONSUMER, uuids, _delete, report)


def _create(conf: cfg.ConfigOpts, uuids: Sequence[str], conn: sa.Connection) -> list[Change]:
    """Create the consumers that are still missing.

    If a concurrent request creates one of them, the unique key rejects one of the inserts, and the
    transaction is retried.
    """
    missing = online_data_migrations.select_without_consumer(_UUID).where(_UUID.in_(uuids))
    still = conn.scalars(missing.distinct().order_by(_UUID)).all()
    if not still:
        return []
    owner = online_data_migrations.ensure_incomplete_owner(conn, conf)
    counts = online_data_migrations.insert_incomplete_consumers(conn, owner, still)
    created = sa.select(_CONSUMERS).where(_CONSUMERS.c.uuid.in_(still)).order_by(_CONSUMERS.c.uuid)
    return [
        Change(
            ORPHAN_ALLOCATION,
            {'consumer_uuid': row['uuid'], 'allocations': counts[row['uuid']]},
            None,
            rows.as_stored(row),
            counts[row['uuid']],
        )
        for row in conn.execute(created).mappings()
    ]


def _delete(uuids: Sequence[str], conn: sa.Connection) -> list[Change]:
    """Delete the consumers that still have no allocations.

    Every request that adds allocations locks the consumer first, or increments its generation.
    """
    locked = [row.id for row in conn.execute(statements.LOCK_CONSUMERS, {'uuids': sorted(uuids)})]
    select = consumers.WITH_OWNERS.add_columns(*rows.stored_columns(_CONSUMERS))
    idle = select.where(_CONSUMERS.c.id.in_(locked), consumers.is_idle())
    changes, ids = list[Change](), list[int]()
    for row in rows.mappings(conn, idle):
        identity, before = rows.split(row)
        changes.append(Change(IDLE_CONSUMER, identity, before, None))
        ids.append(before['id'])
    claim_rows.delete_consumers(conn, ids)
    return changes
