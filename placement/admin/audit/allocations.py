"""Checks of rows whose provider, class, consumer or inventory does not exist, and of usage."""

from collections.abc import Sequence
import functools
from typing import Any

import sqlalchemy as sa

from placement import exception
from placement.admin.audit import model
from placement.claims import statements
from placement.db import engine, expressions
from placement.db.sqlalchemy import models
from placement.objects import online_data_migrations

_PROVIDERS = models.resource_providers
_CLASSES = models.resource_classes
_ALLOCATIONS = models.allocations
_INVENTORIES = models.inventories
_AGGREGATES = models.placement_aggregates
_TRAITS = models.traits
_CONSUMERS = models.consumers
_UUID = _ALLOCATIONS.c.consumer_id
# For each table with rows of providers, in the order of the report: the columns of a finding.
_COLUMNS: dict[sa.Table, tuple[sa.ColumnElement[Any], ...]] = {
    _ALLOCATIONS: (
        _UUID.label('consumer_uuid'),
        *model.provider_columns(_ALLOCATIONS.c.resource_provider_id),
        *model.class_columns(_ALLOCATIONS.c.resource_class_id),
        _ALLOCATIONS.c.used,
    ),
    _INVENTORIES: (
        *model.provider_columns(_INVENTORIES.c.resource_provider_id),
        *model.class_columns(_INVENTORIES.c.resource_class_id),
        _INVENTORIES.c.total,
    ),
    models.resource_provider_traits: (
        *model.provider_columns(models.resource_provider_traits.c.resource_provider_id),
        _TRAITS.c.name.label('trait'),
    ),
    models.resource_provider_aggregates: (
        *model.provider_columns(models.resource_provider_aggregates.c.resource_provider_id),
        _AGGREGATES.c.uuid.label('aggregate_uuid'),
    ),
}
# The tables whose rows have names, and the columns that refer to them.
_NAMED = (
    (_PROVIDERS, 'resource_provider_id'),
    (_CLASSES, 'resource_class_id'),
    (_TRAITS, 'trait_id'),
    (_AGGREGATES, 'aggregate_id'),
)


def _with_names(select: sa.Select[Any], table: sa.Table) -> sa.Select[Any]:
    """Return a select of rows of a table in their order, with the names of what they refer to."""
    for named, key in _NAMED:
        if key in table.c:
            select = select.outerjoin(named, named.c.id == table.c[key])
    return select.order_by(*table.primary_key.columns)


def _of_table(table: sa.Table, *columns: sa.ColumnElement[Any]) -> sa.Select[Any]:
    """Return a select of all rows of a table, with the name of the table."""
    select = sa.select(sa.literal(table.name).label('table'), *_COLUMNS[table], *columns)
    return _with_names(select.select_from(table), table)


def _dangling(column: sa.Column[int], target: sa.Table) -> sa.Subquery:
    """Return the distinct ids in a column that refer to no row of `target`.

    PERF: the database reads the distinct ids from an index of the column, and looks up each of them
    once. A condition on each row takes several times as long.
    """
    ids = sa.select(column.label('id')).distinct().subquery()
    return (
        sa.select(ids.c.id)
        .outerjoin(target, target.c.id == ids.c.id)
        .where(target.c.id.is_(None))
        .subquery()
    )


def _create_consumers(repair: model.Repair) -> list[model.Change]:
    """Create the consumers of allocations, owned by the incomplete-consumer project."""
    missing = online_data_migrations.select_without_consumer(_UUID).distinct().order_by(_UUID)

    def create(uuids: Sequence[str], conn: sa.Connection) -> list[model.Change]:
        """Create the consumers that are still missing.

        If a concurrent request creates one of them, the unique key rejects one of the inserts, and
        the transaction is retried.
        """
        still = conn.scalars(missing.where(_UUID.in_(uuids))).all()
        if not still:
            return []
        owner = online_data_migrations.ensure_incomplete_owner(conn, repair.conf)
        counts = online_data_migrations.insert_incomplete_consumers(conn, owner, still)
        created = sa.select(_CONSUMERS).where(_CONSUMERS.c.uuid.in_(still))
        return [
            model.Change(
                {'consumer_uuid': row['uuid'], 'allocations': counts[row['uuid']]},
                None,
                model.as_stored(row),
                counts[row['uuid']],
            )
            for row in model.mappings(conn, created.order_by(_CONSUMERS.c.uuid))
        ]

    return repair.write(model.keys(missing), create)


@model.finding(
    model.ORPHAN_ALLOCATION,
    'allocations whose consumer does not exist',
    correction=model.Correction(4, 'creates the consumer', _create_consumers),
)
def orphan_allocation(audited: model.Audited) -> model.Found:
    select = online_data_migrations.select_without_consumer(*_COLUMNS[_ALLOCATIONS])
    return audited.rows(_with_names(select, _ALLOCATIONS))


def _delete_rows(repair: model.Repair) -> list[model.Change]:
    """Delete allocations, inventories and links of providers that do not exist."""
    changes: list[model.Change] = []
    for table in _COLUMNS:
        missing = _dangling(table.c.resource_provider_id, _PROVIDERS)
        keys = [*table.primary_key.columns]
        columns = [*keys, _UUID] if table is _ALLOCATIONS else keys
        select = sa.select(*columns).join(missing, missing.c.id == table.c.resource_provider_id)
        with engine.snapshot() as conn:
            found = conn.execute(select.order_by(*keys)).all()
        changes += repair.write(found, functools.partial(_delete, table))
    return changes


def _delete(table: sa.Table, keys: Sequence[Any], conn: sa.Connection) -> list[model.Change]:
    """Delete the rows whose provider still does not exist.

    No lock prevents that the provider is created, but no new provider has the id of an old one.
    """
    if table is _ALLOCATIONS:
        # Every request that changes the allocations of a consumer locks the consumer first.
        uuids = sorted({key.consumer_id for key in keys})
        conn.execute(statements.LOCK_CONSUMERS, {'uuids': uuids}).all()
    provider = _PROVIDERS.alias('existing')
    orphaned = sa.and_(
        _has_key(table, keys),
        ~sa.exists().where(provider.c.id == table.c.resource_provider_id),
    )
    select = _of_table(table, *model.stored_columns(table)).where(orphaned)
    changes = [
        model.Change(identity, before, None)
        for identity, before in map(model.split, model.mappings(conn, select))
    ]
    if conn.execute(sa.delete(table).where(orphaned)).rowcount != len(changes):
        raise exception.ConcurrentChange('A row of a resource provider that does not exist')
    return changes


def _has_key(table: sa.Table, keys: Sequence[Any]) -> sa.ColumnElement[bool]:
    columns = [*table.primary_key.columns]
    first: sa.ColumnElement[bool] = columns[0].in_(expressions.id_list({key[0] for key in keys}))
    if len(columns) == 1:
        return first
    return sa.and_(first, sa.tuple_(*columns).in_([tuple(key) for key in keys]))


@model.finding(
    model.ORPHAN_PROVIDER,
    'rows of providers that do not exist',
    correction=model.Correction(3, 'deletes the row', _delete_rows),
)
def orphan_provider(audited: model.Audited) -> model.Found:
    return audited.rows(
        *(
            _of_table(table).join(missing, missing.c.id == table.c.resource_provider_id)
            for table in _COLUMNS
            for missing in (_dangling(table.c.resource_provider_id, _PROVIDERS),)
        )
    )


@model.finding(
    model.UNKNOWN_CLASS, 'inventories and allocations of resource classes that do not exist'
)
def unknown_class(audited: model.Audited) -> model.Found:
    return audited.rows(
        *(
            _of_table(table).join(missing, missing.c.id == table.c.resource_class_id)
            for table in (_ALLOCATIONS, _INVENTORIES)
            for missing in (_dangling(table.c.resource_class_id, _CLASSES),)
        )
    )


@model.finding(
    'no-inventory',
    'allocations of a class that the provider has no inventory of',
    command='openstack resource provider inventory list {provider_uuid}',
)
def no_inventory(audited: model.Audited) -> model.Found:
    """Allocations whose provider or class does not exist are not included."""
    keys = ('resource_provider_id', 'resource_class_id')
    pairs = sa.select(*(_ALLOCATIONS.c[key] for key in keys)).distinct().subquery()
    missing = (
        sa.select(pairs)
        .join(_PROVIDERS, _PROVIDERS.c.id == pairs.c.resource_provider_id)
        .join(_CLASSES, _CLASSES.c.id == pairs.c.resource_class_id)
        .outerjoin(_INVENTORIES, sa.and_(*(_INVENTORIES.c[key] == pairs.c[key] for key in keys)))
        .where(_INVENTORIES.c.id.is_(None))
        .subquery()
    )
    both = sa.and_(*(missing.c[key] == _ALLOCATIONS.c[key] for key in keys))
    select = sa.select(*_COLUMNS[_ALLOCATIONS]).select_from(_ALLOCATIONS).join(missing, both)
    return audited.rows(_with_names(select, _ALLOCATIONS))


@model.finding(
    'over-capacity',
    'inventories whose usage exceeds their capacity',
    model.NOTICE,
    command='openstack resource provider show --allocations {provider_uuid}',
)
def over_capacity(audited: model.Audited) -> model.Found:
    used, capacity = expressions.used(_INVENTORIES), expressions.capacity(_INVENTORIES)
    columns = [column for column in _COLUMNS[_INVENTORIES] if column is not _INVENTORIES.c.total]
    select = sa.select(*columns, used.label('used'), capacity.label('capacity'))
    over = select.select_from(_INVENTORIES).where(used > capacity)
    return audited.rows(_with_names(over, _INVENTORIES))
