"""Random worlds, which requests to the API create, and what the API says about them."""

from collections.abc import Mapping
import random
from typing import Any, Protocol
import uuid

import os_traits
from prometheus_client import parser

# The keys are the name of the metric and the values of its labels.
Samples = dict[tuple[str, ...], float]

_CLASSES = ('VCPU', 'MEMORY_MB', 'DISK_GB', 'SRIOV_NET_VF', 'CUSTOM_FPGA')
# Characters that the text format escapes, and characters outside of ASCII.
_NAMES = (
    'host-',
    'a "b" ',
    'back\\slash ',
    'new\nline ',
    'tab\t',
    'größe ',
    '計算 ',
    '🖥 ',
    '{x="y"} ',
)
_RATIOS = (1.0, 1.0, 1.0, 1.5, 4.0, 16.0, 0.7, 1.15, 0.123456, 1.1e-05, 123456.0)
_MAX_UNIT = 2147483647
_PROJECTS = ('red', 'blue')
_ZONES = tuple(str(uuid.UUID(int=number)) for number in (1, 2))


class Client(Protocol):
    """Sends requests to the API."""

    def send(self, method: str, path: str, body: Any = None) -> Any: ...
    def send_ok(self, method: str, path: str, body: Any = None) -> Any: ...


def create(client: Client, seed: int, providers: int) -> None:
    """Create providers with inventories and allocations.

    The usage of some inventories exceeds their capacity.
    """
    rng = random.Random(seed)
    client.send_ok('PUT', '/resource_classes/CUSTOM_FPGA')
    uuids: list[str] = []
    inventories: dict[str, dict[str, Any]] = {}
    for number in range(providers):
        uuid_ = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        body = {'name': f'{rng.choice(_NAMES)}{seed}-{number}', 'uuid': uuid_}
        if uuids and rng.random() < 0.4:
            body['parent_provider_uuid'] = rng.choice(uuids)
        client.send_ok('POST', '/resource_providers', body)
        uuids.append(uuid_)
        classes = rng.sample(_CLASSES, rng.choice((0, 1, 2, 3, 3)))
        inventories[uuid_] = {name: _inventory(rng) for name in classes}
        put_inventories(client, uuid_, 0, inventories[uuid_])
    _claim(client, rng, inventories, providers)
    for uuid_ in rng.sample(uuids, providers // 2):
        _change(client, rng, uuid_)
        _link(client, rng, uuid_)


def _link(client: Client, rng: random.Random, provider: str) -> None:
    """Add the trait that disables a host, and aggregates."""
    path = f'/resource_providers/{provider}'
    for name, values in (('traits', (os_traits.COMPUTE_STATUS_DISABLED,)), ('aggregates', _ZONES)):
        generation = client.send_ok('GET', path)['generation']
        chosen = rng.sample(values, rng.randint(0, len(values)))
        body = {name: chosen, 'resource_provider_generation': generation}
        client.send_ok('PUT', f'{path}/{name}', body)


def _inventory(rng: random.Random) -> dict[str, Any]:
    total = rng.choice((1, 8, 64, 4000, 262144, 10**9, _MAX_UNIT))
    return {
        'total': total,
        'reserved': rng.choice((0, 0, 0, 0, 1, total // 10, total // 2, total)),
        'allocation_ratio': rng.choice(_RATIOS),
    }


def put_inventories(
    client: Client, provider: str, generation: int, inventories: Mapping[str, Any]
) -> None:
    """Replace the inventories of a provider."""
    body = {'resource_provider_generation': generation, 'inventories': inventories}
    client.send_ok('PUT', f'/resource_providers/{provider}/inventories', body)


def _claim(
    client: Client, rng: random.Random, inventories: Mapping[str, Mapping[str, Any]], count: int
) -> None:
    """Send claims, of which Placement refuses those that do not fit."""
    owned = [one for one, by_class in inventories.items() if by_class]
    for _ in range(2 * count):
        allocations: dict[str, Any] = {}
        for provider in rng.sample(owned, min(len(owned), rng.choice((1, 1, 2, 3)))):
            by_class = inventories[provider]
            classes = rng.sample(sorted(by_class), rng.randint(1, len(by_class)))
            allocations[provider] = {
                'resources': {name: _amount(rng, by_class[name]) for name in classes}
            }
        consumer = uuid.UUID(int=rng.getrandbits(128), version=4)
        body = {
            'allocations': allocations,
            'project_id': rng.choice(_PROJECTS),
            'user_id': 'user',
            'consumer_generation': None,
            'consumer_type': rng.choice(('INSTANCE', 'MIGRATION')),
        }
        client.send('PUT', f'/allocations/{consumer}', body)


def _amount(rng: random.Random, inventory: Mapping[str, Any]) -> int:
    capacity = (inventory['total'] - inventory['reserved']) * inventory['allocation_ratio']
    return rng.randint(1, max(1, min(int(capacity), _MAX_UNIT) // 2))


def _change(client: Client, rng: random.Random, provider: str) -> None:
    """Reduce the inventories of a provider, also below their usage."""
    path = f'/resource_providers/{provider}/inventories'
    document = client.send_ok('GET', path)
    for inventory in document['inventories'].values():
        inventory['total'] = max(1, inventory['total'] // rng.choice((2, 100)))
        inventory['reserved'] = 0
    put_inventories(
        client, provider, document['resource_provider_generation'], document['inventories']
    )


def expected(client: Client) -> Samples:
    """Return the metrics that follow from responses of the API."""
    samples: Samples = {('placement_up',): 1}
    consumers: set[str] = set()
    allocations = 0
    providers = client.send_ok('GET', '/resource_providers')['resource_providers']
    for provider in providers:
        path = f'/resource_providers/{provider["uuid"]}'
        inventories = client.send_ok('GET', f'{path}/inventories')['inventories']
        usages = client.send_ok('GET', f'{path}/usages')['usages']
        for name, inventory in inventories.items():
            total, reserved = inventory['total'], inventory['reserved']
            ratio = inventory['allocation_ratio']
            for metric, value in (
                ('openstack_placement_resource_total', total),
                ('openstack_placement_resource_reserved', reserved),
                ('openstack_placement_resource_allocation_ratio', ratio),
                ('openstack_placement_resource_usage', usages[name]),
                ('openstack_placement_resource_generation', provider['generation']),
                ('placement_resource_capacity', int((total - reserved) * ratio)),
            ):
                samples[metric, provider['name'], name] = value
        by_consumer = client.send_ok('GET', f'{path}/allocations')['allocations']
        _expect_links(client, provider, path, samples)
        consumers |= by_consumer.keys()
        allocations += sum(len(one['resources']) for one in by_consumer.values())
    for project in _PROJECTS:
        usages = client.send_ok('GET', f'/usages?project_id={project}&consumer_type=all')['usages']
        for name, used in usages.get('all', {}).items():
            if name != 'consumer_count':
                samples['placement_project_usage', project, name] = used
    samples['placement_providers',] = len(providers)
    samples['placement_consumers',] = len(consumers)
    samples['placement_allocations',] = allocations
    return samples


def _expect_links(client: Client, provider: Any, path: str, samples: Samples) -> None:
    root = client.send_ok('GET', f'/resource_providers/{provider["root_provider_uuid"]}')
    traits = client.send_ok('GET', f'/resource_providers/{root["uuid"]}/traits')['traits']
    disabled = str(os_traits.COMPUTE_STATUS_DISABLED in traits).lower()
    key = 'placement_provider_info', disabled, provider['name'], root['name'], provider['uuid']
    samples[key] = 1
    for aggregate in client.send_ok('GET', f'{path}/aggregates')['aggregates']:
        samples['placement_provider_aggregate', aggregate, provider['name']] = 1


def candidate_capacities(client: Client) -> Samples:
    """Return the capacities that responses to GET /allocation_candidates contain."""
    providers = client.send_ok('GET', '/resource_providers')['resource_providers']
    names = {provider['uuid']: provider['name'] for provider in providers}
    samples: Samples = {}
    for class_ in _CLASSES:
        document = client.send_ok('GET', f'/allocation_candidates?resources={class_}:1')
        for uuid_, summary in document['provider_summaries'].items():
            for name, one in summary['resources'].items():
                samples['placement_resource_capacity', names[uuid_], name] = one['capacity']
                samples['openstack_placement_resource_usage', names[uuid_], name] = one['used']
    return samples


def parse(text: str) -> Samples:
    """Return the samples in a text of metrics.

    :raises ValueError: the text is malformed, or contains a sample twice
    """
    samples: Samples = {}
    for family in parser.text_string_to_metric_families(text):
        for sample in family.samples:
            labels = (sample.labels[name] for name in sorted(sample.labels))
            key = sample.name, *labels
            if key in samples:
                raise ValueError(f'The sample {key} is repeated')
            samples[key] = sample.value
    return samples
