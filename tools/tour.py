"""A tour of Placement: ``python3 tools/tour.py`` against a running service.

Registers three hosts and a shared disk pool, asks where a workload would fit, claims it, shows
what is used, moves it, and releases it. Every request and every answer is printed. What the
tour made it takes away again, so it can be run any number of times.
"""

import argparse
import json
import sys
from typing import Any
import urllib.error
import urllib.parse
import urllib.request
import uuid

VERSION = '1.39'
AGGREGATE = str(uuid.uuid4())
PROJECT, USER = 'tour-project', 'tour-user'
LONGEST_ANSWER = 40


class Service:
    """Placement over HTTP, each exchange printed."""

    def __init__(self, url: str, token: str) -> None:
        self._url = url.rstrip('/')
        self._headers = {
            'X-Auth-Token': token,
            'Accept': 'application/json',
            'OpenStack-API-Version': f'placement {VERSION}',
        }

    def __call__(self, method: str, path: str, body: Any = None, expect: int = 200) -> Any:
        """Send a request; give the parsed answer. Ends the tour on another status than expected."""
        headers = dict(self._headers)
        data = None
        if body is not None:
            headers['Content-Type'] = 'application/json'
            data = json.dumps(body).encode()
        print(f'> {method} {urllib.parse.unquote(path)}')
        _show(body, '> ')
        request = urllib.request.Request(self._url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=30) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        except urllib.error.URLError as error:
            sys.exit(f'{self._url}: {error.reason}. Is python3 tools/serve.py running?')
        answer = json.loads(text) if text else None
        print(f'< {status}')
        _show(answer, '< ')
        print()
        if status != expect:
            sys.exit(f'The tour expected {expect} and stops here.')
        return answer


def main() -> None:
    parser = argparse.ArgumentParser(description='Show Placement at work, request by request.')
    parser.add_argument('--url', default='http://127.0.0.1:8778', help='where Placement serves')
    parser.add_argument('--token', default='admin', help='value of the X-Auth-Token header')
    options = parser.parse_args()
    service = Service(options.url, options.token)
    providers = _register(service)
    candidates = _ask(service)
    consumer = _claim(service, candidates[0])
    _refuse(service, candidates[0], consumer)
    _move(service, consumer, candidates)
    _release(service, consumer)
    _tidy(service, providers)


def _register(service: Service) -> list[str]:
    _chapter('1. What version is served?')
    service('GET', '/')
    _chapter('2. Register three hosts, one of them with a fast processor')
    hosts = [
        _provider(service, f'host-{number}', {'VCPU': _stock(8, 4.0), 'MEMORY_MB': _stock(16384)})
        for number in (1, 2, 3)
    ]
    service(
        'PUT',
        f'/resource_providers/{hosts[0]}/traits',
        {'traits': ['HW_CPU_X86_AVX2'], 'resource_provider_generation': 1},
    )
    _chapter('3. Register a disk pool and share it with the hosts through an aggregate')
    pool = _provider(service, 'disk-pool', {'DISK_GB': _stock(2000)})
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


def _provider(service: Service, name: str, inventories: dict[str, Any]) -> str:
    unique = f'tour-{name}-{uuid.uuid4().hex[:8]}'
    made = service('POST', '/resource_providers', {'name': unique})
    provider: str = made['uuid']
    service(
        'PUT',
        f'/resource_providers/{provider}/inventories',
        {'inventories': inventories, 'resource_provider_generation': made['generation']},
    )
    return provider


def _stock(total: int, ratio: float = 1.0) -> dict[str, Any]:
    return {'total': total, 'allocation_ratio': ratio}


def _ask(service: Service) -> list[dict[str, Any]]:
    _chapter('4. Where could 2 processors, 4 GB of memory and 20 GB of disk go?')
    wanted = {'resources': 'VCPU:2,MEMORY_MB:4096,DISK_GB:20', 'member_of': AGGREGATE, 'limit': 5}
    answer = service('GET', '/allocation_candidates?' + urllib.parse.urlencode(wanted))
    candidates: list[dict[str, Any]] = answer['allocation_requests']
    _chapter('5. And only where the fast processor is?')
    wanted['required'] = 'HW_CPU_X86_AVX2'
    service('GET', '/allocation_candidates?' + urllib.parse.urlencode(wanted))
    return candidates


def _claim(service: Service, candidate: dict[str, Any]) -> str:
    _chapter('6. Claim the first candidate, just as it was offered')
    consumer = str(uuid.uuid4())
    service('PUT', f'/allocations/{consumer}', _claim_of(candidate, None), expect=204)
    service('GET', f'/allocations/{consumer}')
    _show_usages(service)
    for provider in candidate['allocations']:
        service('GET', f'/resource_providers/{provider}/usages')
    return consumer


def _claim_of(candidate: dict[str, Any], generation: int | None) -> dict[str, Any]:
    return {
        **candidate,
        'project_id': PROJECT,
        'user_id': USER,
        'consumer_generation': generation,
        'consumer_type': 'INSTANCE',
    }


def _refuse(service: Service, candidate: dict[str, Any], consumer: str) -> None:
    _chapter('7. Claim it again as if it were new: refused, the consumer has moved on')
    service('PUT', f'/allocations/{consumer}', _claim_of(candidate, None), expect=409)


def _move(service: Service, consumer: str, candidates: list[dict[str, Any]]) -> None:
    _chapter('8. Move it to another candidate: one request, nothing lost in between')
    service('PUT', f'/allocations/{consumer}', _claim_of(candidates[-1], 1), expect=204)
    service('GET', f'/allocations/{consumer}')


def _release(service: Service, consumer: str) -> None:
    _chapter('9. Release it')
    service('DELETE', f'/allocations/{consumer}', expect=204)
    _show_usages(service)


def _show_usages(service: Service) -> None:
    service('GET', f'/usages?project_id={PROJECT}')


def _tidy(service: Service, providers: list[str]) -> None:
    _chapter('10. Take the hosts and the pool away again')
    for provider in providers:
        service('DELETE', f'/resource_providers/{provider}', expect=204)


def _chapter(title: str) -> None:
    print(f'--- {title}\n')


def _show(body: Any, mark: str) -> None:
    if body is None:
        return
    lines = json.dumps(body, indent=2).splitlines()
    for line in lines[:LONGEST_ANSWER]:
        print(mark + line)
    if len(lines) > LONGEST_ANSWER:
        print(f'{mark}... {len(lines) - LONGEST_ANSWER} more lines')


if __name__ == '__main__':
    main()
