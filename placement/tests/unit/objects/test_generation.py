"""Checks of the generations that clients send."""

import pathlib

from oslotest import base

import placement
from placement import exception
from placement.objects import generation

UUID = '5a1f5f56-8f5c-4e3c-8a4c-0a5f9b1f3c11'


class CheckTest(base.BaseTestCase):
    def test_current_generation_passes(self):
        generation.check_provider(UUID, 0, 0)
        generation.check_consumer(UUID, 3, 3)
        generation.check_consumer(UUID, None, None)

    def test_stale_provider_generation_is_a_conflict(self):
        conflict = self.assertRaises(
            exception.ResourceProviderGenerationConflict, generation.check_provider, UUID, 1, 2
        )
        self.assertEqual((UUID, 1, 2), (conflict.uuid, conflict.given, conflict.current))

    def test_consumer_generation_conflicts(self):
        for given, current in ((1, 2), (None, 0), (0, None)):
            conflict = self.assertRaises(
                exception.ConsumerGenerationConflict,
                generation.check_consumer,
                UUID,
                given,
                current,
            )
            self.assertEqual((given, current), (conflict.given, conflict.current))


class ColumnTest(base.BaseTestCase):
    def test_only_the_audit_reads_a_generation_that_can_be_null(self):
        """All other modules use `models.generation`, which returns 0 in place of NULL."""
        package = pathlib.Path(placement.__file__).parent
        readers = {
            str(path.relative_to(package))
            for path in package.rglob('*.py')
            if package / 'tests' not in path.parents and '.c.generation' in path.read_text()
        }
        self.assertEqual({'admin/audit/generations.py', 'db/sqlalchemy/models.py'}, readers)
