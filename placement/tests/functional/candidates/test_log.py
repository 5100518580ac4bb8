"""A search that finds nothing logs its query."""

import logging

import fixtures

from placement.microversion import MAX_VERSION
from placement.tests.functional import base

LOGGER = 'placement.handlers.allocation_candidate'


class EmptyResultTest(base.TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.uuid = self.make_provider('host', {'VCPU': 8})

    def lines(
        self, query: str, version: str = 'latest', status: int = 200, level: int = logging.INFO
    ) -> list[str]:
        """Return the lines that a search logs."""
        with fixtures.FakeLogger(LOGGER, level) as log:
            response = self.send('GET', f'/allocation_candidates?{query}', version=version)
        self.assertEqual(status, response.status_code, response.text)
        return log.output.splitlines()

    def test_an_empty_result_is_logged_with_its_query(self) -> None:
        query = 'resources=VCPU:9&required=HW_CPU_X86_AVX2'
        self.assertEqual(
            [f'No allocation candidates: {query} microversion: 1.36'], self.lines(query, '1.36')
        )

    def test_the_query_is_as_the_client_sent_it(self) -> None:
        query = f'resources=VCPU%3A9;in_tree=%7B{self.uuid}%7D&limit=1&limit=2'
        self.assertEqual(
            [f'No allocation candidates: {query} microversion: {MAX_VERSION}'], self.lines(query)
        )

    def test_a_result_is_not_logged(self) -> None:
        self.assertEqual([], self.lines('resources=VCPU:8'))

    def test_a_refused_query_is_not_logged(self) -> None:
        for query in ('', 'resources=VCPU:9&colour=red', 'resources=CUSTOM_UNKNOWN:1'):
            self.assertEqual([], self.lines(query, status=400))

    def test_a_level_above_info_disables_the_line(self) -> None:
        self.assertEqual([], self.lines('resources=VCPU:9', level=logging.WARNING))
