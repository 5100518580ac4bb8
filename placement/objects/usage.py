"""Usages: sums over allocations, by provider, project, user and consumer type. Never stored."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from placement import db_api
from placement.db import clauses
from placement.db.sqlalchemy import models
from placement.objects import resource_provider

ALL_TYPES = 'all'
UNKNOWN_TYPE = 'unknown'
CONSUMER_COUNT = 'consumer_count'

_INVENTORIES = models.inventories
_CLASSES = models.resource_classes
_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_TYPES = models.consumer_types

_OF_PROVIDER = (
    resource_provider.with_generation(_CLASSES.c.name, clauses.used(_INVENTORIES))
    .outerjoin(_INVENTORIES, _INVENTORIES.c.resource_provider_id == resource_provider.ID)
    .outerjoin(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id)
)
_HAS_TYPES = sa.select(sa.exists().select_from(_TYPES))


def by_provider(uuid: str) -> tuple[int, dict[str, int]]:
    """A provider's generation and what is used of each class that it has inventory of.

    :raises exception.ResourceProviderNotFound:
    """
    with db_api.reader() as conn:
        generation, rows = resource_provider.read_with_generation(conn, _OF_PROVIDER, uuid)
    return generation, {name: int(used) for name, used in rows}


def by_project(project_id: str, user_id: str | None = None) -> dict[str, int]:
    """What a project, or a user in it, uses of each class (microversion 1.9)."""
    sums = _sums(_of_owner(project_id, user_id)).subquery()
    statement = sa.select(_CLASSES.c.name, sums.c.used).join(
        sums, sums.c.resource_class_id == _CLASSES.c.id
    )
    with db_api.reader() as conn:
        rows = conn.execute(statement).all()
    return {name: int(used) for name, used in rows}


def by_consumer_type(
    project_id: str,
    user_id: str | None = None,
    consumer_type: str | None = None,
) -> dict[str, dict[str, int]]:
    """What a project, or a user in it, uses of each class, by consumer type (microversion 1.38).

    :param consumer_type: one type; 'unknown' for consumers without one; 'all' for one group over
        everything; None for a group of each type
    :returns: by type the amount by class, and under 'consumer_count' the number of consumers
    """
    wanted = [*_of_owner(project_id, user_id), *_of_type(consumer_type)]
    with db_api.reader(consistent=True) as conn:
        # Where no client names types there are none, and no consumer is looked at for its type.
        if consumer_type is None and not conn.scalar(_HAS_TYPES):
            return _grouped(conn, wanted, None, UNKNOWN_TYPE)
        if consumer_type == ALL_TYPES:
            return _grouped(conn, wanted, None, ALL_TYPES)
        return _grouped(conn, wanted, _CONSUMERS.c.consumer_type_id, None)


def _grouped(
    conn: sa.Connection,
    wanted: Sequence[sa.ColumnElement[bool]],
    group: sa.Column[Any] | None,
    name: str | None,
) -> dict[str, dict[str, int]]:
    """Sums and counts of the wanted consumers: by type, or in one group that has a name."""
    # The sums are made before names are joined to them: a few rows instead of all allocations.
    sums = _sums_and_idle(wanted, group).subquery()
    counts = _counts(wanted, group).subquery()
    rows = conn.execute(
        sa.union_all(
            sa.select(
                _type_name(sums, name),
                sa.func.coalesce(_CLASSES.c.name, CONSUMER_COUNT),
                sums.c.amount,
            )
            .select_from(sums)
            .outerjoin(_CLASSES, _CLASSES.c.id == sums.c.resource_class_id),
            sa.select(_type_name(counts, name), sa.literal(CONSUMER_COUNT), counts.c.amount),
        )
    )
    usages: dict[str, dict[str, int]] = {}
    for type_name, class_name, amount in rows:
        amounts = usages.setdefault(type_name, {})
        amounts[class_name] = amounts.get(class_name, 0) + int(amount)
    return {name: amounts for name, amounts in usages.items() if amounts[CONSUMER_COUNT]}


def _sums(wanted: Sequence[sa.ColumnElement[bool]]) -> sa.Select[Any]:
    return (
        sa.select(_ALLOCATIONS.c.resource_class_id, sa.func.sum(_ALLOCATIONS.c.used).label('used'))
        .select_from(_CONSUMERS.join(_ALLOCATIONS, _ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid))
        .where(*wanted)
        .group_by(_ALLOCATIONS.c.resource_class_id)
    )


def _sums_and_idle(
    wanted: Sequence[sa.ColumnElement[bool]], group: sa.Column[Any] | None
) -> sa.Select[Any]:
    """The sums by class and, without a class, how many consumers hold nothing, negative.

    Such consumers are left behind by other releases and do not count. Here they are met on the
    way, while to look for the allocations of each consumer once more would take half as long again.
    """
    keys = _keys(group)
    idle = _ALLOCATIONS.c.resource_class_id.is_(None)
    amount = sa.case((idle, -sa.func.count()), else_=sa.func.sum(_ALLOCATIONS.c.used))
    return (
        sa.select(_ALLOCATIONS.c.resource_class_id, *keys, amount.label('amount'))
        .select_from(
            _CONSUMERS.outerjoin(_ALLOCATIONS, _ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)
        )
        .where(*wanted)
        .group_by(_ALLOCATIONS.c.resource_class_id, *keys)
    )


def _counts(
    wanted: Sequence[sa.ColumnElement[bool]], group: sa.Column[Any] | None
) -> sa.Select[Any]:
    """How many consumers there are, those that hold nothing included."""
    keys = _keys(group)
    return (
        sa.select(sa.func.count(_CONSUMERS.c.uuid).label('amount'), *keys)
        .where(*wanted)
        .group_by(*keys)
    )


def _keys(group: sa.Column[Any] | None) -> list[sa.ColumnElement[Any]]:
    return [] if group is None else [group]


def _type_name(groups: sa.Subquery, fixed: str | None) -> sa.ColumnElement[str]:
    if fixed is not None:
        return sa.literal(fixed)
    name = (
        sa.select(_TYPES.c.name).where(_TYPES.c.id == groups.c.consumer_type_id).scalar_subquery()
    )
    return sa.func.coalesce(name, UNKNOWN_TYPE)


def _of_owner(project_id: str, user_id: str | None) -> list[sa.ColumnElement[bool]]:
    projects, users = models.projects, models.users
    project = sa.select(projects.c.id).where(projects.c.external_id == project_id)
    wanted = [_CONSUMERS.c.project_id == project.scalar_subquery()]
    if user_id is not None:
        user = sa.select(users.c.id).where(users.c.external_id == user_id)
        wanted.append(_CONSUMERS.c.user_id == user.scalar_subquery())
    return wanted


def _of_type(consumer_type: str | None) -> list[sa.ColumnElement[bool]]:
    if consumer_type in (None, ALL_TYPES):
        return []
    if consumer_type == UNKNOWN_TYPE:
        return [_CONSUMERS.c.consumer_type_id.is_(None)]
    type_id = sa.select(_TYPES.c.id).where(_TYPES.c.name == consumer_type)
    return [_CONSUMERS.c.consumer_type_id == type_id.scalar_subquery()]
