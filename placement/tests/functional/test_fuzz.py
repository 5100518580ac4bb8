"""No random request leads to a response that the OpenAPI documents do not describe.

Schemathesis generates requests from the document of a microversion and compares the responses with
the document. The test sends a few hundred requests to the service in this process.
``python -m tools.fuzz`` sends many more to uWSGI and a database server.
"""

import logging

import ddt
import fixtures
from oslotest import base

from placement.microversion import VERSIONS
from placement.openapi import files
from placement.tests import where
from placement.tests.functional.fixtures import placement as placement_fixture
from tools.fuzz.session import Session

SEED = 13


@where.at_night('The documents are compared with each response of the API tests, too.')
@where.only_on('sqlite', reason='The documents do not depend on the database.')
@ddt.ddt
class FuzzTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        # Hundreds of requests produce long logs, so only errors are captured.
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        self.service = self.useFixture(placement_fixture.PlacementFixture())

    @ddt.data(
        # The first and the last microversion.
        VERSIONS[0],
        VERSIONS[-1],
        # Requests, responses, and queries in older forms.
        '1.27',
    )
    def test_all_responses_conform_to_the_document(self, version: str) -> None:
        session = Session(files.content(version), self.service.endpoint)
        result = session.run(250, SEED)

        self.assertEqual([], [str(problem) for problem in result.problems.values()])
        self.assertEqual('', self.log.output)
        operations = {operation for operation, _ in result.statuses}
        self.assertEqual(session.operations(), operations)
        # Requests succeed, and they fail for different reasons.
        self.assertLessEqual({200, 201, 400, 404, 409}, set(result.by_status()))
