"""A tour of Placement: ``python3 tools/tour.py`` against a running service.

The tour creates three hosts and a shared disk pool, requests allocation candidates, claims a
candidate, makes a claim that does not fit, shows the usage, moves the allocations to another
candidate, and deletes them. It prints the beginning of each request and of each response in one
line. At the end, the tour deletes the providers, so you can run it again. The rows of one
aggregate, one project, and one user stay in the database, because the API cannot delete them.
`placement-manage audit` reports them as unused.

The tour uses only the standard library, so that it runs on every machine with Python.
"""

import argparse
from collections.abc import Callable
import json
import sys
from typing import Any
import urllib.error
import urllib.parse
import urllib.request
import uuid

# The API cannot delete aggregates, projects, and users, so each tour uses the same ones.
AGGREGATE = 'd0d05c5e-35b4-4f28-9d0e-6a7c1f2b7e01'
PROJECT, USER = 'tour-project', 'tour-user'
PRINTED = 200  # the characters of each request and each response

# Sends a request (see `Service.__call__`) and returns the parsed body of the response.
Send = Callable[..., Any]


class Service:
    """Sends requests to Placement, and prints the requests and responses."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip('/')
        self._headers = {
            'X-Auth-Token': token,
            'Accept': 'application/json',
            'Content-Type': 'application/json',
            'OpenStack-API-Version': 'placement latest',
        }

    def __call__(self, method: str, path: str, body: Any = None, expect: int = 200) -> Any:
        """Send a request and return the parsed body; end the tour if the status is unexpected."""
        _show(f'> {method} {urllib.parse.unquote(path)}', body)
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self._url + path, data, self._headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        except OSError as error:
            reason = getattr(error, 'reason', error)
            sys.exit(f'{self._url}: {reason}. Is python3 tools/serve.py running?')
        document = json.loads(text) if text else None
        _show(f'< {status}', document)
        if status != expect:
            sys.exit(f'The tour stops because the expected status is {expect}.')
        return document


def main() -> None:
    """Run the tour against the service that the command line names."""
    parser = argparse.ArgumentParser(description='Show the main requests of Placement.')
    parser.add_argument(
        '--url', default='http://127.0.0.1:8778', help='URL of the service (default: %(default)s)'
    )
    parser.add_argument(
        '--token', default='admin', help='X-Auth-Token header (default: %(default)s)'
    )
    options = parser.parse_args()
    take(Service(options.url, options.token))


def take(service: Send) -> None:
    """Send the requests of the tour."""
    _chapter('1. Get the supported microversions')
    service('GET', '/')
    _chapter('2. Create three hosts, and add a trait to one of them')
    inventories = {'VCPU': {'total': 8, 'allocation_ratio': 4.0}, 'MEMORY_MB': {'total': 16384}}
    hosts = [_create(service, f'host-{number}', inventories) for number in (1, 2, 3)]
    _put(service, hosts[0], 1, traits=['HW_CPU_X86_AVX2'])
    _chapter('3. Create a disk pool that shares its inventory with the hosts through an aggregate')
    pool = _create(service, 'disk-pool', {'DISK_GB': {'total': 2000}})
    _put(service, pool, 1, traits=['MISC_SHARES_VIA_AGGREGATE'])
    for provider, generation in ((pool, 2), (hosts[0], 2), (hosts[1], 1), (hosts[2], 1)):
        _put(service, provider, generation, aggregates=[AGGREGATE])
    _use(service, _candidates(service))
    _chapter('11. Delete the hosts and the pool')
    for provider in (*hosts, pool):
        service('DELETE', f'/resource_providers/{provider}', expect=204)
    print('\nThe tour is complete: Placement granted what fits, and refused what does not.')


def _create(service: Send, name: str, inventories: dict[str, Any]) -> str:
    unique = f'tour-{name}-{uuid.uuid4().hex[:8]}'
    created = service('POST', '/resource_providers', {'name': unique})
    _put(service, created['uuid'], created['generation'], inventories=inventories)
    return str(created['uuid'])


def _put(service: Send, provider: str, generation: int, **values: Any) -> None:
    """Replace the inventories, the traits, or the aggregates of a provider."""
    (kind,) = values
    body = {**values, 'resource_provider_generation': generation}
    service('PUT', f'/resource_providers/{provider}/{kind}', body)


def _candidates(service: Send) -> list[dict[str, Any]]:
    _chapter('4. Get candidates for 2 VCPU, 4 GB of memory and 20 GB of disk')
    resources = 'VCPU:2,MEMORY_MB:4096,DISK_GB:20'
    query = urllib.parse.urlencode({'resources': resources, 'member_of': AGGREGATE, 'limit': 5})
    response = service('GET', f'/allocation_candidates?{query}')
    _chapter('5. Get the candidates with the trait')
    service('GET', f'/allocation_candidates?{query}&required=HW_CPU_X86_AVX2')
    candidates: list[dict[str, Any]] = response['allocation_requests']
    return candidates


def _use(service: Send, candidates: list[dict[str, Any]]) -> None:
    """Claim a candidate, move the allocations to another one, and delete them."""
    owner = {'project_id': PROJECT, 'user_id': USER, 'consumer_type': 'INSTANCE'}
    claim = {**candidates[0], **owner, 'consumer_generation': None}
    path, usages = f'/allocations/{uuid.uuid4()}', f'/usages?project_id={PROJECT}'
    _chapter('6. Claim the first candidate; its body is part of the request')
    service('PUT', path, claim, expect=204)
    service('GET', path)
    service('GET', usages)
    for provider in claim['allocations']:
        service('GET', f'/resource_providers/{provider}/usages')
    _chapter('7. Claim more memory than the host has left: 409 Conflict, and nothing changes')
    host = next(one for one, part in claim['allocations'].items() if 'VCPU' in part['resources'])
    too_much = {host: {'resources': {'MEMORY_MB': 16384}}}
    another = {'allocations': too_much, **owner, 'consumer_generation': None}
    service('PUT', f'/allocations/{uuid.uuid4()}', another, expect=409)
    _chapter('8. Claim it again as a new consumer: 409 Conflict, because the consumer exists')
    service('PUT', path, claim, expect=409)
    _chapter('9. Move the allocations to another candidate with one request')
    service('PUT', path, {**candidates[-1], **owner, 'consumer_generation': 1}, expect=204)
    service('GET', path)
    _chapter('10. Delete the allocations')
    service('DELETE', path, expect=204)
    service('GET', usages)


def _chapter(title: str) -> None:
    print(f'\n--- {title}\n')


def _show(first: str, body: Any) -> None:
    """Print a request or a response in one line; of an error, only its detail."""
    members = body or {}
    text = json.dumps({key: value for key, value in members.items() if key != 'links'})
    if 'errors' in members:
        text = members['errors'][0]['detail'].split('\n\n')[-1].strip()
    if body is None:
        print(first)
    else:
        print(first, text if len(text) <= PRINTED else f'{text[:PRINTED]} ...')


if __name__ == '__main__':
    main()
