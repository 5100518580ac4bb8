"""Build SQL expressions for inventories and conditions on providers, without executing them.

`capacity()` is the SQL equivalent of `placement.capacity.Inventory.capacity`.

A condition on a provider is a correlated scalar subquery on the id of the provider. For each row,
the database server evaluates such a condition with a few index look-ups, and sums the usage of that
provider only. The server would convert an EXISTS condition to a join, but MariaDB allows at most 61
tables in a join, and PostgreSQL needs minutes to plan a query with several dozen traits.
"""

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa

from placement.capacity import MAX_INT
from placement.db import sql
from placement.db.sqlalchemy import models

# MySQL stores allocation ratios in single precision, and its drivers return six significant digits.
# The rounding error is at most half a unit of the last digit: 5 millionths of the ratio.
TOLERANCE = 0.99999

# A requested amount: a number, or an expression whose value is at most MAX_INT.
Amount = int | sa.ColumnElement[int]

# PERF: creating an alias takes longer than building the rest of an expression, so the aliases for
# the subqueries are created only once.
_ALLOCATIONS = models.allocations.alias('allocation')
_INVENTORIES = models.inventories.alias('inventory')
_TRAIT_LINK = models.resource_provider_traits.alias('trait_link')
_AGGREGATE_LINK = models.resource_provider_aggregates.alias('aggregate_link')

# Inventories ----------------------------------------------------------------------


def used(inventory: sa.FromClause) -> sa.ScalarSelect[int]:
    """Return the usage of the provider and resource class of the `inventory` row."""
    return (
        sa.select(sa.func.coalesce(sa.func.sum(_ALLOCATIONS.c.used), 0))
        .where(
            _ALLOCATIONS.c.resource_provider_id == inventory.c.resource_provider_id,
            _ALLOCATIONS.c.resource_class_id == inventory.c.resource_class_id,
        )
        .correlate(inventory)
        .scalar_subquery()
    )


def capacity(inventory: sa.FromClause) -> sa.ColumnElement[float]:
    """Return the capacity of the `inventory` row, not rounded, exactly as Python computes it."""
    return _capacity_of(inventory, sql.ExactFloat(inventory.c.allocation_ratio))


def can_serve(inventory: sa.FromClause, amount: Amount) -> sa.ColumnElement[bool]:
    """Return whether the `inventory` row allows `amount`, and has enough free capacity."""
    # No max_unit is larger, and drivers cannot send such numbers.
    if isinstance(amount, int) and amount > MAX_INT:
        return sa.false()
    needed = used(inventory) + amount
    return sa.and_(_fits_if_unused(inventory, amount), capacity(inventory) >= needed)


def largest_amount(inventory: sa.FromClause) -> sa.ColumnElement[float]:
    """Return the largest amount that a consumer may be able to allocate from the `inventory` row.

    The expression has a tolerance: its value is never smaller than the amount that the free
    capacity and max_unit allow. It is not negative.
    """
    free = _nominal_capacity(inventory) / TOLERANCE - used(inventory)
    return sql.Largest(sql.Smallest(free, inventory.c.max_unit), 0)


def _fits_if_unused(inventory: sa.FromClause, amount: Amount) -> sa.ColumnElement[bool]:
    """Return a cheap condition that excludes most rows before the server sums their allocations."""
    return sa.and_(_allows(inventory, amount), _nominal_capacity(inventory) >= amount * TOLERANCE)


def _allows(inventory: sa.FromClause, amount: Amount) -> sa.ColumnElement[bool]:
    """Return whether min_unit, max_unit and step_size of the `inventory` row allow `amount`."""
    if isinstance(amount, int):
        amount = sa.literal(amount, sa.Integer)
    return sa.and_(
        inventory.c.min_unit <= amount,
        inventory.c.max_unit >= amount,
        sql.Remainder(amount, inventory.c.step_size) == 0,
    )


def _nominal_capacity(inventory: sa.FromClause) -> sa.ColumnElement[float]:
    """Return the capacity with the stored ratio; on MySQL, its error is up to 5 millionths."""
    return _capacity_of(inventory, inventory.c.allocation_ratio)


def _capacity_of(
    inventory: sa.FromClause, ratio: sa.ColumnElement[float]
) -> sa.ColumnElement[float]:
    """Return the capacity of the `inventory` row with this allocation ratio."""
    return (inventory.c.total - inventory.c.reserved) * ratio


# Providers ------------------------------------------------------------------------


def id_list(ids: Iterable[int]) -> sa.BindParameter[Any]:
    """Return ids for an IN condition, as literals, because drivers limit bound parameters."""
    return sa.bindparam(None, sorted(ids), sa.Integer, expanding=True, literal_execute=True)


def has_rows(rows: sa.Select[Any]) -> sa.ColumnElement[bool]:
    """Return a condition that is true if the correlated SELECT returns at least one row."""
    return rows.limit(1).scalar_subquery().is_not(None)


def fits(provider_id: sa.ColumnElement[int], class_id: int, amount: int) -> sa.ColumnElement[bool]:
    """Return whether the provider has an inventory of the class that can serve `amount`."""
    return has_rows(
        sa.select(_INVENTORIES.c.id).where(
            _INVENTORIES.c.resource_provider_id == provider_id,
            _INVENTORIES.c.resource_class_id == class_id,
            can_serve(_INVENTORIES, amount),
        )
    )


def has_any_trait(
    provider_id: sa.ColumnElement[int], trait_ids: Collection[int]
) -> sa.ColumnElement[bool]:
    """Return whether the provider has at least one of the traits."""
    return _linked(_TRAIT_LINK, _TRAIT_LINK.c.trait_id, provider_id, trait_ids)


def in_any_aggregate(
    provider_id: sa.ColumnElement[int], aggregate_ids: Collection[int]
) -> sa.ColumnElement[bool]:
    """Return whether the provider itself is in at least one of the aggregates."""
    return _linked(_AGGREGATE_LINK, _AGGREGATE_LINK.c.aggregate_id, provider_id, aggregate_ids)


def _linked(
    link: sa.FromClause,
    column: sa.ColumnElement[int],
    provider_id: sa.ColumnElement[int],
    ids: Collection[int],
) -> sa.ColumnElement[bool]:
    return has_rows(
        sa.select(column)
        .where(link.c.resource_provider_id == provider_id, column.in_(id_list(ids)))
        .correlate(provider_id.table)
    )
