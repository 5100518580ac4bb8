"""Send the same reads to two services of Placement, and compare the responses.

Usage: OS_TOKEN=TOKEN python3 compare_releases.py URL OTHER_URL [PATH...]

Both services use the same database. Each PATH is a further path to read. Lists may have different
orders. A read that differs is repeated, because clients can write between both requests. The exit
status is 0 if all responses are equal, 1 if some differ, and 2 if a service cannot be used.
"""

from collections.abc import Iterator
import json
import os
import sys
from typing import Any
from urllib import error, request

VERSIONS = ('1.0', '1.14', '1.28', '1.39')
LISTS = ('/', '/traits', '/resource_classes', '/allocation_candidates?resources=VCPU:1')
OF_PROVIDER = ('', '/inventories', '/usages', '/traits', '/aggregates', '/allocations')
PROVIDERS, CONSUMERS, ATTEMPTS = 50, 5, 3


def read(url: str, path: str, version: str) -> tuple[int, Any]:
    """Return the status and the body of a response; None for the text of an error."""
    headers = {
        'X-Auth-Token': os.environ.get('OS_TOKEN', ''),
        'Accept': 'application/json',
        'OpenStack-API-Version': f'placement {version}',
    }
    try:
        with request.urlopen(request.Request(url + path, headers=headers), timeout=60) as response:
            return response.status, in_order(json.load(response))
    except error.HTTPError as failure:
        return failure.code, None


def in_order(value: Any) -> Any:
    """Return a JSON document with sorted lists."""
    if isinstance(value, dict):
        return {key: in_order(one) for key, one in value.items()}
    if isinstance(value, list):
        return sorted(map(in_order, value), key=lambda one: json.dumps(one, sort_keys=True))
    return value


def paths(url: str) -> Iterator[str]:
    """Yield the paths to read: lists, and objects that the first service has."""
    yield from LISTS
    status, body = read(url, '/resource_providers', VERSIONS[-1])
    if status != 200:
        raise OSError(f'{url}/resource_providers: HTTP status {status}')
    for provider in body['resource_providers'][:PROVIDERS]:
        path = f'/resource_providers/{provider["uuid"]}'
        yield from (path + part for part in OF_PROVIDER)
        status, body = read(url, f'{path}/allocations', VERSIONS[-1])
        consumers = list(body['allocations']) if status == 200 else []
        yield from (f'/allocations/{consumer}' for consumer in consumers[:CONSUMERS])


def main(old: str, new: str, *more: str) -> int:
    """Print the reads whose responses differ; return the exit status, or raise OSError."""
    old, new = old.rstrip('/'), new.rstrip('/')
    reads = [(path, version) for path in (*paths(old), *more) for version in VERSIONS]
    different = 0
    for path, version in reads:
        if not any(read(old, path, version) == read(new, path, version) for _ in range(ATTEMPTS)):
            print(f'different in microversion {version}: {path}')
            different += 1
    print(f'{len(reads)} reads, {different} different')
    return int(different > 0)


if __name__ == '__main__':
    try:
        sys.exit(main(*sys.argv[1:]))
    except OSError as failure:
        print(f'Error: {failure}', file=sys.stderr)
        sys.exit(2)
