"""The SQL statements of this package.

A locking statement locks the rows of only one table, in the order of their UUIDs.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from placement.claims.model import Consumer
from placement.db import portable_sql
from placement.db.sqlalchemy import models

_ALLOCATIONS = models.allocations
_CLASSES = models.resource_classes
_CONSUMERS = models.consumers
_PROVIDERS = models.resource_providers
_OWNER_COLUMNS = ('project_id', 'user_id', 'consumer_type_id')

# Projects, users and consumer types --------------------------------------------

# The kinds of owners, and of the other rows in a UNION with owners.
PROJECT, USER, TYPE, ALLOCATION, CONSUMER = 0, 1, 2, 3, 4
# For each kind of owner: the table, and the column of the unique names.
OWNER_TABLES = {
    PROJECT: (models.projects, models.projects.c.external_id),
    USER: (models.users, models.users.c.external_id),
    TYPE: (models.consumer_types, models.consumer_types.c.name),
}


def _kind(kind: int) -> sa.Label[int]:
    return sa.literal_column(str(kind), sa.Integer).label('kind')


def _owner_ids(kind: int) -> sa.Select[Any]:
    table, name = OWNER_TABLES[kind]
    requested: sa.BindParameter[Any] = sa.bindparam(f'names{kind}', expanding=True)
    return sa.select(_kind(kind), table.c.id, portable_sql.StoredText(name).label('name')).where(
        name.in_(requested)
    )


# For each kind of owner: the statement that reads the ids of this kind only. The columns of all
# rows are the kind, the id and the name.
OWNER_IDS = {kind: _owner_ids(kind) for kind in OWNER_TABLES}

# Consumers ----------------------------------------------------------------------

LOCK_CONSUMERS = (
    sa.select(
        _CONSUMERS.c.id,
        _CONSUMERS.c.uuid,
        _CONSUMERS.c.generation,
        _CONSUMERS.c.project_id,
        _CONSUMERS.c.user_id,
        _CONSUMERS.c.consumer_type_id,
    )
    .where(_CONSUMERS.c.uuid.in_(sa.bindparam('uuids', expanding=True)))
    .order_by(_CONSUMERS.c.uuid)
    .with_for_update()
)
_CONSUMER_IDS = sa.select(_kind(CONSUMER), _CONSUMERS.c.id).where(
    _CONSUMERS.c.uuid.in_(sa.bindparam('uuids', expanding=True))
)
ANY_CONSUMER = _CONSUMER_IDS.limit(1)
INSERT_CONSUMERS = sa.insert(_CONSUMERS)
DELETE_CONSUMERS = sa.delete(_CONSUMERS).where(
    _CONSUMERS.c.id.in_(sa.bindparam('consumer_ids', expanding=True))
)


def changed_owners(
    requested: Iterable[Consumer], current: Mapping[int, Consumer]
) -> dict[str, sa.Case[Any]]:
    """Return new values of the owner columns, for one UPDATE of several consumers.

    :param requested: the consumers with their requested project, user and consumer type
    :param current: the stored consumers, keyed by id
    :returns: the values, keyed by column name; in most requests no owner changes, and the result is
        empty
    """
    values: dict[str, sa.Case[Any]] = {}
    consumers = list(requested)
    for column in _OWNER_COLUMNS:
        changed = {
            consumer.id: getattr(consumer, column)
            for consumer in consumers
            if getattr(consumer, column) != getattr(current[consumer.id], column)
        }
        if changed:
            values[column] = sa.case(changed, value=_CONSUMERS.c.id, else_=_CONSUMERS.c[column])
    return values


# Allocations --------------------------------------------------------------------

# The joins are outer joins, so that allocations are also deleted if their provider or resource
# class does not exist.
ALLOCATIONS_OF_CONSUMERS = (
    sa.select(
        _kind(ALLOCATION),
        _ALLOCATIONS.c.id,
        portable_sql.StoredText(_ALLOCATIONS.c.consumer_id).label('consumer_id'),
        _PROVIDERS.c.id.label('provider_id'),
        _PROVIDERS.c.uuid.label('provider_uuid'),
        _CLASSES.c.name.label('resource_class'),
        _ALLOCATIONS.c.used,
    )
    .outerjoin(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
    .outerjoin(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
    .where(_ALLOCATIONS.c.consumer_id.in_(sa.bindparam('uuids', expanding=True)))
)


def _with_allocations(*selects: sa.Select[Any]) -> sa.CompoundSelect[Any]:
    """Return a UNION of `ALLOCATIONS_OF_CONSUMERS` and of selects with fewer columns.

    The missing columns of these rows are NULL. The allocations come first, because the first part
    of a UNION determines the types of the columns.
    """
    columns = len(ALLOCATIONS_OF_CONSUMERS.selected_columns)
    padded = [
        select.add_columns(*(sa.null() for _ in range(len(select.selected_columns), columns)))
        for select in selects
    ]
    return sa.union_all(ALLOCATIONS_OF_CONSUMERS, *padded)


ALLOCATIONS_AND_OWNERS = _with_allocations(*OWNER_IDS.values())
CONSUMERS_ALLOCATIONS_AND_OWNERS = _with_allocations(_CONSUMER_IDS, *OWNER_IDS.values())
INSERT_ALLOCATIONS = sa.insert(_ALLOCATIONS)
# The ids are part of the SQL text, because drivers limit the number of bound parameters, and the
# consumers of one request may have any number of allocations.
DELETE_ALLOCATIONS = sa.delete(_ALLOCATIONS).where(
    _ALLOCATIONS.c.id.in_(sa.bindparam('ids', expanding=True, literal_execute=True))
)
DELETE_ALLOCATIONS_OF_CONSUMERS = sa.delete(_ALLOCATIONS).where(
    _ALLOCATIONS.c.consumer_id.in_(sa.bindparam('uuids', expanding=True))
)
