"""A scheduler: `python3 scheduler.py 'resources=VCPU:2&required=HW_CPU_X86_AVX2'`."""

import random
import sys
import time
from typing import Any
from urllib.parse import parse_qs
import uuid

from keystoneauth1.adapter import Adapter
import openstack

SEARCHES = 3  # before the scheduler gives up
WRITES = 5  # of one claim, if the response does not show whether Placement applied it


class NoValidHostError(Exception):
    """No candidate fits."""


class AlreadyClaimedError(Exception):
    """Another scheduler claimed other resources for the same consumer."""


def place(
    placement: Adapter, consumer: str, query: dict[str, Any], owner: dict[str, str]
) -> dict[str, Any]:
    """Claim resources for a new consumer and return its allocations by provider.

    :param query: the parameters of `GET /allocation_candidates`
    :param owner: `project_id`, `user_id`, and `consumer_type` of the consumer
    """
    for _ in range(SEARCHES):
        for candidate in search(placement, query):
            if claim(placement, consumer, candidate, owner):
                return dict(candidate['allocations'])
    raise NoValidHostError(f'Other claims took all candidates for {query}')


def search(placement: Adapter, query: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the candidates, the one whose providers have most free capacity first."""
    found = read(placement, '/allocation_candidates', {'limit': 100, **query})
    if not found['allocation_requests']:
        raise NoValidHostError(f'No candidate fits {query}')

    def free(candidate: dict[str, Any]) -> Any:
        return min(
            1 - (inventory['used'] + amount) / inventory['capacity']
            for provider, allocation in candidate['allocations'].items()
            for name, amount in allocation['resources'].items()
            for inventory in [found['provider_summaries'][provider]['resources'][name]]
        )

    # Schedulers with the same preference wait for each other, so each shuffles equal candidates.
    candidates: list[dict[str, Any]] = found['allocation_requests']
    random.shuffle(candidates)
    return sorted(candidates, key=free, reverse=True)


def claim(
    placement: Adapter, consumer: str, candidate: dict[str, Any], owner: dict[str, str]
) -> bool:
    """Return whether Placement granted a claim; False if the candidate does not fit any more."""
    body = {**candidate, **owner, 'consumer_generation': None}
    for _ in range(WRITES):
        response = placement.put(f'/allocations/{consumer}', json=body, raise_exc=False)
        if response.status_code == 204:
            return True
        if response.status_code == 503:
            # The database is not available, or the connection was lost during the commit.
            time.sleep(int(response.headers['Retry-After']))
        elif response.status_code != 409:
            raise RuntimeError(response.text)
        elif response.json()['errors'][0]['code'] != 'placement.concurrent_update':
            return False  # Another claim took the capacity.
        # An earlier attempt or another scheduler wrote, or too many requests wrote at once.
        stored = read(placement, f'/allocations/{consumer}')
        if stored['allocations']:
            if resources(stored) == resources(candidate):
                return True
            raise AlreadyClaimedError(consumer)
    return False


def read(placement: Adapter, url: str, query: dict[str, Any] | None = None) -> Any:
    """Return a document. If the database is not available, repeat the request."""
    return placement.get(url, params=query, status_code_retries=3, raise_exc=True).json()


def resources(document: dict[str, Any]) -> dict[str, Any]:
    """Return the amounts by provider, without the provider generations of a stored document."""
    return {name: one['resources'] for name, one in document['allocations'].items()}


if __name__ == '__main__':
    cloud = openstack.connect(placement_default_microversion='1.39')
    identity = {'project_id': 'project', 'user_id': 'user', 'consumer_type': 'INSTANCE'}
    consumer = str(uuid.uuid4())
    print(consumer, place(cloud.placement, consumer, parse_qs(sys.argv[1]), identity))
