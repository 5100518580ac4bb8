"""No request causes an unexpected failure of the service.

The tests change each part of valid requests that a client controls: the body at any depth, the
path, the query and the headers. No response may have a 5xx status, and each error must be a
well-formed error document. The random changes have a fixed seed, so failures are reproducible.
"""

from collections.abc import Iterator
import itertools
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
from placement.tests.functional.invalid_requests.documents import (
    BODIES,
    KEYS,
    VALUES,
    Pairs,
    Place,
    at,
    dump,
    places,
    replaced,
)
from placement.tests.functional.invalid_requests.uuids import AGGREGATE, CHILD, CONSUMER, HOST
from placement.tests.functional.invalid_requests.valid_writes import (
    PROVIDER,
    VERSIONS,
    WRITES,
    Write,
)
from placement.tests.wsgi_client import Request, Response

SEED = 20170
HOST_CLASSES = ('VCPU', 'MEMORY_MB')
READS = ('/', '/resource_providers', PROVIDER, '/nowhere', '/traits', '/usages')


class InvalidRequestsTest(base.BaseTestCase):
    """Each test has a host, a child provider, and a consumer with allocations against both."""

    def setUp(self) -> None:
        super().setUp()
        # Thousands of requests produce long logs, so only errors are captured.
        self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        self.random = random.Random(f'{SEED} {self.id()}')
        service = self.useFixture(placement_fixture.PlacementFixture(use_intercept=False))
        self.application = Documented(deploy.loadapp(service.conf_fixture.conf))
        self.documents: dict[str, Any] = {}  # path -> response to GET since the last write
        for request in self.initial_requests():
            response = self.send(request)
            self.assertLess(response.status, 300, response)

    def initial_requests(self) -> Iterator[Request]:
        """Generate the requests that create the rows that the tests use."""

        def write(method: str, path: str, document: Any = None) -> Request:
            return Request(method, path, body=b'' if document is None else encoded(document))

        inventory = valid_writes.inventory()
        child = f'/resource_providers/{CHILD}'
        yield write('PUT', '/traits/CUSTOM_T')
        yield write('PUT', '/resource_classes/CUSTOM_A')
        yield write('POST', '/resource_providers', {'name': 'host', 'uuid': HOST})
        yield write(
            'POST',
            '/resource_providers',
            {'name': 'child', 'uuid': CHILD, 'parent_provider_uuid': HOST},
        )

        def replace(path: str, generation: int, **member: Any) -> Request:
            return write('PUT', path, {'resource_provider_generation': generation, **member})

        by_class = dict.fromkeys(HOST_CLASSES, inventory)
        yield replace(f'{PROVIDER}/inventories', 0, inventories=by_class)
        yield replace(f'{child}/inventories', 0, inventories={'VGPU': inventory})
        yield replace(f'{PROVIDER}/traits', 1, traits=['CUSTOM_T'])
        yield replace(f'{PROVIDER}/aggregates', 2, aggregates=[AGGREGATE])
        yield write('PUT', f'/allocations/{CONSUMER}', valid_writes.claim(self, CONSUMER))

    # Sending requests and checking responses

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

    def send_write(self, write: Write, body: bytes, version: str | None = None) -> Response:
        """Send a write with another body, and with a random microversion if none is given."""
        version = version or self.random.choice(write.versions)
        return self.send(Request(write.method, write.path, body=body, version=version))

    def get(self, path: str, query: str = '') -> Response:
        return self.send(Request('GET', path, query=query))

    def generation(self, uuid: str) -> int:
        return self.document(f'/resource_providers/{uuid}').get('generation', 0)

    def consumer_generation(self, uuid: str) -> int | None:
        return self.document(f'/allocations/{uuid}').get('consumer_generation')

    def document(self, path: str) -> Any:
        """Return the document at a path. The document is cached until the next write."""
        if path not in self.documents:
            self.documents[path] = self.get(path).json()
        return self.documents[path]

    def assertReadable(self) -> None:
        """Require that all documents can still be read."""
        providers = self.get('/resource_providers')
        self.assertEqual(200, providers.status)
        for provider in providers.json()['resource_providers']:
            for link in provider['links']:
                self.assertEqual(200, self.get(link['href']).status, link)
        for path, query in values.PLAIN_QUERIES.items():
            self.assertEqual(200, self.get(path, query).status, path)

    def objects(self) -> Iterator[tuple[Write, Place]]:
        """Generate the location of each JSON object in the body of each write."""
        for write in WRITES:
            body = write.body(self)
            for place in places(body):
                if isinstance(at(body, place), dict):
                    yield write, place

    # The tests

    def test_valid_writes_succeed(self) -> None:
        for write in WRITES:
            for version in {write.versions[0], write.versions[-1]}:
                response = self.send_write(write, encoded(write.body(self)), version)
                # 409: the previous iteration created the same name or class.
                self.assertIn(response.status, (200, 201, 204, 409), (write, response))
        self.assertReadable()

    def test_invalid_values_at_any_depth(self) -> None:
        for write in WRITES:
            for place in places(write.body(self)):
                for value in self.random.sample(VALUES, 8):
                    self.send_write(write, encoded(replaced(write.body(self), place, value)))
        self.assertReadable()

    def test_invalid_keys_at_any_depth(self) -> None:
        for write, place in self.objects():
            for key in self.random.sample(KEYS, 6):
                whole = write.body(self)
                pairs = Pairs(at(whole, place).items())
                if pairs and self.random.random() < 0.5:
                    index = self.random.randrange(len(pairs))
                    pairs[index] = (key, pairs[index][1])
                else:
                    pairs.append((key, self.random.choice(VALUES)))
                self.send_write(write, encoded(replaced(whole, place, pairs)))
        self.assertReadable()

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_missing_and_repeated_keys(self) -> None:
        for write, place in self.objects():
            for key in at(write.body(self), place):
                whole = write.body(self)
                pairs = at(whole, place).items()
                without = Pairs((name, value) for name, value in pairs if name != key)
                repeated = Pairs([(key, self.random.choice(VALUES)), *pairs])
                for changed in (without, repeated):
                    self.send_write(write, encoded(replaced(whole, place, changed)))
        self.assertReadable()

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_bodies_without_a_valid_document(self) -> None:
        for write, body in itertools.product(WRITES, BODIES):
            if len(body) > 10_000 and self.random.random() < 0.7:
                continue
            response = self.send_write(write, body)
            expected = 413 if len(body) > conf_base.BODY_LIMIT else 400
            self.assertEqual(expected, response.status, (write.path, body[:50], response))
        self.assertReadable()

    def test_invalid_paths(self) -> None:
        for route, method in itertools.product(values.ROUTES, values.METHODS[:4]):
            for segment in self.random.sample(values.SEGMENTS, 12):
                segments = (segment, self.random.choice(values.SEGMENTS))
                version = self.random.choice(VERSIONS)
                if method == 'DELETE' and not {CONSUMER, HOST}.isdisjoint(segments):
                    continue
                body = self.random.choice([b'', b'{}', b'[]', b'null'])
                self.send(Request(method, route.format(*segments), body=body, version=version))
        self.assertReadable()

    def test_invalid_queries(self) -> None:
        for path, parameters in values.QUERIES.items():
            for query in values.RAW_QUERIES:
                self.get(path, query)
            for name, texts in parameters.items():
                for text in texts:
                    self.send_query(path, [(name, text)])
            for _ in range(150):
                names = self.random.choices(list(parameters), k=self.random.randint(1, 6))
                self.send_query(
                    path, [(name, self.random.choice(parameters[name])) for name in names]
                )
        self.assertReadable()

    def send_query(self, path: str, parameters: list[tuple[str, str]]) -> None:
        plain = values.PLAIN_QUERIES[path]
        parts = [plain] if plain and self.random.random() < 0.7 else []
        parts += [f'{name}={self.quoted(text)}' for name, text in parameters]
        version = self.random.choice([*VERSIONS, *['latest'] * 40])
        self.send(Request('GET', path, query='&'.join(parts), version=version))

    def quoted(self, text: str) -> str:
        """Percent-encode the bytes that require it, and one percent of the other bytes."""
        safe = b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:,!'
        return ''.join(
            chr(byte) if byte in safe and self.random.random() > 0.01 else f'%{byte:02X}'
            for byte in text.encode()
        )

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_invalid_headers(self) -> None:
        for name, texts in values.HEADERS.items():
            for environ in ({name: text} for text in texts):
                for path in READS:
                    self.send(Request('GET', path, environ=environ))
                write = self.random.choice(WRITES)
                self.send(
                    Request(
                        write.method,
                        write.path,
                        body=encoded(write.body(self)),
                        version=write.versions[-1],
                        environ=environ,
                    )
                )

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_several_invalid_headers(self) -> None:
        for _ in range(500):
            names = self.random.sample(list(values.HEADERS), 3)
            environ = {name: self.random.choice(values.HEADERS[name]) for name in names}
            path = self.random.choice([*READS, *(write.path for write in WRITES)])
            method = self.random.choice(values.METHODS[:3])
            self.send(Request(method, path, body=b'{}', environ=environ))

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_invalid_methods(self) -> None:
        paths = ['/', '', '//', '/nowhere', '*', 'http://x/', *(write.path for write in WRITES)]
        for method, path in itertools.product(values.METHODS[4:], paths):
            self.send(Request(method, path, body=self.random.choice([b'', b'{}'])))
        self.assertReadable()

    @where.only_on('sqlite', reason='No SQL statement is executed.')
    def test_content_length_differs_from_the_body(self) -> None:
        for write in WRITES:
            body = encoded(write.body(self))
            for length in (len(body) + 10, len(body) - 1, 1):
                environ = {'CONTENT_LENGTH': str(length)}
                version = write.versions[0]
                self.send(Request(write.method, write.path, '', body, version, environ))
        self.assertReadable()

    def test_generated_requests(self) -> None:
        """The test sends 600 generated requests; tools.hostile sends 20,000 of the same kind."""
        for request in generated.cloud():
            self.send(request)
        generator = generated.Generator(self.random, self)
        statuses = {self.send(generator.request()).status for _ in range(600)}
        self.assertLessEqual({200, 204, 400, 404, 405}, statuses)
        self.assertReadable()

    def test_generated_valid_queries_succeed(self) -> None:
        for request in generated.cloud():
            self.send(request)
        for _ in range(40):
            request = generated.valid_query(self.random)
            self.assertEqual(200, self.send(request).status, request)


def encoded(document: Any) -> bytes:
    return dump(document).encode()


def shortened(request: Request) -> str:
    """Return a description of a request, of limited length, for messages."""
    return (
        f'{request.method} {request.path[:200]!r}?{request.query[:200]!r} {request.version} '
        f'{request.body[:500]!r} {request.environ!r:.500}'
    )
