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

`loading` inserts the rows into a database.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
import datetime
import random
from typing import Any
import uuid

from placement.db.sqlalchemy import models

KINDS = ('flat', 'numa', 'pci', 'shared')
PROJECTS = 20
AGGREGATES = 20
SHARED_BY = 50
DEVICE = 'CUSTOM_PERF_DEVICE'
COMMON, RARE = 'COMPUTE_VOLUME_MULTI_ATTACH', 'CUSTOM_PERF_RARE'
SINGLE = 'CUSTOM_PERF_SINGLE'
RACKS = ('CUSTOM_PERF_RACK_A', 'CUSTOM_PERF_RACK_B')
CUSTOM_TRAITS = (RARE, SINGLE, *RACKS)

_SEED = 17
_NAMESPACE = uuid.UUID('6ba7b8f1-0000-4000-8000-000000000000')
_TIMESTAMP = datetime.datetime(2026, 1, 1)
# PERF: with batches of a tenth of this size, loading takes twice as long (MariaDB, 20,000 hosts,
# 2026-11).
ROWS_PER_BATCH = 25_000
_SHARING = 'MISC_SHARES_VIA_AGGREGATE'
# The tables are in this order, so that each inserted row refers only to existing rows.
TABLES = (
    models.projects,
    models.users,
    models.consumer_types,
    models.placement_aggregates,
    models.resource_providers,
    models.inventories,
    models.resource_provider_traits,
    models.resource_provider_aggregates,
    models.consumers,
    models.allocations,
)
WITH_GIVEN_IDS = TABLES[:5]  # Their rows have explicit ids, which do not advance the sequences.

Rows = dict[str, list[dict[str, Any]]]


@dataclass(frozen=True, slots=True)
class World:
    """The parameters of a test cloud."""

    kind: str
    hosts: int
    consumers: int = 10  # for each host
    devices: int = 8  # for each host of a pci world

    def host(self, number: int) -> str:
        """Return the UUID of a host; the number is taken modulo the number of hosts."""
        return name_based(f'host-{number % self.hosts:06d}')


def name_based(name: str) -> str:
    """Return a UUID that depends only on the name."""
    return str(uuid.uuid5(_NAMESPACE, name))


@dataclass(frozen=True, slots=True)
class Ids:
    """The ids of resource classes and traits by name, including the names of `CUSTOM_TRAITS`."""

    classes: Mapping[str, int]
    traits: Mapping[str, int]


def rows_of(world: World, ids: Ids) -> Iterator[Rows]:
    """Generate the rows of all tables in batches of hosts."""
    yield _shared_rows(world)
    cloud = _Cloud(world, ids)
    for number in range(world.hosts):
        cloud.add_host(number)
        if cloud.size() >= ROWS_PER_BATCH:
            yield cloud.take()
    yield cloud.take()


def _shared_rows(world: World) -> Rows:
    """Return the projects, users, consumer types and aggregates, to which other rows refer."""
    rows = _empty()
    for number in range(1, PROJECTS + 1):
        rows['projects'].append(_stamped(id=number, external_id=f'project-{number}'))
        rows['users'].append(_stamped(id=number, external_id=f'user-{number}'))
    rows['consumer_types'].append(_stamped(id=1, name='INSTANCE'))
    for number in range(1, AGGREGATES + world.hosts // SHARED_BY + 2):
        rows['placement_aggregates'].append(
            _stamped(id=number, uuid=name_based(f'aggregate-{number}'))
        )
    return rows


def _empty() -> Rows:
    return {table.name: [] for table in TABLES}


def _stamped(**values: Any) -> dict[str, Any]:
    return {**values, 'created_at': _TIMESTAMP, 'updated_at': _TIMESTAMP}


class _Cloud:
    """Generates the rows of the hosts."""

    def __init__(self, world: World, ids: Ids) -> None:
        self._world = world
        self._ids = ids
        self._random = random.Random(_SEED)
        self._rows = _empty()
        self._providers = 0
        self._consumers = 0
        self._disk = 0  # the id of the sharing provider of the current hosts

    def size(self) -> int:
        """Return the number of rows that were generated since the previous call of `take`."""
        return sum(map(len, self._rows.values()))

    def take(self) -> Rows:
        """Return the rows that were generated since the previous call."""
        rows, self._rows = self._rows, _empty()
        return rows

    def add_host(self, number: int) -> None:
        """Add a host with its child providers and consumers."""
        kind, unused = self._world.kind, number % 100 == 99
        if kind == 'shared' and number % SHARED_BY == 0:
            self._add_pool(number // SHARED_BY)
        name = f'host-{number:06d}'
        root = self._add(name)
        self._add_traits(root, COMMON, RACKS[number % 2], *([RARE] if number % 100 == 0 else []))
        if number == self._world.hosts - 1:
            self._add_traits(root, SINGLE)
        self._add_aggregate(root, 1 + number % AGGREGATES)
        processors, disk = [root], root
        if kind == 'numa':
            processors = self._add_nodes(name, root)
        elif kind == 'pci':
            for device in range(self._world.devices):
                self._add_inventory(self._add(f'{name}-device-{device}', root, root), DEVICE, 1)
        elif kind == 'shared':
            self._add_aggregate(root, AGGREGATES + 1 + number // SHARED_BY)
            disk = self._disk
        if disk == root:
            disk_size = self._unused_disk(number) if unused else 4000
            self._add_inventory(root, 'DISK_GB', disk_size, reserved=100)
        for provider in processors:
            self._add_inventory(provider, 'VCPU', 64 // len(processors), allocation_ratio=4.0)
            self._add_inventory(provider, 'MEMORY_MB', 262144 // len(processors), reserved=512)
        for _ in range(0 if unused else self._world.consumers):
            self._add_consumer(self._random.choice(processors), disk)

    def _unused_disk(self, number: int) -> int:
        if number == self._world.hosts - 1:
            return 3000
        return 2500 if number % 1000 == 999 else 2000

    def _add_pool(self, number: int) -> None:
        self._disk = self._add(f'pool-{number:04d}')
        self._add_traits(self._disk, _SHARING)
        self._add_aggregate(self._disk, AGGREGATES + 1 + number)
        self._add_inventory(self._disk, 'DISK_GB', 1_000_000)

    def _add_nodes(self, name: str, root: int) -> list[int]:
        nodes = []
        for node in range(2):
            nodes.append(self._add(f'{name}-node-{node}', root, root))
            self._add_traits(nodes[-1], 'HW_NUMA_ROOT')
            for card in range(2):
                interface = self._add(f'{name}-node-{node}-card-{card}', root, nodes[-1])
                self._add_inventory(interface, 'SRIOV_NET_VF', 8)
        return nodes

    def _add(self, name: str, root: int | None = None, parent: int | None = None) -> int:
        self._providers += 1
        self._rows['resource_providers'].append(
            _stamped(
                id=self._providers,
                uuid=name_based(name),
                name=name,
                generation=1,
                root_provider_id=root or self._providers,
                parent_provider_id=parent,
            )
        )
        return self._providers

    def _add_inventory(
        self,
        provider: int,
        resource_class: str,
        total: int,
        reserved: int = 0,
        allocation_ratio: float = 1.0,
    ) -> None:
        self._rows['inventories'].append(
            _stamped(
                resource_provider_id=provider,
                resource_class_id=self._ids.classes[resource_class],
                total=total,
                reserved=reserved,
                min_unit=1,
                max_unit=total,
                step_size=1,
                allocation_ratio=allocation_ratio,
            )
        )

    def _add_traits(self, provider: int, *traits: str) -> None:
        self._rows['resource_provider_traits'] += [
            _stamped(resource_provider_id=provider, trait_id=self._ids.traits[trait])
            for trait in traits
        ]

    def _add_aggregate(self, provider: int, aggregate: int) -> None:
        self._rows['resource_provider_aggregates'].append(
            _stamped(resource_provider_id=provider, aggregate_id=aggregate)
        )

    def _add_consumer(self, processors: int, disk: int) -> None:
        number, self._consumers = self._consumers, self._consumers + 1
        consumer = name_based(f'consumer-{number}')
        self._rows['consumers'].append(
            _stamped(
                uuid=consumer,
                project_id=1 + number % PROJECTS,
                user_id=1 + number // PROJECTS % PROJECTS,
                consumer_type_id=1,
                generation=1,
            )
        )
        for provider, resource_class, used in (
            (processors, 'VCPU', self._random.choice((1, 2, 4))),
            (processors, 'MEMORY_MB', self._random.choice((1024, 2048, 4096))),
            (disk, 'DISK_GB', self._random.choice((10, 20, 40))),
        ):
            self._rows['allocations'].append(
                _stamped(
                    resource_provider_id=provider,
                    consumer_id=consumer,
                    resource_class_id=self._ids.classes[resource_class],
                    used=used,
                )
            )
