"""Every form of a request with a body, as it should be."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from placement.tests.functional.spoil.names import (
    AGGREGATE,
    CHILD,
    CONSUMER,
    HOST,
    NEWCOMER,
    NOBODY,
)

VERSIONS = [f'1.{minor}' for minor in range(40)]


class Generations(Protocol):
    """What somebody knows who tells the right generation."""

    def generation(self, uuid: str) -> int: ...

    def consumer_generation(self, uuid: str) -> int | None: ...


class Write(NamedTuple):
    """A request with a body, which is fine as it stands."""

    method: str
    path: str
    versions: list[str]
    body: Callable[[Generations], Any]


def between(first: int, last: int = 39) -> list[str]:
    return VERSIONS[first : last + 1]


def claim(now: Generations, consumer: str = NEWCOMER) -> dict[str, Any]:
    body = claim_134(now, consumer)
    return body | {'consumer_type': 'INSTANCE'}


def claim_134(now: Generations, consumer: str = NEWCOMER) -> dict[str, Any]:
    body = claim_128(now, consumer)
    return body | {'mappings': {'': [HOST], '_A': [CHILD]}}


def claim_128(now: Generations, consumer: str = NEWCOMER) -> dict[str, Any]:
    body = claim_112(now)
    return body | {'consumer_generation': now.consumer_generation(consumer)}


def claim_112(now: Generations) -> dict[str, Any]:
    return {
        'allocations': {
            HOST: {'resources': {'VCPU': 1, 'MEMORY_MB': 1}},
            CHILD: {'resources': {'VGPU': 1}, 'generation': 1},
        },
        'project_id': 'p',
        'user_id': 'u',
    }


def claim_100(now: Generations) -> dict[str, Any]:
    return {
        'allocations': [
            {'resource_provider': {'uuid': HOST}, 'resources': {'VCPU': 1, 'MEMORY_MB': 1}},
            {'resource_provider': {'uuid': CHILD}, 'resources': {'VGPU': 1}},
        ]
    }


def record() -> dict[str, Any]:
    return {
        'total': 2000,
        'reserved': 0,
        'min_unit': 1,
        'max_unit': 1000,
        'step_size': 1,
        'allocation_ratio': 1.0,
    }


def stock(now: Generations, uuid: str = HOST, name: str = 'VCPU') -> dict[str, Any]:
    inventories = {name: record(), 'MEMORY_MB': record(), 'DISK_GB': {'total': 3}}
    return {'resource_provider_generation': now.generation(uuid), 'inventories': inventories}


def reshaping(now: Generations) -> dict[str, Any]:
    return {
        'inventories': {HOST: stock(now), CHILD: stock(now, CHILD, 'VGPU')},
        'allocations': {CONSUMER: claim(now, CONSUMER), NEWCOMER: claim(now)},
    }


PROVIDER = f'/resource_providers/{HOST}'
WRITES = [
    Write('POST', '/resource_classes', between(2), lambda now: {'name': 'CUSTOM_A'}),
    Write('PUT', '/resource_classes/CUSTOM_A', between(2, 6), lambda now: {'name': 'CUSTOM_A'}),
    Write(
        'POST',
        '/resource_providers',
        between(14),
        lambda now: {'name': 'new', 'uuid': NOBODY, 'parent_provider_uuid': HOST},
    ),
    Write(
        'PUT',
        f'/resource_providers/{CHILD}',
        between(14),
        lambda now: {'name': 'child', 'parent_provider_uuid': HOST},
    ),
    Write(
        'POST',
        f'{PROVIDER}/inventories',
        between(0),
        lambda now: {'resource_class': 'PCPU', 'resource_provider_generation': 1} | record(),
    ),
    Write('PUT', f'{PROVIDER}/inventories', between(0), stock),
    Write(
        'PUT',
        f'{PROVIDER}/inventories/VCPU',
        between(0),
        lambda now: record() | {'resource_provider_generation': now.generation(HOST)},
    ),
    Write('PUT', f'{PROVIDER}/aggregates', between(1, 18), lambda now: [AGGREGATE]),
    Write(
        'PUT',
        f'{PROVIDER}/aggregates',
        between(19),
        lambda now: {
            'aggregates': [AGGREGATE],
            'resource_provider_generation': now.generation(HOST),
        },
    ),
    Write(
        'PUT',
        f'{PROVIDER}/traits',
        between(6),
        lambda now: {
            'traits': ['CUSTOM_T', 'HW_CPU_X86_VMX'],
            'resource_provider_generation': now.generation(HOST),
        },
    ),
    Write('PUT', f'/allocations/{NEWCOMER}', between(0, 7), claim_100),
    Write(
        'PUT',
        f'/allocations/{NEWCOMER}',
        between(8, 11),
        lambda now: claim_100(now) | {'project_id': 'p', 'user_id': 'u'},
    ),
    Write('PUT', f'/allocations/{NEWCOMER}', between(12, 27), claim_112),
    Write('PUT', f'/allocations/{NEWCOMER}', between(28, 33), claim_128),
    Write('PUT', f'/allocations/{NEWCOMER}', between(34, 37), claim_134),
    Write('PUT', f'/allocations/{NEWCOMER}', between(38), claim),
    Write('POST', '/allocations', between(13, 27), lambda now: {NEWCOMER: claim_112(now)}),
    Write(
        'POST',
        '/allocations',
        between(38),
        lambda now: {NEWCOMER: claim(now), CONSUMER: claim(now, CONSUMER)},
    ),
    Write('POST', '/reshaper', between(38), reshaping),
]
