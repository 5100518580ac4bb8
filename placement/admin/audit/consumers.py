"""Find consumers without allocations or without the rows that they refer to."""

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from placement.db.sqlalchemy import models

_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_PROJECTS = models.projects
_TYPES = models.consumer_types
_USERS = models.users
# All consumers, with the names of their project, user and type.
WITH_OWNERS = (
    sa.select(
        _CONSUMERS.c.uuid.label('consumer_uuid'),
        _PROJECTS.c.external_id.label('project'),
        _CONSUMERS.c.project_id,
        _USERS.c.external_id.label('user'),
        _CONSUMERS.c.user_id,
        _TYPES.c.name.label('consumer_type'),
        _CONSUMERS.c.consumer_type_id,
    )
    .select_from(_CONSUMERS)
    .outerjoin(_PROJECTS, _PROJECTS.c.id == _CONSUMERS.c.project_id)
    .outerjoin(_USERS, _USERS.c.id == _CONSUMERS.c.user_id)
    .outerjoin(_TYPES, _TYPES.c.id == _CONSUMERS.c.consumer_type_id)
    .order_by(_CONSUMERS.c.id)
)

Selects = Sequence[sa.Select[Any]]


def idle() -> Selects:
    """Return a select of the consumers without allocations."""
    return [WITH_OWNERS.where(is_idle())]


def is_idle() -> sa.ColumnElement[bool]:
    """Return the condition that a consumer has no allocations."""
    return ~sa.exists().where(_ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)


def of_project(external_id: str) -> Selects:
    """Return a select of the consumers of a project."""
    project = sa.select(_PROJECTS.c.id).where(_PROJECTS.c.external_id == external_id)
    return [WITH_OWNERS.where(_CONSUMERS.c.project_id == project.scalar_subquery())]


def without_owner() -> Selects:
    """Return a select of the consumers whose project, user or type does not exist."""
    return [
        WITH_OWNERS.where(
            sa.or_(
                _PROJECTS.c.id.is_(None),
                _USERS.c.id.is_(None),
                sa.and_(_CONSUMERS.c.consumer_type_id.is_not(None), _TYPES.c.id.is_(None)),
            )
        )
    ]
