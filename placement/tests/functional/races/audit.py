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


# The columns with ids of rows, their tables, and the columns with the names of these rows.
_REFERENCES = {
    'resource_provider_id': ('resource_providers', 'uuid'),
    'root_provider_id': ('resource_providers', 'uuid'),
    'parent_provider_id': ('resource_providers', 'uuid'),
    'resource_class_id': ('resource_classes', 'name'),
    'trait_id': ('traits', 'name'),
    'aggregate_id': ('placement_aggregates', 'uuid'),
    'project_id': ('projects', 'external_id'),
    'user_id': ('users', 'external_id'),
    'consumer_type_id': ('consumer_types', 'name'),
}
_INVISIBLE = {'id', 'created_at', 'updated_at'}


def visible(tables: Mapping[str, Rows]) -> dict[str, list[tuple[Any, ...]]]:
    """What clients can see of the rows: names instead of ids, and no times, in a stable order."""
    named = {
        column: {row.id: getattr(row, name) for row in tables[table]}
        for column, (table, name) in _REFERENCES.items()
    }
    return {
        table: sorted(
            (
                tuple(
                    named[column].get(value) if column in named else value
                    for column, value in row._mapping.items()
                    if column not in _INVISIBLE
                )
                for row in rows
            ),
            key=repr,
        )
        for table, rows in tables.items()
    }


def _references(tables: Mapping[str, Rows]) -> Iterator[str]:
    for name, rows in tables.items():
        for column in _REFERENCES.keys() & models.metadata.tables[name].c.keys():
            target = _REFERENCES[column][0]
            ids = {row.id for row in tables[target]}
            for missing in sorted({getattr(row, column) for row in rows} - {None} - ids):
                yield f'{name}.{column} names {missing}, which is not in {target}'


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
