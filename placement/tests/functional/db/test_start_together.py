"""Concurrent starts of processes on one database."""

from concurrent import futures
import os

import fixtures
import os_resource_classes
import os_traits

from placement.db.sqlalchemy import migration, models
from placement.tests.functional import programs
from placement.tests.functional.db import base
from placement.tests.waiting import LONGEST

# Starts the service as a WSGI server does, and sends a request that reads the database.
START = """
import sys
import webob
from placement.wsgi import api
headers = {'X-Auth-Token': 'admin', 'OpenStack-API-Version': 'placement latest'}
request = webob.Request.blank('/resource_classes', headers=headers)
response = request.get_response(api.application)
assert response.status_int == 200, response
assert len(response.json['resource_classes']) == int(sys.argv[1]), response
"""


class ExclusiveTransactionTest(base.TestCase):
    def setUp(self):
        # The limit for locks of rows does not apply to the lock of a migration.
        self.useFixture(fixtures.MonkeyPatch('placement.db.connections.LOCK_SECONDS', 1))
        super().setUp()

    def test_a_migration_waits_for_another_one(self):
        with futures.ThreadPoolExecutor(1) as pool:
            with migration.exclusive_transaction(self.engine):
                waiting = pool.submit(migration.upgrade, 'head')
                self.assertRaises(futures.TimeoutError, waiting.result, 2.5)
            waiting.result(LONGEST)
        self.assertEqual('a082b8bb98d0', migration.version())


class StartTogetherTest(base.TestCase):
    def start_all(self, number: int, sync_on_startup: bool) -> None:
        """Start processes at the same time; a failure shows the output of the process."""
        environment = os.environ | {
            'OS_PLACEMENT_DATABASE__CONNECTION': self.database.url,
            'OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP': str(sync_on_startup),
            'OS_API__AUTH_STRATEGY': 'noauth2',
            # The measurement of the test coverage would take half of the time.
            'COVERAGE_PROCESS_START': '',
        }
        classes = str(len(os_resource_classes.STANDARDS))
        processes = [
            programs.shared().start(('-c', START, classes), environment, stderr=programs.PIPE)
            for _ in range(number)
        ]
        for process in processes:
            with process.stderr as stderr:
                output = stderr.read().decode()
            self.assertEqual(0, process.wait(), output)
        self.assertEqual('a082b8bb98d0', migration.version())
        self.assertEqual(len(os_traits.get_traits()), self.count(models.traits))
        self.assertEqual(len(os_resource_classes.STANDARDS), self.count(models.resource_classes))

    def test_on_an_empty_database(self):
        self.start_all(5, sync_on_startup=True)

    def test_on_an_old_database(self):
        migration.upgrade('611cd6dffd7b')
        self.start_all(5, sync_on_startup=True)

    def test_on_a_migrated_database(self):
        migration.upgrade('head')
        self.start_all(2, sync_on_startup=False)
