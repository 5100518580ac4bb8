"""Synchronization of standard traits and resource classes when a process starts."""

from unittest import mock

import os_resource_classes
import os_traits
import sqlalchemy as sa

from placement.db.sqlalchemy import models
from placement.objects import sync
from placement.tests import where
from placement.tests.functional.db import base


@where.also_on_mysql('MySQL decides which transaction waits and which one it ends.')
class SyncTest(base.TestCase):
    kind_of_database = base.MigratedDatabase

    def sync(self) -> None:
        sync.reset()
        sync.sync_traits()
        sync.sync_resource_classes()

    def traits(self) -> set[str]:
        with self.engine.connect() as conn:
            return set(conn.scalars(sa.select(models.traits.c.name)))

    def classes(self) -> dict[str, int]:
        table = models.resource_classes
        with self.engine.connect() as conn:
            return {row.name: row.id for row in conn.execute(sa.select(table.c.name, table.c.id))}

    def test_empty_database_gets_all_standard_names(self):
        """A second synchronization inserts nothing."""
        self.sync()
        self.sync()

        self.assertEqual(len(os_traits.get_traits()), self.count(models.traits))
        self.assertEqual(set(os_traits.get_traits()), self.traits())
        self.assertEqual(
            {name: class_id for class_id, name in enumerate(os_resource_classes.STANDARDS)},
            self.classes(),
        )
        self.assertEqual(0, self.classes()['VCPU'])
        with self.engine.connect() as conn:
            row = conn.execute(sa.select(models.traits).limit(1)).one()
        self.assertIsNotNone(row.created_at)
        self.assertIsNone(row.updated_at)

    def sync_with(self, traits: list[str], classes: list[str]) -> None:
        with (
            mock.patch.object(os_traits, 'get_traits', return_value=traits),
            mock.patch.object(os_resource_classes, 'STANDARDS', classes),
        ):
            self.sync()

    def test_newer_library_adds_names_and_keeps_the_others(self):
        self.sync_with(['HW_OLD', 'HW_BOTH'], ['VCPU', 'MEMORY_MB'])
        with self.engine.begin() as conn:
            conn.execute(sa.insert(models.traits).values(name='CUSTOM_MINE'))
        self.sync_with(['HW_NEW', 'HW_BOTH'], ['VCPU', 'MEMORY_MB', 'DISK_GB'])

        self.assertEqual({'HW_OLD', 'HW_BOTH', 'HW_NEW', 'CUSTOM_MINE'}, self.traits())
        self.assertEqual({'VCPU': 0, 'MEMORY_MB': 1, 'DISK_GB': 2}, self.classes())

    def test_synchronizes_once_per_process(self):
        sync.sync_traits()
        with self.engine.begin() as conn:
            conn.execute(sa.delete(models.traits))
        sync.sync_traits()
        self.assertEqual(0, self.count(models.traits))

        sync.reset()
        sync.sync_traits()
        self.assertNotEqual(0, self.count(models.traits))

    @where.not_on('sqlite', reason='SQLite excludes other writers during the transaction.')
    def test_concurrent_insert_is_retried(self):
        """Another process inserts one of the missing rows after this process read the table."""
        scalars = sa.Connection.scalars
        inserted = []

        def read_then_insert(conn, statement):
            result = scalars(conn, statement)
            if not inserted and statement.get_final_froms() == [models.traits]:
                inserted.append('HW_CPU_X86_AVX')
                with self.engine.begin() as concurrent:
                    concurrent.execute(sa.insert(models.traits).values(name=inserted[0]))
            return result

        with mock.patch.object(sa.Connection, 'scalars', read_then_insert):
            self.sync()
        self.assertEqual(['HW_CPU_X86_AVX'], inserted)
        self.assertEqual(set(os_traits.get_traits()), self.traits())
