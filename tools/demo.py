"""Register a small varied cloud: ``python tools/demo.py --database FILE``.

The cloud has compute hosts, hosts with NUMA nodes, SR-IOV, and GPUs, bare metal nodes, sharing
providers, and consumers of several projects; see ``tools/demo_cloud.py``. All names and UUIDs are
fixed. The tool sends requests to the API, either in its own process or to a running service. If
the cloud is already registered, the tool changes nothing.
"""

import argparse
import logging
import os
from pathlib import Path
import sys
from typing import Any

import demo_cloud
import requests

from placement import direct, wsgi
from placement.tests import worlds

_CONNECTION = 'OS_PLACEMENT_DATABASE__CONNECTION'
_IN_PROCESS = 'http://placement'


class UnexpectedResponseError(Exception):
    """Placement refused a request, for example because a name of the cloud is already in use."""

    def __init__(self, method: str, path: str, response: requests.Response) -> None:
        try:
            detail = response.json()['errors'][0]['detail']
        except (ValueError, LookupError):
            detail = 'no details'
        status = response.status_code
        super().__init__(f'{method} {path} returned {status}: {" ".join(detail.split())}')


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
            session = requests.Session()
            session.headers['X-Auth-Token'] = options.token
            print(register(session, options.url.rstrip('/')))
        else:
            print(register_in(application(options.database)))
    except (UnexpectedResponseError, requests.ConnectionError) as error:
        sys.exit(f'Error: {error}')


def application(database: Path | None) -> Any:
    """Return the service on this database, or on the one that the environment names."""
    if database is not None:
        os.environ[_CONNECTION] = f'sqlite:///{database.resolve()}'
    os.environ.setdefault('OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP', 'true')
    os.environ['OS_API__AUTH_STRATEGY'] = 'noauth2'
    logging.disable(logging.WARNING)  # init_application() migrates the schema.
    return wsgi.init_application()


def register_in(application: Any) -> str:
    """Register the cloud in a WSGI application of this process, without a log of the requests.

    :returns: see `register`
    :raises UnexpectedResponseError: the application refused a request
    """
    session = requests.Session()
    session.headers['X-Auth-Token'] = 'admin'
    session.mount(_IN_PROCESS, direct.WSGIAdapter(application, _IN_PROCESS))
    logging.disable(logging.WARNING)
    try:
        return register(session, _IN_PROCESS)
    finally:
        logging.disable(logging.NOTSET)


def register(session: requests.Session, url: str) -> str:
    """Register the cloud and return a sentence that says what was done.

    An interrupted earlier run may have registered a part of it.

    :param url: the URL of the service, without a slash at the end
    :raises UnexpectedResponseError: Placement refused a request
    """
    send = _Sender(session, url)
    *others, last = demo_cloud.PROVIDERS
    if send('GET', send.path(last.name), accepted=404).ok:
        return 'The demo cloud is already registered.'
    traits = {worlds.trait(short) for provider in others for short in provider.traits}
    classes = {name for provider in others for name in provider.inventories}
    for kind, names in (('traits', traits), ('resource_classes', classes)):
        for name in sorted(name for name in names if name.startswith('CUSTOM_')):
            send('PUT', f'/{kind}/{name}')
    for provider in others:
        _add(send, provider)
    consumers = demo_cloud.consumers()
    path = f'/allocations/{next(iter(consumers))}'
    if not send('GET', path).json()['allocations']:
        send('POST', '/allocations', consumers)
    (reduced,) = (one for one in others if one.name == demo_cloud.REDUCED_HOST)
    inventories = demo_cloud.inventories(reduced)
    inventories['VCPU']['allocation_ratio'] = demo_cloud.REDUCED_RATIO
    send.put(reduced.name, 'inventories', inventories)
    _add(send, last)
    roots = sum(provider.parent is None for provider in demo_cloud.PROVIDERS)
    return f'The demo cloud is registered: {roots} provider trees, {len(consumers)} consumers.'


class _Sender:
    """Sends requests to the service, in the latest microversion."""

    def __init__(self, session: requests.Session, url: str) -> None:
        self._session = session
        self._url = url

    def __call__(
        self, method: str, path: str, body: Any = None, accepted: int = 0
    ) -> requests.Response:
        """Return the response.

        :param accepted: a status of an error that is not raised
        :raises UnexpectedResponseError: Placement refused the request
        """
        headers = {'OpenStack-API-Version': 'placement latest'}
        response = self._session.request(method, self._url + path, json=body, headers=headers)
        if not response.ok and response.status_code != accepted:
            raise UnexpectedResponseError(method, path, response)
        return response

    @staticmethod
    def path(name: str) -> str:
        return f'/resource_providers/{demo_cloud.uuid_of(name)}'

    def put(self, name: str, kind: str, values: Any) -> None:
        """Replace the inventories, the traits, or the aggregates of a provider."""
        generation = self('GET', self.path(name)).json()['generation']
        body = {kind: values, 'resource_provider_generation': generation}
        self('PUT', f'{self.path(name)}/{kind}', body)


def _add(send: _Sender, provider: worlds.Host) -> None:
    body = {'name': provider.name, 'uuid': demo_cloud.uuid_of(provider.name)}
    if provider.parent is not None:
        body['parent_provider_uuid'] = demo_cloud.uuid_of(provider.parent)
    created = send('POST', '/resource_providers', body, accepted=409)
    if send('GET', send.path(provider.name), accepted=404).status_code == 404:
        raise UnexpectedResponseError('POST', '/resource_providers', created)
    send.put(provider.name, 'inventories', demo_cloud.inventories(provider))
    traits = [worlds.trait(short) for short in provider.traits]
    aggregates = [demo_cloud.uuid_of(name) for name in provider.aggregates]
    for kind, values in (('traits', traits), ('aggregates', aggregates)):
        if values:
            send.put(provider.name, kind, values)


if __name__ == '__main__':
    main()
