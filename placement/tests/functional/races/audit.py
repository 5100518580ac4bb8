"""The rules that the data must satisfy after concurrent requests.

The audit reads all tables, and uses none of the code that wrote them.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from placement.db.sqlalchemy import models

Rows = Sequence[Any]


def problems(engine: sa.Engine, may_exceed: bool = False) -> list[str]:
    """Return a sentence for each rule that the data in the database breaks.

    :param may_exceed: usage may exceed the capacity, because inventories were reduced
    """
    with engine.connect() as conn:
        return problems_of(read(conn), may_exceed)


def read(conn: sa.Connection) -> dict[str, Rows]:
    """Return all rows by the name of the table."""
    return {
        table.name: conn.execute(sa.select(table)).all() for table in models.metadata.sorted_tables
    }


def problems_of(tables: Mapping[str, Rows], may_exceed: bool = False) -> list[str]:
    """Like `problems`, for rows that `read` returned."""
    return [
        *_capacities(tables, may_exceed),
        *_consumers(tables),
        *_references(tables),
        *_trees(tables['resource_providers']),
    ]


def _capacities(tables: Mapping[str, Rows], may_exceed: bool) -> Iterator[str]:
    used: Counter[tuple[int, int]] = Counter()
    seen: Counter[tuple[str, int, int]] = Counter()
    for row in tables['allocations']:
        used[row.resource_provider_id, row.resource_class_id] += row.used
        seen[row.consumer_id, row.resource_provider_id, row.resource_class_id] += 1
        if row.used < 1:
            yield f'allocation {row.id} is of {row.used}'
    for key, count in seen.items():
        if count > 1:
            yield f'consumer {key[0]} has {count} rows for class {key[2]} of provider {key[1]}'
    inventories = {
        (row.resource_provider_id, row.resource_class_id): row for row in tables['inventories']
    }
    for key, amount in used.items():
        if key not in inventories:
            yield f'usage of class {key[1]} of provider {key[0]}, which has no inventory of it'
            continue
        row = inventories[key]
        capacity = (row.total - row.reserved) * row.allocation_ratio
        if amount > capacity and not may_exceed:
            yield f'usage {amount} of provider {key[0]} exceeds the capacity {capacity}'


def _consumers(tables: Mapping[str, Rows]) -> Iterator[str]:
    with_allocations = {row.consumer_id for row in tables['allocations']}
    stored = {row.uuid for row in tables['consumers']}
    for uuid in sorted(with_allocations - stored):
        yield f'allocations of consumer {uuid}, which has no row'
    for uuid in sorted(stored - with_allocations):
        yield f'consumer {uuid} without allocations'


_REFERENCES = (
    ('inventories', 'resource_provider_id', 'resource_providers'),
    ('inventories', 'resource_class_id', 'resource_classes'),
    ('allocations', 'resource_provider_id', 'resource_providers'),
    ('allocations', 'resource_class_id', 'resource_classes'),
    ('consumers', 'project_id', 'projects'),
    ('consumers', 'user_id', 'users'),
    ('consumers', 'consumer_type_id', 'consumer_types'),
    ('resource_provider_aggregates', 'resource_provider_id', 'resource_providers'),
    ('resource_provider_aggregates', 'aggregate_id', 'placement_aggregates'),
    ('resource_provider_traits', 'resource_provider_id', 'resource_providers'),
    ('resource_provider_traits', 'trait_id', 'traits'),
    ('resource_providers', 'parent_provider_id', 'resource_providers'),
    ('resource_providers', 'root_provider_id', 'resource_providers'),
)


def _references(tables: Mapping[str, Rows]) -> Iterator[str]:
    ids = {name: {row.id for row in rows} for name, rows in tables.items() if _has_id(name)}
    for name, column, target in _REFERENCES:
        named = {getattr(row, column) for row in tables[name]} - {None}
        for missing in sorted(named - ids[target]):
            yield f'{name}.{column} names {missing}, which is not in {target}'


def _has_id(name: str) -> bool:
    return 'id' in models.metadata.tables[name].c


def _trees(providers: Rows) -> Iterator[str]:
    parents = {row.id: row.parent_provider_id for row in providers}
    for row in providers:
        top, steps = row.id, 0
        while parents.get(top) is not None and steps <= len(providers):
            top, steps = parents[top], steps + 1
        if steps > len(providers):
            yield f'provider {row.id} is its own ancestor'
        elif row.root_provider_id != top:
            yield f'provider {row.id} is below {top}, but its root is {row.root_provider_id}'
