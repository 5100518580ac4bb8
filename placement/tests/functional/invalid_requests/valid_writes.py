"""The valid writing requests with a body, in every form that a microversion introduced."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from placement.tests.functional.invalid_requests.uuids import (
    AGGREGATE,
    CHILD,
    CONSUMER,
    HOST,
    NEW_CONSUMER,
    NEW_PROVIDER,
)

VERSIONS = [f'1.{minor}' for minor in range(40)]


class Generations(Protocol):
    """Reads the generations that a valid request has to send."""

    def generation(self, uuid: str) -> int:
        """Return the generation of a provider."""

    def consumer_generation(self, uuid: str) -> int | None:
        """Return the generation of a consumer, None if it does not exist."""


@dataclass(frozen=True, slots=True)
class Write:
    """A valid writing request.

    :param versions: the microversions that accept this form
    :param body: returns the body for the current generations
    """

    method: str
    path: str
    versions: list[str]
    body: Callable[[Generations], Any]


def between(first: int, last: int = 39) -> list[str]:
    """Return the microversions from 1.first to 1.last, both included."""
    return VERSIONS[first : last + 1]


def claim(now: Generations, consumer: str = NEW_CONSUMER) -> dict[str, Any]:
    """Return the body of a claim for microversion 1.38 and later."""
    return claim_134(now, consumer) | {'consumer_type': 'INSTANCE'}


def claim_134(now: Generations, consumer: str = NEW_CONSUMER) -> dict[str, Any]:
    """Return the body of a claim for 1.34 to 1.37."""
    return claim_128(now, consumer) | {'mappings': {'': [HOST], '_A': [CHILD]}}


def claim_128(now: Generations, consumer: str = NEW_CONSUMER) -> dict[str, Any]:
    """Return the body of a claim for 1.28 to 1.33."""
    return claim_112(now) | {'consumer_generation': now.consumer_generation(consumer)}


def claim_112(now: Generations) -> dict[str, Any]:
    """Return the body of a claim for 1.12 to 1.27."""
    return {
        'allocations': {
            HOST: {'resources': {'VCPU': 1, 'MEMORY_MB': 1}},
            CHILD: {'resources': {'VGPU': 1}, 'generation': 1},
        },
        'project_id': 'p',
        'user_id': 'u',
    }


def claim_100(now: Generations) -> dict[str, Any]:
    """Return the body of a claim for 1.0 to 1.7."""
    return {
        'allocations': [
            {'resource_provider': {'uuid': HOST}, 'resources': {'VCPU': 1, 'MEMORY_MB': 1}},
            {'resource_provider': {'uuid': CHILD}, 'resources': {'VGPU': 1}},
        ]
    }


def inventory() -> dict[str, Any]:
    """Return an inventory with all its fields."""
    return {
        'total': 2000,
        'reserved': 0,
        'min_unit': 1,
        'max_unit': 1000,
        'step_size': 1,
        'allocation_ratio': 1.0,
    }


def inventories(now: Generations, uuid: str = HOST, name: str = 'VCPU') -> dict[str, Any]:
    """Return the body that sets all inventories of a provider."""
    return {
        'resource_provider_generation': now.generation(uuid),
        'inventories': {name: inventory(), 'MEMORY_MB': inventory(), 'DISK_GB': {'total': 3}},
    }


def reshape(now: Generations) -> dict[str, Any]:
    """Return the body of POST /reshaper."""
    return {
        'inventories': {HOST: inventories(now), CHILD: inventories(now, CHILD, 'VGPU')},
        'allocations': {CONSUMER: claim(now, CONSUMER), NEW_CONSUMER: claim(now)},
    }


PROVIDER = f'/resource_providers/{HOST}'
WRITES = [
    Write('POST', '/resource_classes', between(2), lambda now: {'name': 'CUSTOM_A'}),
    Write('PUT', '/resource_classes/CUSTOM_A', between(2, 6), lambda now: {'name': 'CUSTOM_A'}),
    Write(
        'POST',
        '/resource_providers',
        between(14),
        lambda now: {'name': 'new', 'uuid': NEW_PROVIDER, 'parent_provider_uuid': HOST},
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
        lambda now: {'resource_class': 'PCPU', 'resource_provider_generation': 1} | inventory(),
    ),
    Write('PUT', f'{PROVIDER}/inventories', between(0), inventories),
    Write(
        'PUT',
        f'{PROVIDER}/inventories/VCPU',
        between(0),
        lambda now: inventory() | {'resource_provider_generation': now.generation(HOST)},
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
    Write('PUT', f'/allocations/{NEW_CONSUMER}', between(0, 7), claim_100),
    Write(
        'PUT',
        f'/allocations/{NEW_CONSUMER}',
        between(8, 11),
        lambda now: claim_100(now) | {'project_id': 'p', 'user_id': 'u'},
    ),
    Write('PUT', f'/allocations/{NEW_CONSUMER}', between(12, 27), claim_112),
    Write('PUT', f'/allocations/{NEW_CONSUMER}', between(28, 33), claim_128),
    Write('PUT', f'/allocations/{NEW_CONSUMER}', between(34, 37), claim_134),
    Write('PUT', f'/allocations/{NEW_CONSUMER}', between(38), claim),
    Write('POST', '/allocations', between(13, 27), lambda now: {NEW_CONSUMER: claim_112(now)}),
    Write(
        'POST',
        '/allocations',
        between(38),
        lambda now: {NEW_CONSUMER: claim(now), CONSUMER: claim(now, CONSUMER)},
    ),
    Write('POST', '/reshaper', between(38), reshape),
]
