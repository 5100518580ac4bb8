"""Usages: sums over allocations, by provider, project, user and consumer type. Never stored."""

from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from placement import db_api
from placement.db import clauses
from placement.db.sqlalchemy import models
from placement.objects import resource_provider
from placement.objects.resource_provider import Provider

if TYPE_CHECKING:
    from placement.context import RequestContext

ALL_TYPES = 'all'
UNKNOWN_TYPE = 'unknown'
CONSUMER_COUNT = 'consumer_count'

_STOCK = models.inventories
_CLASSES = models.resource_classes
_HELD = models.allocations
_CONSUMERS = models.consumers
_TYPES = models.consumer_types

_OF_PROVIDER = (
    sa.select(_CLASSES.c.name, clauses.used(_STOCK))
    .select_from(_STOCK.join(_CLASSES, _CLASSES.c.id == _STOCK.c.resource_class_id))
    .where(_STOCK.c.resource_provider_id == sa.bindparam('provider_id'))
)
_OWNED = (
    _CONSUMERS.join(models.projects, models.projects.c.id == _CONSUMERS.c.project_id)
    .join(_HELD, _HELD.c.consumer_id == _CONSUMERS.c.uuid)
    .join(_CLASSES, _CLASSES.c.id == _HELD.c.resource_class_id)
)
_USED = sa.func.sum(_HELD.c.used)


def by_provider(ctx: 'RequestContext', uuid: str) -> tuple[Provider, dict[str, int]]:
    """A provider and what is used of each class that it has inventory of.

    :raises exception.ResourceProviderNotFound:
    """
    with db_api.reader() as conn:
        provider = resource_provider.read(conn, uuid)
        rows = conn.execute(_OF_PROVIDER, {'provider_id': provider.id}).all()
    return provider, {name: int(used) for name, used in rows}


def by_project(
    ctx: 'RequestContext', project_id: str, user_id: str | None = None
) -> dict[str, int]:
    """What a project, or a user in it, uses of each class (microversion 1.9)."""
    statement = _of_owner(
        sa.select(_CLASSES.c.name, _USED).select_from(_OWNED), project_id, user_id
    )
    with db_api.reader() as conn:
        rows = conn.execute(statement.group_by(_CLASSES.c.name)).all()
    return {name: int(used) for name, used in rows}


def by_consumer_type(
    ctx: 'RequestContext',
    project_id: str,
    user_id: str | None = None,
    consumer_type: str | None = None,
) -> dict[str, dict[str, int]]:
    """What a project, or a user in it, uses of each class, by consumer type (microversion 1.38).

    :param consumer_type: one type; 'unknown' for consumers without one; 'all' for one group over
        everything; None for a group of each type
    :returns: by type the amount by class, and under 'consumer_count' the number of consumers
    """
    whole = consumer_type == ALL_TYPES
    label = sa.literal(ALL_TYPES) if whole else sa.func.coalesce(_TYPES.c.name, UNKNOWN_TYPE)
    source = _OWNED.outerjoin(_TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
    statement = _of_owner(
        sa.select(label.label('type'), _CLASSES.c.name, _CONSUMERS.c.id, _HELD.c.used).select_from(
            source
        ),
        project_id,
        user_id,
    )
    if consumer_type == UNKNOWN_TYPE:
        statement = statement.where(_CONSUMERS.c.consumer_type_id.is_(None))
    elif consumer_type is not None and not whole:
        statement = statement.where(_TYPES.c.name == consumer_type)
    held = statement.subquery()
    sums = sa.select(held.c.type, held.c.name, sa.func.sum(held.c.used)).group_by(
        held.c.type, held.c.name
    )
    counts = sa.select(
        held.c.type, sa.literal(CONSUMER_COUNT), sa.func.count(sa.distinct(held.c.id))
    ).group_by(held.c.type)
    with db_api.reader() as conn:
        rows = conn.execute(sa.union_all(sums, counts)).all()
    usages: dict[str, dict[str, int]] = {}
    for group, name, amount in rows:
        usages.setdefault(group, {})[name] = int(amount)
    return usages


def _of_owner(statement: sa.Select[Any], project_id: str, user_id: str | None) -> sa.Select[Any]:
    statement = statement.where(models.projects.c.external_id == project_id)
    if user_id is None:
        return statement
    users = models.users
    return statement.where(
        _CONSUMERS.c.user_id.in_(sa.select(users.c.id).where(users.c.external_id == user_id))
    )
