"""Worlds as rows in the database of a running service, on any database server.

Requests would take longer, and could not create usage that exceeds the capacity.
"""

from collections.abc import Iterator
from typing import Any
import uuid

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.tests import worlds

_PROVIDERS = models.resource_providers
# The tables that belong to one world, in the order in which they are filled.
TABLES = (
    models.projects,
    models.users,
    models.consumer_types,
    models.placement_aggregates,
    _PROVIDERS,
    models.inventories,
    models.resource_provider_traits,
    models.resource_provider_aggregates,
    models.consumers,
    models.allocations,
)


def fill(engine: sa.Engine, world: worlds.World) -> None:
    """Replace the providers and consumers of the database by a world.

    The standard resource classes and all traits of the world must exist.
    """
    with engine.begin() as conn:
        conn.execute(sa.update(_PROVIDERS).values(parent_provider_id=None, root_provider_id=None))
        for table in reversed(TABLES):
            conn.execute(table.delete())
        for table, rows in _rows(conn, world):
            if rows:
                conn.execute(table.insert(), rows)


def _rows(conn: sa.Connection, world: worlds.World) -> Iterator[tuple[sa.Table, list[Any]]]:
    classes = _ids(conn, models.resource_classes, world.ids.classes)
    traits = _ids(conn, models.traits, world.ids.traits)
    yield (
        models.placement_aggregates,
        [{'id': id_, 'uuid': uuid} for uuid, id_ in world.ids.aggregates.items()],
    )
    yield (
        _PROVIDERS,
        [
            {
                'id': provider.id,
                'uuid': provider.uuid,
                'name': world.names[provider.uuid],
                'generation': 0,
                'root_provider_id': provider.root_id,
                'parent_provider_id': provider.parent_id,
            }
            for provider in world.providers
        ],
    )
    inventories, allocations = [], []
    for provider in world.providers:
        for inventory in provider.inventories.values():
            fields = inventory._asdict()
            key = {
                'resource_provider_id': provider.id,
                'resource_class_id': classes[fields.pop('class_id')],
            }
            if used := fields.pop('used'):
                allocations.append({**key, 'consumer_id': str(uuid.uuid4()), 'used': used})
            inventories.append({**key, **fields})
    yield models.inventories, inventories
    yield (
        models.resource_provider_traits,
        [
            {'resource_provider_id': provider.id, 'trait_id': traits[id_]}
            for provider in world.providers
            for id_ in provider.traits
        ],
    )
    yield (
        models.resource_provider_aggregates,
        [
            {'resource_provider_id': provider.id, 'aggregate_id': id_}
            for provider in world.providers
            for id_ in provider.aggregates
        ],
    )
    yield models.allocations, allocations


def _ids(conn: sa.Connection, table: sa.Table, names: dict[str, int]) -> dict[int, int]:
    """Return id in the world -> id in the database."""
    stored = {row.name: row.id for row in conn.execute(sa.select(table.c.name, table.c.id))}
    return {id_: stored[name] for name, id_ in names.items() if name in stored}
