"""Worlds that requests create."""

from collections import defaultdict
import itertools
from typing import Any, Protocol

from placement.tests import worlds

_FIELDS = ('total', 'reserved', 'min_unit', 'max_unit', 'step_size', 'allocation_ratio')
_NEWEST = str(worlds.NEWEST)


class Client(Protocol):
    """Sends requests to the API."""

    def send_ok(self, method: str, path: str, body: Any = None, version: str = ...) -> Any: ...


def create(client: Client, world: worlds.World) -> None:
    """Create the classes, traits, providers and consumers of a world.

    The usage that no consumer of the world explains is that of one consumer for each provider.
    """
    used = {name for host in world.hosts for name in host.inventories}
    for kind, names in (('resource_classes', used), ('traits', world.ids.traits)):
        for name in sorted(names):
            if name.startswith('CUSTOM_'):
                client.send_ok('PUT', f'/{kind}/{name}', version=_NEWEST)
    for host in world.hosts:
        _create_provider(client, host)
    for consumer in (*world.consumers, *_other_consumers(world)):
        claim(client, consumer)


def claim(client: Client, consumer: worlds.Consumer) -> None:
    """Create the allocations of a consumer that does not exist."""
    body = {
        'allocations': {
            worlds.uuid_of(provider): {'resources': dict(amounts)}
            for provider, amounts in consumer.allocations.items()
        },
        'project_id': consumer.project,
        'user_id': consumer.user,
        'consumer_generation': None,
        'consumer_type': consumer.type,
    }
    client.send_ok('PUT', f'/allocations/{consumer.uuid}', body, version=_NEWEST)


def _create_provider(client: Client, host: worlds.Host) -> None:
    body: dict[str, Any] = {'name': host.name, 'uuid': host.uuid}
    if host.parent:
        body['parent_provider_uuid'] = worlds.uuid_of(host.parent)
    client.send_ok('POST', '/resource_providers', body, version=_NEWEST)
    generation = itertools.count()
    for name, value in (
        (
            'inventories',
            {
                name: {field: values[field] for field in _FIELDS}
                for name, values in host.inventories.items()
            },
        ),
        ('traits', [worlds.trait(name) for name in host.traits]),
        ('aggregates', [worlds.uuid_of(name) for name in host.aggregates]),
    ):
        if value:
            body = {'resource_provider_generation': next(generation), name: value}
            path = f'/resource_providers/{host.uuid}/{name}'
            client.send_ok('PUT', path, body, version=_NEWEST)


def _other_consumers(world: worlds.World) -> list[worlds.Consumer]:
    allocations: dict[str, dict[str, int]] = defaultdict(dict)
    for (provider, name), used in world.other_usage.items():
        allocations[provider][name] = used
    return [
        worlds.Consumer(f'consumer of {provider}', {provider: amounts})
        for provider, amounts in allocations.items()
    ]
