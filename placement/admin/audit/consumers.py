"""Find consumers without allocations, without the rows that they refer to, or in several trees."""

from collections.abc import Sequence
from typing import Any

import os_traits
import sqlalchemy as sa

from placement.db.sqlalchemy import models

_ALLOCATIONS = models.allocations
_CONSUMERS = models.consumers
_PROJECTS = models.projects
_TYPES = models.consumer_types
_USERS = models.users
_PROVIDERS = models.resource_providers
_ROOTS = _PROVIDERS.alias('root')
_TRAITS = models.traits
_TRAIT_LINKS = models.resource_provider_traits
_INSTANCE = 'INSTANCE'
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


def in_several_trees() -> Selects:
    """Return a select of the instances with allocations of one class in several trees.

    Sharing providers do not count. A consumer without a type is an instance, because Nova sets no
    types. A row contains the number of the trees, and the first and the last root by name.
    """
    is_sharing = sa.exists().where(
        _TRAIT_LINKS.c.resource_provider_id == _PROVIDERS.c.id,
        _TRAIT_LINKS.c.trait_id == _TRAITS.c.id,
        _TRAITS.c.name == os_traits.MISC_SHARES_VIA_AGGREGATE,
    )
    trees = sa.func.count(_ROOTS.c.id.distinct())
    of_class = (
        sa.select(
            _ALLOCATIONS.c.consumer_id,
            trees.label('trees'),
            sa.func.min(_ROOTS.c.name).label('first_tree'),
            sa.func.max(_ROOTS.c.name).label('last_tree'),
        )
        .select_from(_ALLOCATIONS)
        .join(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
        .join(_ROOTS, _ROOTS.c.id == _PROVIDERS.c.root_provider_id)
        .where(~is_sharing)
        .group_by(_ALLOCATIONS.c.consumer_id, _ALLOCATIONS.c.resource_class_id)
        .having(trees > 1)
        .subquery()
    )
    found = (
        sa.select(
            of_class.c.consumer_id,
            sa.func.max(of_class.c.trees).label('trees'),
            sa.func.min(of_class.c.first_tree).label('first_tree'),
            sa.func.max(of_class.c.last_tree).label('last_tree'),
        )
        .group_by(of_class.c.consumer_id)
        .subquery()
    )
    first, last = _PROVIDERS.alias('first'), _PROVIDERS.alias('last')
    return [
        WITH_OWNERS.join(found, found.c.consumer_id == _CONSUMERS.c.uuid)
        .outerjoin(first, first.c.name == found.c.first_tree)
        .outerjoin(last, last.c.name == found.c.last_tree)
        .where(sa.func.coalesce(_TYPES.c.name, _INSTANCE) == _INSTANCE)
        .add_columns(
            found.c.trees,
            found.c.first_tree,
            first.c.uuid.label('first_tree_uuid'),
            found.c.last_tree,
            last.c.uuid.label('last_tree_uuid'),
        )
    ]
