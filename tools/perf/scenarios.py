"""The measured requests and commands of `scenarios.yaml`, and the functions that it names."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
import uuid as uuid_lib

import orjson
import yaml

from tools.perf.service import Request
from tools.perf.worlds import COMMON, DEVICE, RACKS, RARE, SINGLE, World, name_based

_DATA: dict[str, Any] = yaml.safe_load(Path(__file__).with_suffix('.yaml').read_text())
_PLAIN = '/allocation_candidates?resources=VCPU:1,MEMORY_MB:1024,DISK_GB:10'


def _devices(count: int) -> str:
    """Return the path of a request for candidates with devices."""
    groups = ''.join(f'&resources_d{n}={DEVICE}:1' for n in range(count))
    return f'{_PLAIN}{groups}&group_policy=none'


_VALUES = {
    'common': COMMON,
    'rare': RARE,
    'single': SINGLE,
    'rack': RACKS[1],
    'aggregate': name_based('aggregate-1'),
    'device': DEVICE,
    # The racks and the rare trait exclude each other, so this requirement is never satisfied.
    'impossible': f'{RARE},!{RACKS[0]}',
    'plain': _PLAIN,
    'large': '/allocation_candidates?resources=VCPU:1,MEMORY_MB:261000',
    'node': '/allocation_candidates?resources=DISK_GB:10&resources1=VCPU:1,MEMORY_MB:1024'
    '&resources2=SRIOV_NET_VF:1&group_policy=none&same_subtree=1,2',
    **{f'devices_{count}': _devices(count) for count in (1, 3, 8)},
}
Send = Callable[[Request], bytes]


def named(kind: str, million: bool = False) -> dict[str, str]:
    """Return the requests for a kind of world by name; `million`: only those of that set."""
    entries = _DATA[kind]['requests'].items()
    return {name: path for name, (path, *groups) in entries if not million or groups}


def commands(kind: str) -> dict[str, list[str]]:
    """Return the arguments of each command for a kind of world by the name of the command."""
    queries = {name: text.format(**_VALUES) for name, text in _queries(kind).items()}
    return {
        name: [one.format(**queries) for one in arguments]
        for name, arguments in _DATA['commands'].items()
        if 'together' in queries or '{together}' not in arguments
    }


def _queries(kind: str) -> dict[str, str]:
    entry = _DATA[kind]
    texts = {name: entry[name] for name in ('query', 'together') if name in entry}
    return texts | {'impossible_query': entry['impossible']}


def limited(limit: int) -> str:
    """Return the path of a request for candidates without devices."""
    return f'{_PLAIN}&limit={limit}'


def requests(scenario: str, send: Send, world: World, number: int) -> list[Request]:
    """Return the requests of one repetition, which are measured together.

    :param scenario: a path, or the name of a function, which sends what prepares the requests
    """
    if scenario in _WRITES:
        return _WRITES[scenario](send, world, number)
    host = number * 7 + 1
    values = {
        'provider': f'/resource_providers/{world.host(host)}',
        'name': f'host-{host % world.hosts:06d}',
        'consumer': name_based(f'consumer-{host % (world.hosts * world.consumers // 2)}'),
    }
    return [Request('GET', scenario.format(**_VALUES, **values))]


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


_WRITES = {
    'claim': _claim,
    'first_claim': _first_claim,
    'wide_claim': _wide_claim,
    'release': _release,
    'move': _move,
    'reshape': _reshape,
    'register': _register,
}
