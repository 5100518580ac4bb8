"""What an export writes, and which databases it refuses."""

import io
from typing import Any

import sqlalchemy as sa

from placement.admin import audit, console
from placement.admin.console import CannotProceedError
from placement.admin.transfer import export
from placement.db import engine as db_engine
from placement.db.sqlalchemy import models
from placement.tests import where
from placement.tests.functional.admin.transfer import base
from placement.tests.unit.admin.transfer import documents


class RowsTest(base.TestCase):
    """Rows as other programs write them."""

    def test_a_consumer_is_named_as_in_its_own_row(self):
        self.load(base.EXAMPLE)
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
        """Another transaction deletes all allocations at the first line."""
        self.load(base.EXAMPLE)
        file = io.BytesIO()

        class Writing(io.BytesIO):
            def write(writing, data: bytes) -> int:  # noqa: N805 - self is the test
                if not file.tell():
                    self.execute(sa.delete(models.allocations))
                return file.write(data)

        export.export(Writing(), console.silent)
        self.assertEqual(base.EXAMPLE.decode(), file.getvalue().decode())
        self.assertNotIn('allocation', self.counts())


class RefusalTest(base.TestCase):
    """A database whose rows cannot be named."""

    def setUp(self) -> None:
        super().setUp()
        self.load(base.EXAMPLE)

    def assertRefused(self, *texts: str) -> None:
        """An export is refused with these texts."""
        file = io.BytesIO()
        refusal = self.assertRaises(CannotProceedError, export.export, file, console.silent)
        for text in texts:
            self.assertIn(text, str(refusal))

    def check(self, codes: str, *statements: Any) -> None:
        """After the statements, an export is refused, and the audit finds the reason."""
        with self.subTest(codes, statement=str(statements[0])):
            for statement in statements:
                self.execute(statement)
            self.assertRefused(f'`placement-manage audit --only {codes}`')
            with db_engine.snapshot() as conn:
                found = audit.findings(conn, codes.split(','))
            self.assertEqual(sorted(codes.split(',')), sorted(finding.code for finding in found))
            self.load_example()

    def test_missing_rows(self):
        allocations, inventories = models.allocations, models.inventories
        links = models.resource_provider_aggregates
        for table, codes in (
            (models.consumers, 'orphan-allocation'),
            (models.resource_classes, 'unknown-class'),
            (models.projects, 'owner-missing'),
            (models.users, 'owner-missing'),
        ):
            self.check(codes, sa.delete(table))
        one_class = inventories.c.resource_class_id == 0
        gone = {'resource_provider_id': 99_999}
        for statement, codes in (
            (sa.update(inventories).where(one_class).values(resource_class_id=99), 'unknown-class'),
            (sa.update(inventories).where(one_class).values(gone), 'orphan-provider'),
            (sa.update(allocations).values(gone), 'orphan-provider'),
            (sa.update(links).values(gone), 'orphan-provider'),
        ):
            self.check(codes, statement)

    def test_damaged_trees(self):
        providers = models.resource_providers

        def update(code: str, name: str, column: str, value: Any) -> None:
            with self.engine.begin() as conn:
                ids = dict(conn.execute(sa.select(providers.c.name, providers.c.id)).all())
            changed = sa.update(providers).where(providers.c.name == name)
            self.check(code, changed.values({column: ids.get(value, value)}))

        update('root-missing', 'pool', 'root_provider_id', None)
        update('root-missing', 'gpu', 'root_provider_id', 'pool')
        update('root-missing', 'pool', 'parent_provider_id', 'gpu')
        update('parent-cycle', 'pool', 'parent_provider_id', 'pool')
        if self.engine.dialect.name == 'sqlite':  # The others have foreign keys.
            update('parent-missing', 'gpu', 'parent_provider_id', 99)

    def test_all_findings_are_named_at_once(self):
        self.check(
            'orphan-allocation,orphan-provider,root-missing',
            sa.delete(models.consumers),
            sa.update(models.allocations).values(resource_provider_id=99),
            sa.update(models.resource_providers).values(root_provider_id=None),
        )

    def test_values_that_an_import_would_refuse(self):
        aggregates = models.placement_aggregates
        for statement, *texts in (
            (sa.delete(aggregates), 'resource_provider_aggregates', 'aggregate_id'),
            (sa.insert(aggregates).values(uuid=None), 'placement_aggregates', 'uuid is NULL'),
            *(
                (sa.update(table).values({column: value}), f'The table {table.name} ', column)
                for table, column, value in (
                    (models.allocations, 'used', 0),
                    (models.inventories, 'step_size', 0),
                    (models.inventories, 'total', -1),
                    (models.consumers, 'generation', -1),
                )
            ),
        ):
            with self.subTest(str(statement)):
                self.execute(statement)
                self.assertRefused(*texts)
                self.load_example()

    def test_several_allocations_with_the_same_key(self):
        allocations = models.allocations
        columns = [c for c in allocations.c if c.name != 'id']
        copy = sa.select(*columns).where(allocations.c.consumer_id == documents.OTHER)
        self.execute(sa.insert(allocations).from_select([c.name for c in columns], copy))
        self.assertRefused(f"consumer '{documents.OTHER}', provider '{documents.HOST}'")

    @where.only_on('sqlite', reason='Only SQLite stores any text in any column.')
    def test_values_that_are_no_times(self):
        self.execute(sa.text("UPDATE traits SET created_at = 'yesterday'"))
        self.assertRefused('The table traits has a value that is not valid: ')
