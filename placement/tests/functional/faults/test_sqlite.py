"""A database file that somebody holds, and a disk that is full."""

import os
import resource
import tempfile
import time
from unittest import mock
import uuid

import sqlalchemy as sa
from sqlalchemy import event

from placement import db_api
from placement.db import sessions
from placement.tests.functional.faults import machines
from placement.tests.functional.races import arena
from placement.tests.functional.races.arena import claim, old_claim


class SqliteFileTest(arena.Arena):
    def setUp(self):
        if arena.on_server():
            self.skipTest('this run is about a database server')
        patch = mock.patch.object(sessions, 'SQLITE_BUSY_MILLISECONDS', 300)
        patch.start()
        self.addCleanup(patch.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.connection = f'sqlite:///{os.path.join(folder.name, "placement.db")}'
        super().setUp()

    def assertRefused(self, answer: arena.Answer) -> None:
        self.assertEqual(503, answer.status, answer.body)
        self.assertEqual('1', answer.headers['Retry-After'])
        self.assertEqual('placement.undefined_code', answer.code)

    def test_held_by_a_stranger(self):
        provider = self.make_provider({'VCPU': 10})
        put = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        with machines.stranger(self.connection) as conn:
            conn.exec_driver_sql('BEGIN IMMEDIATE')
            begin = time.monotonic()
            self.assertRefused(put())
            self.assertLess(time.monotonic() - begin, 5)
            # Readers are not kept out.
            self.assertEqual(200, self.ask('GET', f'/resource_providers/{provider}').status)
        self.assertEqual(204, put().status)
        self.audit()

    def test_disk_is_full_when_committing(self):
        """No file may grow: SQLite notices when it writes its log, at COMMIT."""
        provider = self.make_provider({'VCPU': 100000})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))
        size = os.path.getsize(f'{self.connection.removeprefix("sqlite:///")}-wal')
        answers = []
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        for _ in range(3):
            for version in ('1.27', '1.39'):
                body = claim({provider: 1}) if version == '1.39' else old_claim({provider: 1})
                answers.append(self.ask('PUT', f'/allocations/{uuid.uuid4()}', body, version))
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        for answer in answers:
            self.assertRefused(answer)
        self.audit()
        self.assertEqual(0, self.used(provider))
        put = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        self.assertEqual(204, put().status)
        self.audit()

    def test_file_is_full(self):
        provider = self.make_provider({'VCPU': 100000})
        engine = db_api.get_placement_engine()

        def limit(conn: sa.Connection) -> None:
            pages = conn.exec_driver_sql('PRAGMA page_count').scalar_one()
            conn.exec_driver_sql(f'PRAGMA max_page_count = {pages + spare}')

        def put(n: int) -> arena.Answer:
            body = claim({provider: 1}, project=f'{n}-'.ljust(250, 'x'))
            return self.ask('PUT', f'/allocations/{uuid.uuid4()}', body)

        event.listen(engine, 'begin', limit)
        spare = 0
        answers = [put(n) for n in range(40)]
        refused = [answer for answer in answers if answer.status != 204]
        self.assertNotEqual([], refused)
        for answer in refused:
            self.assertRefused(answer)
        self.audit()
        spare = 100000
        self.assertEqual(204, put(0).status)
        event.remove(engine, 'begin', limit)
        self.audit()
