"""Checks of rows whose provider, class, consumer or inventory does not exist, and of usage."""

import functools
from typing import Any

import sqlalchemy as sa

from placement.admin.audit import model
from placement.claims import statements
from placement.db import expressions
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
        _CLASSES.c.name.label('resource_class'),
        _ALLOCATIONS.c.resource_class_id,
        _ALLOCATIONS.c.used,
    ),
    _INVENTORIES: (
        *model.provider_columns(_INVENTORIES.c.resource_provider_id),
        _CLASSES.c.name.label('resource_class'),
        _INVENTORIES.c.resource_class_id,
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


def _of_table(table: sa.Table) -> sa.Select[Any]:
    """Return a select of all rows of a table, with the name of the table."""
    select = sa.select(sa.literal(table.name).label('table'), *_COLUMNS[table])
    return _with_names(select.select_from(table), table)


def _dangling(table: sa.Table, key: str, target: sa.Table) -> sa.Select[Any]:
    """Return a select of the rows of a table whose key refers to no row of `target`.

    PERF: the database reads the distinct ids from an index of the column, and looks up each of them
    once. A condition on each row takes several times as long.
    """
    ids = sa.select(table.c[key].label('id')).distinct().subquery()
    missing = (
        sa.select(ids.c.id)
        .outerjoin(target, target.c.id == ids.c.id)
        .where(target.c.id.is_(None))
        .subquery()
    )
    return _of_table(table).join(missing, missing.c.id == table.c[key])


_ORPHANS = {table: _dangling(table, 'resource_provider_id', _PROVIDERS) for table in _COLUMNS}
_MISSING_CONSUMERS = (
    online_data_migrations.select_without_consumer(_UUID).distinct().order_by(_UUID)
)


def _create_consumers(batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    """Create the consumers that are still missing, owned by the incomplete-consumer project.

    If a concurrent request creates one of them, the unique key rejects one of the inserts, and the
    transaction is retried.
    """
    still = conn.scalars(_MISSING_CONSUMERS.where(_UUID.in_(batch.keys))).all()
    if not still:
        return []
    owner = online_data_migrations.ensure_incomplete_owner(conn, batch.conf)
    counts = online_data_migrations.insert_incomplete_consumers(conn, owner, still)
    created = sa.select(_CONSUMERS).where(_CONSUMERS.c.uuid.in_(still)).order_by(_CONSUMERS.c.uuid)
    return [
        model.change(
            {'consumer_uuid': row['uuid'], model.ALLOCATIONS: counts[row['uuid']]},
            None,
            model.as_stored(row),
        )
        for row in model.mappings(conn, created)
    ]


@model.finding(
    model.ORPHAN_ALLOCATION,
    'allocations whose consumer does not exist',
    correction=model.Correction(
        4, 'creates the consumer', [(_MISSING_CONSUMERS, _create_consumers)]
    ),
)
def orphan_allocation(audited: model.Audited) -> model.Found:
    select = online_data_migrations.select_without_consumer(*_COLUMNS[_ALLOCATIONS])
    return audited.rows(_with_names(select, _ALLOCATIONS))


def _delete(table: sa.Table, batch: model.Batch, conn: sa.Connection) -> list[model.Row]:
    """Delete the rows whose provider still does not exist.

    No lock prevents that the provider is created, but no new provider has the id of an old one.
    """
    keys = batch.keys
    if table is _ALLOCATIONS:
        # Every request that changes the allocations of a consumer locks the consumer first.
        uuids = sorted({key.consumer_id for key in keys})
        conn.execute(statements.LOCK_CONSUMERS, {'uuids': uuids}).all()
        keys = [key.id for key in keys]
    provider = _PROVIDERS.alias('existing')
    orphaned = ~sa.exists().where(provider.c.id == table.c.resource_provider_id)
    return model.delete(conn, table, _of_table(table), model.have_keys(table, keys), orphaned)


def _keys(table: sa.Table) -> list[sa.ColumnElement[Any]]:
    return [*table.primary_key.columns, *([_UUID] if table is _ALLOCATIONS else [])]


@model.finding(
    model.ORPHAN_PROVIDER,
    'rows of providers that do not exist',
    correction=model.Correction(
        3,
        'deletes the row',
        [
            (select.with_only_columns(*_keys(table)), functools.partial(_delete, table))
            for table, select in _ORPHANS.items()
        ],
    ),
)
def orphan_provider(audited: model.Audited) -> model.Found:
    return audited.rows(*_ORPHANS.values())


@model.finding(
    model.UNKNOWN_CLASS, 'inventories and allocations of resource classes that do not exist'
)
def unknown_class(audited: model.Audited) -> model.Found:
    tables = _ALLOCATIONS, _INVENTORIES
    return audited.rows(*(_dangling(table, 'resource_class_id', _CLASSES) for table in tables))


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
