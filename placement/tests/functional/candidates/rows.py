"""Worlds as rows of a database."""

from collections.abc import Iterator
import contextlib
import os
import unittest
from unittest import mock

import sqlalchemy as sa

from placement.candidates import forecasts, names, rare
from placement.db.sqlalchemy import models
from placement.tests import servers, worlds

# Tables in the order in which they can be filled.
_TABLES = (
    models.resource_classes,
    models.traits,
    models.placement_aggregates,
    models.resource_providers,
    models.inventories,
    models.resource_provider_traits,
    models.resource_provider_aggregates,
    models.allocations,
)


@contextlib.contextmanager
def database() -> Iterator[sa.Connection]:
    """A connection to a new in-memory SQLite database with all tables."""
    if servers.ADMIN_URL in os.environ:
        raise unittest.SkipTest('the run on SQLite has this test')
    engine = sa.create_engine('sqlite://')
    try:
        models.metadata.create_all(engine)
        with engine.connect() as conn:
            yield conn
    finally:
        engine.dispose()


def fill(conn: sa.Connection, world: worlds.World) -> None:
    """Replace the contents of the database by a world."""
    # MySQL checks for each deleted row whether other rows refer to it.
    conn.execute(
        models.resource_providers.update().values(parent_provider_id=None, root_provider_id=None)
    )
    for table in reversed(_TABLES):
        conn.execute(table.delete())
    for table, rows in _rows(world).items():
        if rows:
            conn.execute(models.metadata.tables[table].insert(), rows)


def _rows(world: worlds.World) -> dict[str, list[dict[str, object]]]:
    rows: dict[str, list[dict[str, object]]] = {table.name: [] for table in _TABLES}
    ids = world.ids
    rows['resource_classes'] = [{'id': id_, 'name': name} for name, id_ in ids.classes.items()]
    rows['traits'] = [{'id': id_, 'name': name} for name, id_ in ids.traits.items()]
    rows['placement_aggregates'] = [{'id': id_, 'uuid': u} for u, id_ in ids.aggregates.items()]
    for provider in world.providers:
        provider_key = {'resource_provider_id': provider.id}
        rows['resource_providers'].append(
            {
                'id': provider.id,
                'uuid': provider.uuid,
                'name': provider.uuid,
                'root_provider_id': provider.root_id,
                'parent_provider_id': provider.parent_id,
            }
        )
        rows['resource_provider_traits'] += [
            {**provider_key, 'trait_id': t} for t in provider.traits
        ]
        rows['resource_provider_aggregates'] += [
            {**provider_key, 'aggregate_id': aggregate} for aggregate in provider.aggregates
        ]
        for inventory in provider.inventories.values():
            fields = inventory._asdict()
            class_key = {'resource_class_id': fields.pop('class_id')}
            used = fields.pop('used')
            rows['inventories'].append({**provider_key, **class_key, **fields})
            # Two allocations, so that the usage is a sum.
            rows['allocations'] += [
                {**provider_key, **class_key, 'consumer_id': 'consumer', 'used': part}
                for part in (used // 2, used - used // 2)
                if part
            ]
    return rows


@contextlib.contextmanager
def rare_up_to(providers: int) -> Iterator[None]:
    """Change the maximum number of providers that have a rare trait or are in a rare aggregate."""
    cached = (
        names._ids_of_names,
        names.selects,
        forecasts._rows_of_look_up,
        forecasts._plain_statement,
    )
    for function in cached:
        function.cache_clear()
    try:
        with mock.patch.object(rare, 'MAX_PROVIDERS', providers):
            yield
    finally:
        for function in cached:
            function.cache_clear()
