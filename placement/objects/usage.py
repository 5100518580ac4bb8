"""Usage: the sums of the allocations of a provider, project, user or consumer type.

The database does not store usage. Each request computes usage from the allocations.
"""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from placement.db import capacity_sql, engine
from placement.db.sqlalchemy import models
from placement.objects import provider_rows

ALL_TYPES = 'all'
UNKNOWN_TYPE = 'unknown'
CONSUMER_COUNT = 'consumer_count'

_INVENTORIES = models.inventories
_CLASSES = models.resource_classes
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_TYPES = models.consumer_types

_OF_PROVIDER = (
    provider_rows.with_generation(_CLASSES.c.name, capacity_sql.used(_INVENTORIES))
    .outerjoin(_INVENTORIES, _INVENTORIES.c.resource_provider_id == provider_rows.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
)


def by_provider(uuid: str) -> tuple[int, dict[str, int]]:
    """Return a provider's generation and its usage, keyed by class name.

    The usage contains each resource class of which the provider has inventory.

    :raises exception.ResourceProviderNotFound:
    """
    generation, rows = engine.read(
        lambda conn: provider_rows.read_with_generation(conn, _OF_PROVIDER, uuid)
    )
    return generation, {name: int(used) for name, used in rows}


def by_project(project_id: str, user_id: str | None = None) -> dict[str, int]:
    """Return the usage of a project, or of one user in the project (microversion 1.9).

    :returns: the usage, keyed by class name
    """
    sums = _sums(_owner_conditions(project_id, user_id)).subquery()
    statement = sa.select(_CLASSES.c.name, sums.c.used).join(
        sums, sums.c.resource_class_id == _CLASSES.c.id
    )
    rows = engine.read(lambda conn: conn.execute(statement).all())
    return {name: int(used) for name, used in rows}


def by_consumer_type(
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
    conditions = [*_owner_conditions(project_id, user_id), *_type_conditions(consumer_type)]
    if consumer_type == ALL_TYPES:
        return engine.read(lambda conn: _grouped(conn, conditions, None, ALL_TYPES))
    by_type = _CONSUMERS.c.consumer_type_id
    return engine.read(lambda conn: _grouped(conn, conditions, by_type, None))


def _grouped(
    conn: sa.Connection,
    conditions: Sequence[sa.ColumnElement[bool]],
    group: sa.Column[Any] | None,
    name: str | None,
) -> dict[str, dict[str, int]]:
    """Return the usage and the number of consumers for each group of consumers.

    :param conditions: the SQL conditions that select the consumers
    :param group: the column by which consumers are grouped, or None for a single group
    :param name: the name of the single group, or None if the groups are consumer types
    :returns: the result of `by_consumer_type`
    """
    # PERF: names of classes and types are joined to the few rows of sums, not to all allocations.
    sums = _sums_and_uncounted_consumers(conditions, group).subquery()
    counts = _counts(conditions, group).subquery()
    rows = conn.execute(
        sa.union_all(
            sa.select(_type_name(sums, name), _key(sums), sums.c.amount)
            .select_from(sums)
            .outerjoin(_CLASSES, _CLASSES.c.id == sums.c.resource_class_id),
            sa.select(_type_name(counts, name), sa.literal(CONSUMER_COUNT), counts.c.amount),
        )
    )
    usages: dict[str, dict[str, int]] = {}
    for type_name, class_name, amount in rows:
        if class_name is None:
            # A damaged database can contain allocations of a class that does not exist.
            continue
        amounts = usages.setdefault(type_name, {})
        amounts[class_name] = amounts.get(class_name, 0) + int(amount)
    return {name: amounts for name, amounts in usages.items() if amounts[CONSUMER_COUNT]}


def _sums(conditions: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    return (
        sa.select(_ALLOCATIONS.c.resource_class_id, sa.func.sum(_ALLOCATIONS.c.used).label('used'))
        .select_from(_CONSUMERS.join(_ALLOCATIONS, _ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid))
        .where(*conditions)
        .group_by(_ALLOCATIONS.c.resource_class_id)
    )


def _sums_and_uncounted_consumers(
    conditions: Sequence[sa.ColumnElement[bool]], group: sa.Column[Any] | None
) -> sa.Select[Any]:
    """Return a select of the usage of each class, and of the number of consumers to subtract.

    Old releases left consumers without allocations in the database. `_counts` counts them, but a
    response must not. A row of this select that has NULL as its class therefore contains their
    negated number. PERF: excluding these consumers by a condition in `_counts` would take 1.5 times
    as long.
    """
    keys = _keys(group)
    has_no_allocations = _ALLOCATIONS.c.resource_class_id.is_(None)
    amount = sa.case((has_no_allocations, -sa.func.count()), else_=sa.func.sum(_ALLOCATIONS.c.used))
    return (
        sa.select(_ALLOCATIONS.c.resource_class_id, *keys, amount.label('amount'))
        .select_from(
            _CONSUMERS.outerjoin(_ALLOCATIONS, _ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)
        )
        .where(*conditions)
        .group_by(_ALLOCATIONS.c.resource_class_id, *keys)
    )


def _counts(
    conditions: Sequence[sa.ColumnElement[bool]], group: sa.Column[Any] | None
) -> sa.Select[Any]:
    """Return a select of the number of consumers, including consumers without allocations."""
    keys = _keys(group)
    return (
        sa.select(sa.func.count(_CONSUMERS.c.uuid).label('amount'), *keys)
        .where(*conditions)
        .group_by(*keys)
    )


def _keys(group: sa.Column[Any] | None) -> list[sa.ColumnElement[Any]]:
    return [] if group is None else [group]


def _key(sums: sa.Subquery) -> sa.ColumnElement[str]:
    """Return the name of the class; NULL if the class does not exist."""
    is_count = sums.c.resource_class_id.is_(None)
    return sa.case((is_count, sa.literal(CONSUMER_COUNT)), else_=_CLASSES.c.name)


def _type_name(groups: sa.Subquery, fixed: str | None) -> sa.ColumnElement[str]:
    if fixed is not None:
        return sa.literal(fixed)
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
