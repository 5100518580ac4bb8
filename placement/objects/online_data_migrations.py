"""Online data migrations: corrections of rows that old releases wrote.

`placement-manage db online_data_migrations` runs them. Each call corrects one batch. A call can be
repeated at any time while the service runs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from oslo_config import cfg
import sqlalchemy as sa

from placement.db import engine
from placement.db.sqlalchemy import models

_PROVIDERS = models.resource_providers
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers


@dataclass(frozen=True, slots=True)
class Outcome:
    """The number of rows of a batch that needed a correction, and that this call corrected."""

    matched: int
    migrated: int


# Takes the configuration and the maximum number of rows of the batch.
DataMigration = Callable[[cfg.ConfigOpts, int], Outcome]


def set_root_provider_ids(_conf: cfg.ConfigOpts, max_count: int) -> Outcome:
    """Make at most `max_count` providers without a root the roots of their own trees."""

    def work(conn: sa.Connection) -> Outcome:
        without_root = _PROVIDERS.c.root_provider_id.is_(None)
        query = sa.select(_PROVIDERS.c.id).where(without_root)
        ids = conn.scalars(query.order_by(_PROVIDERS.c.id).limit(max_count)).all()
        if not ids:
            return Outcome(0, 0)
        # A concurrent run can have corrected some of them since they were read.
        update = sa.update(_PROVIDERS).where(_PROVIDERS.c.id.in_(ids), without_root)
        result = conn.execute(update.values(root_provider_id=_PROVIDERS.c.id))
        return Outcome(len(ids), result.rowcount)

    return engine.write(work)


def create_incomplete_consumers(conf: cfg.ConfigOpts, max_count: int) -> Outcome:
    """Create at most `max_count` consumers for allocations whose consumer has no row.

    Their project and user are `[placement] incomplete_consumer_project_id` and
    `incomplete_consumer_user_id`. These are created even if no consumer is missing.
    """

    def work(conn: sa.Connection) -> Outcome:
        project_id = _ensure_owner(
            conn, models.projects, conf.placement.incomplete_consumer_project_id
        )
        user_id = _ensure_owner(conn, models.users, conf.placement.incomplete_consumer_user_id)
        uuid = _ALLOCATIONS.c.consumer_id
        query = select_without_consumer(uuid).distinct().order_by(uuid).limit(max_count)
        uuids = conn.scalars(query).all()
        if not uuids:
            return Outcome(0, 0)
        owner = {'project_id': project_id, 'user_id': user_id, 'generation': 0}
        conn.execute(sa.insert(_CONSUMERS), [{'uuid': uuid, **owner} for uuid in uuids])
        return Outcome(len(uuids), len(uuids))

    return engine.write(work)


def select_without_consumer(*columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a select of columns of the allocations whose consumer has no row."""
    joined = sa.outerjoin(_ALLOCATIONS, _CONSUMERS, _ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)
    return sa.select(*columns).select_from(joined).where(_CONSUMERS.c.id.is_(None))


def _ensure_owner(conn: sa.Connection, table: sa.Table, external_id: str) -> int:
    """Return the id of a project or user, which is created if it does not exist."""
    existing: int | None = conn.scalar(
        sa.select(table.c.id).where(table.c.external_id == external_id)
    )
    if existing is not None:
        return existing
    result = conn.execute(sa.insert(table).values(external_id=external_id))
    return int(result.inserted_primary_key[0])  # type: ignore[index]  # not None after an insert


# In the order in which they run.
MIGRATIONS: tuple[DataMigration, ...] = (set_root_provider_ids, create_incomplete_consumers)
