"""The providers and the consumers of the demo cloud, which `tools/demo.py` registers.

The cloud is small, but each kind of host is different:

compute    flat hosts; three of them have no local disk and use a shared storage pool
numa       two NUMA nodes per host, each with a network card with SR-IOV
gpu        hosts with physical or virtual GPUs
baremetal  nodes that a consumer uses completely
storage    pools that share DISK_GB through an aggregate
network    a pool that shares IPV4_ADDRESS through an aggregate

The aggregates are availability zones, of which the east is nearly full, the hosts of one tenant and
of one rack, and the hosts that use a sharing provider. All names and UUIDs are fixed. See
`placement.tests.worlds` for the form of the drawing.
"""

import re
from typing import Any
import uuid

from placement.tests import worlds

_NAMESPACE = uuid.UUID('6ba7b8f1-0000-4000-8000-00000000de40')

_LOCAL = 'V: total 32 allocation_ratio 4.0, M: total 131072 reserved 4096'
_FLAT = f'{_LOCAL}, D: total 1000 reserved 50'
_NODE = 'PCPU:16, M: total 65536 reserved 2048 step_size 2'
_EGRESS, _INGRESS = (f'NET_BW_{direction}_KILOBIT_PER_SEC' for direction in ('EGR', 'IGR'))
_BANDWIDTH = 'total 25000000 step_size 1000'
_CARD = f'VF:8, {_EGRESS}: {_BANDWIDTH}, {_INGRESS}: {_BANDWIDTH}'
_AVX2, _AVX512, _SSD = 'HW_CPU_X86_AVX2', 'HW_CPU_X86_AVX512F', 'DISK_SSD'
_NUMA = '\n'.join(
    f"""\
{name}[D: total 2000 reserved 100] {{{_AVX2} {_SSD}}} @{zone}
  {name}-node-0[{_NODE}] {{HW_NUMA_ROOT}}
    {name}-node-0-card[{_CARD}] {{HW_NIC_SRIOV PHYSNET_DATA}}
  {name}-node-1[{_NODE}] {{HW_NUMA_ROOT}}
    {name}-node-1-card[{_CARD}] {{HW_NIC_SRIOV PHYSNET_STORAGE}}"""
    for name, zone in (('numa-01', 'az-north'), ('numa-02', 'az-north'), ('numa-03', 'az-south'))
)
# The last host is registered last, and has no allocations.
_PROVIDERS = f"""
compute-01[{_FLAT}] {{{_AVX2} {_AVX512} {_SSD}}} @az-east,tenant-research
compute-02[{_FLAT}] {{{_AVX2} {_AVX512} {_SSD}}} @az-east,network-01-hosts
compute-03[{_FLAT}] {{{_AVX2} {_SSD}}} @az-north,network-01-hosts
compute-04[{_FLAT}] {{{_AVX2} DISABLED {_SSD}}} @az-north
compute-05[{_LOCAL}] {{{_AVX2}}} @az-north,storage-01-hosts,network-01-hosts
compute-06[{_LOCAL}] {{{_AVX2}}} @az-south,rack-1,storage-01-hosts
compute-07[{_LOCAL}] {{{_AVX2}}} @az-south,storage-02-hosts
{_NUMA}
gpu-01[{_FLAT}] {{{_AVX2} {_SSD}}} @az-north,tenant-research
  gpu-01-device-0[PGPU:1] {{GPU_80GB}}
  gpu-01-device-1[PGPU:1] {{GPU_80GB}}
  gpu-01-device-2[PGPU:1] {{GPU_80GB}}
  gpu-01-device-3[PGPU:1] {{GPU_80GB}}
gpu-02[{_FLAT}] {{{_AVX2} {_SSD}}} @az-north,tenant-research
  gpu-02-device-0[VGPU:16] {{GPU_VIRTUAL}}
  gpu-02-device-1[VGPU:16] {{GPU_VIRTUAL}}
baremetal-01[CUSTOM_BAREMETAL_LARGE:1]
baremetal-02[CUSTOM_BAREMETAL_LARGE: total 1 reserved 1]
storage-01[D: total 40000 reserved 1000] {{SHARE}} @storage-01-hosts
storage-02[D: total 6000 reserved 200 step_size 10] {{SHARE}} @storage-02-hosts
network-01[IPV4_ADDRESS: total 254 reserved 2] {{SHARE}} @network-01-hosts
compute-08[{_FLAT}] {{{_AVX2} {_SSD}}} @az-south,rack-1
"""
# The name, the project, the user, the type, and the allocations of each consumer. Several
# consumers with the same allocations have numbers. An indented line continues the previous one.
_CONSUMERS = f"""
render-1..8 research carol INSTANCE compute-01[V:16, M:12288, D:80]
cache-1..7 web-shop alice INSTANCE compute-02[V:8, M:17408, D:80]
web-1..6 web-shop alice INSTANCE compute-03[V:4, M:8192, D:40]
build-1 tools dave INSTANCE compute-04[V:8, M:16384, D:100]
build-move-1 tools dave MIGRATION compute-04[V:8, M:16384, D:100]
shop-db-1..3 web-shop bob INSTANCE compute-05[V:8, M:32768] storage-01[D:2000]
mail-1..4 tools dave INSTANCE compute-06[V:4, M:8192] storage-01[D:500]
archive-1..10 tools dave INSTANCE compute-07[V:8, M:8192] storage-02[D:550]
gateway-1 telecom erin INSTANCE numa-01-node-0[PCPU:8, M:16384]
  numa-01-node-0-card[VF:2, {_EGRESS}:2000000, {_INGRESS}:2000000] numa-01[D:100]
gateway-2 telecom erin INSTANCE numa-01-node-1[PCPU:12, M:24576]
  numa-01-node-1-card[VF:4, {_EGRESS}:4000000, {_INGRESS}:4000000] numa-01[D:100]
gateway-3 telecom erin INSTANCE numa-02-node-0[PCPU:16, M:32768]
  numa-02-node-0-card[VF:3, {_EGRESS}:3000000, {_INGRESS}:3000000] numa-02[D:100]
gateway-4 telecom erin INSTANCE numa-02-node-1[PCPU:4, M:8192]
  numa-02-node-1-card[VF:8, {_EGRESS}:8000000, {_INGRESS}:8000000] numa-02[D:100]
gateway-5 telecom erin INSTANCE numa-03-node-0[PCPU:16, M:32768]
  numa-03-node-0-card[VF:1, {_EGRESS}:1000000, {_INGRESS}:1000000] numa-03[D:100]
gateway-6 telecom erin INSTANCE numa-03-node-1[PCPU:14, M:28672]
  numa-03-node-1-card[VF:1, {_EGRESS}:1000000, {_INGRESS}:1000000] numa-03[D:100]
training-1 research frank INSTANCE gpu-01[V:16, M:32768, D:200] gpu-01-device-0[PGPU:1]
training-2 research frank INSTANCE gpu-01[V:16, M:32768, D:200] gpu-01-device-1[PGPU:1]
desktop-1..2 research carol INSTANCE gpu-02[V:8, M:16384, D:100] gpu-02-device-0[VGPU:8]
desktop-3 research carol INSTANCE gpu-02[V:8, M:16384, D:100] gpu-02-device-1[VGPU:6]
metal-1 research carol INSTANCE baremetal-01[CUSTOM_BAREMETAL_LARGE:1]
reserved-addresses web-shop bob UNKNOWN network-01[IPV4_ADDRESS:40]
"""

PROVIDERS = worlds.World.of(_PROVIDERS).hosts
AGGREGATES = {aggregate for provider in PROVIDERS for aggregate in provider.aggregates}
# The allocation ratio of this host is reduced below its usage after the claims, which is legal.
REDUCED_HOST, REDUCED_RATIO = 'compute-07', 2.0


def uuid_of(name: str) -> str:
    """Return the UUID of a provider, an aggregate, or a consumer of the demo cloud."""
    return str(uuid.uuid5(_NAMESPACE, name))


def inventories(provider: worlds.Host) -> dict[str, dict[str, Any]]:
    """Return the inventories in a request. All amounts are multiples of the step size."""
    return {
        name: {
            **{key: value for key, value in inventory.items() if key != 'used'},
            'min_unit': inventory['step_size'],
            'max_unit': inventory['total'],
        }
        for name, inventory in provider.inventories.items()
    }


def consumers() -> dict[str, dict[str, Any]]:
    """Return the body of a request that claims the resources of all consumers."""
    bodies = {}
    for line in _CONSUMERS.replace('\n ', '').strip().splitlines():
        names, project, user, consumer_type, allocations = line.split(maxsplit=4)
        name, _, last = names.partition('1..')
        for number in range(1, int(last) + 1) if last else ('',):
            bodies[uuid_of(f'{name}{number}')] = {
                'allocations': {
                    uuid_of(provider): {'resources': _amounts(amounts)}
                    for provider, amounts in re.findall(r'(\S+)\[(.*?)\]', allocations)
                },
                'project_id': project,
                'user_id': user,
                'consumer_generation': None,
                'consumer_type': consumer_type,
            }
    return bodies


def _amounts(text: str) -> dict[str, int]:
    return {worlds.CLASSES.get(k, k): int(n) for k, n in re.findall(r'(\w+):(\d+)', text)}
