"""Build SQL conditions on a provider: amounts, traits, and aggregates.

A condition on a provider is a correlated scalar subquery on the id of the provider. For each row,
the database server evaluates such a condition with a few index look-ups, and sums the usage of that
provider only. The server would convert an EXISTS condition to a join, but MariaDB allows at most 61
tables in a join, and PostgreSQL needs minutes to plan a query with several dozen traits.
"""

from collections.abc import Collection, Iterable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.sql import elements

from placement.db import capacity_sql
from placement.db.sqlalchemy import models

# PERF: creating an alias takes longer than building the rest of an expression, so the aliases for
# the subqueries are created only once.
_INVENTORIES = models.inventories.alias('inventory')
_TRAIT_LINK = models.resource_provider_traits.alias('trait_link')
_AGGREGATE_LINK = models.resource_provider_aggregates.alias('aggregate_link')


def id_list(ids: Iterable[int]) -> sa.BindParameter[Any]:
    """Return ids for an IN condition, as literals, because drivers limit bound parameters."""
    return sa.bindparam(None, sorted(ids), sa.Integer, expanding=True, literal_execute=True)


def has_rows(rows: sa.Select[Any]) -> elements.ColumnElement[bool]:
    """Return a condition that is true if the correlated SELECT returns at least one row."""
    return rows.limit(1).scalar_subquery().is_not(None)


def fits(
    provider_id: sa.ColumnElement[int], class_id: int, amount: int
) -> elements.ColumnElement[bool]:
    """Return whether the provider has an inventory of the class that can serve `amount`."""
    return has_rows(
        sa.select(_INVENTORIES.c.id).where(
            _INVENTORIES.c.resource_provider_id == provider_id,
            _INVENTORIES.c.resource_class_id == class_id,
            capacity_sql.can_serve(_INVENTORIES, amount),
        )
    )


def has_any_trait(
    provider_id: sa.ColumnElement[int], trait_ids: Collection[int]
) -> elements.ColumnElement[bool]:
    """Return whether the provider has at least one of the traits."""
    return _linked(_TRAIT_LINK, _TRAIT_LINK.c.trait_id, provider_id, trait_ids)


def in_any_aggregate(
    provider_id: sa.ColumnElement[int], aggregate_ids: Collection[int]
) -> elements.ColumnElement[bool]:
    """Return whether the provider itself is in at least one of the aggregates."""
    return _linked(_AGGREGATE_LINK, _AGGREGATE_LINK.c.aggregate_id, provider_id, aggregate_ids)


def _linked(
    link: sa.FromClause,
    column: sa.ColumnElement[int],
    provider_id: sa.ColumnElement[int],
    ids: Collection[int],
) -> elements.ColumnElement[bool]:
    return has_rows(
        sa.select(column)
        .where(link.c.resource_provider_id == provider_id, column.in_(id_list(ids)))
        .correlate(provider_id.table)
    )
