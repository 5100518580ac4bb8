"""Read the state of the cloud with a constant number of statements, in one snapshot."""

from collections.abc import Collection, Iterable, Mapping
from typing import Any

import os_traits
import sqlalchemy as sa

from placement.admin import unlisted
from placement.admin.capacity_metrics import model
from placement.admin.capacity_metrics.model import (
    Cloud,
    Drains,
    Headroom,
    ProjectUsage,
    Provider,
    ProviderInventory,
)
from placement.admin.drain.reading import all_trees
from placement.admin.headroom import reading as headroom_reading
from placement.admin.headroom.report import simulation_of
from placement.admin.progress import Progress, silent
from placement.admin.report import read as report_read
from placement.candidates.model import Query
from placement.capacity import Inventory
from placement.db import engine, expressions
from placement.db.sqlalchemy import models
from placement.objects.inventory import COLUMNS

_PROVIDERS = models.resource_providers
_ROOTS = models.resource_providers.alias('root')
_INVENTORIES = models.inventories
_CLASSES = models.resource_classes
_CONSUMERS = models.consumers
_ALLOCATIONS = models.allocations
_TRAITS = models.resource_provider_traits
_LINKS = models.resource_provider_aggregates

# The API does not list a provider of an old release without a root, or of a damaged database whose
# root does not exist.
_LISTED = _PROVIDERS.join(_ROOTS, _ROOTS.c.id == _PROVIDERS.c.root_provider_id)
# PERF: for 30,000 inventories with 297,000 allocations, this statement takes 0.15 s on MariaDB,
# 0.08 s on PostgreSQL and 0.06 s on SQLite. With the sums of a GROUP BY in place of the subquery of
# `expressions.used()`, it takes up to 40 % longer (2026-11).
_INVENTORIES_WITH_USAGE = sa.select(
    _PROVIDERS.c.name,
    _CLASSES.c.name,
    models.generation(_PROVIDERS),
    expressions.used(_INVENTORIES),
    *COLUMNS,
).select_from(
    _INVENTORIES.join(_LISTED, _PROVIDERS.c.id == _INVENTORIES.c.resource_provider_id).join(
        _CLASSES, _CLASSES.c.id == _INVENTORIES.c.resource_class_id
    )
)
# Old releases left consumers without allocations in the database.
_HAS_ALLOCATIONS = sa.exists().where(_ALLOCATIONS.c.consumer_id == _CONSUMERS.c.uuid)


def _count(source: sa.FromClause, *conditions: sa.ColumnElement[bool]) -> sa.ScalarSelect[int]:
    return sa.select(sa.func.count()).select_from(source).where(*conditions).scalar_subquery()


_COUNTS = sa.select(
    _count(_LISTED),
    _count(_CONSUMERS, _HAS_ALLOCATIONS),
    _count(_ALLOCATIONS),
    unlisted.COUNT.scalar_subquery(),
)
# As in the report, a tree is disabled if its root has this trait.
_DISABLED = (
    sa.exists()
    .where(_TRAITS.c.resource_provider_id == _ROOTS.c.id)
    .where(_TRAITS.c.trait_id == models.traits.c.id)
    .where(models.traits.c.name == os_traits.COMPUTE_STATUS_DISABLED)
)
_DETAILS = sa.select(_PROVIDERS.c.name, _PROVIDERS.c.uuid, _ROOTS.c.name, _DISABLED).select_from(
    _LISTED
)
_AGGREGATES = sa.select(_PROVIDERS.c.name, models.placement_aggregates.c.uuid).select_from(
    _LISTED.join(_LINKS, _LINKS.c.resource_provider_id == _PROVIDERS.c.id).join(
        models.placement_aggregates, models.placement_aggregates.c.id == _LINKS.c.aggregate_id
    )
)
_USAGE = report_read.USAGE_OF_PROJECTS.subquery()
_PROJECTS = sa.select(models.projects.c.external_id, _CLASSES.c.name, _USAGE.c.used).select_from(
    _USAGE.join(models.projects, models.projects.c.id == _USAGE.c.project_id).join(
        _CLASSES, _CLASSES.c.id == _USAGE.c.resource_class_id
    )
)
_BATCH = 10_000


def read(
    progress: Progress = silent,
    without: Collection[str] = (),
    headroom: Headroom = (),
    drains: Drains | None = None,
) -> Cloud:
    """Return the state of the cloud.

    :param without: the names of metrics that are not needed
    :param headroom: the name of each query, and the number of claims that fit
    :param drains: the number of trees that can be drained
    :raises Exception: the database is not available or has no tables; the class depends on the
        driver
    """
    with engine.snapshot() as conn:
        providers, consumers, allocations, hidden = conn.execute(_COUNTS).one()
        inventories = tuple(_read_inventories(conn, progress))

        def rows(metric: str, statement: sa.Select[Any]) -> list[tuple[Any, ...]]:
            found: Iterable[Any] = () if metric in without else conn.execute(statement)
            # The schema allows NULL in the name of a provider.
            return sorted(('' if row[0] is None else row[0], *row[1:]) for row in found)

        return Cloud(
            inventories,
            providers,
            consumers,
            allocations,
            details=tuple(
                Provider(name, uuid, root or '', bool(disabled))
                for name, uuid, root, disabled in rows(model.INFO, _DETAILS)
            ),
            aggregates=tuple((name, uuid) for name, uuid in rows(model.AGGREGATE, _AGGREGATES)),
            projects=tuple(
                ProjectUsage(project, class_, int(used))
                for project, class_, used in rows(model.PROJECT_USAGE, _PROJECTS)
            ),
            headroom=headroom,
            drains=drains,
            unlisted=hidden,
        )


def headroom(queries: Mapping[str, Query[str]]) -> Headroom:
    """Return the number of claims of each query that fit, by the name of the query.

    :raises CannotProceedError: a class or trait of a query does not exist
    """
    with engine.snapshot() as conn:
        cloud = headroom_reading.read(
            conn, list(queries.values()), silent, with_aggregates=False, with_names=False
        )
    return tuple(
        (name, simulation_of(query, cloud.anchors, cloud.sharing_id, silent).fits)
        for name, query in zip(queries, cloud.queries, strict=True)
    )


def drains() -> Drains:
    """Return the number of trees that can be drained.

    :raises CannotProceedError: the consumer of an allocation does not exist
    """
    with engine.snapshot() as conn:
        results = all_trees(conn, silent)
    return Drains(len(results), sum(one.fits for one in results))


def _read_inventories(conn: sa.Connection, progress: Progress) -> list[ProviderInventory]:
    inventories: list[ProviderInventory] = []
    with progress('Reading inventories') as advance:
        for rows in conn.execute(_INVENTORIES_WITH_USAGE).partitions(_BATCH):
            inventories += map(_inventory, rows)
            advance(len(rows))
    return sorted(inventories, key=lambda one: (one.provider, one.resource_class))


def _inventory(row: Any) -> ProviderInventory:
    # The schema allows NULL in the name of a provider.
    return ProviderInventory(row[0] or '', row[1], Inventory(*row[4:]), int(row[3]), row[2])
