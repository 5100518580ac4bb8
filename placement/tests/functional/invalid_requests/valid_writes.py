"""The valid writing requests with a body, in every form that a microversion introduced."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from placement.tests.functional.invalid_requests.values import (
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


_OWNER = {'project_id': 'p', 'user_id': 'u'}


def claim(now: Generations, consumer: str = NEW_CONSUMER) -> dict[str, Any]:
    """Return the body of a claim for microversion 1.38 and later."""
    return claim_134(now, consumer) | {'consumer_type': 'INSTANCE'}


def claim_134(now: Generations, consumer: str = NEW_CONSUMER) -> dict[str, Any]:
    """Return the body of a claim for 1.34 to 1.37."""
    return claim_128(now, consumer) | {'mappings': {'': [HOST], '_A': [CHILD]}}


def claim_128(now: Generations, consumer: str = NEW_CONSUMER) -> dict[str, Any]:
    """Return the body of a claim for 1.28 to 1.33."""
    return claim_112(now) | {'consumer_generation': now.consumer_generation(consumer)}


def claim_of_one_provider(now: Generations) -> dict[str, Any]:
    """Return the body of a claim for 1.28 to 1.37, which has a statement of its own."""
    return claim_128(now) | {'allocations': {HOST: {'resources': {'VCPU': 1, 'MEMORY_MB': 1}}}}


def claim_112(now: Generations) -> dict[str, Any]:
    """Return the body of a claim for 1.12 to 1.27."""
    return {
        'allocations': {
            HOST: {'resources': {'VCPU': 1, 'MEMORY_MB': 1}},
            CHILD: {'resources': {'VGPU': 1}, 'generation': 1},
        },
        **_OWNER,
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


def _generation(now: Generations, uuid: str = HOST) -> dict[str, int]:
    return {'resource_provider_generation': now.generation(uuid)}


def inventories(now: Generations, uuid: str = HOST, name: str = 'VCPU') -> dict[str, Any]:
    """Return the body that sets all inventories of a provider."""
    return {
        **_generation(now, uuid),
        'inventories': {name: inventory(), 'MEMORY_MB': inventory(), 'DISK_GB': {'total': 3}},
    }


def reshape(now: Generations) -> dict[str, Any]:
    """Return the body of POST /reshaper."""
    return {
        'inventories': {HOST: inventories(now), CHILD: inventories(now, CHILD, 'VGPU')},
        'allocations': {CONSUMER: claim(now, CONSUMER), NEW_CONSUMER: claim(now)},
    }


PROVIDER = f'/resource_providers/{HOST}'
_CLAIM = f'/allocations/{NEW_CONSUMER}'
WRITES = [
    Write(method, path, between(*versions), body)
    for method, path, versions, body in (
        ('POST', '/resource_classes', (2,), lambda now: {'name': 'CUSTOM_A'}),
        ('PUT', '/resource_classes/CUSTOM_A', (2, 6), lambda now: {'name': 'CUSTOM_A'}),
        (
            *('POST', '/resource_providers', (14,)),
            lambda now: {'name': 'new', 'uuid': NEW_PROVIDER, 'parent_provider_uuid': HOST},
        ),
        (
            *('PUT', f'/resource_providers/{CHILD}', (14,)),
            lambda now: {'name': 'child', 'parent_provider_uuid': HOST},
        ),
        (
            *('POST', f'{PROVIDER}/inventories', (0,)),
            lambda now: {'resource_class': 'PCPU', **_generation(now), **inventory()},
        ),
        ('PUT', f'{PROVIDER}/inventories', (0,), inventories),
        (
            *('PUT', f'{PROVIDER}/inventories/VCPU', (0,)),
            lambda now: {**inventory(), **_generation(now)},
        ),
        ('PUT', f'{PROVIDER}/aggregates', (1, 18), lambda now: [AGGREGATE]),
        (
            *('PUT', f'{PROVIDER}/aggregates', (19,)),
            lambda now: {'aggregates': [AGGREGATE], **_generation(now)},
        ),
        (
            *('PUT', f'{PROVIDER}/traits', (6,)),
            lambda now: {'traits': ['CUSTOM_T', 'HW_CPU_X86_VMX'], **_generation(now)},
        ),
        ('PUT', _CLAIM, (0, 7), claim_100),
        ('PUT', _CLAIM, (8, 11), lambda now: {**claim_100(now), **_OWNER}),
        ('PUT', _CLAIM, (12, 27), claim_112),
        ('PUT', _CLAIM, (28, 33), claim_128),
        ('PUT', _CLAIM, (34, 37), claim_134),
        ('PUT', _CLAIM, (38,), claim),
        ('PUT', _CLAIM, (28, 37), claim_of_one_provider),
        ('POST', '/allocations', (13, 27), lambda now: {NEW_CONSUMER: claim_112(now)}),
        (
            *('POST', '/allocations', (38,)),
            lambda now: {NEW_CONSUMER: claim(now), CONSUMER: claim(now, CONSUMER)},
        ),
        ('POST', '/reshaper', (38,), reshape),
    )
]
