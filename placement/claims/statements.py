"""The SQL statements of this package.

A SELECT that locks rows locks those of only one table, in the order of their UUIDs.
"""

from collections.abc import Mapping
import functools
from typing import Any

import sqlalchemy as sa

from placement.db import expressions, sql
from placement.db.sqlalchemy import models
from placement.objects import inventory

_ALLOCATIONS = models.allocations
_CLASSES = models.resource_classes
_CONSUMERS = models.consumers
_INVENTORIES = models.inventories
_PROVIDERS = models.resource_providers

# Consumers and their owners -----------------------------------------------------

# The columns of the unique names of owners, in the order of `claim.Owners`.
OWNER_NAMES: tuple[sa.Column[Any], ...] = (
    models.projects.c.external_id,
    models.users.c.external_id,
    models.consumer_types.c.name,
)
# The column of `consumers` with the id of each owner.
_OWNER_IDS = (_CONSUMERS.c.project_id, _CONSUMERS.c.user_id, _CONSUMERS.c.consumer_type_id)
# Not the id of any project or user. The columns do not permit NULL.
_MISSING_OWNER = 0

LOCK_CONSUMERS = (
    sa.select(_CONSUMERS.c.id, _CONSUMERS.c.uuid, models.generation(_CONSUMERS))
    .where(_CONSUMERS.c.uuid.in_(sa.bindparam('uuids', expanding=True)))
    .order_by(_CONSUMERS.c.uuid)
    .with_for_update()
)
ANY_CONSUMER = (
    sa.select(_CONSUMERS.c.id)
    .where(_CONSUMERS.c.uuid.in_(sa.bindparam('uuids', expanding=True)))
    .limit(1)
)
DELETE_CONSUMERS = sa.delete(_CONSUMERS).where(
    _CONSUMERS.c.id.in_(sa.bindparam('consumer_ids', expanding=True))
)


def _owner_id(kind: int, name: str | sa.BindParameter[str]) -> sa.ScalarSelect[Any]:
    """Return the id of an owner; NULL if the owner does not exist, or if the name is NULL."""
    column = OWNER_NAMES[kind]
    return sa.select(column.table.c.id).where(column == name).scalar_subquery()


@functools.lru_cache(maxsize=16)
def insert_consumers(count: int) -> sa.Insert:
    """Return the INSERT of new consumers, which looks up the ids of their owners.

    If a project or user does not exist, its id is `_MISSING_OWNER`. If a type does not exist, its
    id is NULL.

    The statement has VALUES instead of a SELECT. With `innodb_autoinc_lock_mode=1`, the default of
    MariaDB, INSERT ... SELECT locks the AUTO_INCREMENT of the table until the statement ends. While
    the statement waits for a concurrent INSERT of the same consumer, all claims of other new
    consumers would wait, too (1 s in a test with MariaDB 10.11, 2026-11).

    :param count: the number of consumers. The parameters are `uuid_N`, and `KIND_N` for each owner
    """
    rows = []
    for number in range(count):
        project, user, consumer_type = (
            _owner_id(kind, sa.bindparam(f'{kind}_{number}', type_=column.type))
            for kind, column in enumerate(OWNER_NAMES)
        )
        row = {
            'uuid': sa.bindparam(f'uuid_{number}'),
            # The generation starts at 1 instead of 0, because the same request also writes
            # allocations.
            'generation': 1,
            'project_id': sa.func.coalesce(project, _MISSING_OWNER),
            'user_id': sa.func.coalesce(user, _MISSING_OWNER),
            'consumer_type_id': consumer_type,
        }
        rows.append(row)
    # SQLAlchemy caches the compiled form only of an INSERT with one row. The caller needs no ids.
    return sa.insert(_CONSUMERS).values(rows if count > 1 else rows[0]).inline()


def owner_values(changed: Mapping[Any, Mapping[int, str]], by: str) -> dict[str, sa.Case[Any]]:
    """Return new values of the owner columns, for one UPDATE of several consumers.

    :param changed: for each consumer, the names of the new owners, keyed by kind
    :param by: the name of the column that `changed` is keyed by
    :returns: the values, keyed by column name; in most requests no owner changes, and the result is
        empty
    """
    values: dict[str, sa.Case[Any]] = {}
    for kind, column in enumerate(_OWNER_IDS):
        ids = {
            consumer: _owner_id(kind, names[kind])
            for consumer, names in changed.items()
            if kind in names
        }
        if ids:
            values[column.name] = sa.case(ids, value=_CONSUMERS.c[by], else_=column)
    return values


def set_owners(missing: Mapping[str, Mapping[int, str]]) -> sa.Update:
    """Return the UPDATE of new consumers that were inserted before their owners.

    If an owner still does not exist, the statement changes no row.

    :param missing: for each consumer UUID, the names of the owners, keyed by kind
    """
    owners = {owner for names in missing.values() for owner in names.items()}
    return (
        sa.update(_CONSUMERS)
        .where(
            _CONSUMERS.c.uuid.in_(missing),
            *(_owner_id(kind, name).is_not(None) for kind, name in sorted(owners)),
        )
        # The time of the change of a new row is NULL.
        .values({'updated_at': _CONSUMERS.c.updated_at, **owner_values(missing, by='uuid')})
    )


# The stored data of a request ---------------------------------------------------

# The kinds of the rows of `FACTS`.
INVENTORY, ALLOCATION, CONSUMER = range(3)


def _row(kind: int, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a SELECT of one column: a JSON array of the kind and the columns.

    PERF: most time of such a query is spent on the columns of its result. With one column instead
    of 14, a claim makes 2,955 instead of 3,886 calls of Python functions (PyMySQL, 2026-11).
    """
    return sa.select(sa.cast(sql.JsonArray(sa.literal_column(str(kind)), *columns), sa.Text))


# One statement reads everything that a claim depends on, so all of it is of the same time. A
# provider without inventories has one row, whose class is NULL. The joins of allocations are outer
# joins, so that allocations are also deleted if their provider or class does not exist.
FACTS = sa.union_all(
    _row(
        INVENTORY,
        _PROVIDERS.c.id,
        sql.StoredText(_PROVIDERS.c.uuid),
        sql.StoredText(_CLASSES.c.name),
        _INVENTORIES.c.resource_class_id,
        expressions.used(_INVENTORIES),
        *inventory.COLUMNS[:-1],
        sql.JsonNumber(_INVENTORIES.c.allocation_ratio),
    )
    .select_from(_PROVIDERS)
    .outerjoin(
        _INVENTORIES.join(_CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id),
        _INVENTORIES.c.resource_provider_id == _PROVIDERS.c.id,
    )
    .where(_PROVIDERS.c.uuid.in_(sa.bindparam('provider_uuids', expanding=True))),
    _row(
        ALLOCATION,
        _ALLOCATIONS.c.id,
        sql.StoredText(_ALLOCATIONS.c.consumer_id),
        _PROVIDERS.c.id,
        sql.StoredText(_PROVIDERS.c.uuid),
        sql.StoredText(_CLASSES.c.name),
        _ALLOCATIONS.c.used,
    )
    .select_from(_ALLOCATIONS)
    .outerjoin(_PROVIDERS, _PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
    .outerjoin(_CLASSES, _CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
    .where(_ALLOCATIONS.c.consumer_id.in_(sa.bindparam('consumer_uuids', expanding=True))),
    _row(
        CONSUMER,
        sql.StoredText(_CONSUMERS.c.uuid),
        *(sql.StoredText(name) for name in OWNER_NAMES),
    )
    .select_from(_CONSUMERS)
    .outerjoin(models.projects, models.projects.c.id == _CONSUMERS.c.project_id)
    .outerjoin(models.users, models.users.c.id == _CONSUMERS.c.user_id)
    .outerjoin(models.consumer_types, models.consumer_types.c.id == _CONSUMERS.c.consumer_type_id)
    .where(_CONSUMERS.c.uuid.in_(sa.bindparam('consumer_uuids', expanding=True))),
)

# Allocations --------------------------------------------------------------------

INSERT_ALLOCATIONS = sa.insert(_ALLOCATIONS)
# The ids are part of the SQL text, because drivers limit the number of bound parameters, and the
# consumers of one request may have any number of allocations.
DELETE_ALLOCATIONS = sa.delete(_ALLOCATIONS).where(
    _ALLOCATIONS.c.id.in_(sa.bindparam('ids', expanding=True, literal_execute=True))
)
DELETE_ALLOCATIONS_OF_CONSUMERS = sa.delete(_ALLOCATIONS).where(
    _ALLOCATIONS.c.consumer_id.in_(sa.bindparam('uuids', expanding=True))
)
