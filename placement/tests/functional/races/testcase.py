"""A test case that sends concurrent requests from several threads to a service."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent import futures
import contextlib
from dataclasses import dataclass
import json
import logging
import os
import sys
import tempfile
import threading
from typing import Any
import uuid

import fixtures
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslotest import base
import webob

from placement import conf, db_api, deploy
from placement.http import Application
from placement.tests import servers, where
from placement.tests.documented import Documented
from placement.tests.functional import base as functional_base
from placement.tests.functional.fixtures import capture
from placement.tests.functional.fixtures.placement import PlacementFixture
from placement.tests.functional.races import audit
from placement.tests.waiting import LONGEST

CLIENTS = 10


@dataclass(frozen=True, slots=True)
class Response:
    """A response of the service."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> str | None:
        """The error code of an error, otherwise None."""
        return self.body['errors'][0].get('code') if self.status >= 400 else None

    @property
    def detail(self) -> str:
        """The detail of an error, otherwise an empty string."""
        return str(self.body['errors'][0]['detail']) if self.status >= 400 else ''


Call = Callable[[], Response]


def send(
    application: Application, method: str, path: str, body: Any = None, version: str = 'latest'
) -> Response:
    """Send one request to an application and return the response."""
    request = webob.Request.blank(
        path,
        method=method,
        headers={
            'X-Auth-Token': 'admin',
            'X-Roles': 'admin,service',
            'OpenStack-API-Version': f'placement {version}',
        },
    )
    if body is not None:
        request.content_type = 'application/json'
        request.body = json.dumps(body).encode()
    response = request.get_response(application)
    document = json.loads(response.body) if response.body else None
    return Response(response.status_int, document, dict(response.headers))


class RaceTestCase(base.BaseTestCase):
    """Creates an empty service for each test.

    `send` sends one request, `race` sends many from concurrent clients.
    """

    # The database URL, if the test does not use the engine of the test run.
    connection: str | None = None
    options: dict[str, Any] = {}

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(capture.Logging())
        config = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        conf.register_opts(config.conf)
        config.config(group='placement_database', **self.options)
        if self.connection is not None:
            config.config(group='placement_database', connection=self.connection)
        service = PlacementFixture(conf_fixture=config, use_intercept=False, register_opts=False)
        self.useFixture(service)
        self.config = config.conf
        self.application = Documented(deploy.loadapp(self.config))
        # Switch threads often, also between two statements.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(0.0005)

    def send(self, method: str, path: str, body: Any = None, version: str = 'latest') -> Response:
        """Send one request and return the response."""
        return send(self.application, method, path, body, version)

    def send_ok(self, method: str, path: str, body: Any = None, version: str = 'latest') -> Any:
        """Send a request, require that it succeeds, and return the body of the response."""
        response = self.send(method, path, body, version)
        self.assertLess(response.status, 300, f'{method} {path}: {response.body}')
        return response.body

    def race(
        self, calls: Sequence[Call], clients: int = CLIENTS, may_exceed: bool = False
    ) -> list[Response]:
        """Make the calls from several threads that start together; return the responses in order.

        No response is 500 or 503, and afterwards the data breaks no rule.

        :param may_exceed: usage may exceed the capacity, because inventories were reduced
        """
        start = threading.Barrier(min(clients, len(calls)))
        first = threading.local()

        def make(call: Call) -> Response:
            if not getattr(first, 'done', False):
                first.done = True
                with contextlib.suppress(threading.BrokenBarrierError):
                    start.wait(LONGEST)
            return call()

        with futures.ThreadPoolExecutor(start.parties) as pool:
            responses = list(pool.map(make, calls))
        for response in responses:
            self.assertLess(response.status, 500, response.body)
        self.audit(may_exceed)
        return responses

    def statuses(self, calls: Sequence[Call]) -> Counter[int]:
        """Make the calls from several threads, and count the responses by status."""
        return Counter(response.status for response in self.race(calls))

    def claims(self, provider: str, count: int, amount: int = 1) -> list[Call]:
        """Claims of new consumers."""
        body = claim({provider: amount})
        return [self.call('PUT', f'/allocations/{uuid.uuid4()}', body) for _ in range(count)]

    def race_with_deletion(
        self, path: str, calls: Sequence[Call], deleted: int, kept: int, code: str | None = None
    ) -> None:
        """Delete an object while the calls use it.

        :param deleted: the status of all calls if the object was deleted
        :param kept: the status of all calls if it was not, because they use it
        :param code: the error code of the deletion if it was not deleted
        """
        middle = len(calls) // 2
        all_calls = [*calls[:middle], self.call('DELETE', path), *calls[middle:]]
        responses = self.race(all_calls)
        deletion = responses.pop(middle)
        self.assertIn(deletion.status, (204, 409))
        expected = deleted if deletion.status == 204 else kept
        self.assertEqual({expected}, {response.status for response in responses})
        if code and deletion.status == 409:
            self.assertEqual(code, deletion.code)

    def assertUnavailable(self, response: Response) -> None:
        self.assertEqual(503, response.status, response.body)
        self.assertEqual('1', response.headers['Retry-After'])
        self.assertEqual('placement.undefined_code', response.code)

    def audit(self, may_exceed: bool = False) -> None:
        """Fail if the data breaks a rule."""
        self.assertEqual([], audit.problems(db_api.get_placement_engine(), may_exceed))

    @contextlib.contextmanager
    def retries(self) -> Iterator[list[str]]:
        """Collect the lines that the service logs before it retries a transaction."""
        lines: list[str] = []
        with fixtures.FakeLogger('placement.db.retry', logging.DEBUG) as log:
            yield lines
        lines.extend(line for line in log.output.splitlines() if line.startswith('Retrying'))

    def call(self, method: str, path: str, body: Any = None, version: str = 'latest') -> Call:
        """Return a function that sends a request."""
        return lambda: self.send(method, path, body, version)

    def make_provider(
        self, inventory: dict[str, int] | None = None, parent: str | None = None
    ) -> str:
        """Create a provider with an inventory of these totals, and return its UUID."""
        own = str(uuid.uuid4())
        body = {'name': f'provider-{own}', 'uuid': own}
        if parent:
            body['parent_provider_uuid'] = parent
        self.send_ok('POST', '/resource_providers', body)
        if inventory:
            self.send_ok(
                'PUT', f'/resource_providers/{own}/inventories', inventories_of(inventory, 0)
            )
        return own

    def provider(self, own: str) -> Any:
        return self.send_ok('GET', f'/resource_providers/{own}')

    def used(self, provider: str, name: str = 'VCPU') -> int:
        usages = self.send_ok('GET', f'/resource_providers/{provider}/usages')['usages']
        return int(usages.get(name, 0))


def inventories_of(totals: dict[str, int], generation: int) -> dict[str, Any]:
    """The body of PUT /resource_providers/{uuid}/inventories."""
    return {
        'resource_provider_generation': generation,
        'inventories': {name: {'total': total} for name, total in totals.items()},
    }


def claim(
    shares: dict[str, int], generation: int | None = None, project: str = 'project'
) -> dict[str, Any]:
    """The body of PUT /allocations/{consumer} for so many VCPU of each provider."""
    vcpu = {provider: {'VCPU': amount} for provider, amount in shares.items()}
    return functional_base.claim(vcpu, generation, project)


def claim_1_27(shares: dict[str, int]) -> dict[str, Any]:
    """The same for microversions before 1.28, without a consumer generation."""
    body = claim(shares)
    return {key: body[key] for key in ('allocations', 'project_id', 'user_id')}


class FileTestCase(RaceTestCase):
    """Uses a server or a file; the service serializes only the connections of memory."""

    options = {'sqlite_synchronous': False}

    def setUp(self) -> None:
        if not uses_server():
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            self.connection = f'sqlite:///{folder.name}/placement.db'
        super().setUp()


@where.only_on('sqlite', reason='This run is on a database server.')
class SqliteFileTestCase(FileTestCase):
    """Uses a database file."""


def in_order(value: Any) -> Any:
    """Sort all lists of a body: the service promises no order."""
    if isinstance(value, list):
        return sorted(map(in_order, value), key=json.dumps)
    if isinstance(value, dict):
        return {key: in_order(value[key]) for key in sorted(value)}
    return value


def uses_server() -> bool:
    """Whether this run has a database server."""
    return servers.ADMIN_URL in os.environ


def start(call: Call) -> 'futures.Future[Response]':
    """Make a call in another thread."""
    pool = futures.ThreadPoolExecutor(1)
    racing = pool.submit(call)
    pool.shutdown(wait=False)
    return racing
