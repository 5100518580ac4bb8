"""Read the allocations of a consumer or of a resource provider, and their sums: the usage.

The database does not store usage. Each request computes usage from the allocations.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
import datetime
from typing import Any

import sqlalchemy as sa

from placement.db import engine, expressions
from placement.db.sqlalchemy import models
from placement.objects import provider_rows

ALL_TYPES = 'all'
UNKNOWN_TYPE = 'unknown'
CONSUMER_COUNT = 'consumer_count'

_ALLOCATIONS = models.allocations
_INVENTORIES = models.inventories
_PROVIDERS = models.resource_providers
_CLASSES = models.resource_classes
_CONSUMERS = models.consumers
_TYPES = models.consumer_types

_LIST_BY_CONSUMER = (
    sa.select(
        _PROVIDERS.c.uuid,
        models.generation(_PROVIDERS),
        _CLASSES.c.name,
        _ALLOCATIONS.c.used,
        models.projects.c.external_id.label('project_id'),
        models.users.c.external_id.label('user_id'),
        models.generation(_CONSUMERS).label('consumer_generation'),
        _TYPES.c.name.label('consumer_type'),
        _ALLOCATIONS.c.created_at,
    )
    .select_from(_ALLOCATIONS)
    .join(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
    .join(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
    .join(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
    .join(models.projects, models.projects.c.id == _CONSUMERS.c.project_id)
    .join(models.users, models.users.c.id == _CONSUMERS.c.user_id)
    .outerjoin(_TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
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
_USAGE_OF_PROVIDER = (
    provider_rows.with_generation(_CLASSES.c.name, expressions.used(_INVENTORIES))
    .outerjoin(_INVENTORIES, _INVENTORIES.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
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


# Allocations ------------------------------------------------------------------


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


# Usage ------------------------------------------------------------------------


def usage_of_provider(uuid: str) -> tuple[int, dict[str, int]]:
    """Return a provider's generation and its usage, keyed by class name.

    The usage contains each resource class of which the provider has inventory.

    :raises exception.ResourceProviderNotFound:
    """
    generation, rows = engine.read(
        lambda conn: provider_rows.read_with_generation(conn, _USAGE_OF_PROVIDER, uuid)
    )
    return generation, {name: int(used) for name, used in rows}


def usage_of_project(project_id: str, user_id: str | None = None) -> dict[str, int]:
    """Return the usage of a project, or of one user in the project (microversion 1.9).

    :returns: the usage, keyed by class name
    """
    sums = (
        sa.select(_ALLOCATIONS.c.resource_class_id, sa.func.sum(_ALLOCATIONS.c.used).label('used'))
        .join(_CONSUMERS, _CONSUMERS.c.uuid == _ALLOCATIONS.c.consumer_id)
        .where(*_owner_conditions(project_id, user_id))
        .group_by(_ALLOCATIONS.c.resource_class_id)
        .subquery()
    )
    statement = sa.select(_CLASSES.c.name, sums.c.used).join(
        sums, sums.c.resource_class_id == _CLASSES.c.id
    )
    rows = engine.read(lambda conn: conn.execute(statement).all())
    return {name: int(used) for name, used in rows}


def usage_by_consumer_type(
    project_id: str,
    user_id: str | None = None,
    consumer_type: str | None = None,
) -> dict[str, dict[str, int]]:
    """Return the usage of each consumer type in a project (microversion 1.38).

    :param user_id: include only the consumers of this user; None includes all users of the project
    :param consumer_type: include only consumers of this type; 'unknown' includes only consumers
        without a type, 'all' combines all consumers in one group, and None returns one group for
        each type
    :returns: for each consumer type, the usage keyed by class name; the additional key
        'consumer_count' contains the number of consumers
    """
    statement = _by_type(
        [*_owner_conditions(project_id, user_id), *_type_conditions(consumer_type)]
    )
    usages: dict[str, dict[str, int]] = {}
    for type_name, class_name, amount in engine.read(lambda conn: conn.execute(statement).all()):
        if class_name is None:
            # A damaged database can contain allocations of a class that does not exist.
            continue
        amounts = usages.setdefault(ALL_TYPES if consumer_type == ALL_TYPES else type_name, {})
        amounts[class_name] = amounts.get(class_name, 0) + int(amount)
    return {name: amounts for name, amounts in usages.items() if amounts[CONSUMER_COUNT]}


def _by_type(conditions: Sequence[sa.ColumnElement[bool]]) -> sa.CompoundSelect[Any]:
    """Return a statement whose rows consist of a consumer type, a class, and an amount.

    In place of a class, CONSUMER_COUNT stands for a number of consumers. Several rows can have the
    same type and class; their amounts add up.
    """
    # PERF: names of classes and types are joined to the few rows of sums, not to all allocations.
    sums = _sums_and_uncounted_consumers(conditions).subquery()
    counts = (
        sa.select(_CONSUMERS.c.consumer_type_id, sa.func.count().label('amount'))
        .where(*conditions)
        .group_by(_CONSUMERS.c.consumer_type_id)
        .subquery()
    )
    is_count = sums.c.resource_class_id.is_(None)
    class_name = sa.case((is_count, sa.literal(CONSUMER_COUNT)), else_=_CLASSES.c.name)
    return sa.union_all(
        sa.select(_type_name(sums), class_name, sums.c.amount)
        .select_from(sums)
        .outerjoin(_CLASSES, _CLASSES.c.id == sums.c.resource_class_id),
        sa.select(_type_name(counts), sa.literal(CONSUMER_COUNT), counts.c.amount),
    )


def _sums_and_uncounted_consumers(
    conditions: Sequence[sa.ColumnElement[bool]],
) -> sa.Select[Any]:
    """Return a select of the usage of each class, and of the number of consumers to subtract.

    Old releases left consumers without allocations in the database. A count of the consumers
    includes them, but a response must not. A row of this select that has NULL as its class
    therefore contains their negated number. PERF: excluding these consumers by a condition of the
    count would take 1.5 times as long.
    """
    keys = _ALLOCATIONS.c.resource_class_id, _CONSUMERS.c.consumer_type_id
    has_no_allocations = _ALLOCATIONS.c.resource_class_id.is_(None)
    amount = sa.case((has_no_allocations, -sa.func.count()), else_=sa.func.sum(_ALLOCATIONS.c.used))
    return (
        sa.select(*keys, amount.label('amount'))
        .select_from(
            _CONSUMERS.outerjoin(_ALLOCATIONS, _ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)
        )
        .where(*conditions)
        .group_by(*keys)
    )


def _type_name(groups: sa.Subquery) -> sa.ColumnElement[str]:
    name = (
        sa.select(_TYPES.c.name).where(_TYPES.c.id == groups.c.consumer_type_id).scalar_subquery()
    )
    return sa.func.coalesce(name, UNKNOWN_TYPE)


def _owner_conditions(project_id: str, user_id: str | None) -> list[sa.ColumnElement[bool]]:
    projects, users = models.projects, models.users
    project = sa.select(projects.c.id).where(projects.c.external_id == project_id)
    conditions = [_CONSUMERS.c.project_id == project.scalar_subquery()]
    if user_id is not None:
        user = sa.select(users.c.id).where(users.c.external_id == user_id)
        conditions.append(_CONSUMERS.c.user_id == user.scalar_subquery())
    return conditions


def _type_conditions(consumer_type: str | None) -> list[sa.ColumnElement[bool]]:
    if consumer_type in (None, ALL_TYPES):
        return []
    if consumer_type == UNKNOWN_TYPE:
        return [_CONSUMERS.c.consumer_type_id.is_(None)]
    type_id = sa.select(_TYPES.c.id).where(_TYPES.c.name == consumer_type)
    return [_CONSUMERS.c.consumer_type_id == type_id.scalar_subquery()]
