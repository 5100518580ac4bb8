"""Find allocations, inventories and links that refer to rows that do not exist."""

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.admin.audit.rows import CLASSES, PROVIDERS, class_columns, provider_columns
from placement.db import expressions
from placement.db.sqlalchemy import models
from placement.objects import online_data_migrations

_ALLOCATIONS = models.allocations
_INVENTORIES = models.inventories
_AGGREGATES = models.placement_aggregates
_TRAITS = models.traits
_AGGREGATE_LINKS = models.resource_provider_aggregates
_TRAIT_LINKS = models.resource_provider_traits
_CONSUMER = _ALLOCATIONS.c.consumer_id.label('consumer_uuid')

Selects = Sequence[sa.Select[Any]]


def orphan_allocations() -> Selects:
    """Return a select of the allocations whose consumer does not exist."""
    return [_with_names(online_data_migrations.select_without_consumer(*_ALLOCATION_COLUMNS))]


def orphan_provider_rows() -> Selects:
    """Return selects of the rows whose provider does not exist, one for each table."""
    return [
        select.join(missing, missing.c.id == table.c.resource_provider_id).order_by(
            *table.primary_key.columns
        )
        for table, select in PROVIDER_ROWS.items()
        for missing in (dangling(table.c.resource_provider_id, PROVIDERS),)
    ]


def unknown_classes() -> Selects:
    """Return selects of the allocations and inventories whose resource class does not exist."""
    return [
        sa.select(
            sa.literal(table.name).label('table'),
            *provider_columns(table.c.resource_provider_id),
            *columns,
            table.c.resource_class_id,
            amount,
        )
        .select_from(table)
        .join(missing, missing.c.id == table.c.resource_class_id)
        .outerjoin(PROVIDERS, PROVIDERS.c.id == table.c.resource_provider_id)
        .order_by(table.c.id)
        for table, columns, amount in (
            (_ALLOCATIONS, (_CONSUMER,), _ALLOCATIONS.c.used),
            (_INVENTORIES, (), _INVENTORIES.c.total),
        )
        for missing in (dangling(table.c.resource_class_id, CLASSES),)
    ]


def without_inventory() -> Selects:
    """Return a select of the allocations of a class that the provider has no inventory of.

    Allocations whose provider or class does not exist are not included.
    """
    provider_id, class_id = _ALLOCATIONS.c.resource_provider_id, _ALLOCATIONS.c.resource_class_id
    pairs = sa.select(provider_id, class_id).distinct().subquery()
    missing = (
        sa.select(pairs)
        .join(PROVIDERS, PROVIDERS.c.id == pairs.c.resource_provider_id)
        .join(CLASSES, CLASSES.c.id == pairs.c.resource_class_id)
        .outerjoin(
            _INVENTORIES,
            sa.and_(
                _INVENTORIES.c.resource_provider_id == pairs.c.resource_provider_id,
                _INVENTORIES.c.resource_class_id == pairs.c.resource_class_id,
            ),
        )
        .where(_INVENTORIES.c.id.is_(None))
        .subquery()
    )
    both = sa.and_(
        missing.c.resource_provider_id == provider_id, missing.c.resource_class_id == class_id
    )
    rows = sa.select(*_ALLOCATION_COLUMNS).select_from(_ALLOCATIONS).join(missing, both)
    return [_with_names(rows)]


def over_capacity() -> Selects:
    """Return a select of the inventories whose usage exceeds their capacity."""
    used, capacity = expressions.used(_INVENTORIES), expressions.capacity(_INVENTORIES)
    return [
        sa.select(
            *provider_columns(_INVENTORIES.c.resource_provider_id),
            *class_columns(_INVENTORIES.c.resource_class_id),
            used.label('used'),
            capacity.label('capacity'),
        )
        .select_from(_INVENTORIES)
        .outerjoin(PROVIDERS, PROVIDERS.c.id == _INVENTORIES.c.resource_provider_id)
        .outerjoin(CLASSES, CLASSES.c.id == _INVENTORIES.c.resource_class_id)
        .where(used > capacity)
        .order_by(_INVENTORIES.c.id)
    ]


def dangling(column: sa.Column[int], target: sa.Table) -> sa.Subquery:
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


_ALLOCATION_COLUMNS = (
    _CONSUMER,
    *provider_columns(_ALLOCATIONS.c.resource_provider_id),
    *class_columns(_ALLOCATIONS.c.resource_class_id),
    _ALLOCATIONS.c.used,
)


def _with_names(allocations: sa.Select[Any]) -> sa.Select[Any]:
    return (
        allocations.outerjoin(PROVIDERS, PROVIDERS.c.id == _ALLOCATIONS.c.resource_provider_id)
        .outerjoin(CLASSES, CLASSES.c.id == _ALLOCATIONS.c.resource_class_id)
        .order_by(_ALLOCATIONS.c.id)
    )


def _provider_rows(
    table: sa.Table, named: sa.Table, key: str, *columns: sa.ColumnElement[Any]
) -> sa.Select[Any]:
    """Return a select of the rows of a table that refers to providers.

    :param named: the table with the names of the rows that the column `key` refers to
    """
    return (
        sa.select(
            sa.literal(table.name).label('table'),
            table.c.resource_provider_id.label('provider_id'),
            *columns,
        )
        .select_from(table)
        .outerjoin(named, named.c.id == table.c[key])
    )


# The tables with rows of providers, in the order of the report: selects of all rows with names.
PROVIDER_ROWS: Mapping[sa.Table, sa.Select[Any]] = {
    _ALLOCATIONS: _provider_rows(
        _ALLOCATIONS,
        CLASSES,
        'resource_class_id',
        _CONSUMER,
        *class_columns(_ALLOCATIONS.c.resource_class_id),
        _ALLOCATIONS.c.used,
    ),
    _INVENTORIES: _provider_rows(
        _INVENTORIES,
        CLASSES,
        'resource_class_id',
        *class_columns(_INVENTORIES.c.resource_class_id),
        _INVENTORIES.c.total,
    ),
    _TRAIT_LINKS: _provider_rows(_TRAIT_LINKS, _TRAITS, 'trait_id', _TRAITS.c.name.label('trait')),
    _AGGREGATE_LINKS: _provider_rows(
        _AGGREGATE_LINKS, _AGGREGATES, 'aggregate_id', _AGGREGATES.c.uuid.label('aggregate_uuid')
    ),
}
