"""The command placement-manage."""

import pathlib

import fixtures
import sqlalchemy as sa

from placement.db.sqlalchemy import migration, models
from placement.tests import where
from placement.tests.functional.cmd import base
from placement.tests.functional.programs import Result

HEAD = 'a082b8bb98d0'


class ManageTestCase(base.TestCase):
    module = 'placement.cmd.manage'

    def assertFailed(self, done: Result, *fragments: str) -> None:
        """The command printed one line with the fragments, and no traceback."""
        self.assertEqual(1, done.status)
        self.assertNotIn('Traceback', done.stderr)
        message = done.stderr.splitlines()[-1]
        self.assertTrue(message.startswith('Error: '), done.stderr)
        for fragment in fragments:
            self.assertIn(fragment, message)


class SchemaTest(ManageTestCase):
    def test_version_sync_and_stamp(self):
        done = self.run_command('db', 'version')
        self.assertEqual((0, 'None\n'), (done.status, done.stdout), done.stderr)

        done = self.run_command('db', 'sync')
        self.assertEqual((0, ''), (done.status, done.stdout), done.stderr)
        self.assertEqual(HEAD, migration.version())

        done = self.run_command('db', 'stamp', '422ece571366')
        self.assertEqual((0, ''), (done.status, done.stdout), done.stderr)
        done = self.run_command('db', 'version')
        self.assertEqual((0, '422ece571366\n'), (done.status, done.stdout), done.stderr)

    def test_unmigrated_data(self):
        migration.upgrade('b4ed3a175331')
        with self.engine.begin() as conn:
            conn.execute(sa.insert(models.resource_providers).values(uuid='rp', name='rp'))

        done = self.run_command('db', 'sync')
        self.assertFailed(done, 'online_data_migrations')
        done = self.run_command('--debug', 'db', 'sync')
        self.assertEqual(1, done.status)
        self.assertIn('Traceback', done.stderr)


@where.only_on('sqlite', reason='No SQL statement is executed.')
class UsageTest(ManageTestCase):
    def test_a_missing_file_is_not_created(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'missing.db')
        file = path.with_name('placement.conf')
        file.write_text(f'[placement_database]\nconnection = sqlite:///{path}\n')
        done = self.run_command('--config-file', str(file), 'db', 'version', connection=False)
        self.assertEqual((0, 'None\n'), (done.status, done.stdout), done.stderr)
        self.assertFalse(path.exists())

    def test_a_configuration_file_that_is_not_in_utf_8(self):
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'placement.conf')
        path.write_bytes(b'# \xf6\n')
        text = f'The configuration file {path} is not in UTF-8. Correct it.'
        for arguments in (
            ('--config-file', str(path)),
            (f'--config-file={path}',),
            ('--config-dir', str(path.parent)),
        ):
            self.assertFailed(self.run_command(*arguments, 'db', 'version'), text)


class OnlineDataMigrationsTest(ManageTestCase):
    def setUp(self):
        super().setUp()
        migration.upgrade('head')

    def migrate(self, *arguments: str) -> tuple[int, str]:
        done = self.run_command('db', 'online_data_migrations', *arguments)
        return done.status, done.stdout

    def test_data_of_older_releases(self):
        with self.engine.begin() as conn:
            conn.execute(
                sa.insert(models.resource_providers),
                [{'uuid': f'rp{number}', 'name': f'rp{number}'} for number in range(3)],
            )
            conn.execute(
                sa.insert(models.allocations).values(
                    resource_provider_id=1, consumer_id='c', resource_class_id=0, used=1
                )
            )
        status, output = self.migrate('--max-count', '2')
        self.assertEqual(1, status, output)
        self.assertIn('2 rows matched query set_root_provider_ids, 2 migrated', output)
        self.assertNotIn('create_incomplete_consumers', output)

        status, output = self.migrate()
        self.assertEqual(0, status, output)
        self.assertIn('Running batches of 50', output)
        self.assertRegex(output, r'set_root_provider_ids *\| *1 *\| *1 ')
        self.assertRegex(output, r'create_incomplete_consumers *\| *1 *\| *1 ')
        self.assertEqual(1, self.count(models.consumers))

        status, output = self.migrate('--max-count', '2')
        self.assertEqual(0, status, output)

    def test_invalid_numbers_of_rows(self):
        for number in ('0', '-1', 'many', '1.5'):
            self.assertEqual(127, self.migrate(f'--max-count={number}')[0], number)

    def test_a_large_number_of_rows(self):
        status, output = self.migrate('--max-count', str(10**30))
        self.assertEqual(0, status, output)


class MissingTablesTest(ManageTestCase):
    def test_failing_migrations(self):
        done = self.run_command('db', 'online_data_migrations')

        self.assertEqual(2, done.status)
        self.assertIn('Error attempting to run set_root_provider_ids', done.stdout)
        self.assertIn('Error attempting to run create_incomplete_consumers', done.stdout)
