"""A database server that accepts connections but does not respond delays requests for a while."""

from collections.abc import Iterator
import contextlib
from typing import Any
import uuid

import sqlalchemy as sa
from sqlalchemy import event

from placement import db_api
from placement.db.sqlalchemy import migration
from placement.tests.functional.faults import machines
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim

CONNECT = 2
READ = 4


class ServerHangsTest(testcase.RaceTestCase):
    options = {'connect_timeout': CONNECT, 'read_timeout': READ, 'write_timeout': READ}

    def setUp(self):
        self.server = machines.DatabaseServer()
        self.addCleanup(self.server.remove)
        self.connection = self.server.create_database('placement')
        super().setUp()
        self.provider = self.make_provider({'VCPU': 1000})
        self.engine = db_api.get_placement_engine()

    def claim(self) -> testcase.Response:
        """Claim one VCPU for a new consumer."""
        return self.send('PUT', f'/allocations/{uuid.uuid4()}', claim({self.provider: 1}))

    @contextlib.contextmanager
    def hanging_at(self, moment: str, statement: str = '') -> Iterator[None]:
        """Let the server hang at an event of the engine, for example at a statement."""

        def hang(_conn: sa.Connection, *arguments: Any) -> None:
            if not statement or arguments[1].startswith(statement):
                self.server.hang()

        event.listen(self.engine, moment, hang)
        try:
            yield
        finally:
            event.remove(self.engine, moment, hang)

    def resume(self) -> None:
        """Resume the server; the service works again without a restart."""
        self.server.resume()
        self.assertEqual(200, self.send('GET', '/resource_classes').status)
        self.assertEqual(204, self.claim().status)
        self.audit()

    def test_before_a_request(self):
        """All pooled connections are lost, and new ones are not accepted."""
        self.server.hang()
        for _ in range(2):
            for response in (self.send('GET', '/resource_classes'), self.claim()):
                self.assertEqual(503, response.status)
                self.assertEqual('1', response.headers['Retry-After'])
        self.resume()

    def test_during_a_claim(self):
        with self.hanging_at('before_cursor_execute', 'INSERT INTO allocations'):
            response = self.claim()
        self.assertEqual(503, response.status)
        self.assertIn('unavailable', response.detail)
        self.resume()

    def test_during_a_commit(self):
        with self.hanging_at('commit'):
            response = self.claim()
        self.assertEqual(503, response.status)
        self.assertIn('may or may not', response.detail)
        self.resume()

    def test_a_migration_has_no_limit_for_reading(self):
        mysql = self.engine.dialect.name == 'mysql'
        slow = f'SELECT SLEEP({READ + 1})' if mysql else f'SELECT pg_sleep({READ + 1})'
        with migration.exclusive_transaction(self.engine) as conn:
            conn.exec_driver_sql(slow)
        with self.engine.connect() as conn:
            self.assertRaises(Exception, conn.exec_driver_sql, slow)
            self.assertTrue(conn.invalidated)
        self.resume()
