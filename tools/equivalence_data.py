"""The requests that `equivalence.py` sends to both releases."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# The last microversion of the reference release.
LATEST = '1.39'
# The first and the last microversion, and the microversions that change the format of a response.
VERSIONS = (
    '1.0',
    '1.6',
    '1.8',
    '1.11',
    '1.12',
    '1.14',
    '1.17',
    '1.19',
    '1.28',
    '1.34',
    '1.38',
    LATEST,
)


@dataclass(frozen=True, slots=True)
class Step:
    """A request that changes data."""

    method: str
    path: str
    body: Any = None
    version: str = LATEST


def provider(number: int) -> str:
    """Return the uuid of a provider."""
    return f'00000000-0000-4000-8000-0000000000{number:02d}'


def consumer(number: int) -> str:
    """Return the uuid of a consumer."""
    return f'11111111-0000-4000-8000-0000000000{number:02d}'


def aggregate(number: int) -> str:
    """Return the uuid of an aggregate."""
    return f'22222222-0000-4000-8000-0000000000{number:02d}'


def _create(number: int, parent: int | None = None) -> Step:
    body: dict[str, Any] = {'uuid': provider(number), 'name': f'provider {number} \u00e4'}
    if parent:
        body['parent_provider_uuid'] = provider(parent)
    return Step('POST', '/resource_providers', body)


def _inventories(number: int, generation: int, **inventories: dict[str, Any]) -> Step:
    return Step(
        'PUT',
        f'/resource_providers/{provider(number)}/inventories',
        {'resource_provider_generation': generation, 'inventories': inventories},
    )


def _traits(number: int, generation: int, *names: str) -> Step:
    body = {'resource_provider_generation': generation, 'traits': list(names)}
    return Step('PUT', f'/resource_providers/{provider(number)}/traits', body)


def _aggregates(number: int, generation: int, *numbers: int) -> Step:
    body = {
        'resource_provider_generation': generation,
        'aggregates': [aggregate(each) for each in numbers],
    }
    return Step('PUT', f'/resource_providers/{provider(number)}/aggregates', body)


def _claim(
    number: int,
    amounts: dict[int, dict[str, int]],
    generation: int | None = None,
    kind: str = 'INSTANCE',
    project: str = 'project-a',
    user: str = 'user-a',
) -> Step:
    return Step(
        'PUT',
        f'/allocations/{consumer(number)}',
        {
            'allocations': {provider(rp): {'resources': rs} for rp, rs in amounts.items()},
            'project_id': project,
            'user_id': user,
            'consumer_generation': generation,
            'consumer_type': kind,
        },
    )


FILL = (
    Step('PUT', '/resource_classes/CUSTOM_GOLD', version='1.7'),
    Step('PUT', '/resource_classes/CUSTOM_SILVER', version='1.7'),
    Step('POST', '/resource_classes', {'name': 'CUSTOM_OLD'}, '1.2'),
    Step('PUT', '/traits/CUSTOM_FAST'),
    Step('PUT', '/traits/CUSTOM_LONELY'),
    *(_create(number) for number in (1, 2, 3)),
    _create(11, parent=1),
    _create(12, parent=1),
    _create(21, parent=11),
    _inventories(
        1,
        0,
        VCPU={'total': 16, 'allocation_ratio': 4.5, 'reserved': 2},
        MEMORY_MB={'total': 32768, 'step_size': 128, 'min_unit': 128, 'max_unit': 16384},
    ),
    _inventories(2, 0, VCPU={'total': 8}, MEMORY_MB={'total': 4096}, CUSTOM_GOLD={'total': 3}),
    _inventories(3, 0, DISK_GB={'total': 2000, 'reserved': 2000}),
    _inventories(11, 0, SRIOV_NET_VF={'total': 8}),
    _inventories(21, 0, CUSTOM_SILVER={'total': 5, 'allocation_ratio': 1.1}),
    _traits(1, 1, 'HW_CPU_X86_AVX2', 'CUSTOM_FAST'),
    _traits(3, 1, 'MISC_SHARES_VIA_AGGREGATE'),
    _aggregates(1, 2, 1, 2),
    _aggregates(2, 1, 1),
    _aggregates(3, 2, 1),
    _claim(1, {1: {'VCPU': 4, 'MEMORY_MB': 1024}, 11: {'SRIOV_NET_VF': 1}}),
    _claim(2, {2: {'VCPU': 2, 'CUSTOM_GOLD': 1}}, kind='MIGRATION', user='user-b'),
    _claim(3, {1: {'VCPU': 1}}, project='project-b'),
    Step(
        'PUT',
        f'/allocations/{consumer(4)}',
        {
            'allocations': [
                {'resource_provider': {'uuid': provider(2)}, 'resources': {'MEMORY_MB': 512}}
            ]
        },
        '1.0',
    ),
    Step(
        'PUT',
        f'/allocations/{consumer(5)}',
        {
            'allocations': {provider(21): {'resources': {'CUSTOM_SILVER': 2}}},
            'project_id': 'project-b',
            'user_id': 'user-c',
        },
        '1.12',
    ),
)

CHANGE = (
    Step('PUT', '/resource_classes/CUSTOM_OLD', {'name': 'CUSTOM_NEW'}, '1.2'),
    Step('PUT', '/resource_classes/CUSTOM_BRONZE', version='1.7'),
    Step('DELETE', '/traits/CUSTOM_LONELY'),
    Step('PUT', '/traits/CUSTOM_SLOW'),
    _create(4),
    _create(41, parent=4),
    Step(
        'PUT',
        f'/resource_providers/{provider(12)}',
        {'name': 'renamed', 'parent_provider_uuid': provider(2)},
    ),
    _inventories(4, 0, VCPU={'total': 4}, CUSTOM_BRONZE={'total': 7}),
    _inventories(41, 0, SRIOV_NET_VF={'total': 2}),
    _traits(4, 1, 'CUSTOM_SLOW', 'CUSTOM_FAST'),
    _aggregates(4, 2, 1, 3),
    # Move the allocations of a consumer that the other release created, with its current
    # generation.
    _claim(1, {4: {'VCPU': 2}, 41: {'SRIOV_NET_VF': 2}}, generation=1),
    _claim(6, {4: {'CUSTOM_BRONZE': 7}}, kind='OTHER', project='project-c'),
    Step('DELETE', f'/allocations/{consumer(3)}'),
    Step(
        'POST',
        '/allocations',
        {
            consumer(2): {
                'allocations': {},
                'project_id': 'project-a',
                'user_id': 'user-b',
                'consumer_generation': 1,
                'consumer_type': 'MIGRATION',
            },
            consumer(7): {
                'allocations': {provider(2): {'resources': {'VCPU': 2, 'CUSTOM_GOLD': 1}}},
                'project_id': 'project-a',
                'user_id': 'user-b',
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            },
        },
    ),
    _create(5),
    Step('DELETE', f'/resource_providers/{provider(5)}'),
)


def paths() -> Iterator[str]:
    """Generate the paths of all GET requests, which are sent before and after the change."""
    yield from ('/', '/resource_classes', '/traits', '/traits?name=startswith:CUSTOM_')
    yield from ('/traits?associated=true', '/resource_classes/CUSTOM_GOLD')
    yield from ('/resource_providers', '/resource_providers?resources=VCPU:1')
    yield f'/resource_providers?member_of={aggregate(1)}'
    yield f'/resource_providers?in_tree={provider(21)}'
    yield '/resource_providers?required=CUSTOM_FAST'
    for number in (1, 2, 3, 4, 5, 11, 12, 21, 41):
        yield f'/resource_providers/{provider(number)}'
        for part in ('inventories', 'usages', 'aggregates', 'traits', 'allocations'):
            yield f'/resource_providers/{provider(number)}/{part}'
    yield f'/resource_providers/{provider(1)}/inventories/VCPU'
    for number in range(1, 9):
        yield f'/allocations/{consumer(number)}'
    for project in ('a', 'b', 'c', 'd'):
        yield f'/usages?project_id=project-{project}'
    yield '/usages?project_id=project-a&user_id=user-b'
    yield '/usages?project_id=project-a&consumer_type=INSTANCE'
    yield '/usages?project_id=project-a&consumer_type=all'
    yield '/allocation_candidates?resources=VCPU:1,MEMORY_MB:256'
    yield '/allocation_candidates?resources=VCPU:1&required=CUSTOM_FAST'
    yield '/allocation_candidates?resources1=VCPU:1&resources2=SRIOV_NET_VF:1&group_policy=none'
