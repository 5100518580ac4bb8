"""The measured requests, queries and commands for each kind of world."""

from collections.abc import Callable, Iterator
from typing import Any
import uuid as uuid_lib

import orjson

from tools.perf.service import Request
from tools.perf.worlds import COMMON, DEVICE, RACKS, RARE, SINGLE, World, name_based

Send = Callable[[Request], bytes]
# A function that returns the requests of one repetition, which are measured together. The function
# itself sends all requests that prepare the measured requests.
Round = Callable[[Send, World, int], list[Request]]


# A function, or the path of a GET request. In the path, `{host}`, `{name}` and `{consumer}` are
# replaced with the values of a different host in each repetition.
Scenario = Round | str


def requests(scenario: Scenario, send: Send, world: World, number: int) -> list[Request]:
    """Return the requests of one repetition of a scenario."""
    if not isinstance(scenario, str):
        return scenario(send, world, number)
    host = number * 7 + 1
    values = {
        'host': world.host(host),
        'name': f'host-{host % world.hosts:06d}',
        'consumer': name_based(f'consumer-{host % (world.hosts * world.consumers // 2)}'),
    }
    return [Request('GET', scenario.format(**values))]


# Several runs can use the same database, so the names of new rows contain this id of the run.
_RUN = uuid_lib.uuid4().hex[:8]
_AMOUNTS = {'VCPU': 1, 'MEMORY_MB': 64, 'DISK_GB': 1}


def new(name: str, number: int | str) -> str:
    """Return the UUID of a provider or a consumer that this run creates."""
    return name_based(f'{name}-{_RUN}-{number}')


def claim_body(
    allocations: dict[str, Any], generation: int | None = None, project: str = 'project-1'
) -> dict[str, Any]:
    """Return the body of a claim; `allocations` are those of a candidate."""
    return {
        'allocations': allocations,
        'project_id': project,
        'user_id': 'user-1',
        'consumer_generation': generation,
        'consumer_type': 'INSTANCE',
    }


def _from(**amounts: dict[str, int]) -> dict[str, Any]:
    return {provider: {'resources': resources} for provider, resources in amounts.items()}


def claim(host: str, consumer: str, project: str = 'project-1') -> Request:
    """Return a request that claims small amounts from a host for a new consumer."""
    body = claim_body(_from(**{host: _AMOUNTS}), project=project)
    return Request('PUT', f'/allocations/{consumer}', body)


def _claim(_send: Send, world: World, number: int) -> list[Request]:
    return [claim(world.host(number), new('claim', number))]


def _first_claim(_send: Send, world: World, number: int) -> list[Request]:
    """Return a claim for a project that does not exist yet."""
    return [claim(world.host(number), new('first', number), f'new-project-{_RUN}-{number}')]


def _wide_claim(_send: Send, world: World, number: int) -> list[Request]:
    """Return a claim for resources of four providers in one tree."""
    host, card = f'host-{number % world.hosts:06d}', number // world.hosts % 2
    shares = {
        '': {'DISK_GB': 1},
        '-node-0': {'VCPU': 1, 'MEMORY_MB': 64},
        f'-node-0-card-{card}': {'SRIOV_NET_VF': 1},
        f'-node-1-card-{card}': {'SRIOV_NET_VF': 1},
    }
    body = claim_body(_from(**{name_based(host + name): one for name, one in shares.items()}))
    return [Request('PUT', f'/allocations/{new("wide", number)}', body)]


def _release(send: Send, world: World, number: int) -> list[Request]:
    consumer = new('release', number)
    send(claim(world.host(number), consumer))
    return [Request('DELETE', f'/allocations/{consumer}')]


def _move(send: Send, world: World, number: int) -> list[Request]:
    """Move the allocations of an instance to a migration; claim another host for the instance."""
    instance, here, there = new('instance', number), world.host(number), world.host(number + 1)
    send(claim(here, instance))
    body = {
        instance: claim_body(_from(**{there: _AMOUNTS}), 1),
        new('migration', number): claim_body(_from(**{here: _AMOUNTS})),
    }
    return [Request('POST', '/allocations', body)]


def _reshape(send: Send, _world: World, number: int) -> list[Request]:
    """Move VCPU and MEMORY_MB, with the allocations of ten consumers, to a new child provider."""
    root, child = new('reshaped', number), new('child', number)
    consumers = [new('consumer', f'{number}-{consumer}') for consumer in range(10)]
    send(Request('POST', '/resource_providers', {'name': root, 'uuid': root}))
    send(_put(root, 'inventories', 0, {name: {'total': 1_000_000} for name in _AMOUNTS}))
    claims = {consumer: claim_body(_from(**{root: _AMOUNTS})) for consumer in consumers}
    send(Request('POST', '/allocations', claims))
    node = {'name': child, 'uuid': child, 'parent_provider_uuid': root}
    send(Request('POST', '/resource_providers', node))
    moved = _from(**{root: {'DISK_GB': 1}, child: {'VCPU': 1, 'MEMORY_MB': 64}})
    generation = orjson.loads(send(Request('GET', f'/resource_providers/{root}')))['generation']
    body = {
        'inventories': {
            provider: {
                'resource_provider_generation': generation if provider == root else 0,
                'inventories': {
                    name: {'total': 1_000_000} for name in moved[provider]['resources']
                },
            }
            for provider in (root, child)
        },
        'allocations': {consumer: claim_body(moved, 1) for consumer in consumers},
    }
    return [Request('POST', '/reshaper', body)]


def _put(provider: str, part: str, generation: int, value: Any) -> Request:
    body = {'resource_provider_generation': generation, part: value}
    return Request('PUT', f'/resource_providers/{provider}/{part}', body)


def _register(_send: Send, _world: World, number: int) -> list[Request]:
    uuid = new('registered', number)
    inventories = {'VCPU': {'total': 8}, 'MEMORY_MB': {'total': 9999}, 'DISK_GB': {'total': 99}}
    return [
        Request('POST', '/resource_providers', {'name': f'host-{uuid}', 'uuid': uuid}),
        _put(uuid, 'inventories', 0, inventories),
        _put(uuid, 'traits', 1, ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2', 'COMPUTE_NODE']),
        _put(uuid, 'aggregates', 2, [new('aggregate', number)]),
    ]


_PLAIN = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10'
_LARGE = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:261000'


def devices(count: int, limit: int) -> str:
    """Return the path of a request for candidates with devices."""
    groups = ''.join(f'&resources_d{n}={DEVICE}:1' for n in range(count))
    return f'{_PLAIN}{groups}&group_policy=none&limit={limit}'


def limited(limit: int) -> str:
    """Return the path of a request for candidates without devices."""
    return f'{_PLAIN}&limit={limit}'


_AGGREGATE = name_based('aggregate-1')
_HOST = '/resource_providers/{host}'
_NODE = (
    '/allocation_candidates?resources=DISK_GB:10&resources1=VCPU:1,MEMORY_MB:1024'
    '&resources2=SRIOV_NET_VF:1&group_policy=none&same_subtree=1,2'
)
_CARDS = f'{_PLAIN}&resources1=SRIOV_NET_VF:1&resources2=SRIOV_NET_VF:1&group_policy=isolate'

_FIT = '/resource_providers?resources=VCPU:1'

# Kind of world -> name of a scenario -> scenario.
SCENARIOS: dict[str, dict[str, Scenario]] = {
    'flat': {
        'provider': _HOST,
        'provider: inventories': f'{_HOST}/inventories',
        'provider: usages': f'{_HOST}/usages',
        'provider: traits': f'{_HOST}/traits',
        'provider: aggregates': f'{_HOST}/aggregates',
        'provider: allocations': f'{_HOST}/allocations',
        'consumer: allocations': '/allocations/{consumer}',
        'resource classes': '/resource_classes',
        'traits': '/traits',
        'providers: all': '/resource_providers',
        'providers: by name': '/resource_providers?name={name}',
        'providers: that fit': f'{_FIT},MEMORY_MB:1024',
        'providers: that fit, trait': f'{_FIT}&required={RARE},!{RACKS[1]}',
        'project usages': '/usages?project_id=project-1',
        'project usages: one type': '/usages?project_id=project-1&consumer_type=INSTANCE',
        'candidates: limit=10': limited(10),
        'candidates: limit=1000': limited(1000),
        'candidates: no limit': _PLAIN,
        'candidates: common trait, limit=1000': f'{limited(1000)}&required={COMMON}',
        'candidates: rare trait, limit=10': f'{limited(10)}&required={RARE}',
        'candidates: rare trait, limit=1000': f'{limited(1000)}&required={RARE}',
        'candidates: trait of 1 host, limit=10': f'{limited(10)}&required={SINGLE}',
        'candidates: 1 aggregate of 20, limit=1000': f'{limited(1000)}&member_of={_AGGREGATE}',
        'candidates: 1 host in 100 fits, limit=10': f'{_LARGE}&limit=10',
        'candidates: 1 host in 1,000 fits, limit=10': f'{_LARGE},DISK_GB:2100&limit=10',
        'candidates: 1 host fits, limit=10': f'{_LARGE},DISK_GB:2600&limit=10',
        'candidates: nothing fits': f'{_LARGE},DISK_GB:3000&limit=1000',
        'claim': _claim,
        'claim, first of a project': _first_claim,
        'release': _release,
        'move': _move,
        'reshape, 10 consumers': _reshape,
        'register a host, 4 requests': _register,
    },
    'numa': {
        'candidates: node with card, limit=10': f'{_NODE}&limit=10',
        'candidates: node with card, limit=1000': f'{_NODE}&limit=1000',
        'candidates: two cards apart, limit=1000': f'{_CARDS}&limit=1000',
        'claim of 4 providers': _wide_claim,
    },
    'pci': {
        'candidates: 1 device, limit=1000': devices(1, 1000),
        'candidates: 3 devices, limit=1000': devices(3, 1000),
        'candidates: 8 devices, limit=1000': devices(8, 1000),
    },
    'shared': {
        'candidates: shared disk, limit=10': limited(10),
        'candidates: shared disk, limit=1000': limited(1000),
        'candidates: shared disk, no limit': _PLAIN,
    },
}
# The names of the scenarios that are measured on worlds with different numbers of hosts.
BY_HOSTS = (
    'provider: inventories',
    'providers: by name',
    'providers: that fit, trait',
    'providers: all',
    'project usages',
    'candidates: limit=10',
    'candidates: limit=1000',
    'candidates: rare trait, limit=10',
    'candidates: 1 host in 100 fits, limit=10',
    'candidates: nothing fits',
    'claim',
    'register a host, 4 requests',
)
# The names of the scenarios that are not measured with a million hosts: most of them return or read
# all hosts.
NOT_WITH_A_MILLION = (
    'resource classes',
    'traits',
    'providers: all',
    'providers: that fit',
    'providers: that fit, trait',
    'project usages',
    'project usages: one type',
    'candidates: no limit',
    'claim, first of a project',
    'move',
    'reshape, 10 consumers',
)

# The values of `limit`, the numbers of devices of a host, and the number of hosts with devices.
LIMITS = (1, 10, 30, 100, 300, 1000, 3000, 10000)
WIDTHS = (1, 2, 4, 8, 16, 32, 64)
WIDE_HOSTS = 100

# Commands ---------------------------------------------------------------------

# The racks and the rare trait exclude each other, so this requirement is never satisfied.
_IMPOSSIBLE = f'{RARE},!{RACKS[0]}'
# Kind of world -> a query without candidates, and one that fits about 20 times on a host with 10
# consumers.
_QUERIES = {
    'flat': (
        f'resources=VCPU:8,MEMORY_MB:16384,DISK_GB:100&required={COMMON},{_IMPOSSIBLE}'
        f'&member_of=!{name_based("aggregate-3")}',
        'resources=VCPU:4,MEMORY_MB:4096,DISK_GB:40',
    ),
    'numa': (
        'resources=DISK_GB:100&resources_1=VCPU:4,MEMORY_MB:8192&resources_2=VCPU:4,MEMORY_MB:8192'
        '&resources_N=SRIOV_NET_VF:2&required_1=HW_NUMA_ROOT&group_policy=isolate'
        f'&same_subtree=_1,_N&root_required={_IMPOSSIBLE}',
        'resources=DISK_GB:40&resources1=VCPU:4,MEMORY_MB:4096&resources2=SRIOV_NET_VF:1'
        '&group_policy=none',
    ),
    'pci': (
        f'resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40&resources1={DEVICE}:1&resources2={DEVICE}:1'
        f'&resources3={DEVICE}:1&group_policy=isolate&required={_IMPOSSIBLE}',
        f'resources=VCPU:4,MEMORY_MB:4096,DISK_GB:40&resources1={DEVICE}:1',
    ),
    'shared': (
        f'resources=VCPU:4,MEMORY_MB:8192,DISK_GB:40&required={_IMPOSSIBLE}',
        'resources=VCPU:4,MEMORY_MB:4096,DISK_GB:40',
    ),
}
# In every tree, each condition is satisfied alone, but not all together.
_TOGETHER = (
    'resources_1=VCPU:1&resources_2=VCPU:1&resources_3=VCPU:1'
    '&required_1=HW_NUMA_ROOT&required_2=HW_NUMA_ROOT&required_3=HW_NUMA_ROOT&group_policy=isolate'
)


def commands(kind: str) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the name and the arguments of each command for a kind of world."""
    impossible, possible = _QUERIES[kind]
    assumed = ('--assume', 'set:VCPU.allocation_ratio=8')
    yield 'explain', ('explain', impossible)
    yield 'explain --assume', ('explain', impossible, *assumed)
    if kind == 'numa':
        yield 'explain, no single reason', ('explain', _TOGETHER)
    yield 'headroom', ('headroom', possible)
    yield 'headroom --assume', ('headroom', possible, *assumed)
    yield 'drain', ('drain', 'host-000000')
    yield 'drain --each', ('drain', '--each')
    yield 'audit', ('audit',)
    yield 'report', ('report', 'report.html')
    yield 'exporter --once', ('exporter', '--once')
    yield 'export', ('export', 'cloud.jsonl')
    # The names of the commands that use the database with the imported rows contain "import".
    yield 'import', ('import', 'cloud.jsonl')
    # The statistics of the server do not include the imported rows yet.
    yield 'audit after the import', ('audit',)
