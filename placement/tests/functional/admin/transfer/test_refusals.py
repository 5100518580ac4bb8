"""Files that an import refuses: the message has the number of the line, and nothing is imported."""

from collections.abc import Callable
import gzip
import io
import itertools
from unittest import mock

import ddt
from hypothesis import given
from hypothesis import strategies as st
from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement import exception
from placement.admin import console
from placement.admin.console import CannotProceedError
from placement.admin.transfer import load
from placement.db.sqlalchemy import migration, models
from placement.objects import sync
from placement.tests import servers, where
from placement.tests.functional.admin.transfer import base
from placement.tests.functional.db import base as db_base
from placement.tests.properties import REPEATABLE
from placement.tests.unit.admin.transfer import documents


class TestCase(base.TestCase):
    def check(self, edit: documents.Edit, text: str, force: bool = False) -> None:
        """Check that the example is refused after an edit."""
        data, number = documents.edited(edit)
        message = self.refusal(data, force)
        self.assertIn(text, message)
        self.assertTrue(message.startswith(f'Line {number}: '), f'{number}: {message}')


@where.only_on('sqlite', reason='The database system makes no difference.')
class InvalidLineTest(TestCase):
    """Lines that are invalid by themselves."""

    def test_invalid_lines(self):
        for number, (edit, text) in enumerate(documents.INVALID):
            with self.subTest(number=number, text=text):
                self.check(edit, text)

    def test_other_files(self):
        for other, text in (
            (b'', 'not an export'),
            (b'\n', 'JSON'),
            (b'CREATE TABLE a (b int);\n', 'JSON'),
            (b'{}\n', 'not an export'),
            (b'[]\n', 'not a JSON object'),
            (b'null\n', 'not a JSON object'),
            (b'\x00' * 100_000, 'longer'),
            (gzip.compress(base.EXAMPLE), 'compressed'),
            (base.EXAMPLE.decode().encode('utf-16'), 'UTF-8'),
            (b'\xef\xbb\xbf' + base.EXAMPLE, 'JSON'),
        ):
            self.assertRegex(self.refusal(other), f'^Line 1: .*{text}')

    def test_files_that_are_cut_off_or_damaged(self):
        data = base.EXAMPLE
        for length in (*range(0, len(data), 97), len(data) - 1):
            message = self.refusal(data[:length])
            number = int(message.removeprefix('Line ').partition(':')[0])
            self.assertLessEqual(number, data[:length].count(b'\n') + 1)
        data = gzip.compress(data)
        for position in range(10, len(data), 61):
            damaged = data[:position] + bytes([data[position] ^ 0x55]) + data[position + 1 :]
            for content in (data[:position], damaged):
                with gzip.open(io.BytesIO(content)) as file:
                    self.assertRaises(CannotProceedError, load.load, file, console.silent)

    def test_control_characters_of_the_file_are_not_printed(self):
        data, _ = documents.edited(documents.change('trait', kind='\x1b[31m' + 'x' * 1000))
        message = self.refusal(data)
        self.assertTrue(message.isprintable())
        self.assertLess(len(message), 200)

    @REPEATABLE
    @given(st.integers(0, len(base.EXAMPLE) - 1), st.integers(0, 255))
    def test_any_change_of_a_byte_is_refused_or_read(self, position, byte):
        content = base.EXAMPLE[:position] + bytes([byte]) + base.EXAMPLE[position + 1 :]
        try:
            self.load(content)
        except CannotProceedError as refusal:
            self.assertTrue(str(refusal).startswith('Line '), refusal)
        else:
            servers.delete_all_rows(self.engine)


class InconsistentFileTest(TestCase):
    def test_missing_rows(self):
        """Rows that only the database has are missing, too."""
        for add in ((), (sync.sync_traits, sync.sync_resource_classes)):
            for function in add:
                function()
            for number, (edit, text) in enumerate(documents.INCONSISTENT):
                with self.subTest(number=number, text=text):
                    self.check(edit, text)

    def test_a_line_in_the_middle_of_a_large_batch(self):
        providers = [
            documents.row('provider', f'{n:036}', f'host {n}', 0, None) for n in range(1700)
        ]
        providers[1234]['name'] = 'host 1001'
        self.assertRegex(self.refusal(documents.file_of(providers)), '^Line 1236: ')


@ddt.ddt
class TextTest(TestCase):
    """The database decides which texts it can store, and which texts are equal."""

    def test_texts_that_the_database_cannot_store(self):
        self.check(documents.change('consumer', 1, project='\0'), 'no earlier line contains')
        edit = documents.change('allocation', 0, provider='\0')
        if self.engine.dialect.name != 'postgresql':
            self.check(edit, 'no earlier line contains')
        else:
            self.check(edit, 'cannot store the allocation')
            edit = documents.replace('project', b'project-1', b'project\\u0000')
            self.check(edit, 'cannot store')
            self.check(documents.change('provider', 1, name='nul \0'), 'cannot store')
        self.assertEqual({}, self.counts())

    @where.only_on('mariadb', 'mysql', reason='Only MySQL and MariaDB have such character sets.')
    def test_four_byte_characters_in_an_old_database(self):
        self.database.is_reused = False
        with self.engine.begin() as conn:
            conn.exec_driver_sql('SET foreign_key_checks = 0')
            for table in models.metadata.sorted_tables:
                conn.exec_driver_sql(f'ALTER TABLE {table.name} CONVERT TO CHARACTER SET utf8mb3')
        self.check(documents.change('provider'), 'cannot store')
        data, _ = documents.edited(documents.change('provider', name='plain'))
        self.assertUnchanged(data)

    @ddt.data(
        ('project-a', 'project-A'), ('project-a', 'project-a '), ('project-e', 'project-\xe9')
    )
    @ddt.unpack
    def test_texts_that_are_equal_for_the_database(self, one, other):
        first, second = sorted((one, other))
        changes = {'user-1': first, 'user-2': second}
        rows = [
            {name: changes.get(value, value) for name, value in row.items()}
            for row in documents.EXAMPLE
        ]
        data = documents.file_of(rows)
        if self.are_equal(one, other):
            number = 2 + rows.index(documents.row('user', second))
            self.assertRegex(self.refusal(data), f'^Line {number}: ')
        else:
            self.assertUnchanged(data)

    def are_equal(self, one: str, other: str) -> bool:
        """Whether a project with one name has the other name too."""
        projects = models.projects
        self.execute(sa.insert(projects), {'external_id': one})
        with self.engine.connect() as conn:
            found = conn.scalar(sa.select(projects.c.id).where(projects.c.external_id == other))
        servers.delete_all_rows(self.engine)
        return found is not None


class DatabaseTest(TestCase):
    """The contents of the database, and what happens to it, can prevent an import."""

    def interrupted(self, lines: int, action: Callable[[], object]) -> io.BytesIO:
        """Return a file that calls a function before it returns a line."""
        file, calls = io.BytesIO(base.EXAMPLE), itertools.count()

        class Interrupted(io.BytesIO):
            def readline(self, size: int = -1) -> bytes:
                if next(calls) == lines:
                    action()
                return file.readline(size)

        return Interrupted()

    def test_existing_rows(self):
        for table, values in (
            (models.traits, {'name': 'CUSTOM_OWN'}),
            (models.resource_providers, {'uuid': documents.OTHER, 'name': 'own'}),
            (models.projects, {'external_id': 'own'}),
        ):
            self.execute(sa.insert(table), values)
            message = self.refusal(base.EXAMPLE)
            self.assertIn('--force', message)
            self.assertIn(f'{next(iter(self.counts()))}: 1', message)
            servers.delete_all_rows(self.engine)
        self.load(base.EXAMPLE)

    def test_an_interrupted_import_leaves_nothing_behind(self):
        for error in (KeyboardInterrupt, OSError):
            for lines in range(0, len(documents.EXAMPLE) + 2, 5):
                file = self.interrupted(lines, mock.Mock(side_effect=error))
                self.assertRaises(error, load.load, file, console.silent)
                self.assertEqual({}, self.counts())
        self.load(base.EXAMPLE)

    @where.not_on('sqlite', reason='An import excludes all other writers.')
    def test_a_database_that_changes_during_the_import(self):
        own = sa.insert(models.projects).values(external_id='own')
        file = self.interrupted(5, lambda: self.execute(own))
        refusal = self.assertRaises(CannotProceedError, load.load, file, console.silent)
        self.assertIn('Stop the service', str(refusal))
        self.assertEqual({'project': 1}, self.counts())

    def test_conflicts_with_other_programs(self):
        file = self.interrupted(5, mock.Mock(side_effect=db_exc.DBDeadlock()))
        refusal = self.assertRaises(CannotProceedError, load.load, file, console.silent)
        self.assertIn('Nothing is imported. Stop the service', str(refusal))
        self.assertEqual({}, self.counts())

    def test_a_connection_that_is_lost_during_commit(self):
        lose = mock.Mock(side_effect=db_exc.DBConnectionError())

        def begin_to_lose() -> None:
            sa.event.listen(sa.Engine, 'commit', lose)
            self.addCleanup(sa.event.remove, sa.Engine, 'commit', lose)

        file = self.interrupted(5, begin_to_lose)
        self.assertRaises(exception.OutcomeUnknown, load.load, file, console.silent)


class SchemaTest(db_base.TestCase):
    def test_a_database_without_tables_or_with_an_old_schema(self):
        for remedy in ('', 'placement-manage db sync'):
            file = io.BytesIO(documents.file_of([]))
            refusal = self.assertRaises(
                exception.UnsuitableDatabase, load.load, file, console.silent
            )
            self.assertIn(remedy, str(refusal))
            migration.upgrade('b4ed3a175331')


class ForceTest(TestCase):
    """With --force, the database may contain other data."""

    def test_data_of_other_uuids_is_added(self):
        self.load(base.EXAMPLE)
        rows = documents.random_rows(3)
        before = self.export().splitlines()[1:]
        self.refusal(documents.file_of(rows))
        self.load(documents.file_of(rows), force=True)
        after = set(self.export().splitlines()[1:])
        self.assertLessEqual({line for line in before if b'"name":"VCPU"' not in line}, after)
        added = {documents.text_of([row]).strip() for row in rows if row.get('name') != 'INSTANCE'}
        self.assertLessEqual(added, after)

    def test_shared_names_keep_their_times(self):
        """Standard names take the times of the file."""
        self.load(base.EXAMPLE)
        kinds = ('resource_class', 'trait', 'aggregate', 'project', 'user')
        rows = [{**row, 'created_at': None} for row in self.of(*kinds)]
        self.load(documents.file_of(rows), force=True)
        before = base.EXAMPLE.splitlines()
        changed = [line for line in self.export().splitlines() if line not in before]
        standard = [row for row in rows if row.get('name') in ('VCPU', 'HW_CPU_X86_AVX2')]
        self.assertEqual(documents.text_of(standard).splitlines(), changed)

    def test_rows_of_the_database(self):
        """Equal UUIDs and names are refused, and a line cannot refer to an existing row."""
        self.load(base.EXAMPLE)
        self.check(documents.change('provider'), 'equal to', force=True)
        renamed = [documents.row('provider', documents.OTHER, 'pool', 1, None)]
        for rows, text in (
            (self.of('consumer_type', 'project', 'user', 'consumer'), 'Line 6: '),
            (renamed, 'Line 2: '),
            (self.of('resource_class', 'inventory'), 'Line 4: '),
        ):
            message = self.refusal(documents.file_of(rows), force=True)
            self.assertTrue(message.startswith(text), message)
        self.assertIn('which no earlier line contains', message)

    @staticmethod
    def of(*kinds: str) -> list[documents.Row]:
        return [row for row in documents.EXAMPLE if row['kind'] in kinds]

    def test_the_data_must_be_sound(self):
        keys = ('resource_provider_id', 'consumer_id', 'resource_class_id', 'used')
        values = dict(zip(keys, (7, documents.OTHER, 77, 1), strict=True))
        self.execute(sa.insert(models.allocations), values)
        codes = 'orphan-allocation,orphan-provider,unknown-class'
        message = self.refusal(base.EXAMPLE, force=True)
        self.assertIn(f'`placement-manage audit --only {codes}`', message)

    def test_links_to_missing_rows(self):
        """A row of the file could get the id to which the link refers."""
        links = models.resource_provider_aggregates
        self.execute(sa.insert(links).values(resource_provider_id=7, aggregate_id=1))
        provider = {'id': 7, 'uuid': documents.OTHER, 'name': 'other', 'root_provider_id': 7}
        self.execute(sa.insert(models.resource_providers).values(provider))
        self.assertIn('whose aggregate_id refers to no row', self.refusal(base.EXAMPLE, force=True))
