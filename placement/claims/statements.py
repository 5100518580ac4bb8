"""The SQL statements of this package.

A locking statement locks the rows of only one table, in the order of their UUIDs.
"""

from collections.abc import Iterable, Mapping
import datetime
import functools
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import mysql

from placement.claims.claim import Consumer
from placement.db import capacity_sql, names, sql
from placement.db.sqlalchemy import models
from placement.objects import inventory_rows

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
    return sa.select(_kind(kind), table.c.id, sql.StoredText(name).label('name')).where(
        name.in_(requested)
    )


# For each kind of owner: the statement that reads the ids of this kind only. The columns of all
# rows are the kind, the id and the name.
OWNER_IDS = {kind: _owner_ids(kind) for kind in OWNER_TABLES}


def _insert_unless_stored(kind: int) -> dict[str, sa.Insert]:
    """Return the INSERT of one owner, unless the owner exists, for each database system.

    At READ COMMITTED, InnoDB does not lock the rows that the SELECT reads. Unlike VALUES, the
    SELECT uses no id of the AUTO_INCREMENT or sequence if the owner exists. If a concurrent
    transaction inserts the same owner, the statement waits for the end of that transaction. On
    MariaDB, claims that insert other owners of this kind then wait, too; see `INSERT_NEW_CONSUMER`.

    If that transaction commits, the statement violates the unique key on MySQL and MariaDB. With
    ON DUPLICATE KEY UPDATE, it would lock the row of that transaction exclusively. Other claims
    that have already inserted a user or a consumer type lock the same row in `INSERT_NEW_CONSUMER`,
    so deadlocks would be likely.
    """
    table, column = OWNER_TABLES[kind]
    name = sa.bindparam('name', type_=column.type)
    missing = sa.select(name).where(~sa.exists().where(column == name))
    return {
        dialect: insert(table).from_select([column.name], missing)
        for dialect, insert in {**names.INSERT_MISSING, 'mysql': mysql.insert}.items()
    }


# For each kind of owner, and for each database system.
INSERT_OWNER_UNLESS_STORED = {kind: _insert_unless_stored(kind) for kind in OWNER_TABLES}

# Consumers ----------------------------------------------------------------------

LOCK_CONSUMERS = (
    sa.select(
        _CONSUMERS.c.id,
        _CONSUMERS.c.uuid,
        models.generation(_CONSUMERS),
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


def _requested(kind: int) -> sa.BindParameter[Any]:
    return sa.bindparam(f'name{kind}', type_=OWNER_TABLES[kind][1].type)


def _id_of(kind: int) -> sa.ScalarSelect[Any]:
    """Return the id of an owner; NULL if the owner does not exist, or if its name is NULL."""
    table, column = OWNER_TABLES[kind]
    return sa.select(table.c.id).where(column == _requested(kind)).scalar_subquery()


def _insert_new_consumer(insert: sa.Insert) -> sa.Insert:
    return (
        insert.values(
            uuid=sa.bindparam('consumer_uuid'),
            generation=1,
            project_id=sa.func.coalesce(_id_of(PROJECT), _MISSING_OWNER),
            user_id=sa.func.coalesce(_id_of(USER), _MISSING_OWNER),
            consumer_type_id=_id_of(TYPE),
        )
        .inline()  # The caller does not need the id of the consumer.
        .execution_options(preserve_rowcount=True)
    )


# Not the id of any project or user. The columns do not permit NULL.
_MISSING_OWNER = 0
# If an assignment does not change the row, the drivers of MySQL report a row count of 1, as for a
# new row. If it changes the row, they report 2. The caller rejects the claim, so the transaction is
# rolled back, and the value does not matter.
_FIRST, _SECOND = (datetime.datetime(year, 1, 1) for year in (2000, 2001))
_CHANGE = sa.case((_CONSUMERS.c.updated_at == _FIRST, _SECOND), else_=_FIRST)
# For each database system: the INSERT of one consumer, with the ids of its owners. The row count is
# 1 if the consumer did not exist. If the consumer exists, the statement does not fail, and the row
# count is not 1. If an owner does not exist, `_HAS_MISSING_OWNER` is true for the consumer.
#
# The statement has VALUES instead of a SELECT. With `innodb_autoinc_lock_mode=1`, the default of
# MariaDB, INSERT ... SELECT locks the AUTO_INCREMENT of the table until the statement ends. While
# the statement waits for a concurrent INSERT of the same consumer, all claims of other new
# consumers would wait, too (1 s in a test with MariaDB 10.11, 2026-11).
INSERT_NEW_CONSUMER = {
    dialect: _insert_new_consumer(insert(_CONSUMERS))
    for dialect, insert in {
        **names.INSERT_MISSING,
        'mysql': lambda table: mysql.insert(table).on_duplicate_key_update(updated_at=_CHANGE),
    }.items()
}
_HAS_MISSING_OWNER = sa.or_(
    _CONSUMERS.c.project_id == _MISSING_OWNER,
    _CONSUMERS.c.user_id == _MISSING_OWNER,
    sa.and_(_CONSUMERS.c.consumer_type_id.is_(None), _requested(TYPE).is_not(None)),
)
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

INSERT_ALLOCATIONS = sa.insert(_ALLOCATIONS)
# The joins are outer joins, so that allocations are also deleted if their provider or resource
# class does not exist.
ALLOCATIONS_OF_CONSUMERS = (
    sa.select(
        _kind(ALLOCATION),
        _ALLOCATIONS.c.id,
        sql.StoredText(_ALLOCATIONS.c.consumer_id).label('consumer_id'),
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
# Whether the transaction of a new consumer must be rolled back, because an owner of the consumer
# does not exist, or because the consumer has allocations. In a damaged database, they can exist
# without the consumer.
_MUST_ROLL_BACK = sa.or_(
    sa.exists().where(_ALLOCATIONS.c.consumer_id == sa.bindparam('consumer_uuid')),
    sa.exists().where(_CONSUMERS.c.uuid == sa.bindparam('consumer_uuid'), _HAS_MISSING_OWNER),
)
# The inventories from which a new consumer allocates; the last column is `_MUST_ROLL_BACK`.
INVENTORIES_FOR_NEW_CONSUMER = inventory_rows.OF_UUID_AND_CLASSES.add_columns(_MUST_ROLL_BACK)


@functools.cache
def insert_if_all_fit(count: int) -> sa.Insert:
    """Return a statement that inserts the allocations of a new consumer from one provider.

    If an inventory does not allow its amount, or if the transaction must be rolled back, the
    statement inserts none of the allocations. Their ids are in the order of the request.

    With `innodb_autoinc_lock_mode=1`, the statement locks the AUTO_INCREMENT of the table until it
    ends. Unlike the INSERT of a consumer, it waits for no other transaction: the table has no
    unique key, and the provider is locked.

    :param count: the number of allocations. Their parameters are `class_N` and `amount_N`
    """
    inventories = models.inventories
    # With some collations, the name in the request equals a stored name in another spelling. The
    # class is then unknown, and another requested name may be equal to the same class.
    stored = sql.CodePointOrder(_CLASSES.c.name)
    requested = [sa.bindparam(f'class_{number}', type_=sa.String) for number in range(count)]
    is_class = [stored == sql.CodePointOrder(name) for name in requested]
    amounts = [sa.bindparam(f'amount_{number}', type_=sa.Integer) for number in range(count)]
    amount = sa.case(*zip(is_class, amounts, strict=True))
    allowed = (
        sa.select(
            inventories.c.resource_provider_id,
            inventories.c.resource_class_id,
            amount.label('used'),
            sa.case(*zip(is_class, range(count), strict=True)).label('number'),
            sa.func.count().over().label('allowed'),
        )
        .select_from(_PROVIDERS)
        .join(inventories, inventories.c.resource_provider_id == _PROVIDERS.c.id)
        .join(_CLASSES, _CLASSES.c.id == inventories.c.resource_class_id)
        .where(
            _PROVIDERS.c.uuid == sa.bindparam('uuid'),
            sa.or_(*is_class),
            capacity_sql.can_serve(inventories, amount),
            ~_MUST_ROLL_BACK,
        )
        .subquery('allowed')
    )
    rows = (
        sa.select(
            sa.bindparam('now', type_=sa.DateTime),
            sa.bindparam('consumer_uuid', type_=sa.String),
            allowed.c.resource_provider_id,
            allowed.c.resource_class_id,
            allowed.c.used,
        )
        .where(allowed.c.allowed == count)
        .order_by(allowed.c.number)
    )
    columns = ['created_at', 'consumer_id', 'resource_provider_id', 'resource_class_id', 'used']
    insert = INSERT_ALLOCATIONS.from_select(columns, rows, include_defaults=False)
    # By default, SQLAlchemy reads the number of rows of an INSERT only after the cursor is closed.
    return insert.execution_options(preserve_rowcount=True)


# The ids are part of the SQL text, because drivers limit the number of bound parameters, and the
# consumers of one request may have any number of allocations.
DELETE_ALLOCATIONS = sa.delete(_ALLOCATIONS).where(
    _ALLOCATIONS.c.id.in_(sa.bindparam('ids', expanding=True, literal_execute=True))
)
DELETE_ALLOCATIONS_OF_CONSUMERS = sa.delete(_ALLOCATIONS).where(
    _ALLOCATIONS.c.consumer_id.in_(sa.bindparam('uuids', expanding=True))
)
