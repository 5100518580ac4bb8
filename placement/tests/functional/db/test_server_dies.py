"""The service works again after the kill of a database server, and after locks."""

import time
import uuid

import fixtures

from placement import db_api
from placement.db import connections, retry
from placement.tests.functional.faults import machines, storm
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim
from placement.tests.waiting import LONGEST


class ServerDiesTest(testcase.RaceTestCase):
    def setUp(self):
        self.server = machines.DatabaseServer()
        self.addCleanup(self.server.remove)
        self.connection = self.server.create_database('placement')
        super().setUp()

    def test_claims_succeed_after_a_restart(self):
        """Responses are 503 while the server is stopped, and succeed after its restart."""
        provider = self.make_provider({'VCPU': 100000})
        errors = []

        def send_claim(number: int, consumer: str) -> int:
            response = self.send('PUT', f'/allocations/{consumer}', claim({provider: 1}))
            if response.status != 204:
                errors.append(response)
            return response.status

        with storm.Storm(send_claim).running() as running:
            for _ in range(2):
                running.wait_for(204, 40)
                self.server.kill()
                running.wait_for(503, 20)
                self.assertEqual(503, self.send('GET', '/resource_classes').status)
                self.server.start()
                running.wait_for(204, 40)

        self.assertEqual({204, 503}, set(running.statuses), errors[-1:])
        for response in errors:
            self.assertEqual('1', response.headers['Retry-After'])
            self.assertEqual('placement.undefined_code', response.code)
            self.assertNotIn('allocations', response.detail)
        self.assertEqual((set(), set()), running.compare(db_api.get_placement_engine()))
        self.audit()


class LockedTest(testcase.RaceTestCase):
    """Another program locks rows or tables."""

    def setUp(self):
        self.engine = machines.engine_of_run()
        self.useFixture(fixtures.MockPatchObject(connections, 'LOCK_SECONDS', 1))
        self.useFixture(fixtures.MockPatchObject(retry, 'DEADLINE', 1.5))
        super().setUp()
        self.provider = self.make_provider({'VCPU': 10})
        self.url = db_api.get_placement_engine().url.render_as_string(hide_password=False)

    def put(self) -> testcase.Response:
        return self.send('PUT', f'/allocations/{uuid.uuid4()}', claim({self.provider: 1}))

    def test_a_lock_beyond_the_deadline_is_503(self):
        table = 'LOCK TABLES allocations WRITE'
        if self.engine == 'postgresql':
            table = 'LOCK TABLE allocations IN ACCESS EXCLUSIVE MODE'
        own = f'/resource_providers/{self.provider}'
        for lock, path, status in (
            ('SELECT id FROM resource_providers FOR UPDATE', own, 200),
            (table, f'{own}/allocations', 503),
        ):
            with self.subTest(lock), machines.other_connection(self.url) as conn:
                conn.exec_driver_sql(lock)
                self.assertUnavailable(self.put())
                self.assertEqual(status, self.send('GET', path).status)
            self.assertEqual(204, self.put().status)
            self.audit()

    def test_a_write_waits_for_a_row_lock_within_the_deadline(self):
        """The lock is released before the deadline, but after the end of one attempt."""
        self.useFixture(fixtures.MockPatchObject(retry, 'DEADLINE', LONGEST))
        with machines.other_connection(self.url) as conn:
            conn.exec_driver_sql('SELECT id FROM resource_providers FOR UPDATE')
            racing = testcase.start(self.put)
            time.sleep(2)
        self.assertEqual(204, racing.result(LONGEST).status)
        self.audit()
