"""A scheduler: `python3 scheduler.py 'resources=VCPU:2&required=HW_CPU_X86_AVX2'`."""

import random
import sys
import time
from typing import Any
from urllib.parse import parse_qs
import uuid

from keystoneauth1.adapter import Adapter
import openstack

Document = dict[str, Any]
SEARCHES = 3  # before the scheduler gives up
WRITES = 5  # of one claim, if the response does not show whether Placement applied it
# The details of an error if another client took the capacity, or deleted a provider.
REFUSED = 'Unable to allocate inventory:', 'No such resource provider'


class NoValidHostError(Exception):
    """No candidate fits."""


class AlreadyClaimedError(Exception):
    """The consumer has allocations that are not those of this claim."""


def place(api: Adapter, consumer: str, query: Document, owner: Document) -> Document:
    """Claim resources for a new consumer and return its allocations by provider.

    :param query: the parameters of `GET /allocation_candidates`
    :param owner: `project_id`, `user_id`, and `consumer_type` of the consumer
    """
    for _ in range(SEARCHES):
        for candidate in search(api, query):
            if claim(api, consumer, candidate, owner):
                return dict(candidate['allocations'])
    raise NoValidHostError(f'Other claims took all candidates for {query}')


def search(api: Adapter, query: Document) -> list[Document]:
    """Return the candidates, the one whose providers have most free capacity first."""
    found = read(api, '/allocation_candidates', {'limit': 100, **query})
    if not found['allocation_requests']:
        raise NoValidHostError(f'No candidate fits {query}')

    def free(candidate: Document) -> Any:
        return min(
            1 - (inventory['used'] + amount) / inventory['capacity']
            for provider, allocation in candidate['allocations'].items()
            for name, amount in allocation['resources'].items()
            for inventory in [found['provider_summaries'][provider]['resources'][name]]
        )

    # Schedulers with the same preference wait for each other, so each shuffles equal candidates.
    candidates: list[Document] = found['allocation_requests']
    random.shuffle(candidates)
    return sorted(candidates, key=free, reverse=True)


def claim(api: Adapter, consumer: str, candidate: Document, owner: Document) -> bool:
    """Return whether Placement granted a claim; False if the candidate does not fit any more."""
    url = f'/allocations/{consumer}'
    body = {**candidate, **owner, 'consumer_generation': None}
    written = {'allocations': candidate['allocations'], **owner, 'consumer_generation': 1}
    for _ in range(WRITES):
        response = api.put(url, json=body, connect_retries=3, raise_exc=False)
        if response.status_code == 204:
            return True
        if response.status_code == 503:  # no database, or it was lost during the commit
            time.sleep(int(response.headers['Retry-After']))
        elif any(text in response.text for text in REFUSED):
            return False
        elif '"placement.concurrent_update"' not in response.text:
            raise RuntimeError(response.text)
        # An earlier attempt or another scheduler wrote, or too many requests wrote at once.
        stored = read(api, url)
        if stored['allocations']:
            for allocation in stored['allocations'].values():
                del allocation['generation']  # of the provider
            if written.items() <= stored.items():
                return True
            raise AlreadyClaimedError(consumer)
    return False


def read(api: Adapter, url: str, query: Document | None = None) -> Any:
    """Return a document. If Placement or its database is not available, repeat the request."""
    response = api.get(url, params=query, connect_retries=3, status_code_retries=3, raise_exc=False)
    if not response.ok:
        raise RuntimeError(response.text)
    return response.json()


if __name__ == '__main__':
    cloud = openstack.connect(placement_default_microversion='1.39')
    identity = {'project_id': 'project', 'user_id': 'user', 'consumer_type': 'INSTANCE'}
    consumer = str(uuid.uuid4())
    print(consumer, place(cloud.placement, consumer, parse_qs(sys.argv[1]), identity))
