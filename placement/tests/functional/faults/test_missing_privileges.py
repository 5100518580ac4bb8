"""An account without privileges: reads succeed; writes fail with 503 and one line in the log."""

import logging
from pathlib import Path

import fixtures
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

from placement import db_api
from placement.db import engine
from placement.tests import servers
from placement.tests.functional.faults import machines, storm
from placement.tests.functional.races import testcase, writers

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
        self.path = f'/resource_providers/{self.make_provider()}'

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
        self.addCleanup(engine.get_pools().pool.dispose)

    def create_account(self, *privileges: str) -> sa.URL:
        return servers.create_account(db_api.get_placement_engine().url, privileges)

    def assertDenied(self, method: str, path: str) -> None:
        with log_of_failures() as log:
            response = self.send(method, path)
        self.check_denial(response, log.output, f'{method} {path}')

    def check_denial(self, response: testcase.Response, log: str, label: str) -> None:
        self.assertEqual(503, response.status, label)
        self.assertEqual('1', response.headers['Retry-After'])
        self.assertNotIn('denied', str(response.body))
        self.assertRegex(log, rf'\AERROR {DENIAL}\n\Z', label)

    def test_an_account_that_only_reads(self) -> None:
        writers.RECORDED.write(db_api.get_placement_engine())
        self.connect_as(self.create_account('SELECT'))
        with log_of_failures() as log:
            for request in (*writers.reads(), *writers.searches()):
                status = self.send('GET', request.path).status
                self.assertIn(status, (200, 400), request.path)
        self.assertEqual('', log.output)
        denied = set()
        for request in writers.every(writers.RECORDED):
            with log_of_failures() as log:
                response = self.send(request.method, request.path, request.body, request.version)
            self.assertGreaterEqual(response.status, 204, request.name)
            if response.status == 503:
                self.check_denial(response, log.output, request.name)
                denied.add(request.route)
        self.assertEqual(writers.writing_routes(), denied)

    def test_the_password_changes(self) -> None:
        admin = db_api.get_placement_engine().url
        account = self.create_account('SELECT')
        self.connect_as(account)
        self.assertEqual(200, self.send('GET', self.path).status)
        servers.change_password(admin, account)
        engine.get_pools().pool.dispose()
        self.assertDenied('GET', self.path)
        self.assertDenied('DELETE', self.path)

    def test_the_log_contains_neither_a_statement_nor_a_traceback(self) -> None:
        account = self.create_account('SELECT').render_as_string(hide_password=False)
        log = Path(self.useFixture(fixtures.TempDir()).path) / 'log'
        worker = machines.Worker(account, log=log)
        self.addCleanup(worker.remove)
        self.assertEqual(503, storm.send(worker.port, 'PUT', '/traits/CUSTOM_NEW'))
        worker.stop()
        text = log.read_text()
        self.assertRegex(text, rf' ERROR placement\.db\.failures \[.*\] {DENIAL}')
        self.assertEqual(1, text.count(' ERROR '), text)
        for fragment in ('Traceback', 'INSERT INTO', ' WARNING placement.db'):
            self.assertNotIn(fragment, text)
