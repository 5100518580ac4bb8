"""An account without privileges: reads succeed; writes fail with 503 and one line in the log."""

import http.client
import logging
from pathlib import Path
from typing import Any

import fixtures
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

from placement import db_api, handler
from placement.tests import servers
from placement.tests.functional.faults import machines
from placement.tests.functional.races import testcase
from placement.tests.waiting import LONGEST

HOST = '7b9e1d1c-0000-4000-8000-000000000001'
UNUSED = '7b9e1d1c-0000-4000-8000-000000000003'
NEW = '7b9e1d1c-0000-4000-8000-000000000002'
AGGREGATE = '7b9e1d1c-0000-4000-8000-00000000000a'
CONSUMER = '7b9e1d1c-0000-4000-8000-0000000000c1'
PROVIDER = f'/resource_providers/{HOST}'
TEMPLATE = '/resource_providers/{uuid}'


def claim(generation: int | None, amount: int) -> dict[str, Any]:
    return {
        'allocations': {HOST: {'resources': {'VCPU': amount}}},
        'project_id': 'p',
        'user_id': 'u',
        'consumer_generation': generation,
        'consumer_type': 'INSTANCE',
    }


def inventories(generation: int, total: int) -> dict[str, Any]:
    return {
        'resource_provider_generation': generation,
        'inventories': {'VCPU': {'total': total}},
    }


# The requests that create the data of a test.
WORLD: tuple[tuple[str, str, Any], ...] = (
    ('PUT', '/traits/CUSTOM_T', None),
    ('PUT', '/traits/CUSTOM_UNUSED', None),
    ('PUT', '/resource_classes/CUSTOM_A', None),
    ('POST', '/resource_providers', {'name': 'host', 'uuid': HOST}),
    ('PUT', f'{PROVIDER}/inventories', inventories(0, 8)),
    (
        'PUT',
        f'{PROVIDER}/traits',
        {'resource_provider_generation': 1, 'traits': ['CUSTOM_T']},
    ),
    (
        'PUT',
        f'{PROVIDER}/aggregates',
        {'resource_provider_generation': 2, 'aggregates': [AGGREGATE]},
    ),
    ('PUT', f'/allocations/{CONSUMER}', claim(None, 1)),
    ('POST', '/resource_providers', {'name': 'unused', 'uuid': UNUSED}),
    ('PUT', f'/resource_providers/{UNUSED}/inventories', inventories(0, 8)),
)
GENERATION = 4
# Method and path with parameters -> a valid request that changes data: its path and its body.
WRITES: dict[tuple[str, str], tuple[str, Any]] = {
    ('POST', '/resource_classes'): ('/resource_classes', {'name': 'CUSTOM_B'}),
    ('PUT', '/resource_classes/{name}'): ('/resource_classes/CUSTOM_B', None),
    ('DELETE', '/resource_classes/{name}'): ('/resource_classes/CUSTOM_A', None),
    ('POST', '/resource_providers'): ('/resource_providers', {'name': 'new', 'uuid': NEW}),
    ('PUT', TEMPLATE): (PROVIDER, {'name': 'renamed'}),
    ('DELETE', TEMPLATE): (f'/resource_providers/{UNUSED}', None),
    ('POST', f'{TEMPLATE}/inventories'): (
        f'{PROVIDER}/inventories',
        {'resource_class': 'DISK_GB', 'total': 1, 'resource_provider_generation': GENERATION},
    ),
    ('PUT', f'{TEMPLATE}/inventories'): (f'{PROVIDER}/inventories', inventories(GENERATION, 9)),
    ('DELETE', f'{TEMPLATE}/inventories'): (f'/resource_providers/{UNUSED}/inventories', None),
    ('PUT', f'{TEMPLATE}/inventories/{{resource_class}}'): (
        f'{PROVIDER}/inventories/VCPU',
        {'total': 9, 'resource_provider_generation': GENERATION},
    ),
    ('DELETE', f'{TEMPLATE}/inventories/{{resource_class}}'): (
        f'/resource_providers/{UNUSED}/inventories/VCPU',
        None,
    ),
    ('PUT', f'{TEMPLATE}/aggregates'): (
        f'{PROVIDER}/aggregates',
        {'resource_provider_generation': GENERATION, 'aggregates': []},
    ),
    ('PUT', f'{TEMPLATE}/traits'): (
        f'{PROVIDER}/traits',
        {'resource_provider_generation': GENERATION, 'traits': []},
    ),
    ('DELETE', f'{TEMPLATE}/traits'): (f'{PROVIDER}/traits', None),
    ('PUT', '/traits/{name}'): ('/traits/CUSTOM_NEW', None),
    ('DELETE', '/traits/{name}'): ('/traits/CUSTOM_UNUSED', None),
    ('PUT', '/allocations/{consumer_uuid}'): (f'/allocations/{CONSUMER}', claim(1, 2)),
    ('DELETE', '/allocations/{consumer_uuid}'): (f'/allocations/{CONSUMER}', None),
    ('POST', '/allocations'): ('/allocations', {NEW: claim(None, 1)}),
    ('POST', '/reshaper'): (
        '/reshaper',
        {'inventories': {HOST: inventories(GENERATION, 9)}, 'allocations': {CONSUMER: claim(1, 2)}},
    ),
}
READS = (
    '/',
    '/resource_providers',
    PROVIDER,
    f'{PROVIDER}/inventories',
    f'/allocations/{CONSUMER}',
    '/allocation_candidates?resources=VCPU:1',
    '/usages?project_id=p',
    '/traits',
    '/resource_classes',
)
DENIAL = (
    r'The database denies access: .+\. Grant the privileges to the user, or correct '
    r'\[placement_database\] connection\.'
)


def log_of_failures() -> fixtures.FakeLogger:
    """Return a context that captures the lines of Placement at WARNING and above."""
    return fixtures.FakeLogger(
        'placement', level=logging.WARNING, format='%(levelname)s %(message)s'
    )


class MissingPrivilegesTest(testcase.RaceTestCase):
    def setUp(self) -> None:
        machines.engine_of_run()
        super().setUp()
        for method, path, body in WORLD:
            self.send_ok(method, path, body)

    def connect_as(self, url: sa.URL) -> None:
        """Let the service use another account from now on."""
        restore = db_api.placement_context_manager.patch_factory(enginefacade.transaction_context())
        self.addCleanup(restore)
        db_api.configure.reset()
        self.addCleanup(db_api.configure.reset)
        self.config.set_override(
            'connection', url.render_as_string(hide_password=False), 'placement_database'
        )
        db_api.configure(self.config)
        self.addCleanup(db_api.get_placement_engine().dispose)

    def create_account(self, *privileges: str) -> sa.URL:
        return servers.create_account(db_api.get_placement_engine().url, privileges)

    def assertDenied(self, method: str, path: str, body: Any = None) -> None:
        with log_of_failures() as log:
            response = self.send(method, path, body)
        label = f'{method} {path}: {response.body} {log.output}'
        self.assertEqual(503, response.status, label)
        self.assertUnavailable(response)
        self.assertNotIn('denied', str(response.body))
        self.assertRegex(log.output, rf'\AERROR {DENIAL}\n\Z', label)

    def test_every_route_is_tested(self) -> None:
        declared = {
            (method, path)
            for path, methods in handler.ROUTE_DECLARATIONS.items()
            for method in methods
            if method != 'GET'
        }
        self.assertEqual(declared, set(WRITES))

    def test_an_account_that_only_reads(self) -> None:
        self.connect_as(self.create_account('SELECT'))
        with log_of_failures() as log:
            for path in READS:
                self.assertEqual(200, self.send('GET', path).status, path)
        self.assertEqual('', log.output)
        for (method, _), (path, body) in WRITES.items():
            self.assertDenied(method, path, body)

    def test_an_account_that_cannot_insert(self) -> None:
        self.connect_as(self.create_account('SELECT', 'UPDATE', 'DELETE'))
        self.assertDenied('POST', '/resource_providers', {'name': 'new', 'uuid': NEW})
        self.assertEqual(200, self.send('GET', PROVIDER).status)

    def test_the_password_changes(self) -> None:
        admin = db_api.get_placement_engine().url
        account = self.create_account('SELECT')
        self.connect_as(account)
        self.assertEqual(200, self.send('GET', PROVIDER).status)
        servers.change_password(admin, account)
        db_api.get_placement_engine().dispose()
        self.assertDenied('GET', PROVIDER)
        self.assertDenied('DELETE', PROVIDER)

    def test_the_log_contains_neither_a_statement_nor_a_traceback(self) -> None:
        account = self.create_account('SELECT').render_as_string(hide_password=False)
        log = Path(self.useFixture(fixtures.TempDir()).path) / 'log'
        worker = machines.Worker(account, log=log)
        self.addCleanup(worker.remove)
        connection = http.client.HTTPConnection('127.0.0.1', worker.port, timeout=LONGEST)
        self.addCleanup(connection.close)
        headers = {'X-Auth-Token': 'admin', 'OpenStack-API-Version': 'placement latest'}
        connection.request('PUT', '/traits/CUSTOM_NEW', headers=headers)
        self.assertEqual(503, connection.getresponse().status)
        worker.stop()
        text = log.read_text()
        self.assertRegex(text, rf' ERROR placement\.db\.failures \[.*\] {DENIAL}')
        self.assertEqual(1, text.count(' ERROR '), text)
        for fragment in ('Traceback', 'INSERT INTO', ' WARNING placement.db'):
            self.assertNotIn(fragment, text)
