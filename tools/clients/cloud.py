"""A cloud for clients: Placement, and an identity service that accepts every password."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
import contextlib
from dataclasses import dataclass, field
from http import HTTPStatus
import json
import threading
from typing import Any
import uuid
from wsgiref.util import shift_path_info

import waitress
from waitress import wasyncore
import webob

from placement import deploy
from placement.http import Application, Environ
from placement.tests import documented
from placement.tests.functional.fixtures import placement as placement_fixture

REGION = 'RegionOne'
PROJECT = '9d2c6b2f7a4e4d1f8f6a3e5b7c9d0e1f'
# The microversion of all clients that can select one.
VERSION = '1.39'


class Recorder(documented.Documented):
    """Counts requests, and records their differences from the documents.

    :ivar statuses: the number of responses by status
    """

    def __init__(self, application: Any) -> None:
        super().__init__(application)
        self.statuses: Counter[HTTPStatus] = Counter()
        self.differences: list[str] = []

    def check(self, exchange: documented.Exchange) -> None:
        """Record a request. A status of 500 or more is a difference, too."""
        self.statuses[exchange.status] += 1
        problems = list(documented.undocumented(exchange))
        if exchange.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            problems.append('the service failed')
        self.differences += [f'{exchange.summary}: {one}' for one in problems]


class Identity:
    """The part of Keystone that clients use to get a token and the catalog.

    :param url: the URL of the cloud
    """

    def __init__(self, url: str) -> None:
        self._url = url

    def __call__(self, environ: Environ, start_response: Callable[..., Any]) -> list[bytes]:
        """Serve a request: a new token, or the version of the API."""
        headers = [('Content-Type', 'application/json')]
        if environ['REQUEST_METHOD'] == 'POST':
            # With noauth2, the token contains the user and the project.
            headers.append(('X-Subject-Token', f'admin:{PROJECT}'))
            start_response('201 Created', headers)
            return [json.dumps({'token': self._token()}).encode()]
        version = {
            'id': 'v3.14',
            'status': 'stable',
            'links': [{'rel': 'self', 'href': f'{self._url}/identity/v3/'}],
        }
        start_response('200 OK', headers)
        return [json.dumps({'version': version}).encode()]

    def _token(self) -> dict[str, Any]:
        domain = {'id': 'default', 'name': 'Default'}
        return {
            'methods': ['password'],
            'user': {'id': 'admin', 'name': 'admin', 'domain': domain},
            'project': {'id': PROJECT, 'name': 'admin', 'domain': domain},
            'roles': [{'id': 'admin', 'name': 'admin'}],
            'issued_at': '2020-01-01T00:00:00.000000Z',
            'expires_at': '2100-01-01T00:00:00.000000Z',
            # With noauth2, a request for the versions needs no token only if its path is `/`.
            'catalog': [self._service('placement', '/'), self._service('identity', '/v3')],
        }

    def _service(self, name: str, path: str) -> dict[str, Any]:
        endpoints = [
            {
                'id': f'{name}-{interface}',
                'interface': interface,
                'region': REGION,
                'region_id': REGION,
                'url': f'{self._url}/{name}{path}',
            }
            for interface in ('public', 'internal', 'admin')
        ]
        return {'id': name, 'name': name, 'type': name, 'endpoints': endpoints}


@dataclass(frozen=True, slots=True)
class Host:
    """A provider with an inventory, a trait, and an aggregate, and a consumer of its resources.

    :ivar provider: the UUID of the provider
    :ivar consumer: the UUID of the consumer, which uses one processor
    """

    name = 'host'
    trait = 'HW_CPU_X86_AVX'
    provider: str = field(default_factory=lambda: str(uuid.uuid4()))
    aggregate: str = field(default_factory=lambda: str(uuid.uuid4()))
    consumer: str = field(default_factory=lambda: str(uuid.uuid4()))


class Cloud:
    """A running cloud.

    :ivar url: the URL of the cloud; Placement and the identity service are below it
    """

    def __init__(self, recorder: Recorder, port: int) -> None:
        self.recorder = recorder
        self.url = f'http://127.0.0.1:{port}'

    @property
    def credentials(self) -> dict[str, Any]:
        """Return the options with which a client authenticates."""
        return {
            'auth_url': f'{self.url}/identity/v3',
            'username': 'admin',
            'password': 'any',
            'project_name': 'admin',
            'user_domain_name': 'Default',
            'project_domain_name': 'Default',
        }

    def create_host(self) -> Host:
        """Create a host for clients that only read."""
        host = Host()
        path = f'/resource_providers/{host.provider}'
        self.send('POST', '/resource_providers', {'name': host.name, 'uuid': host.provider})
        parts: tuple[dict[str, Any], ...] = (
            {'inventories': {'VCPU': {'total': 8}}},
            {'traits': [host.trait]},
            {'aggregates': [host.aggregate]},
        )
        for generation, part in enumerate(parts):
            body = {**part, 'resource_provider_generation': generation}
            self.send('PUT', f'{path}/{next(iter(part))}', body)
        claim = {
            'allocations': {host.provider: {'resources': {'VCPU': 1}}},
            'project_id': PROJECT,
            'user_id': 'admin',
            'consumer_generation': None,
            'consumer_type': 'INSTANCE',
        }
        self.send('PUT', f'/allocations/{host.consumer}', claim)
        return host

    def send(self, method: str, path: str, body: dict[str, Any] | None = None) -> None:
        """Send a request that is not counted, for what a client cannot do."""
        headers = {'X-Auth-Token': 'admin', 'OpenStack-API-Version': f'placement {VERSION}'}
        request = webob.Request.blank(path, method=method, headers=headers)
        if body is not None:
            request.content_type = 'application/json'
            request.json = body
        response = request.get_response(self.recorder.application)
        assert response.status_int < HTTPStatus.BAD_REQUEST, response.text


Use = Callable[[Cloud], None]


@contextlib.contextmanager
def running(port: int) -> Iterator[Cloud]:
    """Serve a cloud with an empty database on a loopback port while the context is active."""
    service = placement_fixture.PlacementFixture(use_intercept=False)
    with service:
        assert service.conf_fixture is not None
        cloud = Cloud(Recorder(deploy.loadapp(service.conf_fixture.conf)), port)
        services: dict[str, Application] = {
            'placement': cloud.recorder,
            'identity': Identity(cloud.url),
        }

        def application(environ: Environ, start_response: Any) -> Iterable[bytes]:
            return services[shift_path_info(environ) or ''](environ, start_response)

        sockets: dict[int, Any] = {}
        server = waitress.create_server(
            application, host='127.0.0.1', port=port, threads=4, map=sockets
        )
        stopped = threading.Event()

        def serve() -> None:
            while not stopped.is_set():
                wasyncore.loop(timeout=0.1, map=sockets, count=1)
            # If another thread closed the sockets, this one could wait for a closed one.
            wasyncore.close_all(sockets)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        try:
            yield cloud
        finally:
            server.task_dispatcher.shutdown()
            stopped.set()
            thread.join()
