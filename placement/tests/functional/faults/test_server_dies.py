"""The database server is killed in the middle of a storm, and comes back."""

import time
from unittest import mock
import uuid

from placement import db_api
from placement.db import retry, sessions
from placement.tests.functional.faults import machines, storm
from placement.tests.functional.races import arena
from placement.tests.functional.races.arena import claim


class ServerDiesTest(arena.Arena):
    def setUp(self):
        self.server = machines.DatabaseServer()
        self.addCleanup(self.server.remove)
        self.connection = self.server.create_database('placement')
        super().setUp()

    def test_kill_and_restart(self):
        """503 while it is away; then success, in the same process."""
        provider = self.make_provider({'VCPU': 100000})
        refusals = []

        def ask(number: int, consumer: str) -> int:
            answer = self.ask('PUT', f'/allocations/{consumer}', claim({provider: 1}))
            if answer.status != 204:
                refusals.append(answer)
            return answer.status

        with storm.Storm(ask).raging() as raging:
            for _ in range(2):
                raging.wait_for(204, 40)
                self.server.kill()
                raging.wait_for(503, 20)
                self.assertEqual(503, self.ask('GET', '/resource_classes').status)
                self.server.start()
                raging.wait_for(204, 40)

        self.assertEqual({204, 503}, set(raging.statuses), refusals[-1:])
        for answer in refusals:
            self.assertEqual('1', answer.headers['Retry-After'])
            self.assertEqual('placement.undefined_code', answer.code)
            self.assertNotIn('allocations', answer.detail)
        lost, ghosts = raging.account(db_api.get_placement_engine())
        self.assertEqual((set(), set()), (lost, ghosts))
        self.audit()


class WorkerDiesTest(arena.Arena):
    """Two processes serve; one of them is killed in the middle of a storm, and comes back."""

    def setUp(self):
        machines.engine_of_run()
        super().setUp()
        url = db_api.get_placement_engine().url.render_as_string(hide_password=False)
        self.workers = []
        for _ in range(2):
            worker = machines.Worker(url)
            self.addCleanup(worker.remove)
            self.workers.append(worker)

    def test_kill_and_restart(self):
        provider = self.make_provider({'VCPU': 100000})

        def ask(number: int, consumer: str) -> int:
            port = self.workers[number % 2].port
            body = claim({provider: 1}, project=f'project-{number}')
            return storm.send(port, 'PUT', f'/allocations/{consumer}', body)

        with storm.Storm(ask).raging() as raging:
            for _ in range(2):
                raging.wait_for(204, 30)
                self.workers[0].kill()
                raging.wait_for(storm.NONE, 4)
                raging.wait_for(204, 10)
                self.workers[0].start()
                raging.wait_for(204, 20)
        self.assertEqual({204, storm.NONE}, set(raging.statuses))
        lost, ghosts = raging.account(db_api.get_placement_engine())
        self.assertEqual((set(), set()), (lost, ghosts))
        self.audit()


class StrangerTest(arena.Arena):
    """Somebody who is no part of the service holds a lock, or the connection breaks."""

    def setUp(self):
        self.engine = machines.engine_of_run()
        for module, name, value in (
            (sessions, 'LOCK_SECONDS', 1),
            (retry, 'DEADLINE', 1.5),
        ):
            patch = mock.patch.object(module, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        super().setUp()
        self.url = db_api.get_placement_engine().url.render_as_string(hide_password=False)

    def assertRefused(self, answer: arena.Answer) -> None:
        self.assertEqual(503, answer.status, answer.body)
        self.assertEqual('1', answer.headers['Retry-After'])
        self.assertEqual('placement.undefined_code', answer.code)

    def test_row_is_locked(self):
        provider = self.make_provider({'VCPU': 10})
        put = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        with machines.stranger(self.url) as conn:
            conn.exec_driver_sql('SELECT id FROM resource_providers FOR UPDATE')
            begin = time.monotonic()
            self.assertRefused(put())
            self.assertLess(time.monotonic() - begin, 8)
            self.assertEqual(200, self.ask('GET', f'/resource_providers/{provider}').status)
            self.audit()
        self.assertEqual(204, put().status)
        self.audit()

    def test_row_is_locked_for_a_moment(self):
        """A lock that goes within the deadline is waited for, longer than one attempt lasts."""
        provider = self.make_provider({'VCPU': 10})
        put = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        with mock.patch.object(retry, 'DEADLINE', 20), machines.stranger(self.url) as conn:
            conn.exec_driver_sql('SELECT id FROM resource_providers FOR UPDATE')
            racing = arena.start(put)
            time.sleep(2)
        self.assertEqual(204, racing.result(20).status)
        self.audit()

    def test_table_is_locked(self):
        provider = self.make_provider({'VCPU': 10})
        put = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        with machines.stranger(self.url) as conn:
            if self.engine == 'mariadb':
                conn.exec_driver_sql('LOCK TABLES allocations WRITE')
            else:
                conn.exec_driver_sql('LOCK TABLE allocations IN ACCESS EXCLUSIVE MODE')
            self.assertRefused(put())
            self.assertRefused(self.ask('GET', f'/resource_providers/{provider}/allocations'))
            if self.engine == 'mariadb':
                conn.exec_driver_sql('UNLOCK TABLES')
        self.assertEqual(204, put().status)
        self.audit()

    def test_connection_breaks_before_commit(self):
        """Nothing has happened yet, so it is done again."""
        with self.broken('before_cursor_execute', 'INSERT INTO resource_providers') as breaks:
            answer = self.ask('POST', '/resource_providers', {'name': 'host'})
        self.assertEqual((200, 1), (answer.status, len(breaks)))
        self.audit()

    def test_connection_breaks_while_committing(self):
        """Nobody knows what became of it, so it is not done again."""
        with self.broken('commit') as breaks:
            answer = self.ask('POST', '/resource_providers', {'name': 'host'})
        self.assertRefused(answer)
        self.assertIn('may or may not', answer.detail)
        self.assertEqual(1, len(breaks))
        self.assertEqual(200, self.ask('POST', '/resource_providers', {'name': 'host'}).status)

    def broken(self, moment: str, text: str = ''):
        return machines.broken_once(db_api.get_placement_engine(), self.url, moment, text)


class FullPoolTest(arena.Arena):
    options = {'max_pool_size': 1, 'max_overflow': 0, 'pool_timeout': 1}

    def setUp(self):
        machines.engine_of_run()
        super().setUp()

    def test_full_pool(self):
        provider = self.make_provider({'VCPU': 10})
        put = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        get = self.call('GET', f'/resource_providers/{provider}')
        with db_api.get_placement_engine().connect():
            for answer in (put(), get()):
                self.assertEqual(503, answer.status, answer.body)
                self.assertEqual('1', answer.headers['Retry-After'])
        self.assertEqual([204, 200], [put().status, get().status])
        self.audit()
