"""The agent of a host with GPUs: `python3 device_agent.py HOST [GPU...]`."""

from collections.abc import Callable
import sys
from typing import Any
from urllib.parse import quote

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import Conflict
import openstack

PREFIX = 'CUSTOM_ACME_'  # of the traits of this agent; other clients can set other traits
INVENTORIES = '/resource_providers/{}/inventories'


def send(api: Adapter, method: str, url: str, body: Any = None) -> Any:
    """Send a request and return the body of the response. An error raises an exception."""
    response = api.request(url, method, json=body, raise_exc=True)
    return response.json() if response.content else None


def repeat(step: Callable[..., None], *arguments: Any) -> None:
    """Read, decide, and write until no other client changes the data in between."""
    while True:
        try:
            return step(*arguments)
        except Conflict as error:
            response: Any = error.response
            if response.json()['errors'][0]['code'] != 'placement.concurrent_update':
                raise


def adopt(api: Adapter, name: str, parent: str | None = None) -> str:
    """Return the UUID of the provider with a name. Create the provider if it does not exist."""
    found = send(api, 'GET', f'/resource_providers?name={quote(name)}')['resource_providers']
    new = {'name': name, 'parent_provider_uuid': parent}
    return str((found or [send(api, 'POST', '/resource_providers', new)])[0]['uuid'])


def report(api: Adapter, provider: str, totals: dict[str, int], traits: set[str]) -> None:
    """Write the inventories and the traits of a provider if they differ."""
    current = send(api, 'GET', INVENTORIES.format(provider))
    if {name: one['total'] for name, one in current['inventories'].items()} != totals:
        current['inventories'] = {name: {'total': total} for name, total in totals.items()}
        send(api, 'PUT', INVENTORIES.format(provider), current)
    current = send(api, 'GET', f'/resource_providers/{provider}/traits')
    wanted = traits | {name for name in current['traits'] if not name.startswith(PREFIX)}
    if wanted != set(current['traits']):
        for name in traits:
            send(api, 'PUT', f'/traits/{name}')
        current['traits'] = sorted(wanted)
        send(api, 'PUT', f'/resource_providers/{provider}/traits', current)


def split(api: Adapter, provider: str, name: str, totals: dict[str, int]) -> None:
    """Move the inventory and the allocations of a class to children, with these totals."""
    inventories = {one: send(api, 'GET', INVENTORIES.format(one)) for one in (provider, *totals)}
    if inventories[provider]['inventories'].pop(name, None) is None:
        return  # There is nothing to move, or an earlier attempt succeeded.
    for child, total in totals.items():
        inventories[child]['inventories'][name] = {'total': total}
    listed = send(api, 'GET', f'/resource_providers/{provider}/allocations')['allocations']
    moved = [consumer for consumer in listed if name in listed[consumer]['resources']]
    allocations = {consumer: send(api, 'GET', f'/allocations/{consumer}') for consumer in moved}
    free = dict(totals)
    for claim in (document['allocations'] for document in allocations.values()):
        child = max(free, key=lambda one: free[one])
        claim[child] = {'resources': {name: claim[provider]['resources'].pop(name)}}
        free[child] -= claim[child]['resources'][name]
        if not claim[provider]['resources']:
            del claim[provider]
    send(api, 'POST', '/reshaper', {'inventories': inventories, 'allocations': allocations})


def withdraw(api: Adapter, provider: str) -> None:
    """Reserve the inventories of a provider against new claims. Delete it if it is not in use."""
    current = send(api, 'GET', INVENTORIES.format(provider))
    for one in current['inventories'].values():
        one['reserved'] = one['total']
    send(api, 'PUT', INVENTORIES.format(provider), current)
    if not send(api, 'GET', f'/resource_providers/{provider}/allocations')['allocations']:
        send(api, 'DELETE', f'/resource_providers/{provider}')


def run(api: Adapter, name: str, gpus: list[str]) -> None:
    """Make the children of a host those GPUs, each with four virtual GPUs."""
    host = adopt(api, name)
    children = {adopt(api, f'{name}_{gpu}', host): 4 for gpu in gpus}
    repeat(split, api, host, 'VGPU', children)
    for child, total in children.items():
        repeat(report, api, child, {'VGPU': total}, {f'{PREFIX}GPU'})
    for one in send(api, 'GET', f'/resource_providers?in_tree={host}')['resource_providers']:
        if one['uuid'] not in {host, *children}:
            repeat(withdraw, api, one['uuid'])


if __name__ == '__main__':
    cloud = openstack.connect(placement_default_microversion='1.39')
    run(cloud.placement, sys.argv[1], sys.argv[2:])
