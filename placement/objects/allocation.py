"""Read the allocations of a consumer or of a resource provider."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
import datetime
from typing import Any

import sqlalchemy as sa

from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import provider_rows

_ALLOCATIONS = models.allocations
_PROVIDERS = models.resource_providers
_CLASSES = models.resource_classes
_CONSUMERS = models.consumers

_LIST_BY_CONSUMER = (
    sa.select(
        _PROVIDERS.c.uuid,
        models.generation(_PROVIDERS),
        _CLASSES.c.name,
        _ALLOCATIONS.c.used,
        models.projects.c.external_id.label('project_id'),
        models.users.c.external_id.label('user_id'),
        models.generation(_CONSUMERS).label('consumer_generation'),
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
    provider_rows.with_generation(
        _CONSUMERS.c.uuid,
        models.generation(_CONSUMERS).label('consumer_generation'),
        _CLASSES.c.name,
        _ALLOCATIONS.c.used,
        _ALLOCATIONS.c.created_at,
    )
    .outerjoin(_ALLOCATIONS, _ALLOCATIONS.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
    .outerjoin(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
)


@dataclass(frozen=True, slots=True)
class ConsumerAllocations:
    """All allocations of one consumer.

    :param allocations: the value of the key `allocations` in the response body
    :param last_modified: the creation time of the newest allocation
    """

    allocations: dict[str, dict[str, Any]]
    project_id: str
    user_id: str
    consumer_generation: int
    consumer_type: str | None
    last_modified: datetime.datetime | None


@dataclass(frozen=True, slots=True)
class ConsumerResources:
    """The allocations of one consumer from one provider.

    :param generation: the consumer generation
    :param resources: the allocated amounts, keyed by class name
    """

    generation: int
    resources: dict[str, int] = field(default_factory=dict)


def list_by_consumer(consumer_uuid: str) -> ConsumerAllocations | None:
    """Return the allocations of a consumer, or None if it has none."""
    rows = engine.read(lambda conn: conn.execute(_LIST_BY_CONSUMER, {'uuid': consumer_uuid}).all())
    if not rows:
        return None
    allocations: dict[str, dict[str, Any]] = {}
    for row in rows:
        provider = allocations.setdefault(row[0], {'resources': {}, 'generation': row[1]})
        provider['resources'][row[2]] = row[3]
    last = rows[-1]
    return ConsumerAllocations(
        allocations,
        last.project_id,
        last.user_id,
        last.consumer_generation,
        last.consumer_type,
        _newest(rows),
    )


def list_by_provider(
    uuid: str,
) -> tuple[int, dict[str, ConsumerResources], datetime.datetime | None]:
    """Return the generation of a provider, and all allocations from the provider.

    :returns: the provider generation, the allocations keyed by consumer UUID, and the creation time
        of the newest allocation
    :raises exception.ResourceProviderNotFound:
    """
    generation, rows = engine.read(
        lambda conn: provider_rows.read_with_generation(conn, _LIST_BY_PROVIDER, uuid)
    )
    consumers: dict[str, ConsumerResources] = {}
    # In a damaged database, the class of an allocation may not exist. Such an allocation is
    # omitted, because the response requires the name of the class.
    rows = [row for row in rows if row[2] is not None]
    for consumer_uuid, consumer_generation, name, used, _ in rows:
        if consumer_uuid not in consumers:
            consumers[consumer_uuid] = ConsumerResources(consumer_generation)
        consumers[consumer_uuid].resources[name] = used
    return generation, consumers, _newest(rows)


def _newest(rows: Iterable[Sequence[Any]]) -> datetime.datetime | None:
    """Return the latest time in the last column of the rows, or None if there is no time."""
    return max((row[-1] for row in rows if row[-1]), default=None)
