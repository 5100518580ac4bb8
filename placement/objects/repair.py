"""Repairs of data that releases of long ago left behind and that the API does not mend.

A repair works on a batch, may be repeated at any time beside a running service, and tells
how many rows it found and how many of them it mended.
"""

from collections.abc import Callable
from dataclasses import dataclass

from oslo_config import cfg
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models

_providers = models.resource_providers
_allocations = models.allocations
_consumers = models.consumers


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a repair did with one batch."""

    found: int
    done: int


Repair = Callable[[cfg.ConfigOpts, int], Outcome]


def set_root_provider_ids(conf: cfg.ConfigOpts, max_count: int) -> Outcome:
    """Make providers without a root the roots of their own trees, at most `max_count` of them."""

    def work(conn: sa.Connection) -> Outcome:
        query = sa.select(_providers.c.id).where(_providers.c.root_provider_id.is_(None))
        ids = conn.scalars(query.order_by(_providers.c.id).limit(max_count)).all()
        if not ids:
            return Outcome(0, 0)
        # Somebody else may have mended some of them since.
        still = _providers.c.root_provider_id.is_(None)
        change = sa.update(_providers).where(_providers.c.id.in_(ids), still)
        return Outcome(
            len(ids), conn.execute(change.values(root_provider_id=_providers.c.id)).rowcount
        )

    return db_api.write(work)


def create_incomplete_consumers(conf: cfg.ConfigOpts, max_count: int) -> Outcome:
    """Record consumers that have allocations and no record, at most `max_count` of them.

    They get the project and user of `[placement] incomplete_consumer_project_id` and
    `incomplete_consumer_user_id`, which are recorded in any case.
    """

    def work(conn: sa.Connection) -> Outcome:
        project_id = _owner(conn, models.projects, conf.placement.incomplete_consumer_project_id)
        user_id = _owner(conn, models.users, conf.placement.incomplete_consumer_user_id)
        uuid = _allocations.c.consumer_id
        query = without_record(uuid).distinct().order_by(uuid).limit(max_count)
        uuids = conn.scalars(query).all()
        if not uuids:
            return Outcome(0, 0)
        owner = {'project_id': project_id, 'user_id': user_id, 'generation': 0}
        conn.execute(sa.insert(_consumers), [{'uuid': uuid, **owner} for uuid in uuids])
        return Outcome(len(uuids), len(uuids))

    return db_api.write(work)


def without_record(*columns: sa.ColumnElement) -> sa.Select:
    """Select from the allocations of consumers that have no record."""
    records = sa.outerjoin(
        _allocations, _consumers, _allocations.c.consumer_id == _consumers.c.uuid
    )
    return sa.select(*columns).select_from(records).where(_consumers.c.id.is_(None))


def _owner(conn: sa.Connection, table: sa.Table, external_id: str) -> int:
    found = conn.scalar(sa.select(table.c.id).where(table.c.external_id == external_id))
    if found is not None:
        return found
    result = conn.execute(sa.insert(table).values(external_id=external_id))
    return result.inserted_primary_key[0]  # type: ignore[index]


# In the order in which they are to be run.
REPAIRS: tuple[Repair, ...] = (set_root_provider_ids, create_incomplete_consumers)
