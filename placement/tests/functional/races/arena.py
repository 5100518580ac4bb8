"""Where clients race: a service, and threads that call its application at the same moment."""

from collections.abc import Callable, Sequence
from concurrent import futures
import contextlib
from dataclasses import dataclass
import json
import os
import sys
import tempfile
import threading
from typing import Any
import uuid

from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslotest import base
import webob

from placement import conf, db_api, deploy
from placement.tests import servers
from placement.tests.functional.fixtures import capture
from placement.tests.functional.fixtures.placement import PlacementFixture
from placement.tests.functional.races import audit

CLIENTS = 10


@dataclass(frozen=True, slots=True)
class Answer:
    """What the service answered."""

    status: int
    body: Any
    headers: dict[str, str]

    @property
    def code(self) -> str | None:
        """The error code, of an error."""
        return self.body['errors'][0].get('code') if self.status >= 400 else None

    @property
    def detail(self) -> str:
        """The sentence of an error, nothing otherwise."""
        return str(self.body['errors'][0]['detail']) if self.status >= 400 else ''


Call = Callable[[], Answer]


class Arena(base.BaseTestCase):
    """Gives each test an empty service; `race` is for many clients, `ask` for one."""

    # A database URL of its own, instead of the engine of the run.
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
        self.application = deploy.loadapp(config.conf)
        # Threads change places often, also between two statements.
        self.addCleanup(sys.setswitchinterval, sys.getswitchinterval())
        sys.setswitchinterval(0.0005)

    @property
    def engine_name(self) -> str:
        return db_api.get_placement_engine().dialect.name

    def ask(self, method: str, path: str, body: Any = None, version: str = '1.39') -> Answer:
        """Send one request and give the answer, whatever it is."""
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
        response = request.get_response(self.application)
        document = json.loads(response.body) if response.body else None
        return Answer(response.status_int, document, dict(response.headers))

    def sure(self, method: str, path: str, body: Any = None, version: str = '1.39') -> Any:
        """Send a request that has to succeed, and give the body of the answer."""
        answer = self.ask(method, path, body, version)
        self.assertLess(answer.status, 300, f'{method} {path}: {answer.body}')
        return answer.body

    def race(self, calls: Sequence[Call], clients: int = CLIENTS) -> list[Answer]:
        """Make all calls from several threads that start together; give the answers in order.

        Whatever is raced for: nobody is told 500 or 503, and the data is sound afterwards.
        """
        start = threading.Barrier(min(clients, len(calls)))
        first = threading.local()

        def make(call: Call) -> Answer:
            if not getattr(first, 'done', False):
                first.done = True
                with contextlib.suppress(threading.BrokenBarrierError):
                    start.wait(10)
            return call()

        with futures.ThreadPoolExecutor(start.parties) as pool:
            answers = list(pool.map(make, calls))
        for answer in answers:
            self.assertLess(answer.status, 500, answer.body)
        self.audit()
        return answers

    def audit(self, may_exceed: bool = False) -> None:
        """Fail when the data breaks a rule."""
        self.assertEqual([], audit.problems(db_api.get_placement_engine(), may_exceed))

    def call(self, method: str, path: str, body: Any = None, version: str = '1.39') -> Call:
        """A request to be sent later."""
        return lambda: self.ask(method, path, body, version)

    def make_provider(
        self, inventory: dict[str, int] | None = None, parent: str | None = None
    ) -> str:
        """Make a provider with these totals, and give its uuid."""
        own = str(uuid.uuid4())
        body = {'name': f'provider-{own}', 'uuid': own}
        if parent:
            body['parent_provider_uuid'] = parent
        self.sure('POST', '/resource_providers', body)
        if inventory:
            self.sure('PUT', f'/resource_providers/{own}/inventories', stock(inventory, 0))
        return own

    def provider(self, own: str) -> Any:
        return self.sure('GET', f'/resource_providers/{own}')

    def used(self, provider: str, name: str = 'VCPU') -> int:
        usages = self.sure('GET', f'/resource_providers/{provider}/usages')['usages']
        return int(usages.get(name, 0))


def stock(totals: dict[str, int], generation: int) -> dict[str, Any]:
    """The body of PUT /resource_providers/{uuid}/inventories."""
    return {
        'resource_provider_generation': generation,
        'inventories': {name: {'total': total} for name, total in totals.items()},
    }


def claim(
    shares: dict[str, int], generation: int | None = None, project: str = 'project'
) -> dict[str, Any]:
    """The body of PUT /allocations/{consumer} for so many VCPU of each provider."""
    return {
        'allocations': {rp: {'resources': {'VCPU': amount}} for rp, amount in shares.items()},
        'project_id': project,
        'user_id': 'user',
        'consumer_generation': generation,
        'consumer_type': 'INSTANCE',
    }


def old_claim(shares: dict[str, int]) -> dict[str, Any]:
    """The same for microversions before 1.28, which know no consumer generation."""
    body = claim(shares)
    return {key: body[key] for key in ('allocations', 'project_id', 'user_id')}


class OnSqliteFile(Arena):
    """A database file instead, where threads do not take turns by themselves."""

    options = {'sqlite_synchronous': False}

    def setUp(self) -> None:
        if on_server():
            self.skipTest('this run is about a database server')
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.connection = f'sqlite:///{folder.name}/placement.db'
        super().setUp()


def on_server() -> bool:
    """Whether this run has a database server."""
    return servers.ADMIN_URL in os.environ


def start(call: Call) -> 'futures.Future[Answer]':
    """Make a call in a thread of its own."""
    pool = futures.ThreadPoolExecutor(1)
    racing = pool.submit(call)
    pool.shutdown(wait=False)
    return racing
