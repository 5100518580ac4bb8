"""Generate the worlds: reproducible test clouds on which requests are measured.

flat    hosts with inventories of VCPU, MEMORY_MB and DISK_GB
numa    hosts with DISK_GB and two child providers (NUMA nodes), which have VCPU and MEMORY_MB;
        each node has two child providers (network interfaces) with SRIOV_NET_VF
pci     flat hosts with devices; each device is a child provider
shared  hosts without DISK_GB; each sharing provider shares DISK_GB with 50 hosts

Worlds with the same parameters have the same rows and UUIDs. One host in 100 has the trait `RARE`,
and only the last host has the trait `SINGLE`. Another host in 100 has a smaller disk and no
allocations; all other hosts have allocations. The disks of the hosts without allocations have one
of three sizes, so that a search can fit one host in 100, one host in 1,000, or only the last host
(if the number of hosts is a multiple of 1,000).

The rows are inserted directly into the tables, because creating them through the API would take
hours. They are generated and inserted in batches, so the memory does not grow with the world: the
process that loads a million hosts needs about 120 MiB.
"""

from collections.abc import Iterable, Iterator, Mapping
import contextlib
from dataclasses import dataclass
import datetime
import random
from typing import Any
import uuid

import sqlalchemy as sa

from placement.db.sqlalchemy import models

KINDS = ('flat', 'numa', 'pci', 'shared')
PROJECTS = 20
AGGREGATES = 20
SHARED_BY = 50
DEVICES = 8  # of each host of a pci world
DEVICE = 'CUSTOM_PERF_DEVICE'
COMMON, RARE = 'COMPUTE_VOLUME_MULTI_ATTACH', 'CUSTOM_PERF_RARE'
SINGLE = 'CUSTOM_PERF_SINGLE'
RACKS = ('CUSTOM_PERF_RACK_A', 'CUSTOM_PERF_RACK_B')
CUSTOM_TRAITS = (RARE, SINGLE, *RACKS)
SHARING = 'MISC_SHARES_VIA_AGGREGATE'

_SEED = 17
_NAMESPACE = uuid.UUID('6ba7b8f1-0000-4000-8000-000000000000')
_TIMESTAMP = datetime.datetime(2026, 1, 1)
# PERF: with batches of a tenth of this size, loading takes twice as long (MariaDB, 20,000 hosts,
# 2026-11).
ROWS_PER_BATCH = 25_000
# In this order, each inserted row refers only to existing rows.
TABLES = tuple(
    table
    for table in models.metadata.sorted_tables
    if table.name not in ('resource_classes', 'traits')
)

# The ids of resource classes and traits by name.
Ids = Mapping[str, int]
# The members of inventories by resource class; `total` has no default.
Inventories = Mapping[str, Mapping[str, int | float]]


@dataclass(frozen=True, slots=True)
class World:
    """The parameters of a test cloud."""

    kind: str
    hosts: int
    consumers: int = 10  # for each host

    def host(self, number: int) -> str:
        """Return the UUID of a host; the number is taken modulo the number of hosts."""
        return name_based(f'host-{number % self.hosts:06d}')


def name_based(name: str) -> str:
    """Return a UUID that depends only on the name."""
    return str(uuid.uuid5(_NAMESPACE, name))


class Rows:
    """The rows of all tables, by the name of the table."""

    def __init__(self, ids: Ids) -> None:
        self._ids = ids
        self._providers = 0
        self.of: dict[str, list[dict[str, Any]]] = {}
        self.take()

    def size(self) -> int:
        """Return the number of rows."""
        return sum(map(len, self.of.values()))

    def take(self) -> dict[str, list[dict[str, Any]]]:
        """Return and forget all rows."""
        rows, self.of = self.of, {table.name: [] for table in TABLES}
        return rows

    def add(self, table: str, **values: Any) -> None:
        """Add a row."""
        self.of[table].append({**values, 'created_at': _TIMESTAMP, 'updated_at': _TIMESTAMP})

    def add_provider(
        self,
        name: str,
        root: int | None = None,
        parent: int | None = None,
        traits: Iterable[str] = (),
        aggregates: Iterable[int] = (),
        inventories: Inventories | None = None,
    ) -> int:
        """Add a provider with its traits, its aggregates, and its inventories; return its id."""
        self._providers += 1
        provider = self._providers
        self.add(
            'resource_providers',
            id=provider,
            uuid=name_based(name),
            name=name,
            generation=1,
            root_provider_id=root or provider,
            parent_provider_id=parent,
        )
        for trait in traits:
            trait_id = self._ids[trait]
            self.add('resource_provider_traits', resource_provider_id=provider, trait_id=trait_id)
        for aggregate in aggregates:
            self.add(
                'resource_provider_aggregates',
                resource_provider_id=provider,
                aggregate_id=aggregate,
            )
        self.add_inventories(provider, inventories or {})
        return provider

    def add_inventories(self, provider: int, inventories: Inventories) -> None:
        """Add inventories to a provider."""
        for name, values in inventories.items():
            defaults = {'reserved': 0, 'min_unit': 1, 'step_size': 1, 'allocation_ratio': 1.0}
            row = {**defaults, 'max_unit': values['total'], **values}
            class_id = self._ids[name]
            self.add(
                'inventories', resource_provider_id=provider, resource_class_id=class_id, **row
            )


def rows_of(world: World, ids: Ids) -> Iterator[dict[str, list[dict[str, Any]]]]:
    """Generate the rows of all tables in batches of hosts."""
    cloud = _Cloud(world, ids)
    for number in range(1, PROJECTS + 1):
        cloud.add('projects', id=number, external_id=f'project-{number}')
        cloud.add('users', id=number, external_id=f'user-{number}')
    cloud.add('consumer_types', id=1, name='INSTANCE')
    for number in range(1, AGGREGATES + world.hosts // SHARED_BY + 2):
        cloud.add('placement_aggregates', id=number, uuid=name_based(f'aggregate-{number}'))
    yield cloud.take()
    for number in range(world.hosts):
        cloud.add_host(number)
        if cloud.size() >= ROWS_PER_BATCH:
            yield cloud.take()
    yield cloud.take()


class _Cloud(Rows):
    """Generates the rows of the hosts."""

    def __init__(self, world: World, ids: Ids) -> None:
        super().__init__(ids)
        self._world = world
        self._random = random.Random(_SEED)
        self._consumers = 0
        self._disk = 0  # the id of the sharing provider of the current hosts

    def add_host(self, number: int) -> None:
        """Add a host with its child providers and consumers."""
        kind, name, unused = self._world.kind, f'host-{number:06d}', number % 100 == 99
        traits = [COMMON, RACKS[number % 2], *[RARE] * (number % 100 == 0)]
        traits += [SINGLE] * (number == self._world.hosts - 1)
        aggregates = [1 + number % AGGREGATES]
        if kind == 'shared':
            aggregates.append(AGGREGATES + 1 + number // SHARED_BY)
            if number % SHARED_BY == 0:
                self._add_pool(number // SHARED_BY)
        root = self.add_provider(name, None, None, traits, aggregates)
        if kind != 'shared':
            self._disk = root
            size = self._unused_disk(number) if unused else 4000
            self.add_inventories(root, {'DISK_GB': {'total': size, 'reserved': 100}})
        processors = self._add_nodes(name, root) if kind == 'numa' else [root]
        devices = {DEVICE: {'total': 1}}
        for device in range(DEVICES if kind == 'pci' else 0):
            self.add_provider(f'{name}-device-{device}', root, root, inventories=devices)
        for provider in processors:
            inventories: Inventories = {
                'VCPU': {'total': 64 // len(processors), 'allocation_ratio': 4.0},
                'MEMORY_MB': {'total': 262144 // len(processors), 'reserved': 512},
            }
            self.add_inventories(provider, inventories)
        for _ in range(0 if unused else self._world.consumers):
            self._add_consumer(self._random.choice(processors))

    def _unused_disk(self, number: int) -> int:
        if number == self._world.hosts - 1:
            return 3000
        return 2500 if number % 1000 == 999 else 2000

    def _add_pool(self, number: int) -> None:
        shared, aggregates = {'DISK_GB': {'total': 1_000_000}}, [AGGREGATES + 1 + number]
        name = f'pool-{number:04d}'
        self._disk = self.add_provider(name, None, None, [SHARING], aggregates, shared)

    def _add_nodes(self, name: str, root: int) -> list[int]:
        nodes, functions = [], {'SRIOV_NET_VF': {'total': 8}}
        for number in range(2):
            node = f'{name}-node-{number}'
            nodes.append(self.add_provider(node, root, root, ['HW_NUMA_ROOT']))
            for card in range(2):
                self.add_provider(f'{node}-card-{card}', root, nodes[-1], inventories=functions)
        return nodes

    def _add_consumer(self, processors: int) -> None:
        number, self._consumers = self._consumers, self._consumers + 1
        consumer = name_based(f'consumer-{number}')
        self.add(
            'consumers',
            uuid=consumer,
            project_id=1 + number % PROJECTS,
            user_id=1 + number // PROJECTS % PROJECTS,
            consumer_type_id=1,
            generation=1,
        )
        for provider, name, amounts in (
            (processors, 'VCPU', (1, 2, 4)),
            (processors, 'MEMORY_MB', (1024, 2048, 4096)),
            (self._disk, 'DISK_GB', (10, 20, 40)),
        ):
            self.add(
                'allocations',
                resource_provider_id=provider,
                consumer_id=consumer,
                resource_class_id=self._ids[name],
                used=self._random.choice(amounts),
            )


# Loading ----------------------------------------------------------------------


def load(engine: sa.Engine, world: World) -> None:
    """Insert a world into an empty database that has the standard traits and resource classes."""
    with engine.begin() as conn:
        ids = _ids_of_names(conn)
    with engine.connect() as conn:
        _without_key_checks(conn)
        for rows in rows_of(world, ids):
            with conn.begin():
                insert(conn, rows)
    _update_statistics(engine)


def insert(conn: sa.Connection, rows: Mapping[str, list[dict[str, Any]]]) -> None:
    """Insert rows of all tables."""
    for table in TABLES:
        if rows[table.name]:
            conn.execute(sa.insert(table), rows[table.name])


def _ids_of_names(conn: sa.Connection) -> Ids:
    """Return the ids of all resource classes and traits; create those of the worlds."""
    ids: dict[str, int] = {}
    for table, names in ((models.resource_classes, (DEVICE,)), (models.traits, CUSTOM_TRAITS)):
        query = sa.select(table.c.name, table.c.id)
        existing = dict(conn.execute(query).tuples().all())
        missing = [name for name in names if name not in existing]
        rows = [{'name': name, 'id': 10_000 + number} for number, name in enumerate(missing)]
        if rows:
            conn.execute(sa.insert(table), rows)
        ids |= dict(conn.execute(query).tuples().all())
    return ids


def _without_key_checks(conn: sa.Connection) -> None:
    """Disable the checks of keys on MySQL, and keep the connection out of the pool afterwards."""
    if conn.dialect.name == 'mysql':
        conn.detach()
        with conn.begin():
            conn.exec_driver_sql('SET foreign_key_checks = 0, unique_checks = 0')


def _update_statistics(engine: sa.Engine) -> None:
    """Update statistics, sequences and data files to the state that they have in production."""
    if engine.dialect.name == 'sqlite':
        return
    # VACUUM cannot run in a transaction, and the engine of the service begins transactions.
    outside = sa.create_engine(engine.url, isolation_level='AUTOCOMMIT', poolclass=sa.NullPool)
    with outside.connect() as conn:
        if engine.dialect.name == 'mysql':
            names = ', '.join(table.name for table in TABLES)
            conn.exec_driver_sql(f'ANALYZE TABLE {names}').all()
            # Write all changed pages to the data files. Otherwise, the server does so during the
            # measurement, and claims take several times longer.
            with contextlib.suppress(sa.exc.OperationalError):  # the account may not do this
                conn.exec_driver_sql(f'FLUSH TABLES {names} FOR EXPORT')
                conn.exec_driver_sql('UNLOCK TABLES')
            return
        # Explicit ids do not advance the sequences.
        for table in (one for one in TABLES if 'id' in one.c):
            sequence = sa.func.pg_get_serial_sequence(table.name, 'id')
            last = sa.select(sa.func.coalesce(sa.func.max(table.c.id), 1)).scalar_subquery()
            conn.execute(sa.select(sa.func.setval(sequence, last)))
        conn.exec_driver_sql('VACUUM ANALYZE')
