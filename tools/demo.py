"""Register a small varied cloud: ``python tools/demo.py --database FILE``.

The cloud has compute hosts, hosts with NUMA nodes, SR-IOV, and GPUs, bare metal nodes, sharing
providers, and consumers of several projects; see ``tools/demo_cloud.py``. All names and UUIDs are
fixed. The tool sends requests to the API, either in its own process or to a running service. If
the cloud is already registered, the tool changes nothing.
"""

import argparse
from collections.abc import Callable, Iterable
import json
import logging
import os
from pathlib import Path
import sys
from typing import Any
import urllib.error
import urllib.request

import demo_cloud

VERSION = 'latest'
_HEADERS = {
    'X-Auth-Token': 'admin',
    'Accept': 'application/json',
    'Content-Type': 'application/json',
    'OpenStack-API-Version': f'placement {VERSION}',
}
_CONNECTION = 'OS_PLACEMENT_DATABASE__CONNECTION'

# Sends a request: the method, the path, and the body. Returns the status and the parsed body.
Send = Callable[[str, str, Any], tuple[int, Any]]


class UnexpectedResponseError(Exception):
    """Placement refused a request, for example because a name of the cloud is already in use."""


def main() -> None:
    """Register the cloud in the database or the service that the command line names."""
    parser = argparse.ArgumentParser(description='Register a small varied cloud.')
    target = parser.add_mutually_exclusive_group()
    target.add_argument(
        '--database',
        type=Path,
        metavar='FILE',
        help=f'SQLite file to fill; by default, the database of {_CONNECTION}',
    )
    target.add_argument('--url', help='URL of a running service')
    parser.add_argument(
        '--token', default='admin', help='X-Auth-Token header for --url (default: %(default)s)'
    )
    options = parser.parse_args()
    if options.database is None and options.url is None and _CONNECTION not in os.environ:
        parser.error(f'name a database with --database or {_CONNECTION}, or a service with --url')
    try:
        if options.url:
            print(register(_sender(options.url, options.token)))
        else:
            print(register_in(application(options.database)))
    except UnexpectedResponseError as error:
        sys.exit(f'Error: {error}')


def register_in(application: Any) -> str:
    """Register the cloud in a WSGI application of this process, without a log of the requests.

    :returns: see `register`
    :raises UnexpectedResponseError: the application refused a request
    """
    logging.disable(logging.WARNING)
    try:
        return register(application_sender(application))
    finally:
        logging.disable(logging.NOTSET)


def register(send: Send) -> str:
    """Register the cloud and return a sentence that says what was done.

    :raises UnexpectedResponseError: Placement refused a request
    """
    last = demo_cloud.last_provider()
    if _generation(send, last) is not None:
        return 'The demo cloud is already registered.'
    for name in demo_cloud.CUSTOM_CLASSES:
        _expect((201, 204), send, 'PUT', f'/resource_classes/{name}')
    for name in demo_cloud.CUSTOM_TRAITS:
        _expect((201, 204), send, 'PUT', f'/traits/{name}')
    for provider in demo_cloud.providers():
        _add(send, provider)
    _claim(send, demo_cloud.consumers())
    _put_inventories(send, demo_cloud.reduced_host())
    _add(send, last)
    hosts = [*(one for one in demo_cloud.providers() if one.parent is None), last]
    consumers = list(demo_cloud.consumers())
    return f'The demo cloud is registered: {len(hosts)} provider trees, {len(consumers)} consumers.'


def _add(send: Send, provider: demo_cloud.Provider) -> None:
    """Create a provider; an interrupted earlier run may have created it."""
    uuid = demo_cloud.uuid_of(provider.name)
    body = {'name': provider.name, 'uuid': uuid}
    if provider.parent is not None:
        body['parent_provider_uuid'] = demo_cloud.uuid_of(provider.parent)
    status, document = send('POST', '/resource_providers', body)
    if _generation(send, provider) is None:
        raise UnexpectedResponseError(_sentence('POST', '/resource_providers', status, document))
    _put_inventories(send, provider)
    aggregates = [demo_cloud.uuid_of(aggregate) for aggregate in provider.aggregates]
    for name, values in (('traits', list(provider.traits)), ('aggregates', aggregates)):
        if values:
            _put(send, provider, name, values)


def _generation(send: Send, provider: demo_cloud.Provider) -> int | None:
    """Return the generation of a provider; None if it does not exist."""
    path = f'/resource_providers/{demo_cloud.uuid_of(provider.name)}'
    status, document = send('GET', path, None)
    if status == 404:
        return None
    if status != 200:
        raise UnexpectedResponseError(_sentence('GET', path, status, document))
    generation: int = document['generation']
    return generation


def _put_inventories(send: Send, provider: demo_cloud.Provider) -> None:
    inventories = {name: value.body() for name, value in provider.inventories.items()}
    _put(send, provider, 'inventories', inventories)


def _put(send: Send, provider: demo_cloud.Provider, name: str, values: Any) -> None:
    path = f'/resource_providers/{demo_cloud.uuid_of(provider.name)}/{name}'
    body = {name: values, 'resource_provider_generation': _generation(send, provider)}
    _expect((200,), send, 'PUT', path, body)


def _claim(send: Send, consumers: Iterable[demo_cloud.Consumer]) -> None:
    """Write all allocations with one request, which an interrupted earlier run may have sent."""
    body = {
        demo_cloud.uuid_of(consumer.name): {
            'allocations': {
                demo_cloud.uuid_of(provider): {'resources': amounts}
                for provider, amounts in consumer.allocations.items()
            },
            'project_id': consumer.project,
            'user_id': consumer.user,
            'consumer_generation': None,
            'consumer_type': consumer.type,
        }
        for consumer in consumers
    }
    path = f'/allocations/{next(iter(body))}'
    status, document = send('GET', path, None)
    if status != 200:
        raise UnexpectedResponseError(_sentence('GET', path, status, document))
    if not document['allocations']:
        _expect((204,), send, 'POST', '/allocations', body)


def _expect(
    statuses: tuple[int, ...], send: Send, method: str, path: str, body: Any = None
) -> None:
    status, document = send(method, path, body)
    if status not in statuses:
        raise UnexpectedResponseError(_sentence(method, path, status, document))


def _sentence(method: str, path: str, status: int, document: Any) -> str:
    try:
        detail = document['errors'][0]['detail']
    except (TypeError, KeyError, IndexError):
        detail = 'no details'
    return f'{method} {path} returned {status}: {" ".join(detail.split())}'


def application_sender(application: Any) -> Send:
    """Return a function that sends requests to a WSGI application in this process."""
    import webob

    def send(method: str, path: str, body: Any) -> tuple[int, Any]:
        request = webob.Request.blank(path, method=method, headers=_HEADERS)
        if body is not None:
            request.body = json.dumps(body).encode()
        response = request.get_response(application)
        return response.status_int, json.loads(response.body) if response.body else None

    return send


def application(database: Path | None) -> Any:
    """Return the service on this database, or on the one that the environment names."""
    if database is not None:
        os.environ[_CONNECTION] = f'sqlite:///{database.resolve()}'
    os.environ.setdefault('OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP', 'true')
    os.environ['OS_API__AUTH_STRATEGY'] = 'noauth2'
    try:
        from placement import wsgi
    except ImportError as error:
        sys.exit(f'Error: {error}. Use the Python of an environment with Placement.')
    logging.disable(logging.WARNING)  # init_application() migrates the schema.
    return wsgi.init_application()


def _sender(url: str, token: str) -> Send:
    """Return a function that sends requests to a running service."""

    def send(method: str, path: str, body: Any) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {**_HEADERS, 'X-Auth-Token': token}
        request = urllib.request.Request(url.rstrip('/') + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=300) as response:
                status, text = response.status, response.read()
        except urllib.error.HTTPError as error:
            status, text = error.code, error.read()
        except OSError as error:
            sys.exit(f'Error: {url}: {getattr(error, "reason", error)}')
        return status, json.loads(text) if text else None

    return send


if __name__ == '__main__':
    main()
