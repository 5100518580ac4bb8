"""The agent of a host with GPUs: `python3 device_agent.py HOST [GPU...]`."""

from collections.abc import Callable
import sys
import time
from typing import Any

from keystoneauth1.adapter import Adapter
from keystoneauth1.exceptions import Conflict
import openstack

TRAIT, CLASS, TOTAL = 'CUSTOM_ACME_GPU', 'VGPU', 4  # of each provider of this agent
REPEATED = {'placement.concurrent_update', 'placement.duplicate_name'}


def send(api: Adapter, method: str, url: str, **content: Any) -> Any:
    """Send a request and return the body. In 1.37, a request does not change a consumer type."""
    response = api.request(url, method, microversion='1.37', raise_exc=True, **content)
    return response.json() if response.content else None


def repeat(step: Callable[..., Any], *arguments: Any) -> Any:
    """Run a step again if another client wrote between its read and its write."""
    for pause in (0.1, 0.5, 2, 10):
        try:
            return step(*arguments)
        except Conflict as error:
            response: Any = error.response
            if response.json()['errors'][0]['code'] not in REPEATED:
                raise
        time.sleep(pause)
    return step(*arguments)


def adopt(api: Adapter, name: str, parent: str | None = None) -> str:
    """Return the UUID of the provider with a name, in the tree. Create it if it does not exist."""
    query = {'name': name, 'in_tree': parent}  # A parameter with the value None is not sent.
    found = send(api, 'GET', '/resource_providers', params=query)['resource_providers']
    new = {'name': name, 'parent_provider_uuid': parent}
    return str((found or [send(api, 'POST', '/resource_providers', json=new)])[0]['uuid'])


def update(api: Adapter, provider: str, kind: str, decide: Callable[[Any], Any]) -> None:
    """Write the inventories or the traits of a provider if the decision is to change them."""
    url = f'/resource_providers/{provider}/{kind}'
    current = send(api, 'GET', url)
    wanted = decide(current[kind])
    if wanted != current[kind]:
        send(api, 'PUT', url, json={**current, kind: wanted})


def split(api: Adapter, host: str, children: list[str]) -> None:
    """Move the inventory and the allocations of the class from a host to its children."""
    url = '/resource_providers/{}/inventories'
    inventories = {one: send(api, 'GET', url.format(one)) for one in (host, *children)}
    old = inventories[host]['inventories'].pop(CLASS, None)
    if old is None or not children:
        return  # There is nothing to move, or an earlier attempt succeeded.
    for child in children:
        inventories[child]['inventories'][CLASS] = {**old, 'total': TOTAL, 'reserved': 0}
    allocations, free = {}, dict.fromkeys(children, TOTAL)
    for consumer in send(api, 'GET', f'/resource_providers/{host}/allocations')['allocations']:
        document = send(api, 'GET', f'/allocations/{consumer}')
        claim = document['allocations']
        amounts = claim.get(host, {'resources': {}})['resources']
        if CLASS in amounts:  # Otherwise the consumer uses other classes, or was released.
            child = max(free, key=lambda one: free[one])
            free[child] -= amounts[CLASS]
            claim.setdefault(child, {'resources': {}})['resources'][CLASS] = amounts.pop(CLASS)
            document['allocations'] = {one: claim[one] for one in claim if claim[one]['resources']}
            allocations[consumer] = document
    send(api, 'POST', '/reshaper', json={'inventories': inventories, 'allocations': allocations})


def offer(old: Any, reserved: int) -> Any:
    """Return inventories with one of the class. Other classes and fields remain."""
    return {**old, CLASS: {**old.get(CLASS, {}), 'total': TOTAL, 'reserved': reserved}}


def run(api: Adapter, name: str, gpus: list[str]) -> None:
    """Make the children of a host those GPUs. Delete the others when they are not in use."""
    send(api, 'PUT', f'/traits/{TRAIT}')
    host = repeat(adopt, api, name)
    children = [repeat(adopt, api, f'{name}_{gpu}', host) for gpu in gpus]
    for child in children:
        repeat(update, api, child, 'traits', lambda old: old if TRAIT in old else [*old, TRAIT])
    repeat(split, api, host, children)
    for child in children:
        repeat(update, api, child, 'inventories', lambda old: offer(old, 0))
    marked = send(api, 'GET', f'/resource_providers?in_tree={host}&required={TRAIT}')
    for gone in {one['uuid'] for one in marked['resource_providers']} - {host, *children}:
        repeat(update, api, gone, 'inventories', lambda old: offer(old, TOTAL))
        if not send(api, 'GET', f'/resource_providers/{gone}/allocations')['allocations']:
            send(api, 'DELETE', f'/resource_providers/{gone}')


if __name__ == '__main__':
    cloud = openstack.connect(placement_connect_retries=3, placement_status_code_retries=3)
    run(cloud.placement, sys.argv[1], sys.argv[2:])
