"""What an export writes, and which databases it refuses."""

from collections.abc import Iterator
import contextlib
import datetime
import io
import json
from pathlib import Path
from typing import Any

import fixtures
import sqlalchemy as sa

from placement.admin import audit, progress
from placement.admin.failure import CannotProceedError
from placement.admin.transfer import export, files
from placement.db import engine as db_engine
from placement.db.sqlalchemy import models
from placement.tests import servers, where
from placement.tests.functional.admin.transfer import base
from placement.tests.unit.admin.transfer import documents

NOW = datetime.datetime(2026, 11, 30, 23, 59, 59, 987654)


class RowsTest(base.TestCase):
    """Rows as other programs write them."""

    def lines(self, kind: str) -> list[dict[str, Any]]:
        lines = [json.loads(line) for line in self.export().splitlines()[1:]]
        return [line for line in lines if line['kind'] == kind]

    def test_times_are_truncated_and_ratios_are_rounded(self):
        if self.engine.dialect.name == 'sqlite':
            # The other database systems round times to seconds before they store them, or keep
            # the microseconds, which depends on the column.
            self.execute(sa.insert(models.projects), {'external_id': 'p', 'created_at': NOW})
            (project,) = self.lines('project')
            self.assertEqual('2026-11-30T23:59:59Z', project['created_at'])
            servers.delete_all_rows(self.engine)
        self.load(documents.file_of(documents.EXAMPLE))
        self.execute(sa.update(models.inventories).values(allocation_ratio=1.23456789))
        ratios = [inventory['allocation_ratio'] for inventory in self.lines('inventory')]
        self.assertEqual([1.23457, 1.23457], ratios)

    def test_names_are_in_the_order_of_code_points(self):
        names = ['b', 'a', 'B', '\U0001f600', '\uffee', '\xe4', '_', 'x\t', 'x', 'x!', 'Z', '1']
        if self.engine.dialect.name == 'mysql':
            names.remove('B')  # Equal to 'b' in the collation of the server.
            names.remove('\xe4')
        self.execute(sa.insert(models.projects), [{'external_id': name} for name in names])
        self.assertEqual(
            sorted(names), [project['external_id'] for project in self.lines('project')]
        )

    def test_a_consumer_is_named_as_in_its_own_row(self):
        self.load(documents.file_of(documents.EXAMPLE))
        allocations = models.allocations
        spelling = documents.CONSUMER.upper()
        with self.engine.begin() as conn:
            are_equal = conn.scalar(
                sa.select(models.consumers.c.id).where(models.consumers.c.uuid == spelling)
            )
            if are_equal is None:
                self.skipTest('the texts are different in this database')
            conn.execute(
                sa.update(allocations)
                .where(allocations.c.consumer_id == documents.CONSUMER)
                .values(consumer_id=spelling)
            )
        consumers = [allocation['consumer'] for allocation in self.lines('allocation')]
        self.assertEqual([documents.CONSUMER, documents.CONSUMER, documents.OTHER], consumers)

    def test_all_statements_read_the_same_state(self):
        data = documents.file_of(documents.EXAMPLE)
        self.load(data)
        file = _Writing(self)
        export.export(file, progress.silent)
        self.assertTrue(file.has_written)
        self.assertEqual(data.decode(), file.getvalue().decode())
        self.assertNotIn('allocation', self.counts())

    def test_an_interrupted_export_leaves_no_file_behind(self):
        self.load(documents.file_of(documents.EXAMPLE))
        folder = Path(self.useFixture(fixtures.TempDir()).path)

        @contextlib.contextmanager
        def interrupted(*_: Any) -> Iterator[progress.Advance]:
            def advance(_: int) -> None:
                self.assertNotEqual([], list(folder.iterdir()))
                raise KeyboardInterrupt

            yield advance

        destination = files.destination(str(folder / 'cloud.jsonl'))
        with self.assertRaises(KeyboardInterrupt), destination as file:
            export.export(file, interrupted)
        self.assertEqual([], list(folder.iterdir()))


class _Writing(io.BytesIO):
    """A file at whose first line another transaction deletes all allocations."""

    def __init__(self, test: base.TestCase) -> None:
        super().__init__()
        self._test = test
        self.has_written = False

    def write(self, data: bytes) -> int:
        if not self.has_written:
            self.has_written = True
            self._test.execute(sa.delete(models.allocations))
        return super().write(data)


class RefusalTest(base.TestCase):
    """A database whose rows cannot be named."""

    def setUp(self) -> None:
        super().setUp()
        self.load(documents.file_of(documents.EXAMPLE))

    def refusal(self) -> str:
        file = io.BytesIO()
        refusal = self.assertRaises(CannotProceedError, export.export, file, progress.silent)
        self.assertEqual(b'', file.getvalue())
        return str(refusal)

    def check(self, codes: str) -> None:
        self.assertIn(f'`placement-manage audit --only {codes}`', self.refusal())
        with db_engine.snapshot() as conn:
            found = audit.findings(conn, codes.split(','))
        self.assertEqual(sorted(codes.split(',')), sorted(finding.code for finding in found))
        servers.delete_all_rows(self.engine)
        self.load(documents.file_of(documents.EXAMPLE))

    def test_missing_rows(self):
        allocations, inventories = models.allocations, models.inventories
        for table, codes in (
            (models.consumers, 'orphan-allocation'),
            (models.resource_classes, 'unknown-class'),
            (models.projects, 'owner-missing'),
            (models.users, 'owner-missing'),
        ):
            with self.subTest(table.name):
                self.execute(sa.delete(table))
                self.check(codes)
        for table, values, codes in (
            (inventories, {'resource_class_id': 99}, 'unknown-class'),
            (inventories, {'resource_provider_id': 99_999}, 'orphan-provider'),
            (allocations, {'resource_provider_id': 99_999}, 'orphan-provider'),
            (
                models.resource_provider_aggregates,
                {'resource_provider_id': 99_999},
                'orphan-provider',
            ),
        ):
            with self.subTest(table=table.name, codes=codes):
                key = table.c.get('resource_class_id', table.c.get('aggregate_id'))
                with self.engine.begin() as conn:
                    first = conn.scalar(sa.select(sa.func.min(key)))
                    conn.execute(sa.update(table).where(key == first).values(**values))
                self.check(codes)

    def test_damaged_trees(self):
        providers = models.resource_providers

        def update(name: str, column: str, value: Any) -> None:
            with self.engine.begin() as conn:
                ids = dict(conn.execute(sa.select(providers.c.name, providers.c.id)).all())
                changed = sa.update(providers).where(providers.c.name == name)
                conn.execute(changed.values({column: ids.get(value, value)}))

        update('pool', 'root_provider_id', None)
        self.check('root-missing')
        update('gpu', 'root_provider_id', 'pool')
        self.check('root-missing')
        update('pool', 'parent_provider_id', 'gpu')
        self.check('root-missing')
        update('pool', 'parent_provider_id', 'pool')
        self.check('parent-cycle')
        if self.engine.dialect.name == 'sqlite':  # The others have foreign keys.
            update('gpu', 'parent_provider_id', 99)
            self.check('parent-missing')

    def test_all_findings_are_named_at_once(self):
        self.execute(sa.delete(models.consumers))
        self.execute(sa.update(models.allocations).values(resource_provider_id=99))
        self.execute(sa.update(models.resource_providers).values(root_provider_id=None))
        self.check('orphan-allocation,orphan-provider,root-missing')

    def test_links_to_missing_aggregates(self):
        self.execute(sa.delete(models.placement_aggregates))
        message = self.refusal()
        self.assertIn('resource_provider_aggregates', message)
        self.assertIn('aggregate_id', message)

    def test_an_aggregate_without_a_uuid(self):
        self.execute(sa.insert(models.placement_aggregates), {'uuid': None})
        self.assertIn('placement_aggregates', self.refusal())

    def test_numbers_that_an_import_would_refuse(self):
        for table, column, value in (
            (models.allocations, 'used', 0),
            (models.inventories, 'step_size', 0),
            (models.inventories, 'total', -1),
            (models.consumers, 'generation', -1),
        ):
            with self.subTest(f'{table.name}.{column}'):
                self.execute(sa.update(table).values(**{column: value}))
                message = self.refusal()
                self.assertIn(f'The table {table.name} ', message)
                self.assertIn(column, message)
                servers.delete_all_rows(self.engine)
                self.load(documents.file_of(documents.EXAMPLE))

    def test_several_allocations_with_the_same_key(self):
        allocations = models.allocations
        columns = [c for c in allocations.c if c.name != 'id']
        copy = sa.select(*columns).where(allocations.c.consumer_id == documents.OTHER)
        self.execute(sa.insert(allocations).from_select([c.name for c in columns], copy))
        refusal = self.assertRaises(CannotProceedError, self.export)
        self.assertIn(f"consumer '{documents.OTHER}', provider '{documents.HOST}'", str(refusal))

    @where.only_on('sqlite', reason='Only SQLite stores any text in any column.')
    def test_values_that_are_no_times(self):
        self.execute(sa.text("UPDATE traits SET created_at = 'yesterday'"))
        refusal = self.assertRaises(CannotProceedError, self.export)
        self.assertIn('The table traits has a value that is not valid: ', str(refusal))
