"""Worlds as rows of a database, also of a running service, on any database server.

Requests would take longer, and could not create usage that exceeds the capacity.
"""

from collections.abc import Iterator
import contextlib
import os
from typing import Any
import unittest
import uuid

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.tests import servers, worlds

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
_Rows = list[dict[str, Any]]


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


def fill(database: sa.Engine | sa.Connection, world: worlds.World, names: bool = False) -> None:
    """Replace the providers and consumers of the database by a world, and commit.

    The ids of providers and aggregates are those of the world.

    :param names: whether to replace the resource classes and traits, too, so that their ids are
        those of the world; otherwise, missing names are added
    """
    if isinstance(database, sa.Engine):
        with database.connect() as conn:
            fill(conn, world, names)
        return
    conn = database
    conn.execute(sa.update(_PROVIDERS).values(parent_provider_id=None, root_provider_id=None))
    for table in reversed(TABLES):
        conn.execute(table.delete())
    for table, ids in (
        (models.resource_classes, world.ids.classes),
        (models.traits, world.ids.traits),
    ):
        if names:
            conn.execute(table.delete())
            conn.execute(table.insert(), [{'id': id_, 'name': name} for name, id_ in ids.items()])
            _continue_ids(conn, table)
    for table, rows in _rows(conn, world):
        if rows:
            conn.execute(table.insert(), rows)
        if rows and 'id' in rows[0]:
            _continue_ids(conn, table)
    conn.commit()


def _rows(conn: sa.Connection, world: worlds.World) -> Iterator[tuple[sa.Table, _Rows]]:
    classes = _ids(conn, models.resource_classes, world.ids.classes)
    traits = _ids(conn, models.traits, world.ids.traits)
    numbers = {host.name: number for number, host in enumerate(world.hosts, 1)}
    aggregates = [{'id': id_, 'uuid': uuid} for uuid, id_ in world.ids.aggregates.items()]
    yield models.placement_aggregates, aggregates
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
    inventories = []
    for provider in world.providers:
        for inventory in provider.inventories.values():
            fields = {**inventory._asdict(), 'resource_provider_id': provider.id}
            del fields['used']
            inventories.append({**fields, 'resource_class_id': classes[fields.pop('class_id')]})
    yield models.inventories, inventories
    for table, column, values in (
        (models.resource_provider_traits, 'trait_id', lambda p: [traits[t] for t in p.traits]),
        (models.resource_provider_aggregates, 'aggregate_id', lambda p: p.aggregates),
    ):
        yield (
            table,
            [
                {'resource_provider_id': p.id, column: id_}
                for p in world.providers
                for id_ in values(p)
            ],
        )
    yield from _consumers(world)
    yield (
        models.allocations,
        [
            {
                'consumer_id': consumer,
                'resource_provider_id': numbers[provider],
                'resource_class_id': classes[world.ids.classes[name]],
                'used': used,
            }
            for consumer, provider, name, used in _allocations(world)
        ],
    )


def _consumers(world: worlds.World) -> Iterator[tuple[sa.Table, _Rows]]:
    ids: dict[str, dict[str | None, int | None]] = {}
    for table, column, attribute in (
        (models.projects, 'external_id', 'project'),
        (models.users, 'external_id', 'user'),
        (models.consumer_types, 'name', 'type'),
    ):
        names = sorted({getattr(one, attribute) for one in world.consumers} - {None})
        ids[attribute] = {None: None, **{name: number for number, name in enumerate(names, 1)}}
        yield table, [{'id': number, column: name} for number, name in enumerate(names, 1)]
    yield (
        models.consumers,
        [
            {
                'uuid': one.uuid,
                'generation': one.generation,
                'project_id': ids['project'][one.project],
                'user_id': ids['user'][one.user],
                'consumer_type_id': ids['type'][one.type],
            }
            for one in world.consumers
        ],
    )


def _allocations(world: worlds.World) -> Iterator[tuple[str, str, str, int]]:
    for consumer in world.consumers:
        for provider, amounts in consumer.allocations.items():
            for name, used in amounts.items():
                yield consumer.uuid, provider, name, used
    # Consumers without a row. There are two for each inventory, so that the usage is a sum.
    for (provider, name), used in world.other_usage.items():
        for part in filter(None, (used // 2, used - used // 2)):
            yield str(uuid.uuid4()), provider, name, part


def _ids(conn: sa.Connection, table: sa.Table, names: dict[str, int]) -> dict[int, int]:
    """Return id in the world -> id in the database, after the missing names were added."""
    query = sa.select(table.c.name, table.c.id)
    stored = dict(conn.execute(query).all())
    if missing := [{'name': name} for name in names if name not in stored]:
        _continue_ids(conn, table)
        conn.execute(table.insert(), missing)
        stored = dict(conn.execute(query).all())
    return {id_: stored[name] for name, id_ in names.items()}


def _continue_ids(conn: sa.Connection, table: sa.Table) -> None:
    """Let the next id follow those of the inserted rows."""
    if conn.dialect.name == 'postgresql':
        highest = sa.select(sa.func.max(table.c.id)).scalar_subquery()
        sequence = sa.func.pg_get_serial_sequence(table.name, 'id')
        conn.execute(sa.select(sa.func.setval(sequence, highest)))
