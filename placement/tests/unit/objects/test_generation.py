"""Checks of the generations that clients send."""

from oslotest import base

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
