"""The providers of trees, with their traits, aggregates and inventories: one row for each provider.

In a row, the traits, aggregates and inventories of the provider are JSON arrays that the database
builds. This is faster than one row for each trait, aggregate and inventory.
"""

from collections.abc import Iterable, Sequence
import functools
import operator
from typing import Any

import orjson
import sqlalchemy as sa

from placement.candidates import model
from placement.db import capacity_sql, sql
from placement.db.sqlalchemy import models

# The table aliases of `columns`. PERF: an alias takes longer to create than the rest of a
# statement, so each is created only once.
PROVIDER = models.resource_providers.alias('provider')
_INVENTORIES = models.inventories.alias('inventory')
_TRAIT_LINK = models.resource_provider_traits.alias('trait_link')
_AGGREGATE_LINK = models.resource_provider_aggregates.alias('aggregate_link')
# The first field of `model.Provider`.
_ID = operator.itemgetter(0)


@functools.cache
def columns(with_aggregates: bool) -> sa.Select[Any]:
    """Return a SELECT of the columns that `providers_of` reads.

    The SELECT has no FROM clause: the caller adds `PROVIDER` with a join. The columns for traits,
    aggregates and inventories contain JSON arrays as text.
    """
    inventory = sql.JsonNumberArray(
        _INVENTORIES.c.resource_class_id,
        _INVENTORIES.c.total,
        _INVENTORIES.c.reserved,
        _INVENTORIES.c.min_unit,
        _INVENTORIES.c.max_unit,
        _INVENTORIES.c.step_size,
        sql.JsonNumber(_INVENTORIES.c.allocation_ratio),
        capacity_sql.used(_INVENTORIES),
    )
    return sa.select(
        PROVIDER.c.id,
        PROVIDER.c.uuid,
        PROVIDER.c.root_provider_id,
        PROVIDER.c.parent_provider_id,
        _ids_of_provider(_TRAIT_LINK, 'trait_id'),
        _ids_of_provider(_AGGREGATE_LINK, 'aggregate_id') if with_aggregates else sa.null(),
        sa.select(sql.JsonList(inventory))
        .select_from(_INVENTORIES)
        .where(_INVENTORIES.c.resource_provider_id == PROVIDER.c.id)
        .correlate(PROVIDER)
        .scalar_subquery(),
    )


def _ids_of_provider(link: sa.FromClause, column: str) -> sa.ScalarSelect[str]:
    return (
        sa.select(sql.JsonList(link.c[column]))
        .where(link.c.resource_provider_id == PROVIDER.c.id)
        .correlate(PROVIDER)
        .scalar_subquery()
    )


class _IdSets:
    """Parses JSON arrays of ids. Equal texts, which are common, are parsed only once."""

    def __init__(self) -> None:
        self._sets: dict[str | None, frozenset[int]] = {None: frozenset()}

    def __call__(self, text: str | None) -> frozenset[int]:
        ids = self._sets.get(text)
        if ids is None:
            ids = self._sets[text] = frozenset(orjson.loads(text or '[]'))
        return ids


def providers_of(rows: Iterable[Sequence[Any]]) -> list[model.Provider]:
    """Return the providers from rows of `columns`, sorted by id.

    PostgreSQL moves a row when it is updated, and without an order, it returns rows as they are
    stored. Each claim would then change the order of the candidates.
    """
    id_sets, loads = _IdSets(), orjson.loads
    # PERF: `ProviderInventory._make` takes twice as long (2026-11).
    make = functools.partial(tuple.__new__, model.ProviderInventory)
    providers = [
        model.Provider(
            id_,
            uuid,
            root_id,
            parent_id,
            id_sets(traits),
            id_sets(aggregates),
            {values[0]: make(values) for values in loads(inventories)} if inventories else {},
        )
        for id_, uuid, root_id, parent_id, traits, aggregates, inventories in rows
    ]
    # PERF: 0.04 ms for 1,000 rows that are in order; such a search takes 20 ms or more (2026-11).
    providers.sort(key=_ID)
    return providers
