"""Files that an import refuses: the message has the number of the line, and nothing is imported."""

import io

import ddt
from oslo_db import exception as db_exc
import sqlalchemy as sa

from placement import exception
from placement.admin import progress
from placement.admin.failure import CannotProceedError
from placement.admin.transfer import load
from placement.db.sqlalchemy import migration, models
from placement.objects import sync
from placement.tests import servers, where
from placement.tests.functional.admin.transfer import base
from placement.tests.functional.db import base as db_base
from placement.tests.unit.admin.transfer import documents

_SMALL, _CAPITAL = 'project-a', 'project-A'


class RefusalTest(base.TestCase):
    def refusal(self, data: bytes, force: bool = False) -> Exception:
        return self.assertRaises(CannotProceedError, self.load, data, force)

    def check(self, edit: documents.Edit, text: str) -> None:
        """Check that the example is refused after an edit."""
        data, number = documents.edited(edit)
        before = self.counts()
        message = str(self.refusal(data))
        self.assertIn(text, message)
        self.assertTrue(message.startswith(f'Line {number}: '), f'{number}: {message}')
        self.assertEqual(before, self.counts())


class InvalidFileTest(RefusalTest):
    def test_invalid_lines_and_missing_rows(self):
        # The lines that are invalid by themselves do not depend on the database system.
        step = 1 if self.engine.dialect.name == 'sqlite' else 8
        for mistake, edit, text in (*documents.INVALID[::step], *documents.INCONSISTENT):
            with self.subTest(mistake):
                self.check(edit, text)
        self.assertEqual({}, self.counts())

    def test_missing_rows_that_the_database_has(self):
        sync.sync_traits()
        sync.sync_resource_classes()
        for mistake, edit, text in documents.INCONSISTENT:
            with self.subTest(mistake):
                self.check(edit, text)

    def test_files_that_are_cut_off(self):
        data = documents.file_of(documents.EXAMPLE)
        for length in (*range(0, len(data) - 1, 397), len(data) - 1):
            with self.subTest(length=length):
                message = str(self.refusal(data[:length]))
                self.assertTrue(message.startswith('Line '), message)
        self.assertEqual({}, self.counts())

    def test_a_line_in_the_middle_of_a_large_batch(self):
        providers = [
            {
                'kind': 'provider',
                'uuid': f'{n:036}',
                'name': f'host {n}',
                'generation': 0,
                'parent': None,
                **documents.TIMES,
            }
            for n in range(1700)
        ]
        providers[1234]['name'] = 'host 1001'
        message = str(self.refusal(documents.file_of(providers)))
        self.assertTrue(message.startswith('Line 1236: '), message)
        self.assertEqual({}, self.counts())

    def test_an_interrupted_import_leaves_nothing_behind(self):
        data = documents.file_of(documents.EXAMPLE)
        for error in (KeyboardInterrupt, OSError):
            for lines in range(0, len(documents.EXAMPLE) + 2, 5):
                file = _Interrupted(data, lines, error)
                self.assertRaises(error, load.load, file, progress.silent)
                self.assertEqual({}, self.counts())
        self.load(data)


@ddt.ddt
class TextTest(RefusalTest):
    """The database decides which texts it can store, and which texts are equal."""

    def test_texts_that_the_database_cannot_store(self):
        edits = (
            documents.replace('project', b'project-1', b'project\\u0000'),
            documents.change('provider', 1, name='nul \0'),
            documents.change('consumer', 1, project='\0'),
        )
        if self.engine.dialect.name != 'postgresql':
            self.check(edits[2], 'which no earlier line contains')
            return
        for edit, text in zip(
            edits, ('cannot store', 'cannot store', 'no earlier line'), strict=True
        ):
            self.check(edit, text)
        self.assertEqual({}, self.counts())

    @where.only_on('mariadb', 'mysql', reason='Only MySQL and MariaDB have such character sets.')
    def test_four_byte_characters_in_an_old_database(self):
        self.database.is_reused = False
        with self.engine.begin() as conn:
            conn.exec_driver_sql('SET foreign_key_checks = 0')
            for table in models.metadata.sorted_tables:
                conn.exec_driver_sql(f'ALTER TABLE {table.name} CONVERT TO CHARACTER SET utf8mb3')
        self.check(lambda lines: documents.number_of(lines, 'provider'), 'cannot store')
        data, _ = documents.edited(documents.change('provider', name='plain'))
        self.load(data)
        self.assertEqual(data, self.export())

    @ddt.data(
        ('project-a', 'project-A'), ('project-a', 'project-a '), ('project-e', 'project-\xe9')
    )
    @ddt.unpack
    def test_texts_that_are_equal_for_the_database(self, one, other):
        edit = documents.change('user', 1, external_id=max(one, other))
        data, number = documents.edited(edit)
        lines = data.splitlines(keepends=True)
        first = lines[number - 2].replace(b'user-1', min(one, other).encode())
        data = b''.join([*lines[: number - 2], first, *lines[number - 1 :]])
        data = data.replace(b'"user":"user-1"', b'"user":"%s"' % min(one, other).encode())
        data = data.replace(b'"user":"user-2"', b'"user":"%s"' % max(one, other).encode())
        if self.are_equal(one, other):
            message = str(self.refusal(data))
            self.assertTrue(message.startswith(f'Line {number}: '), message)
            self.assertEqual({}, self.counts())
        else:
            self.load(data)
            self.assertEqual(data.decode(), self.export().decode())

    def are_equal(self, one: str, other: str) -> bool:
        """Whether a project with one name has the other name too."""
        projects = models.projects
        self.execute(sa.insert(projects), {'external_id': one})
        with self.engine.connect() as conn:
            found = conn.scalar(sa.select(projects.c.id).where(projects.c.external_id == other))
        servers.delete_all_rows(self.engine)
        return found is not None


class DatabaseTest(RefusalTest):
    """The contents of the database can prevent an import."""

    def test_existing_rows_of_each_kind(self):
        data = documents.file_of(documents.EXAMPLE)
        for table, values in (
            (models.resource_classes, {'id': 10000, 'name': 'CUSTOM_OWN'}),
            (models.traits, {'name': 'CUSTOM_OWN'}),
            (models.placement_aggregates, {'uuid': documents.OTHER}),
            (models.resource_providers, {'uuid': documents.OTHER, 'name': 'own'}),
            (models.consumer_types, {'name': 'OWN'}),
            (models.projects, {'external_id': 'own'}),
            (models.users, {'external_id': 'own'}),
            (models.consumers, {'uuid': documents.OTHER, 'project_id': 1, 'user_id': 1}),
        ):
            with self.subTest(table.name):
                self.execute(sa.insert(table), values)
                before = self.counts()
                message = str(self.refusal(data))
                self.assertIn('--force', message)
                self.assertIn(f'{next(iter(before))}: 1', message)
                self.assertEqual(before, self.counts())
                servers.delete_all_rows(self.engine)
        self.load(data)

    @where.not_on('sqlite', reason='An import excludes all other writers.')
    def test_a_database_that_changes_during_the_import(self):
        data = documents.file_of(documents.EXAMPLE)

        def add_project() -> None:
            self.execute(sa.insert(models.projects), {'external_id': 'own'})

        file = _Interrupted(data, 5, add_project)
        refusal = self.assertRaises(CannotProceedError, load.load, file, progress.silent)
        self.assertIn('Stop the service', str(refusal))
        self.assertEqual({'project': 1}, self.counts())

    def test_conflicts_with_other_programs(self):
        file = _Interrupted(documents.file_of(documents.EXAMPLE), 5, _deadlock)
        refusal = self.assertRaises(CannotProceedError, load.load, file, progress.silent)
        self.assertIn('Nothing is imported. Stop the service', str(refusal))
        self.assertEqual({}, self.counts())

    def test_a_connection_that_is_lost_during_commit(self):
        def lose(_: object) -> None:
            raise db_exc.DBConnectionError()

        def begin_to_lose() -> None:
            sa.event.listen(self.engine, 'commit', lose)
            self.addCleanup(sa.event.remove, self.engine, 'commit', lose)

        file = _Interrupted(documents.file_of(documents.EXAMPLE), 5, begin_to_lose)
        self.assertRaises(exception.OutcomeUnknown, load.load, file, progress.silent)

    def test_force_requires_sound_data(self):
        self.execute(
            sa.insert(models.allocations),
            {
                'resource_provider_id': 7,
                'consumer_id': documents.OTHER,
                'resource_class_id': 77,
                'used': 1,
            },
        )
        message = str(self.refusal(documents.file_of(documents.EXAMPLE), force=True))
        self.assertIn(
            '`placement-manage audit --only orphan-allocation,orphan-provider,unknown-class`',
            message,
        )
        self.assertEqual({'allocation': 1}, self.counts())


class SchemaTest(db_base.TestCase):
    def test_a_database_without_tables_is_refused(self):
        file = io.BytesIO(documents.file_of([]))
        self.assertRaises(exception.UnsuitableDatabase, load.load, file, progress.silent)

    def test_an_old_schema_is_refused(self):
        migration.upgrade('b4ed3a175331')
        file = io.BytesIO(documents.file_of([]))
        refusal = self.assertRaises(exception.UnsuitableDatabase, load.load, file, progress.silent)
        self.assertIn('placement-manage db sync', str(refusal))


class ForceTest(RefusalTest):
    """With --force, the database may contain other data."""

    def setUp(self) -> None:
        super().setUp()
        self.load(documents.file_of(documents.EXAMPLE))

    @staticmethod
    def other_rows() -> list[documents.Row]:
        return documents.random_rows(3)

    def test_data_of_other_uuids_is_added(self):
        rows = self.other_rows()
        before = self.export().splitlines()[1:]
        self.refusal(documents.file_of(rows))
        self.load(documents.file_of(rows), force=True)
        after = set(self.export().splitlines()[1:])
        shared = {'VCPU'}
        expected = {
            line for line in before if not any(f'"name":"{n}"'.encode() in line for n in shared)
        }
        self.assertLessEqual(expected, after)
        added = {documents.text_of([row]).strip() for row in rows if row.get('name') != 'INSTANCE'}
        self.assertLessEqual(added, after)

    def test_shared_names_keep_their_times(self):
        data, _ = documents.edited(lambda lines: 0)
        rows = [
            {**row, 'created_at': None}
            for row in documents.EXAMPLE
            if row['kind'] in {'resource_class', 'trait', 'aggregate', 'project', 'user'}
        ]
        self.load(documents.file_of(rows), force=True)
        before = data.splitlines()[1:]
        after = self.export().splitlines()[1:]
        changed = [line for line in after if line not in before]
        # Standard names take the times of the file.
        self.assertEqual(2, len(changed), changed)
        for line, name in zip(changed, (b'"VCPU"', b'"HW_CPU_X86_AVX2"'), strict=True):
            self.assertIn(name, line)

    def test_the_same_uuids_are_refused(self):
        self.check_forced(documents.number_of, 'provider', 'equal to')
        # Only the consumers are the same.
        first = [row for row in documents.EXAMPLE if row['kind'] in {'project', 'user'}]
        consumers = [row for row in documents.EXAMPLE if row['kind'] == 'consumer']
        types = [row for row in documents.EXAMPLE if row['kind'] == 'consumer_type']
        message = str(self.refusal(documents.file_of([*types, *first, *consumers]), force=True))
        self.assertTrue(message.startswith('Line 6: '), message)

    def check_forced(self, number_of, kind: str, text: str) -> None:
        data = documents.file_of(documents.EXAMPLE)
        before = self.counts()
        message = str(self.refusal(data, force=True))
        number = number_of([documents.header(documents.EXAMPLE), *documents.EXAMPLE], kind)
        self.assertTrue(message.startswith(f'Line {number}: '), message)
        self.assertIn(text, message)
        self.assertEqual(before, self.counts())

    def test_the_name_of_an_existing_provider_is_refused(self):
        row = {**documents.EXAMPLE[6], 'uuid': documents.OTHER}
        message = str(self.refusal(documents.file_of([row]), force=True))
        self.assertTrue(message.startswith('Line 2: '), message)

    def test_a_line_cannot_refer_to_existing_rows(self):
        rows = [row for row in documents.EXAMPLE if row['kind'] in {'resource_class', 'inventory'}]
        message = str(self.refusal(documents.file_of(rows), force=True))
        self.assertTrue(message.startswith('Line 4: '), message)
        self.assertIn('which no earlier line contains', message)


def _deadlock() -> None:
    raise db_exc.DBDeadlock()


class _Interrupted(io.BytesIO):
    """A file that raises an exception, or calls a function, before it returns a line."""

    def __init__(self, data: bytes, lines: int, action) -> None:
        super().__init__(data)
        self._lines = lines
        self._action = action

    def readline(self, size: int = -1) -> bytes:
        self._lines -= 1
        if self._lines == -1:
            if isinstance(self._action, type):
                raise self._action
            self._action()
        return super().readline(size)
