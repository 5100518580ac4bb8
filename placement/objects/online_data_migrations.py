"""Online data migrations: corrections of rows that old releases wrote.

The command `placement-manage db online_data_migrations` runs the migrations. Each call of a
migration corrects one batch of rows. Migrations can run at any time, and more than once, while the
service is running.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from placement import exception
from placement.db import engine
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of one batch.

    :param matched: the number of rows in the batch that needed a correction
    :param migrated: the number of rows that this call corrected
    """

    matched: int
    migrated: int


# A migration takes the configuration and the maximum number of rows in the batch.
DataMigration = Callable[[cfg.ConfigOpts, int], Outcome]


def set_root_provider_ids(_conf: cfg.ConfigOpts, max_count: int) -> Outcome:
    """Set the root of at most `max_count` providers without a root to the provider itself."""

    def work(conn: sa.Connection) -> Outcome:
        without_root = _PROVIDERS.c.root_provider_id.is_(None)
        query = sa.select(_PROVIDERS.c.id).where(without_root)
        ids = conn.scalars(query.order_by(_PROVIDERS.c.id).limit(max_count)).all()
        if not ids:
            return Outcome(0, 0)
        # A concurrent run may have corrected some of these rows after this transaction read them.
        update = sa.update(_PROVIDERS).where(_PROVIDERS.c.id.in_(ids), without_root)
        result = conn.execute(update.values(root_provider_id=_PROVIDERS.c.id))
        return Outcome(len(ids), result.rowcount)

    return engine.write(work)


def create_incomplete_consumers(conf: cfg.ConfigOpts, max_count: int) -> Outcome:
    """Create at most `max_count` consumers that are missing, although allocations refer to them.

    The options `[placement] incomplete_consumer_project_id` and `incomplete_consumer_user_id` give
    the project and user of these consumers. The project and the user are created even if no
    consumer is missing.
    """

    def work(conn: sa.Connection) -> Outcome:
        owner = ensure_incomplete_owner(conn, conf)
        uuid = _ALLOCATIONS.c.consumer_id
        query = select_without_consumer(uuid).distinct().order_by(uuid).limit(max_count)
        uuids = conn.scalars(query).all()
        insert_incomplete_consumers(conn, owner, uuids)
        return Outcome(len(uuids), len(uuids))

    return engine.write(work)


@dataclass(frozen=True, slots=True)
class IncompleteOwner:
    """The ids of the project and the user of consumers whose project and user are not known."""

    project_id: int
    user_id: int


def ensure_incomplete_owner(conn: sa.Connection, conf: cfg.ConfigOpts) -> IncompleteOwner:
    """Return the project and user that the options define, and insert them if necessary."""
    options = conf.placement
    return IncompleteOwner(
        _ensure_owner(conn, models.projects, options.incomplete_consumer_project_id),
        _ensure_owner(conn, models.users, options.incomplete_consumer_user_id),
    )


def insert_incomplete_consumers(
    conn: sa.Connection, owner: IncompleteOwner, uuids: Sequence[str]
) -> Counter[str]:
    """Insert consumers to which allocations refer.

    The function locks the allocations after the insert, so that a concurrent transaction that
    deletes them waits, and then also deletes the consumer.

    :param uuids: the UUIDs of the consumers, as they are spelled in the allocations
    :returns: the number of allocations of each consumer
    :raises exception.ConcurrentChange: a concurrent transaction deleted the allocations of a
        consumer
    """
    if not uuids:
        return Counter()
    values = {'project_id': owner.project_id, 'user_id': owner.user_id, 'generation': 0}
    conn.execute(sa.insert(_CONSUMERS), [{'uuid': uuid, **values} for uuid in sorted(uuids)])
    consumer = _ALLOCATIONS.c.consumer_id
    locked = sa.select(consumer).where(consumer.in_(sorted(uuids))).with_for_update()
    counts = Counter(conn.scalars(locked))
    if not counts.keys() >= set(uuids):
        raise exception.ConcurrentChange('The allocations of a consumer')
    return counts


def select_without_consumer(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a select of these columns from the allocations whose consumer does not exist."""
    joined = sa.outerjoin(_ALLOCATIONS, _CONSUMERS, _ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)
    return sa.select(*columns).select_from(joined).where(_CONSUMERS.c.id.is_(None))


def _ensure_owner(conn: sa.Connection, table: sa.Table, external_id: str) -> int:
    """Return the id of a project or user, and insert the project or user if it does not exist."""
    existing: int | None = conn.scalar(
        sa.select(table.c.id).where(table.c.external_id == external_id)
    )
    if existing is not None:
        return existing
    result = conn.execute(sa.insert(table).values(external_id=external_id))
    return int(result.inserted_primary_key[0])  # type: ignore[index]  # not None after an insert


# The migrations in the order in which they run.
MIGRATIONS: tuple[DataMigration, ...] = (set_root_provider_ids, create_incomplete_consumers)
