"""The command `placement-manage audit`."""

import datetime
import json
import pathlib
import textwrap
import uuid

import fixtures
import sqlalchemy as sa

import placement
from placement.admin.audit import model
from placement.db.sqlalchemy import migration, models
from placement.objects import sync
from placement.tests import where
from placement.tests.functional.cmd import base

PAGE = pathlib.Path(placement.__file__).parents[1] / 'doc' / 'source' / 'admin' / 'audit.rst'
IDLE = str(uuid.UUID(int=1))


@where.not_on('postgresql', reason='The tests of the functions run on each database.')
class AuditTest(base.TestCase):
    module = 'placement.cmd.manage'

    def setUp(self):
        super().setUp()
        migration.upgrade('head')
        sync.sync_resource_classes()

    def audit(self, status, *arguments):
        """Execute the command, check its exit status, and return what it prints."""
        done = self.run_with_status(status, 'audit', *arguments)
        if status == 2:
            self.assertEqual(('', 1), (done.stdout, done.stderr.count('\n')), done.stderr)
            return done.stderr
        self.assertEqual('', done.stderr)
        return done.stdout

    def insert_idle_consumer(self):
        with self.engine.begin() as conn:
            for table in (models.projects, models.users):
                conn.execute(sa.insert(table).values(id=1, external_id='one'))
            conn.execute(sa.insert(models.consumers).values(uuid=IDLE, project_id=1, user_id=1))

    def test_nothing_is_found(self):
        self.assertEqual('The audit found nothing.\n', self.audit(0))
        self.assertEqual('{"findings": []}\n', self.audit(0, '--format', 'json'))

    def test_names(self):
        self.insert_idle_consumer()
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'names.json')
        path.write_text(json.dumps([{'ID': IDLE, 'Name': 'web-1'}]))
        self.assertIn(f'web-1 {IDLE}', self.audit(1, '--names', str(path)))
        json_ = self.audit(1, '--format', 'json', '--names', str(path))
        self.assertNotIn('web-1', json_)
        self.assertIn('none cannot be read', self.audit(2, '--names', f'{path}/../none'))

    def test_errors_are_found_and_corrected(self):
        self.insert_idle_consumer()
        self.assertIn(IDLE, self.audit(1))
        found = json.loads(self.audit(1, '--format', 'json'))
        row = {'consumer_uuid': IDLE, 'project': 'one', 'user': 'one', 'consumer_type': None}
        finding = {'code': 'idle-consumer', 'severity': 'error', 'count': 1, 'fixed': 0}
        self.assertEqual({'findings': [{**finding, 'rows': [row]}]}, found)

        (fixed,) = json.loads(
            self.audit(0, '--fix', '--format', 'json', '--only', 'idle-consumer')
        )['findings']
        self.assertEqual((1, 1), (fixed['count'], fixed['fixed']))
        self.assertEqual(IDLE, fixed['rows'][0]['before']['uuid'])
        self.assertEqual(0, self.count(models.consumers))

    def test_the_report_of_a_correction_is_in_the_guide(self):
        row = {
            'created_at': datetime.datetime(2026, 3, 1, 9, 30),
            'id': 4711,
            'uuid': 'c3a1de44-18fd-4c6d-8a71-6a8e1f3c9a01',
            'generation': 1,
            'consumer_type_id': 12,
        }
        with self.engine.begin() as conn:
            for table, name, text in (
                (models.projects, 'external_id', '0c2d3b3f5f8b4d0c9e6f7a8b9c0d1e2f'),
                (models.users, 'external_id', '5d4c3b2a19084f7e8d6c5b4a39281706'),
                (models.consumer_types, 'name', 'INSTANCE'),
            ):
                conn.execute(sa.insert(table).values(**{'id': 12, name: text}))
            conn.execute(sa.insert(models.consumers).values(**row, project_id=12, user_id=12))
        report = self.audit(0, '--fix', '--only', 'idle-consumer')
        block = PAGE.read_text().split('.. code-block:: text\n\n')[1].split('\n\n``Count``')[0]
        self.assertEqual(report.strip(), textwrap.dedent(block))

    def test_purge(self):
        """The rows are notices; their deletion needs a confirmation."""
        with self.engine.begin() as conn:
            conn.execute(sa.insert(models.projects).values(external_id='one'))
        self.assertIn('| unused | notice   |     1 |     0 |', self.audit(0))
        message = self.audit(2, '--purge')
        for text in ('--yes', 'stop everything that writes to the database'):
            self.assertIn(text, message)
        self.assertEqual(1, self.count(models.projects))
        self.assertIn('| unused | notice   |     1 |     1 |', self.audit(0, '--purge', '--yes'))
        self.assertEqual(0, self.count(models.projects))

    def test_invalid_options(self):
        message = self.audit(2, '--only', 'idle-consumer,nonsense')
        for text in ("'nonsense'", *model.CODES):
            self.assertIn(text, message)

    def test_an_empty_database(self):
        with self.engine.begin() as conn:
            models.metadata.drop_all(conn)
        self.assertIn('placement-manage db sync', self.audit(2))
