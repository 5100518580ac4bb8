"""The providers and the consumers of the demo cloud, which `tools/demo.py` registers.

The cloud is small, but each kind of host is different:

compute    flat hosts; three of them have no local disk and use a shared storage pool
numa       two NUMA nodes per host, each with a network card with SR-IOV
gpu        hosts with physical or virtual GPUs
baremetal  nodes that a consumer uses completely
storage    pools that share DISK_GB through an aggregate
network    a pool that shares IPV4_ADDRESS through an aggregate

All names and UUIDs are fixed.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
import uuid

_NAMESPACE = uuid.UUID('6ba7b8f1-0000-4000-8000-00000000de40')

BAREMETAL = 'CUSTOM_BAREMETAL_LARGE'
SSD, GPU_80GB, GPU_VIRTUAL = 'CUSTOM_DISK_SSD', 'CUSTOM_GPU_80GB', 'CUSTOM_GPU_VIRTUAL'
PHYSNETS = ('CUSTOM_PHYSNET_DATA', 'CUSTOM_PHYSNET_STORAGE')
CUSTOM_CLASSES = (BAREMETAL,)
CUSTOM_TRAITS = (SSD, GPU_80GB, GPU_VIRTUAL, *PHYSNETS)

AVX2, AVX512 = 'HW_CPU_X86_AVX2', 'HW_CPU_X86_AVX512F'
_SHARING = 'MISC_SHARES_VIA_AGGREGATE'

# Availability zones, of which the east is nearly full, the hosts of one tenant and of one rack, and
# the hosts that use a sharing provider.
NORTH, SOUTH, EAST = 'az-north', 'az-south', 'az-east'
TENANT, RACK = 'tenant-research', 'rack-1'
STORAGE_1, STORAGE_2, NETWORK = 'storage-01-hosts', 'storage-02-hosts', 'network-01-hosts'
AGGREGATES = (NORTH, SOUTH, EAST, TENANT, RACK, STORAGE_1, STORAGE_2, NETWORK)

Amounts = dict[str, int]


def uuid_of(name: str) -> str:
    """Return the UUID of a provider, an aggregate, or a consumer of the demo cloud."""
    return str(uuid.uuid5(_NAMESPACE, name))


@dataclass(frozen=True, slots=True)
class Inventory:
    """The inventory of one resource class."""

    total: int
    reserved: int = 0
    allocation_ratio: float = 1.0
    step_size: int = 1

    def body(self) -> dict[str, float]:
        """Return the representation in a request."""
        return {
            'total': self.total,
            'reserved': self.reserved,
            'min_unit': self.step_size,
            'max_unit': self.total,
            'step_size': self.step_size,
            'allocation_ratio': self.allocation_ratio,
        }


@dataclass(frozen=True, slots=True)
class Provider:
    """A resource provider. The aggregates are names, whose UUIDs `uuid_of` returns."""

    name: str
    inventories: dict[str, Inventory] = field(default_factory=dict)
    traits: tuple[str, ...] = ()
    aggregates: tuple[str, ...] = ()
    parent: str | None = None


@dataclass(frozen=True, slots=True)
class Consumer:
    """A consumer with its allocations by the name of the provider."""

    name: str
    project: str
    user: str
    allocations: dict[str, Amounts]
    type: str = 'INSTANCE'


# The allocation ratio of this host was reduced below its usage, which is legal.
REDUCED_HOST = 'compute-07'
_PROCESSORS, _REDUCED = Inventory(32, allocation_ratio=4.0), Inventory(32, allocation_ratio=2.0)
_MEMORY, _DISK = Inventory(131072, reserved=4096), Inventory(1000, reserved=50)


def providers() -> Iterator[Provider]:
    """Yield all providers but the last one, parents before children."""
    yield from _compute_hosts()
    for number, zone in enumerate((NORTH, NORTH, SOUTH), 1):
        yield from _numa_host(f'numa-{number:02d}', zone)
    yield from _gpu_hosts()
    for number, reserved in ((1, 0), (2, 1)):
        yield Provider(f'baremetal-{number:02d}', {BAREMETAL: Inventory(1, reserved)})
    yield from _sharing_providers()


def last_provider() -> Provider:
    """Return the provider that is registered last: a new host without allocations."""
    return _flat_host('compute-08', (AVX2,), (SOUTH, RACK))


def reduced_host() -> Provider:
    """Return the host with the allocation ratio that it has after the claims."""
    for provider in providers():
        if provider.name == REDUCED_HOST:
            return Provider(provider.name, {**provider.inventories, 'VCPU': _REDUCED})
    raise LookupError(REDUCED_HOST)


def _flat_host(name: str, traits: tuple[str, ...], aggregates: tuple[str, ...]) -> Provider:
    inventories = {'VCPU': _PROCESSORS, 'MEMORY_MB': _MEMORY, 'DISK_GB': _DISK}
    return Provider(name, inventories, (*traits, SSD), aggregates)


def _compute_hosts() -> Iterator[Provider]:
    yield _flat_host('compute-01', (AVX2, AVX512), (EAST, TENANT))
    yield _flat_host('compute-02', (AVX2, AVX512), (EAST, NETWORK))
    yield _flat_host('compute-03', (AVX2,), (NORTH, NETWORK))
    yield _flat_host('compute-04', (AVX2, 'COMPUTE_STATUS_DISABLED'), (NORTH,))
    for number, aggregates in (
        (5, (NORTH, STORAGE_1, NETWORK)),
        (6, (SOUTH, RACK, STORAGE_1)),
        (7, (SOUTH, STORAGE_2)),
    ):
        inventories = {'VCPU': _PROCESSORS, 'MEMORY_MB': _MEMORY}
        yield Provider(f'compute-{number:02d}', inventories, (AVX2,), aggregates)


def _numa_host(name: str, zone: str) -> Iterator[Provider]:
    yield Provider(name, {'DISK_GB': Inventory(2000, reserved=100)}, (AVX2, SSD), (zone,))
    for node, physnet in enumerate(PHYSNETS):
        node_name = f'{name}-node-{node}'
        yield Provider(
            node_name,
            {'PCPU': Inventory(16), 'MEMORY_MB': Inventory(65536, reserved=2048, step_size=2)},
            ('HW_NUMA_ROOT',),
            parent=name,
        )
        bandwidth = Inventory(25_000_000, step_size=1000)
        yield Provider(
            f'{node_name}-card',
            {
                'SRIOV_NET_VF': Inventory(8),
                'NET_BW_EGR_KILOBIT_PER_SEC': bandwidth,
                'NET_BW_IGR_KILOBIT_PER_SEC': bandwidth,
            },
            ('HW_NIC_SRIOV', physnet),
            parent=node_name,
        )


def _gpu_hosts() -> Iterator[Provider]:
    for name, resource_class, total, devices, trait in (
        ('gpu-01', 'PGPU', 1, 4, GPU_80GB),
        ('gpu-02', 'VGPU', 16, 2, GPU_VIRTUAL),
    ):
        yield _flat_host(name, (AVX2,), (NORTH, TENANT))
        for device in range(devices):
            inventories = {resource_class: Inventory(total)}
            yield Provider(f'{name}-device-{device}', inventories, (trait,), parent=name)


def _sharing_providers() -> Iterator[Provider]:
    for name, resource_class, inventory, aggregate in (
        ('storage-01', 'DISK_GB', Inventory(40_000, reserved=1000), STORAGE_1),
        ('storage-02', 'DISK_GB', Inventory(6000, reserved=200, step_size=10), STORAGE_2),
        ('network-01', 'IPV4_ADDRESS', Inventory(254, reserved=2), NETWORK),
    ):
        yield Provider(name, {resource_class: inventory}, (_SHARING,), (aggregate,))


def consumers() -> Iterator[Consumer]:
    """Yield all consumers."""
    yield from _flat('render', 8, 'compute-01', 'research', 'carol', _amounts(16, 12288, 80))
    yield from _flat('cache', 7, 'compute-02', 'web-shop', 'alice', _amounts(8, 17408, 80))
    yield from _flat('web', 6, 'compute-03', 'web-shop', 'alice', _amounts(4, 8192, 40))
    yield from _flat('build', 1, 'compute-04', 'tools', 'dave', _amounts(8, 16384, 100))
    yield from _flat(
        'build-move', 1, 'compute-04', 'tools', 'dave', _amounts(8, 16384, 100), 'MIGRATION'
    )
    for name, count, host, pool, project, user, amounts in (
        ('shop-db', 3, 'compute-05', 'storage-01', 'web-shop', 'bob', _amounts(8, 32768, 2000)),
        ('mail', 4, 'compute-06', 'storage-01', 'tools', 'dave', _amounts(4, 8192, 500)),
        ('archive', 10, 'compute-07', 'storage-02', 'tools', 'dave', _amounts(8, 8192, 550)),
    ):
        yield from _diskless(name, count, host, pool, project, user, amounts)
    yield from _on_numa_nodes()
    yield from _with_gpus()
    yield Consumer('metal-1', 'research', 'carol', {'baremetal-01': {BAREMETAL: 1}})
    yield Consumer(
        'reserved-addresses', 'web-shop', 'bob', {'network-01': {'IPV4_ADDRESS': 40}}, 'UNKNOWN'
    )


def _amounts(processors: int, memory: int, disk: int) -> Amounts:
    return {'VCPU': processors, 'MEMORY_MB': memory, 'DISK_GB': disk}


def _flat(
    name: str,
    count: int,
    host: str,
    project: str,
    user: str,
    amounts: Amounts,
    consumer_type: str = 'INSTANCE',
) -> Iterator[Consumer]:
    for number in range(1, count + 1):
        yield Consumer(f'{name}-{number}', project, user, {host: amounts}, consumer_type)


def _diskless(
    name: str, count: int, host: str, pool: str, project: str, user: str, amounts: Amounts
) -> Iterator[Consumer]:
    local = {name: amount for name, amount in amounts.items() if name != 'DISK_GB'}
    for number in range(1, count + 1):
        allocations = {host: local, pool: {'DISK_GB': amounts['DISK_GB']}}
        yield Consumer(f'{name}-{number}', project, user, allocations)


def _on_numa_nodes() -> Iterator[Consumer]:
    for number, node, processors, interfaces in (
        (1, 'numa-01-node-0', 8, 2),
        (2, 'numa-01-node-1', 12, 4),
        (3, 'numa-02-node-0', 16, 3),
        (4, 'numa-02-node-1', 4, 8),
        (5, 'numa-03-node-0', 16, 1),
        (6, 'numa-03-node-1', 14, 1),
    ):
        yield Consumer(
            f'gateway-{number}',
            'telecom',
            'erin',
            {
                node: {'PCPU': processors, 'MEMORY_MB': processors * 2048},
                f'{node}-card': {
                    'SRIOV_NET_VF': interfaces,
                    'NET_BW_EGR_KILOBIT_PER_SEC': interfaces * 1_000_000,
                    'NET_BW_IGR_KILOBIT_PER_SEC': interfaces * 1_000_000,
                },
                node.partition('-node-')[0]: {'DISK_GB': 100},
            },
        )


def _with_gpus() -> Iterator[Consumer]:
    for number in (1, 2):
        yield Consumer(
            f'training-{number}',
            'research',
            'frank',
            {
                'gpu-01': _amounts(16, 32768, 200),
                f'gpu-01-device-{number - 1}': {'PGPU': 1},
            },
        )
    for number, device, units in ((1, 0, 8), (2, 0, 8), (3, 1, 6)):
        yield Consumer(
            f'desktop-{number}',
            'research',
            'carol',
            {
                'gpu-02': _amounts(8, 16384, 100),
                f'gpu-02-device-{device}': {'VGPU': units},
            },
        )
