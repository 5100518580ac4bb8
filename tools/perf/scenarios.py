"""The measured requests for each kind of world."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import itertools
from typing import Any
import uuid as uuid_lib

import orjson

from tools.perf import worlds
from tools.perf.service import Request
from tools.perf.worlds import World, name_based

Send = Callable[[Request], bytes]
# A function that returns the requests of one repetition, which are measured together. The function
# itself sends all requests that prepare the measured requests.
Round = Callable[[Send, World, int], Sequence[Request]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A request, or several requests that are measured together, for a kind of world."""

    name: str
    kind: str
    prepare: Round


def _read(name: str, path: str, kind: str = 'flat') -> Scenario:
    """Return a scenario that consists of a single GET request.

    :param path: a path in which `{host}`, `{name}` and `{consumer}` are replaced with the values of
        a different host in each repetition
    """

    def prepare(_send: Send, world: World, number: int) -> Sequence[Request]:
        host = number * 7 + 1
        consumer = name_based(f'consumer-{host % (world.hosts * world.consumers // 2)}')
        name = f'host-{host % world.hosts:06d}'
        filled = path.format(host=world.host(host), name=name, consumer=consumer)
        return [Request('GET', filled)]

    return Scenario(name, kind, prepare)


def _claim_body(
    shares: dict[str, dict[str, int]], generation: int | None = None, project: str = 'project-1'
) -> dict[str, Any]:
    return {
        'allocations': {rp: {'resources': amounts} for rp, amounts in shares.items()},
        'project_id': project,
        'user_id': 'user-1',
        'consumer_generation': generation,
        'consumer_type': 'INSTANCE',
    }


# Several runs can use the same database, so the names of new rows contain this id of the run.
_RUN = uuid_lib.uuid4().hex[:8]
_AMOUNTS = {'VCPU': 1, 'MEMORY_MB': 64, 'DISK_GB': 1}


def claim(host: str, consumer: str) -> Request:
    """Return a request that claims small amounts from a host for a new consumer."""
    return Request('PUT', f'/allocations/{consumer}', _claim_body({host: _AMOUNTS}))


def _claim(_send: Send, world: World, number: int) -> Sequence[Request]:
    return [claim(world.host(number), name_based(f'claim-{_RUN}-{number}'))]


def _first_claim(_send: Send, world: World, number: int) -> Sequence[Request]:
    """Return a claim for a project that does not exist yet."""
    body = _claim_body({world.host(number): _AMOUNTS}, project=f'new-project-{_RUN}-{number}')
    return [Request('PUT', f'/allocations/{name_based(f"first-claim-{_RUN}-{number}")}', body)]


def _wide_claim(_send: Send, world: World, number: int) -> Sequence[Request]:
    """Return a claim for resources of four providers in one tree."""
    host = f'host-{number % world.hosts:06d}'
    shares = {
        name_based(host): {'DISK_GB': 1},
        name_based(f'{host}-node-0'): {'VCPU': 1, 'MEMORY_MB': 64},
        name_based(f'{host}-node-0-card-{number // world.hosts % 2}'): {'SRIOV_NET_VF': 1},
        name_based(f'{host}-node-1-card-{number // world.hosts % 2}'): {'SRIOV_NET_VF': 1},
    }
    uuid = name_based(f'wide-claim-{_RUN}-{number}')
    return [Request('PUT', f'/allocations/{uuid}', _claim_body(shares))]


def _release(send: Send, world: World, number: int) -> Sequence[Request]:
    path = f'/allocations/{name_based(f"release-{_RUN}-{number}")}'
    send(Request('PUT', path, _claim_body({world.host(number): _AMOUNTS})))
    return [Request('DELETE', path)]


def _move(send: Send, world: World, number: int) -> Sequence[Request]:
    """Move the allocations of an instance to a migration; claim another host for the instance."""
    instance, migration = (
        name_based(f'instance-{_RUN}-{number}'),
        name_based(f'migration-{_RUN}-{number}'),
    )
    here, there = {world.host(number): _AMOUNTS}, {world.host(number + 1): _AMOUNTS}
    send(Request('PUT', f'/allocations/{instance}', _claim_body(here)))
    body = {instance: _claim_body(there, generation=1), migration: _claim_body(here)}
    return [Request('POST', '/allocations', body)]


def _reshape(send: Send, _world: World, number: int) -> Sequence[Request]:
    """Move VCPU and MEMORY_MB, with the allocations of ten consumers, to a new child provider."""
    root, child = (
        name_based(f'reshaped-{_RUN}-{number}'),
        name_based(f'reshaped-{_RUN}-{number}-node'),
    )
    send(
        Request('POST', '/resource_providers', {'name': f'reshaped-{_RUN}-{number}', 'uuid': root})
    )
    inventories = {name: {'total': 1_000_000} for name in _AMOUNTS}
    send(Request('PUT', f'/resource_providers/{root}/inventories', _inventories_body(inventories)))
    consumers = [name_based(f'reshaped-{_RUN}-{number}-{consumer}') for consumer in range(10)]
    claims = {consumer: _claim_body({root: _AMOUNTS}) for consumer in consumers}
    send(Request('POST', '/allocations', claims))
    child_body = {'name': f'{child}-node', 'uuid': child, 'parent_provider_uuid': root}
    send(Request('POST', '/resource_providers', child_body))
    moved = {root: {'DISK_GB': 1}, child: {'VCPU': 1, 'MEMORY_MB': 64}}
    generation = orjson.loads(send(Request('GET', f'/resource_providers/{root}')))['generation']
    body = {
        'inventories': {
            root: _inventories_body({'DISK_GB': inventories['DISK_GB']}, generation),
            child: _inventories_body({name: inventories[name] for name in ('VCPU', 'MEMORY_MB')}),
        },
        'allocations': {consumer: _claim_body(moved, generation=1) for consumer in consumers},
    }
    return [Request('POST', '/reshaper', body)]


def _inventories_body(inventories: dict[str, Any], generation: int = 0) -> dict[str, Any]:
    return {'resource_provider_generation': generation, 'inventories': inventories}


def _register(_send: Send, _world: World, number: int) -> Sequence[Request]:
    uuid = name_based(f'registered-{_RUN}-{number}')
    path = f'/resource_providers/{uuid}'
    inventories = {'VCPU': {'total': 8}, 'MEMORY_MB': {'total': 9999}, 'DISK_GB': {'total': 99}}
    traits = {
        'resource_provider_generation': 1,
        'traits': ['HW_CPU_X86_AVX', 'HW_CPU_X86_AVX2', 'COMPUTE_NODE'],
    }
    aggregates = {
        'resource_provider_generation': 2,
        'aggregates': [name_based(f'registered-{_RUN}-{number}-aggregate')],
    }
    return [
        Request(
            'POST', '/resource_providers', {'name': f'registered-{_RUN}-{number}', 'uuid': uuid}
        ),
        Request('PUT', f'{path}/inventories', _inventories_body(inventories)),
        Request('PUT', f'{path}/traits', traits),
        Request('PUT', f'{path}/aggregates', aggregates),
    ]


_PLAIN = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10'
_LARGE = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:261000'


def devices(count: int, limit: int) -> str:
    """Return the path of a request for candidates with devices."""
    groups = ''.join(f'&resources_d{n}={worlds.DEVICE}:1' for n in range(count))
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

SCENARIOS: tuple[Scenario, ...] = (
    _read('provider', _HOST),
    _read('provider: inventories', f'{_HOST}/inventories'),
    _read('provider: usages', f'{_HOST}/usages'),
    _read('provider: traits', f'{_HOST}/traits'),
    _read('provider: aggregates', f'{_HOST}/aggregates'),
    _read('provider: allocations', f'{_HOST}/allocations'),
    _read('consumer: allocations', '/allocations/{consumer}'),
    _read('resource classes', '/resource_classes'),
    _read('traits', '/traits'),
    _read('providers: all', '/resource_providers'),
    _read('providers: by name', '/resource_providers?name={name}'),
    _read('providers: that fit', '/resource_providers?resources=VCPU:1,MEMORY_MB:1024'),
    _read(
        'providers: that fit, trait',
        f'/resource_providers?resources=VCPU:1&required={worlds.RARE},!{worlds.RACKS[1]}',
    ),
    _read('project usages', '/usages?project_id=project-1'),
    _read('project usages: one type', '/usages?project_id=project-1&consumer_type=INSTANCE'),
    _read('candidates: limit=10', limited(10)),
    _read('candidates: limit=1000', limited(1000)),
    _read('candidates: no limit', _PLAIN),
    _read('candidates: common trait, limit=1000', f'{limited(1000)}&required={worlds.COMMON}'),
    _read('candidates: rare trait, limit=10', f'{limited(10)}&required={worlds.RARE}'),
    _read('candidates: rare trait, limit=1000', f'{limited(1000)}&required={worlds.RARE}'),
    _read('candidates: trait of 1 host, limit=10', f'{limited(10)}&required={worlds.SINGLE}'),
    _read('candidates: 1 aggregate of 20, limit=1000', f'{limited(1000)}&member_of={_AGGREGATE}'),
    _read('candidates: 1 host in 100 fits, limit=10', f'{_LARGE}&limit=10'),
    _read('candidates: 1 host in 1,000 fits, limit=10', f'{_LARGE},DISK_GB:2100&limit=10'),
    _read('candidates: 1 host fits, limit=10', f'{_LARGE},DISK_GB:2600&limit=10'),
    _read('candidates: nothing fits', f'{_LARGE},DISK_GB:3000&limit=1000'),
    Scenario('claim', 'flat', _claim),
    Scenario('claim, first of a project', 'flat', _first_claim),
    Scenario('release', 'flat', _release),
    Scenario('move', 'flat', _move),
    Scenario('reshape, 10 consumers', 'flat', _reshape),
    Scenario('register a host, 4 requests', 'flat', _register),
    _read('candidates: node with card, limit=10', f'{_NODE}&limit=10', 'numa'),
    _read('candidates: node with card, limit=1000', f'{_NODE}&limit=1000', 'numa'),
    _read('candidates: two cards apart, limit=1000', f'{_CARDS}&limit=1000', 'numa'),
    Scenario('claim of 4 providers', 'numa', _wide_claim),
    _read('candidates: 1 device, limit=1000', devices(1, 1000), 'pci'),
    _read('candidates: 3 devices, limit=1000', devices(3, 1000), 'pci'),
    _read('candidates: 8 devices, limit=1000', devices(8, 1000), 'pci'),
    _read('candidates: shared disk, limit=10', limited(10), 'shared'),
    _read('candidates: shared disk, limit=1000', limited(1000), 'shared'),
    _read('candidates: shared disk, no limit', _PLAIN, 'shared'),
)


def named(text: str) -> list[Scenario]:
    """Return the scenarios for which 'kind: name' contains a text."""
    return [one for one in SCENARIOS if text in f'{one.kind}: {one.name}']


def read(name: str, path: str, kind: str) -> Scenario:
    """Return a scenario for a GET request that is not in `SCENARIOS`."""
    return _read(name, path, kind)


def kinds_of(scenarios: Sequence[Scenario]) -> list[tuple[str, list[Scenario]]]:
    """Return the scenarios grouped by kind of world, in the order of `worlds.KINDS`."""
    return [
        (kind, list(group))
        for kind, group in itertools.groupby(
            sorted(scenarios, key=lambda one: worlds.KINDS.index(one.kind)), lambda one: one.kind
        )
    ]
