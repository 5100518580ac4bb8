"""Random damaged worlds as rows of the database.

Requests could not create such rows: inventories whose capacity is negative, usage above the
capacity, providers without a root or with a wrong one, cycles of parents, and rows that refer to
rows that do not exist.
"""

from collections.abc import Iterator, Mapping, Sequence
import contextlib
import random
from typing import Any
import uuid

import os_traits
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests.worlds import rows as world_rows

CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB')
TRAITS = (
    os_traits.COMPUTE_STATUS_DISABLED,
    os_traits.MISC_SHARES_VIA_AGGREGATE,
    os_traits.HW_CPU_X86_AVX2,
)
AGGREGATES = tuple(str(uuid.UUID(int=number)) for number in (1, 2))
PROJECTS = ('red', 'blue')
PROVIDERS, CONSUMERS = 9, 8
# No row has this id.
_GONE = 9_000_001
# Characters that the text format of metrics escapes, and characters outside of ASCII.
_NAMES = ('a "b" ', 'back\\slash ', 'größe ', '計算 ', '🖥 ', '{x="y"} ')
_RATIOS = (1.0, 1.0, 1.5, 16.0, 0.7, 0.123456)

Rows = dict[sa.Table, list[dict[str, Any]]]


def rows(seed: int, classes: Mapping[str, int], traits: Mapping[str, int]) -> Rows:
    """Return the rows of a world.

    :param classes: name -> id
    :param traits: name -> id
    """
    rng = random.Random(seed)
    first = seed * 100 + 1
    providers = _providers(rng, first)
    ids = [one['id'] for one in providers]
    class_ids = [classes[name] for name in CLASSES]
    inventories = [
        {'resource_provider_id': id_, 'resource_class_id': class_id, **_inventory(rng)}
        for id_ in (*ids, _GONE)
        for class_id in rng.sample((*class_ids, *class_ids, _GONE), rng.randint(0, 3))
    ]
    consumers = _consumers(rng, first)
    return {
        models.projects: _named(first, 'external_id', PROJECTS),
        models.users: _named(first, 'external_id', ['user']),
        models.consumer_types: _named(first, 'name', ['INSTANCE']),
        models.placement_aggregates: _named(first, 'uuid', AGGREGATES),
        models.resource_providers: providers,
        models.inventories: _different(inventories, 'resource_provider_id', 'resource_class_id'),
        models.resource_provider_traits: _links(
            rng, ids, 'trait_id', [traits[name] for name in TRAITS]
        ),
        models.resource_provider_aggregates: _links(
            rng, ids, 'aggregate_id', [first, first + 1, _GONE]
        ),
        models.consumers: consumers,
        models.allocations: _allocations(rng, ids, (*class_ids, _GONE), consumers),
    }


def _named(first: int, column: str, names: Sequence[str]) -> list[dict[str, Any]]:
    return [{'id': first + number, column: name} for number, name in enumerate(names)]


def _different(found: Sequence[dict[str, Any]], *key: str) -> list[dict[str, Any]]:
    return list({tuple(one[name] for name in key): one for one in found}.values())


def _chance(rng: random.Random, value: Any, probability: float, *others: Any) -> Any:
    """Return one of the other values with this probability."""
    return rng.choice(others) if rng.random() < probability else value


def _providers(rng: random.Random, first: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    for number in range(PROVIDERS):
        parent = rng.choice(found) if found and rng.random() < 0.4 else None
        id_ = first + number
        root_id = parent['root_provider_id'] if parent else id_
        found.append(
            {
                'id': id_,
                'uuid': str(uuid.UUID(int=rng.getrandbits(128), version=4)),
                'name': f'{_NAMES[number % len(_NAMES)]}{id_}',
                'generation': _chance(rng, rng.randint(0, 9), 0.2, None),
                'parent_provider_id': parent['id'] if parent else None,
                'root_provider_id': root_id,
            }
        )
    ids = [one['id'] for one in found]
    for one in found:
        one['root_provider_id'] = _chance(
            rng, one['root_provider_id'], 0.2, None, None, _GONE, rng.choice(ids)
        )
        one['parent_provider_id'] = _chance(
            rng, one['parent_provider_id'], 0.1, _GONE, rng.choice(ids)
        )
    found[0]['name'] = _chance(rng, found[0]['name'], 0.2, None)
    return found


def _inventory(rng: random.Random) -> dict[str, Any]:
    total = rng.choice((1, 8, 64, 4000, 262144, 2147483647))
    return {
        'total': total,
        'reserved': rng.choice((0, 0, 0, 1, total // 2, total, min(total * 2, 2147483647))),
        'min_unit': 1,
        'max_unit': total,
        'step_size': 1,
        'allocation_ratio': rng.choice(_RATIOS),
    }


def _links(
    rng: random.Random, ids: Sequence[int], column: str, values: Sequence[int]
) -> list[dict[str, Any]]:
    return [
        {'resource_provider_id': id_, column: value}
        for id_ in (*ids, _GONE)
        for value in rng.sample(values, rng.choice((0, 0, 1, 2)))
    ]


def _consumers(rng: random.Random, first: int) -> list[dict[str, Any]]:
    """Return consumers; some of them have no allocations."""
    return [
        {
            'id': first + number,
            'uuid': str(uuid.UUID(int=rng.getrandbits(128), version=4)),
            'project_id': _chance(rng, first + number % len(PROJECTS), 0.1, _GONE),
            'user_id': _chance(rng, first, 0.1, _GONE),
            'consumer_type_id': _chance(rng, first, 0.3, None, _GONE),
            'generation': 1,
        }
        for number in range(CONSUMERS)
    ]


def _allocations(
    rng: random.Random,
    ids: Sequence[int],
    classes: Sequence[int],
    consumers: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    missing = str(uuid.UUID(int=rng.getrandbits(128), version=4))
    found = [
        {
            'resource_provider_id': _chance(rng, rng.choice(ids), 0.1, _GONE),
            'resource_class_id': _chance(rng, rng.choice(classes[:-1]), 0.1, classes[-1]),
            'consumer_id': rng.choice((missing, *(one['uuid'] for one in consumers[1:]))),
            'used': rng.choice((1, 2, 40, 5000)),
        }
        for _ in range(2 * PROVIDERS)
    ]
    return _different(found, 'resource_provider_id', 'resource_class_id', 'consumer_id')


def fill(world: Rows) -> None:
    """Replace the contents of the database by a world, without checks of foreign keys."""
    with _unchecked() as conn:
        for table in world_rows.TABLES:
            conn.execute(table.delete())
        for table in world_rows.TABLES:
            if world[table]:
                conn.execute(table.insert(), world[table])


@contextlib.contextmanager
def visible(provider: Mapping[str, Any]) -> Iterator[None]:
    """Make a provider its own root, so that the API returns it; undo this at the end."""
    _set_root(provider, provider['id'])
    yield
    _set_root(provider, provider['root_provider_id'])


def _set_root(provider: Mapping[str, Any], root_id: int | None) -> None:
    table = models.resource_providers
    update = sa.update(table).where(table.c.id == provider['id']).values(root_provider_id=root_id)
    with _unchecked() as conn:
        conn.execute(update)


@contextlib.contextmanager
def _unchecked() -> Iterator[sa.Connection]:
    """Begin a transaction without checks of foreign keys."""
    with db_api.get_placement_engine().begin() as conn:
        dialect = conn.dialect.name
        if dialect == 'postgresql':
            conn.exec_driver_sql('SET LOCAL session_replication_role = replica')
        elif dialect == 'mysql':
            conn.exec_driver_sql('SET SESSION foreign_key_checks = 0')
        yield conn
        if dialect == 'mysql':
            conn.exec_driver_sql('SET SESSION foreign_key_checks = 1')


def ids_of_names(table: sa.Table) -> dict[str, int]:
    """Return name -> id of the resource classes or traits in the database."""
    with db_api.get_placement_engine().connect() as conn:
        return {row.name: row.id for row in conn.execute(sa.select(table.c.name, table.c.id))}
