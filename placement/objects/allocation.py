"""Allocations: what a consumer holds of which provider. How they are written is in `claim`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
import datetime
from typing import Any

import sqlalchemy as sa

from placement import db_api, exception
from placement.db.sqlalchemy import models
from placement.objects import claim, consumer, resource_provider
from placement.objects.claim import Claim

_ALLOCATIONS = models.allocations
_PROVIDERS = models.resource_providers
_CLASSES = models.resource_classes
_CONSUMERS = models.consumers

_LIST_BY_CONSUMER = (
    sa.select(
        _PROVIDERS.c.uuid,
        _PROVIDERS.c.generation,
        _CLASSES.c.name,
        _ALLOCATIONS.c.used,
        models.projects.c.external_id.label('project_id'),
        models.users.c.external_id.label('user_id'),
        _CONSUMERS.c.generation.label('consumer_generation'),
        models.consumer_types.c.name.label('consumer_type'),
        _ALLOCATIONS.c.created_at,
    )
    .select_from(_ALLOCATIONS)
    .join(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
    .join(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
    .join(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
    .join(models.projects, models.projects.c.id == _CONSUMERS.c.project_id)
    .join(models.users, models.users.c.id == _CONSUMERS.c.user_id)
    .outerjoin(models.consumer_types, models.consumer_types.c.id == _CONSUMERS.c.consumer_type_id)
    .where(_ALLOCATIONS.c.consumer_id == sa.bindparam('uuid'))
    .order_by(_ALLOCATIONS.c.id)
)
_LIST_BY_PROVIDER = (
    resource_provider.with_generation(
        _CONSUMERS.c.uuid,
        _CONSUMERS.c.generation,
        _CLASSES.c.name,
        _ALLOCATIONS.c.used,
        _ALLOCATIONS.c.created_at,
    )
    .outerjoin(_ALLOCATIONS, _ALLOCATIONS.c.resource_provider_id == resource_provider.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
    .outerjoin(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
)


@dataclass(frozen=True, slots=True)
class ConsumerAllocations:
    """All that a consumer holds; `allocations` is ready to be shown."""

    allocations: dict[str, dict[str, Any]]
    project_id: str
    user_id: str
    consumer_generation: int
    consumer_type: str | None
    last_modified: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class ConsumerShare:
    """What one consumer holds of one provider, by resource class."""

    generation: int
    resources: dict[str, int] = field(default_factory=dict)


# Reading ----------------------------------------------------------------------


def list_by_consumer(consumer_uuid: str) -> ConsumerAllocations | None:
    """What a consumer holds, or None when it holds nothing."""
    with db_api.reader() as conn:
        rows = conn.execute(_LIST_BY_CONSUMER, {'uuid': consumer_uuid}).all()
    if not rows:
        return None
    allocations: dict[str, dict[str, Any]] = {}
    for row in rows:
        shown = allocations.setdefault(row[0], {'resources': {}, 'generation': row[1]})
        shown['resources'][row[2]] = row[3]
    last = rows[-1]
    return ConsumerAllocations(
        allocations,
        last.project_id,
        last.user_id,
        last.consumer_generation,
        last.consumer_type,
        _newest(rows),
    )


def list_by_provider(uuid: str) -> tuple[int, dict[str, ConsumerShare], datetime.datetime | None]:
    """A provider's generation, what each consumer holds, and when the newest of that was made.

    :raises exception.ResourceProviderNotFound:
    """
    with db_api.reader() as conn:
        generation, rows = resource_provider.read_with_generation(conn, _LIST_BY_PROVIDER, uuid)
    shares: dict[str, ConsumerShare] = {}
    # A class that is gone from a damaged database has no name to be shown by.
    rows = [row for row in rows if row[2] is not None]
    for consumer_uuid, consumer_generation, name, used, _ in rows:
        if consumer_uuid not in shares:
            shares[consumer_uuid] = ConsumerShare(consumer_generation)
        shares[consumer_uuid].resources[name] = used
    return generation, shares, _newest(rows)


def _newest(rows: Iterable[Sequence[Any]]) -> datetime.datetime | None:
    """The latest of the times with which the rows end."""
    return max((row[-1] for row in rows if row[-1]), default=None)


# Writing ----------------------------------------------------------------------


def replace(claims: Sequence[Claim], min_attempts: int) -> None:
    """Make each claim all that its consumer holds; all of them, or none.

    :raises exception.ConsumerGenerationConflict: from microversion 1.28 on
    :raises exception.UnknownResourceProviders:
    :raises exception.UnknownResourceClasses:
    :raises exception.InvalidAllocation: an amount cannot be granted
    """

    def work(conn: sa.Connection) -> None:
        ground = claim.prepare(conn, claims)
        claim.require_providers(claims, ground)
        holdings = claim.holdings(conn, claims, ground)
        claim.judge(claims, ground, holdings)
        claim.settle(conn, claims, ground, holdings, {})

    db_api.write(work, max(1, min_attempts))


def delete_by_consumer(consumer_uuid: str) -> None:
    """Remove all that a consumer holds, and the consumer. No generation is checked or raised.

    :raises exception.AllocationsNotFound: it holds nothing
    """

    def work(conn: sa.Connection) -> None:
        known = consumer.lock(conn, [consumer_uuid])
        uuids = {consumer_uuid, *(row.uuid for row in known.values())}
        deleted = claim.release(conn, uuids)
        if not known and consumer.lock(conn, [consumer_uuid]):
            # It came after the first look: what was deleted, or was not found, was not locked.
            raise exception.ConcurrentChange(f'Consumer {consumer_uuid}')
        if not deleted:
            raise exception.AllocationsNotFound(consumer_uuid)
        consumer.delete(conn, [row.id for row in known.values()])

    db_api.write(work)
