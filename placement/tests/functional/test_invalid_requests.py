"""No request causes an unexpected failure of the service.

The tests change each part of valid requests that a client controls: the body at any depth, the
path, the query and the headers. No response may have a 5xx status, and each error must be a
well-formed error document. The random changes have a fixed seed, so failures are reproducible.
"""

import itertools
import json
import logging
import random
from typing import Any

import fixtures
from oslotest import base

from placement import deploy
from placement.conf import base as conf_base
from placement.tests import where, wsgi_client
from placement.tests.documented import Documented
from placement.tests.functional.fixtures import placement as placement_fixture
from placement.tests.functional.invalid_requests import generated, responses, valid_writes, values
from placement.tests.functional.invalid_requests.documents import BODIES, dump
from placement.tests.functional.invalid_requests.valid_writes import WRITES
from placement.tests.properties import examples
from placement.tests.wsgi_client import Request, Response

SEED = 20170
# Requests delete rows of the cloud. After this number of requests, the missing rows are created.
RESTORE_INTERVAL = 1000


class InvalidRequestsTest(base.BaseTestCase):
    """Each test has a small cloud, and a consumer with allocations."""

    def setUp(self) -> None:
        super().setUp()
        # Thousands of requests produce long logs, so only errors are captured.
        self.log = self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        self.random = random.Random(f'{SEED} {self.id()}')
        service = self.useFixture(placement_fixture.PlacementFixture(use_intercept=False))
        self.application = Documented(deploy.loadapp(service.conf_fixture.conf))
        self.documents: dict[str, Any] = {}  # path -> response to GET since the last write
        for request in generated.cloud():
            self.assertLess(self.send(request).status, 300, request)
        body = json.dumps(valid_writes.claim(self, values.CONSUMER)).encode()
        claim = Request('PUT', f'/allocations/{values.CONSUMER}', body=body)
        self.assertEqual(204, self.send(claim).status)

    def send(self, request: Request) -> Response:
        """Send a request, and require that the response is well-formed and has no 5xx status."""
        try:
            response = wsgi_client.send(self.application, request)
        except Exception as exc:
            raise AssertionError(f'{exc!r} left the application: {shortened(request)}') from exc
        defect = responses.defect(response, request.method)
        message = f'{response.status} {response.content[:300]!r} to {shortened(request)}'
        self.assertEqual('', defect, message)
        if request.method != 'GET' and response.status < 300:
            self.documents.clear()
        return response

    def generation(self, uuid: str) -> int:
        return self.document(f'/resource_providers/{uuid}').get('generation', 0)

    def consumer_generation(self, uuid: str) -> int | None:
        return self.document(f'/allocations/{uuid}').get('consumer_generation')

    def document(self, path: str) -> Any:
        """Return the document at a path. The document is cached until the next write."""
        if path not in self.documents:
            self.documents[path] = self.send(Request('GET', path)).json()
        return self.documents[path]

    def assertReadable(self) -> None:
        """Require that all documents can still be read."""
        providers = self.send(Request('GET', '/resource_providers')).json()['resource_providers']
        links = [link['href'] for provider in providers for link in provider['links']]
        for path, query in (*((link, '') for link in links), *values.PLAIN_QUERIES.items()):
            self.assertEqual(200, self.send(Request('GET', path, query)).status, path)

    def test_valid_writes_succeed(self) -> None:
        for write in WRITES:
            for version in {write.versions[0], write.versions[-1]}:
                body = dump(write.body(self)).encode()
                response = self.send(Request(write.method, write.path, '', body, version))
                # 409: the previous iteration created the same name or class.
                self.assertIn(response.status, (200, 201, 204, 409), (write, response))
        self.assertReadable()

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_bodies_without_a_valid_document(self) -> None:
        for write, body in itertools.product(WRITES, BODIES):
            if len(body) > 10_000 and self.random.random() < 0.7:
                continue
            version = self.random.choice(write.versions)
            response = self.send(Request(write.method, write.path, '', body, version))
            expected = 413 if len(body) > conf_base.BODY_LIMIT else 400
            self.assertEqual(expected, response.status, (write.path, body[:50], response))
        self.assertReadable()

    def check(self, count: int, *parts: str) -> None:
        """Send requests with invalid parts."""
        generator = generated.Generator(self.random, self)
        statuses = set()
        for number in range(count):
            if number % RESTORE_INTERVAL == RESTORE_INTERVAL - 1:
                for request in generated.cloud():
                    self.send(request)
            statuses.add(self.send(generator.request(*parts)).status)
        self.assertLessEqual({200, 400, 404}, statuses)
        self.assertReadable()
        self.assertEqual('', self.log.output)

    def test_invalid_values(self) -> None:
        self.check(1500, 'body')

    def test_invalid_queries(self) -> None:
        self.check(1000, 'query')

    def test_invalid_paths(self) -> None:
        self.check(600, 'path')

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_invalid_headers(self) -> None:
        self.check(1000, 'headers')

    def test_generated_requests(self) -> None:
        self.check(examples(600))

    def test_generated_valid_queries_succeed(self) -> None:
        for _ in range(examples(40)):
            request = generated.valid_query(self.random)
            self.assertEqual(200, self.send(request).status, request)


def shortened(request: Request) -> str:
    """Return a description of a request, of limited length, for messages."""
    return (
        f'{request.method} {request.path[:200]!r}?{request.query[:200]!r} {request.version} '
        f'{request.body[:500]!r} {request.environ!r:.500}'
    )
