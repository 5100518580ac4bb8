"""A tour of Placement: ``python3 tools/tour.py`` against a running service.

The tour creates three hosts and a shared disk pool, requests allocation candidates, claims a
candidate, shows the usage, moves the allocations to another candidate, and deletes the allocations.
It prints every request and every response. At the end, the tour deletes the providers, so you can
run it again. The rows of one aggregate, one project, and one user stay in the database, because the
API cannot delete them. `placement-manage audit` reports them as unused.
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

VERSION = 'latest'
# The API cannot delete aggregates, projects, and users, so each tour uses the same ones.
AGGREGATE = 'd0d05c5e-35b4-4f28-9d0e-6a7c1f2b7e01'
PROJECT, USER = 'tour-project', 'tour-user'
PRINTED_LINES = 40  # for each request or response body

# Sends a request (see `Service.__call__`) and returns the parsed body of the response.
Send = Callable[..., Any]


class Service:
    """Sends requests to Placement, and prints the requests and responses."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip('/')
        self._headers = {
            'X-Auth-Token': token,
            'Accept': 'application/json',
            'OpenStack-API-Version': f'placement {VERSION}',
        }

    def __call__(self, method: str, path: str, body: Any = None, expect: int = 200) -> Any:
        """Send a request and return the parsed body; end the tour if the status is unexpected."""
        headers = dict(self._headers)
        data = None
        if body is not None:
            headers['Content-Type'] = 'application/json'
            data = json.dumps(body).encode()
        print(f'> {method} {urllib.parse.unquote(path)}')
        _show(body, '> ')
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        except OSError as error:
            reason = getattr(error, 'reason', error)
            sys.exit(f'{self._url}: {reason}. Is python3 tools/serve.py running?')
        document = json.loads(text) if text else None
        print(f'< {status}')
        _show(document, '< ')
        print()
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
    providers = _create_providers(service)
    candidates = _get_candidates(service)
    consumer = _claim(service, candidates[0])
    _claim_again(service, candidates[0], consumer)
    _move(service, consumer, candidates)
    _delete_allocations(service, consumer)
    _delete_providers(service, providers)


def _create_providers(service: Send) -> list[str]:
    _chapter('1. Get the supported microversions')
    service('GET', '/')
    _chapter('2. Create three hosts, and add a trait to one of them')
    hosts = [
        _provider(
            service, f'host-{number}', {'VCPU': _inventory(8, 4.0), 'MEMORY_MB': _inventory(16384)}
        )
        for number in (1, 2, 3)
    ]
    service(
        'PUT',
        f'/resource_providers/{hosts[0]}/traits',
        {'traits': ['HW_CPU_X86_AVX2'], 'resource_provider_generation': 1},
    )
    _chapter('3. Create a disk pool that shares its inventory with the hosts through an aggregate')
    pool = _provider(service, 'disk-pool', {'DISK_GB': _inventory(2000)})
    service(
        'PUT',
        f'/resource_providers/{pool}/traits',
        {'traits': ['MISC_SHARES_VIA_AGGREGATE'], 'resource_provider_generation': 1},
    )
    for provider, generation in ((pool, 2), (hosts[0], 2), (hosts[1], 1), (hosts[2], 1)):
        service(
            'PUT',
            f'/resource_providers/{provider}/aggregates',
            {'aggregates': [AGGREGATE], 'resource_provider_generation': generation},
        )
    return [*hosts, pool]


def _provider(service: Send, name: str, inventories: dict[str, Any]) -> str:
    unique = f'tour-{name}-{uuid.uuid4().hex[:8]}'
    created = service('POST', '/resource_providers', {'name': unique})
    provider: str = created['uuid']
    service(
        'PUT',
        f'/resource_providers/{provider}/inventories',
        {'inventories': inventories, 'resource_provider_generation': created['generation']},
    )
    return provider


def _inventory(total: int, ratio: float = 1.0) -> dict[str, Any]:
    return {'total': total, 'allocation_ratio': ratio}


def _get_candidates(service: Send) -> list[dict[str, Any]]:
    _chapter('4. Get candidates for 2 VCPU, 4 GB of memory and 20 GB of disk')
    query: dict[str, Any] = {
        'resources': 'VCPU:2,MEMORY_MB:4096,DISK_GB:20',
        'member_of': AGGREGATE,
        'limit': 5,
    }
    response = service('GET', '/allocation_candidates?' + urllib.parse.urlencode(query))
    candidates: list[dict[str, Any]] = response['allocation_requests']
    _chapter('5. Get the candidates with the trait')
    query['required'] = 'HW_CPU_X86_AVX2'
    service('GET', '/allocation_candidates?' + urllib.parse.urlencode(query))
    return candidates


def _claim(service: Send, candidate: dict[str, Any]) -> str:
    _chapter('6. Claim the first candidate; its body is part of the request')
    consumer = str(uuid.uuid4())
    service('PUT', f'/allocations/{consumer}', _claim_body(candidate, None), expect=204)
    service('GET', f'/allocations/{consumer}')
    _show_usages(service)
    for provider in candidate['allocations']:
        service('GET', f'/resource_providers/{provider}/usages')
    return consumer


def _claim_body(candidate: dict[str, Any], generation: int | None) -> dict[str, Any]:
    return {
        **candidate,
        'project_id': PROJECT,
        'user_id': USER,
        'consumer_generation': generation,
        'consumer_type': 'INSTANCE',
    }


def _claim_again(service: Send, candidate: dict[str, Any], consumer: str) -> None:
    _chapter('7. Claim it again as a new consumer: 409 Conflict, because the consumer exists')
    service('PUT', f'/allocations/{consumer}', _claim_body(candidate, None), expect=409)


def _move(service: Send, consumer: str, candidates: list[dict[str, Any]]) -> None:
    _chapter('8. Move the allocations to another candidate with one request')
    service('PUT', f'/allocations/{consumer}', _claim_body(candidates[-1], 1), expect=204)
    service('GET', f'/allocations/{consumer}')


def _delete_allocations(service: Send, consumer: str) -> None:
    _chapter('9. Delete the allocations')
    service('DELETE', f'/allocations/{consumer}', expect=204)
    _show_usages(service)


def _show_usages(service: Send) -> None:
    service('GET', f'/usages?project_id={PROJECT}')


def _delete_providers(service: Send, providers: list[str]) -> None:
    _chapter('10. Delete the hosts and the pool')
    for provider in providers:
        service('DELETE', f'/resource_providers/{provider}', expect=204)


def _chapter(title: str) -> None:
    print(f'--- {title}\n')


def _show(body: Any, mark: str) -> None:
    if body is None:
        return
    lines = json.dumps(body, indent=2).splitlines()
    for line in lines[:PRINTED_LINES]:
        print(mark + line)
    if len(lines) > PRINTED_LINES:
        print(f'{mark}... {len(lines) - PRINTED_LINES} more lines')


if __name__ == '__main__':
    main()
