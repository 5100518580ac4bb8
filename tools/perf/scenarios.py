"""What is asked of each world."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
import itertools
from typing import Any
import uuid as uuid_lib

import orjson

from tools.perf import worlds
from tools.perf.service import Request
from tools.perf.worlds import World, name_based

Ask = Callable[[Request], bytes]
# Gives the requests that are measured together; what has to be there before, it asks for itself.
Round = Callable[[Ask, World, int], Sequence[Request]]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A request, or a few that belong together, on a kind of world."""

    name: str
    kind: str
    prepare: Round


def _read(name: str, path: str, kind: str = 'flat') -> Scenario:
    """A GET. `{host}` in the path becomes the uuid of a host, another one each round."""

    def prepare(ask: Ask, world: World, number: int) -> Sequence[Request]:
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


# A database may be measured on again: what was made there keeps its names.
_RUN = uuid_lib.uuid4().hex[:8]
_AMOUNTS = {'VCPU': 1, 'MEMORY_MB': 64, 'DISK_GB': 1}


def claim(host: str, consumer: str) -> Request:
    """A small claim of a new consumer."""
    return Request('PUT', f'/allocations/{consumer}', _claim_body({host: _AMOUNTS}))


def _claim(ask: Ask, world: World, number: int) -> Sequence[Request]:
    return [claim(world.host(number), name_based(f'claim-{_RUN}-{number}'))]


def _first_claim(ask: Ask, world: World, number: int) -> Sequence[Request]:
    """The first claim of a project that Placement has not heard of."""
    body = _claim_body({world.host(number): _AMOUNTS}, project=f'new-project-{_RUN}-{number}')
    return [Request('PUT', f'/allocations/{name_based(f"first-claim-{_RUN}-{number}")}', body)]


def _wide_claim(ask: Ask, world: World, number: int) -> Sequence[Request]:
    """A claim of four providers of one tree."""
    host = f'host-{number % world.hosts:06d}'
    shares = {
        name_based(host): {'DISK_GB': 1},
        name_based(f'{host}-node-0'): {'VCPU': 1, 'MEMORY_MB': 64},
        name_based(f'{host}-node-0-card-{number // world.hosts % 2}'): {'SRIOV_NET_VF': 1},
        name_based(f'{host}-node-1-card-{number // world.hosts % 2}'): {'SRIOV_NET_VF': 1},
    }
    uuid = name_based(f'wide-claim-{_RUN}-{number}')
    return [Request('PUT', f'/allocations/{uuid}', _claim_body(shares))]


def _release(ask: Ask, world: World, number: int) -> Sequence[Request]:
    path = f'/allocations/{name_based(f"release-{_RUN}-{number}")}'
    ask(Request('PUT', path, _claim_body({world.host(number): _AMOUNTS})))
    return [Request('DELETE', path)]


def _move(ask: Ask, world: World, number: int) -> Sequence[Request]:
    """An instance gets another host, and its migration what it had on the first."""
    instance, migration = (
        name_based(f'instance-{_RUN}-{number}'),
        name_based(f'migration-{_RUN}-{number}'),
    )
    here, there = {world.host(number): _AMOUNTS}, {world.host(number + 1): _AMOUNTS}
    ask(Request('PUT', f'/allocations/{instance}', _claim_body(here)))
    body = {instance: _claim_body(there, generation=1), migration: _claim_body(here)}
    return [Request('POST', '/allocations', body)]


def _reshape(ask: Ask, world: World, number: int) -> Sequence[Request]:
    """Processors and memory go from a host to a new child, with the claims of ten consumers."""
    root, child = (
        name_based(f'reshaped-{_RUN}-{number}'),
        name_based(f'reshaped-{_RUN}-{number}-node'),
    )
    ask(Request('POST', '/resource_providers', {'name': f'reshaped-{_RUN}-{number}', 'uuid': root}))
    stock = {name: {'total': 1_000_000} for name in _AMOUNTS}
    ask(Request('PUT', f'/resource_providers/{root}/inventories', _stock_body(stock)))
    consumers = [name_based(f'reshaped-{_RUN}-{number}-{consumer}') for consumer in range(10)]
    claims = {consumer: _claim_body({root: _AMOUNTS}) for consumer in consumers}
    ask(Request('POST', '/allocations', claims))
    below = {'name': f'{child}-node', 'uuid': child, 'parent_provider_uuid': root}
    ask(Request('POST', '/resource_providers', below))
    moved = {root: {'DISK_GB': 1}, child: {'VCPU': 1, 'MEMORY_MB': 64}}
    generation = orjson.loads(ask(Request('GET', f'/resource_providers/{root}')))['generation']
    body = {
        'inventories': {
            root: _stock_body({'DISK_GB': stock['DISK_GB']}, generation),
            child: _stock_body({name: stock[name] for name in ('VCPU', 'MEMORY_MB')}),
        },
        'allocations': {consumer: _claim_body(moved, generation=1) for consumer in consumers},
    }
    return [Request('POST', '/reshaper', body)]


def _stock_body(records: dict[str, Any], generation: int = 0) -> dict[str, Any]:
    return {'resource_provider_generation': generation, 'inventories': records}


def _register(ask: Ask, world: World, number: int) -> Sequence[Request]:
    uuid = name_based(f'registered-{_RUN}-{number}')
    path = f'/resource_providers/{uuid}'
    stock = {'VCPU': {'total': 8}, 'MEMORY_MB': {'total': 9999}, 'DISK_GB': {'total': 99}}
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
        Request('PUT', f'{path}/inventories', _stock_body(stock)),
        Request('PUT', f'{path}/traits', traits),
        Request('PUT', f'{path}/aggregates', aggregates),
    ]


_PLAIN = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10'
_LARGE = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:261000'


def devices(count: int, limit: int) -> str:
    """The path that asks for a server with devices."""
    groups = ''.join(f'&resources_d{n}={worlds.DEVICE}:1' for n in range(count))
    return f'{_PLAIN}{groups}&group_policy=none&limit={limit}'


def limited(limit: int) -> str:
    """The path that asks for some hosts for a plain server."""
    return f'{_PLAIN}&limit={limit}'


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
    _read('candidates: 1 host in 100 fits, limit=10', f'{_LARGE}&limit=10'),
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
    """The scenarios whose kind and name, written 'kind: name', have this text in them."""
    return [one for one in SCENARIOS if text in f'{one.kind}: {one.name}']


def read(name: str, path: str, kind: str) -> Scenario:
    """A scenario of somebody else."""
    return _read(name, path, kind)


def kinds_of(scenarios: Sequence[Scenario]) -> list[tuple[str, list[Scenario]]]:
    """The scenarios by the kind of world that they are asked of, in the order of the worlds."""
    return [
        (kind, list(group))
        for kind, group in itertools.groupby(
            sorted(scenarios, key=lambda one: worlds.KINDS.index(one.kind)), lambda one: one.kind
        )
    ]
