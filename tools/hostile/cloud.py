"""Load a large cloud whose trees make searches for allocation candidates expensive.

The cloud has these providers:

* Flat hosts with VCPU and MEMORY_MB, all in one aggregate with 15 sharing providers of DISK_GB and
  IPV4_ADDRESS.
* Wide trees: a root with 1,000 children. Each child has the classes of `WIDE`. Each second child
  has a trait, and each third child is in an aggregate.
* Deep trees: 1,000 providers, each the child of the previous one, with the class `DEEP`.
"""

from typing import Any

import sqlalchemy as sa

from placement.db.sqlalchemy import models
from tools.perf import worlds
from tools.perf.worlds import name_based

WIDE = ('CUSTOM_W1', 'CUSTOM_W2', 'CUSTOM_W3', 'CUSTOM_W4')
DEEP = 'CUSTOM_DEEP'
TRAITS = tuple(f'CUSTOM_TRAIT_{number}' for number in range(200))
POOLS, TREES, WIDTH = 15, 4, 1000
_SHARING = 'MISC_SHARES_VIA_AGGREGATE'


def load(engine: sa.Engine, hosts: int) -> None:
    """Insert the cloud into an empty database that has the standard traits and classes."""
    with engine.begin() as conn:
        _insert(conn, 'resource_classes', [_named(c, 10_000 + n) for n, c in enumerate(_CUSTOM)])
        _insert(conn, 'traits', [_named(name, 10_000 + n) for n, name in enumerate(TRAITS)])
        rows = _Rows(_ids(conn, models.resource_classes), _ids(conn, models.traits))
        for number in range(POOLS):
            rows.add_pool(f'pool-{number}')
        for number in range(hosts):
            rows.add_host(f'host-{number}')
        for number in range(TREES):
            rows.add_wide_tree(f'wide-{number}')
            rows.add_deep_tree(f'deep-{number}')
        for table in worlds.TABLES:
            _insert(conn, table.name, rows.of_table(table.name))


_CUSTOM = (*WIDE, DEEP)


def _named(name: str, id_: int) -> dict[str, Any]:
    return {'id': id_, 'name': name}


def _insert(conn: sa.Connection, table: str, rows: list[dict[str, Any]]) -> None:
    if rows:
        conn.execute(sa.insert(models.metadata.tables[table]), rows)


def _ids(conn: sa.Connection, table: sa.Table) -> dict[str, int]:
    return dict(conn.execute(sa.select(table.c.name, table.c.id)).tuples().all())


class _Rows:
    """Collects the rows of all tables."""

    def __init__(self, classes: dict[str, int], traits: dict[str, int]) -> None:
        self._classes = classes
        self._traits = traits
        self._rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in worlds.TABLES}
        self._rows['placement_aggregates'] = [
            {'id': number, 'uuid': name_based(f'aggregate-{number}')} for number in (1, 2)
        ]

    def of_table(self, name: str) -> list[dict[str, Any]]:
        """Return the rows of a table."""
        return self._rows[name]

    def add_pool(self, name: str) -> None:
        """Add a sharing provider."""
        pool = self._add(name, ('DISK_GB', 'IPV4_ADDRESS'))
        self._add_trait(pool, _SHARING)
        self._add_aggregate(pool, 1)

    def add_host(self, name: str) -> None:
        """Add a host without children."""
        self._add_aggregate(self._add(name, ('VCPU', 'MEMORY_MB')), 1)

    def add_wide_tree(self, name: str) -> None:
        """Add a root with many children."""
        root = self._add(name, ())
        for number in range(WIDTH):
            child = self._add(f'{name}-{number}', WIDE, root, root)
            if number % 2:
                self._add_trait(child, TRAITS[number % len(TRAITS)])
            if number % 3 == 0:
                self._add_aggregate(child, 2)

    def add_deep_tree(self, name: str) -> None:
        """Add providers of which each is the child of the previous one."""
        root = parent = self._add(name, (DEEP,))
        for number in range(1, WIDTH):
            parent = self._add(f'{name}-{number}', (DEEP,), root, parent)

    def _add(
        self,
        name: str,
        classes: tuple[str, ...],
        root: int | None = None,
        parent: int | None = None,
    ) -> int:
        providers = self._rows['resource_providers']
        id_ = len(providers) + 1
        providers.append(
            {
                'id': id_,
                'uuid': name_based(name),
                'name': name,
                'generation': 1,
                'root_provider_id': root or id_,
                'parent_provider_id': parent,
            }
        )
        self._rows['inventories'] += [self._inventory(id_, one) for one in classes]
        return id_

    def _inventory(self, provider: int, resource_class: str) -> dict[str, Any]:
        return {
            'resource_provider_id': provider,
            'resource_class_id': self._classes[resource_class],
            'total': 1_000_000,
            'reserved': 0,
            'min_unit': 1,
            'max_unit': 1_000_000,
            'step_size': 1,
            'allocation_ratio': 1.0,
        }

    def _add_trait(self, provider: int, trait: str) -> None:
        row = {'resource_provider_id': provider, 'trait_id': self._traits[trait]}
        self._rows['resource_provider_traits'].append(row)

    def _add_aggregate(self, provider: int, aggregate: int) -> None:
        row = {'resource_provider_id': provider, 'aggregate_id': aggregate}
        self._rows['resource_provider_aggregates'].append(row)
