"""The service reports 503 for a locked SQLite file and for a full disk, and then works again."""

from pathlib import Path
import resource
import tempfile
from unittest import mock
import uuid

from placement.db import connections
from placement.tests import where
from placement.tests.functional.faults import machines
from placement.tests.functional.races import testcase
from placement.tests.functional.races.testcase import claim, claim_1_27


@where.only_on('sqlite', reason='The test runs only on SQLite.')
class SqliteFileTest(testcase.RaceTestCase):
    def setUp(self):
        patch = mock.patch.object(connections, 'SQLITE_BUSY_MILLISECONDS', 300)
        patch.start()
        self.addCleanup(patch.stop)
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name, 'placement.db')
        self.connection = f'sqlite:///{self.path}'
        super().setUp()

    def test_writes_to_a_locked_file_are_503_and_reads_succeed(self):
        provider = self.make_provider({'VCPU': 10})
        put = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        with machines.other_connection(self.connection) as conn:
            conn.exec_driver_sql('BEGIN IMMEDIATE')
            self.assertUnavailable(put())
            # With write-ahead logging, a lock does not block reads.
            self.assertEqual(200, self.send('GET', f'/resource_providers/{provider}').status)
        self.assertEqual(204, put().status)
        self.audit()

    def test_a_full_disk_at_commit_is_503(self):
        """No file can grow, so SQLite fails when it writes its log at COMMIT."""
        provider = self.make_provider({'VCPU': 100000})
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_FSIZE, (soft, hard))
        size = Path(f'{self.path}-wal').stat().st_size
        responses = []
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
        for _ in range(3):
            for version in ('1.27', 'latest'):
                body = claim({provider: 1}) if version == 'latest' else claim_1_27({provider: 1})
                responses.append(self.send('PUT', f'/allocations/{uuid.uuid4()}', body, version))
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        for response in responses:
            self.assertUnavailable(response)
        self.audit()
        self.assertEqual(0, self.used(provider))
        put = self.call('PUT', f'/allocations/{uuid.uuid4()}', claim({provider: 1}))
        self.assertEqual(204, put().status)
        self.audit()
