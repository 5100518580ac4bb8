"""Pairs of requests in a database whose providers and consumers have no generations."""

import itertools

from placement.tests.functional import missing_generations
from placement.tests.functional.races import writers
from placement.tests.functional.races.test_schedules import (
    PART,
    SMALL_PART,
    WithScheduler,
    selected,
)

PROVIDERS = 'resource_providers'


class MissingGenerationsTest(WithScheduler):
    def setUp(self):
        super().setUp()
        missing_generations.permit_null(self)

    def test_pairs(self):
        """A missing generation counts as 0."""
        requests = writers.every(writers.NO_GENERATIONS)
        pairs = selected(itertools.product(requests, requests), SMALL_PART)
        self.examine(100, self.at_each_statement(writers.NO_GENERATIONS, pairs))

    def test_claims(self):
        """Each claim increments the generation, so that the other one is repeated or fails."""
        claims = writers.claims(writers.NO_GENERATIONS)
        alone = self.scheduler.serial(writers.NO_GENERATIONS, (claims[0],))
        self.assertIn((writers.ROOT, 'root', 1), [row[:3] for row in alone.state[PROVIDERS]])
        pairs = selected(itertools.product(claims, claims), PART)
        self.examine(40, self.at_each_statement(writers.NO_GENERATIONS, pairs))
