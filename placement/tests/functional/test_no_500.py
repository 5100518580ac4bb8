"""Nothing that a client can send makes the service fail.

Requests are spoiled in every place that a client controls: the body at any depth, the
path, the query, the headers. No answer may be a 5xx, and each refusal has to be a
well-formed error document. The spoiling is seeded: a failure names a request that fails
again.
"""

from collections.abc import Callable
import io
import itertools
import logging
import random
from typing import Any

import fixtures
from oslotest import base

from placement import deploy
from placement.conf import base as conf_base
from placement.tests.functional.fixtures import placement as placement_fixture
from placement.tests.functional.spoil import forms, generated, judging, texts
from placement.tests.functional.spoil.documents import (
    BODIES,
    KEYS,
    VALUES,
    Pairs,
    at,
    dump,
    places,
    replaced,
)
from placement.tests.functional.spoil.forms import PROVIDER, VERSIONS, WRITES
from placement.tests.functional.spoil.judging import Answer
from placement.tests.functional.spoil.names import AGGREGATE, CHILD, CONSUMER, HOST

SEED = 20170


class NoServerError(base.BaseTestCase):
    """Each test has a service of its own with a host, its child, and somebody who uses them."""

    def setUp(self) -> None:
        super().setUp()
        # Thousands of requests make long logs; only what went wrong is worth reading.
        self.useFixture(fixtures.FakeLogger(level=logging.ERROR))
        self.random = random.Random(f'{SEED} {self.id()}')
        service = self.useFixture(placement_fixture.PlacementFixture(use_intercept=False))
        self.application = deploy.loadapp(service.conf_fixture.conf)
        self.known: dict[str, Any] = {}
        self._build()

    def _build(self) -> None:
        for method, path, body in [
            ('PUT', '/traits/CUSTOM_T', None),
            ('PUT', '/resource_classes/CUSTOM_A', None),
            ('POST', '/resource_providers', {'name': 'host', 'uuid': HOST}),
            (
                'POST',
                '/resource_providers',
                {'name': 'child', 'uuid': CHILD, 'parent_provider_uuid': HOST},
            ),
            (
                'PUT',
                f'{PROVIDER}/inventories',
                {
                    'resource_provider_generation': 0,
                    'inventories': {'VCPU': forms.record(), 'MEMORY_MB': forms.record()},
                },
            ),
            (
                'PUT',
                f'/resource_providers/{CHILD}/inventories',
                {'resource_provider_generation': 0, 'inventories': {'VGPU': forms.record()}},
            ),
            (
                'PUT',
                f'{PROVIDER}/traits',
                {'resource_provider_generation': 1, 'traits': ['CUSTOM_T']},
            ),
            (
                'PUT',
                f'{PROVIDER}/aggregates',
                {'resource_provider_generation': 2, 'aggregates': [AGGREGATE]},
            ),
            ('PUT', f'/allocations/{CONSUMER}', forms.claim(self, CONSUMER)),
        ]:
            answer = self.send(method, path, b'' if body is None else dump(body).encode())
            self.assertLess(answer.status, 300, answer)

    # Sending and judging

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b'',
        version: str = '1.39',
        query: str = '',
        **environ: str | None,
    ) -> Answer:
        """Send a request, and require that the answer is one that a client may get."""
        variables: dict[str, Any] = {
            'REQUEST_METHOD': method,
            'SCRIPT_NAME': '',
            'PATH_INFO': path,
            'QUERY_STRING': query,
            'SERVER_NAME': 'localhost',
            'SERVER_PORT': '80',
            'SERVER_PROTOCOL': 'HTTP/1.1',
            'REMOTE_ADDR': '127.0.0.1',
            'CONTENT_TYPE': 'application/json',
            'CONTENT_LENGTH': str(len(body)),
            'HTTP_X_AUTH_TOKEN': 'admin',
            'HTTP_X_ROLES': 'admin,service',
            'HTTP_OPENSTACK_API_VERSION': f'placement {version}',
            **environ,
        }
        variables = {name: text for name, text in variables.items() if text is not None}
        story = f'{method} {path[:200]!r}?{query[:200]!r} {version} {body[:500]!r} {environ!r:.500}'
        variables |= {
            'wsgi.version': (1, 0),
            'wsgi.url_scheme': 'http',
            'wsgi.input': io.BytesIO(body),
            'wsgi.errors': io.StringIO(),
            'wsgi.multithread': False,
            'wsgi.multiprocess': False,
            'wsgi.run_once': False,
        }
        started: list[tuple[str, list[tuple[str, str]]]] = []

        def start_response(
            status: str, headers: list[tuple[str, str]], exc_info: Any = None
        ) -> Callable[[bytes], None]:
            started.append((status, headers))
            return lambda data: None

        try:
            content = b''.join(self.application(variables, start_response))
        except Exception as exc:
            raise AssertionError(f'{exc!r} left the application: {story}') from exc
        status, headers = started[-1]
        answer = Answer(int(status.split()[0]), {k.lower(): v for k, v in headers}, content)
        fault = judging.fault(answer, method)
        self.assertEqual('', fault, f'{answer.status} {answer.content[:300]!r} to {story}')
        if method != 'GET' and answer.status < 300:
            self.known.clear()
        return answer

    def generation(self, uuid: str) -> int:
        return self.read(f'/resource_providers/{uuid}').get('generation', 0)

    def consumer_generation(self, uuid: str) -> int | None:
        return self.read(f'/allocations/{uuid}').get('consumer_generation')

    def read(self, path: str) -> Any:
        """What is at a path, asked again only after something was written."""
        if path not in self.known:
            self.known[path] = self.send('GET', path).json()
        return self.known[path]

    def require_health(self) -> None:
        """All that there is can still be read."""
        providers = self.send('GET', '/resource_providers')
        self.assertEqual(200, providers.status)
        for provider in providers.json()['resource_providers']:
            for link in provider['links']:
                self.assertEqual(200, self.send('GET', link['href']).status, link)
        for path, query in texts.PLAIN_QUERIES.items():
            self.assertEqual(200, self.send('GET', path, query=query).status, path)

    # The tests

    def test_every_form_is_fine_unless_it_is_spoiled(self) -> None:
        for write in WRITES:
            for version in {write.versions[0], write.versions[-1]}:
                body = dump(write.body(self)).encode()
                answer = self.send(write.method, write.path, body, version)
                # The same name or class may be there already from the round before.
                self.assertIn(answer.status, (200, 201, 204, 409), (write, answer))
        self.require_health()

    def test_wrong_values_at_any_depth(self) -> None:
        for write in WRITES:
            for place in places(write.body(self)):
                for value in self.random.sample(VALUES, 8):
                    body = replaced(write.body(self), place, value)
                    version = self.random.choice(write.versions)
                    self.send(write.method, write.path, dump(body).encode(), version)
        self.require_health()

    def test_wrong_keys_at_any_depth(self) -> None:
        for write in WRITES:
            for place in places(write.body(self)):
                if not isinstance(at(write.body(self), place), dict):
                    continue
                for key in self.random.sample(KEYS, 6):
                    whole = write.body(self)
                    pairs = Pairs(at(whole, place).items())
                    if pairs and self.random.random() < 0.5:
                        which = self.random.randrange(len(pairs))
                        pairs[which] = (key, pairs[which][1])
                    else:
                        pairs.append((key, self.random.choice(VALUES)))
                    body = dump(replaced(whole, place, pairs)).encode()
                    self.send(write.method, write.path, body, self.random.choice(write.versions))
        self.require_health()

    def test_missing_and_repeated_keys(self) -> None:
        for write in WRITES:
            for place in places(write.body(self)):
                inner = at(write.body(self), place)
                if not isinstance(inner, dict):
                    continue
                for key in inner:
                    whole = write.body(self)
                    without = Pairs((k, v) for k, v in at(whole, place).items() if k != key)
                    twice = Pairs([(key, self.random.choice(VALUES)), *at(whole, place).items()])
                    for pairs in (without, twice):
                        body = dump(replaced(whole, place, pairs)).encode()
                        version = self.random.choice(write.versions)
                        self.send(write.method, write.path, body, version)
        self.require_health()

    def test_bodies_that_are_no_documents(self) -> None:
        for write, body in itertools.product(WRITES, BODIES):
            if len(body) > 10_000 and self.random.random() < 0.7:
                continue
            answer = self.send(write.method, write.path, body, self.random.choice(write.versions))
            expected = 413 if len(body) > conf_base.BODY_LIMIT else 400
            self.assertEqual(expected, answer.status, (write.path, body[:50], answer))
        self.require_health()

    def test_wrong_paths(self) -> None:
        for route, method in itertools.product(texts.ROUTES, texts.METHODS[:4]):
            for segment in self.random.sample(texts.SEGMENTS, 12):
                other = self.random.choice(texts.SEGMENTS)
                version = self.random.choice(VERSIONS)
                if method == 'DELETE' and (
                    CONSUMER in (segment, other) or HOST in (segment, other)
                ):
                    continue
                body = self.random.choice([b'', b'{}', b'[]', b'null'])
                self.send(method, route.format(segment, other), body, version)
        self.require_health()

    def test_wrong_queries(self) -> None:
        for path, parameters in texts.QUERIES.items():
            for query in texts.RAW_QUERIES:
                self.send('GET', path, query=query)
            for name, values in parameters.items():
                for value in values:
                    self.send_query(path, [(name, value)])
            for _ in range(150):
                names = self.random.choices(list(parameters), k=self.random.randint(1, 6))
                self.send_query(
                    path, [(name, self.random.choice(parameters[name])) for name in names]
                )
        self.require_health()

    def send_query(self, path: str, items: list[tuple[str, str]]) -> None:
        plain = texts.PLAIN_QUERIES[path]
        parts = [plain] if plain and self.random.random() < 0.7 else []
        parts += [f'{name}={self.quoted(value)}' for name, value in items]
        version = self.random.choice([*VERSIONS, *['1.39'] * 40])
        self.send('GET', path, version=version, query='&'.join(parts))

    def quoted(self, text: str) -> str:
        """Percent-encode all that has to be, and now and then something else."""
        safe = b'abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-:,!'
        return ''.join(
            chr(byte) if byte in safe and self.random.random() > 0.01 else f'%{byte:02X}'
            for byte in text.encode()
        )

    def test_wrong_headers(self) -> None:
        reads = ['/', '/resource_providers', PROVIDER, '/nowhere', '/traits', '/usages']
        for name, values in texts.HEADERS.items():
            for value in values:
                for path in reads:
                    self.send('GET', path, **{name: value})
                write = self.random.choice(WRITES)
                body = dump(write.body(self)).encode()
                self.send(write.method, write.path, body, write.versions[-1], **{name: value})
        for _ in range(500):
            names = self.random.sample(list(texts.HEADERS), 3)
            environ = {name: self.random.choice(texts.HEADERS[name]) for name in names}
            path = self.random.choice([*reads, *(write.path for write in WRITES)])
            self.send(self.random.choice(texts.METHODS[:3]), path, b'{}', **environ)

    def test_wrong_methods(self) -> None:
        paths = ['/', '', '//', '/nowhere', '*', 'http://x/', *(write.path for write in WRITES)]
        for method, path in itertools.product(texts.METHODS[4:], paths):
            self.send(method, path, self.random.choice([b'', b'{}']))
        self.require_health()

    def test_bodies_that_break_off(self) -> None:
        for write in WRITES:
            body = dump(write.body(self)).encode()
            for length in (len(body) + 10, len(body) - 1, 1):
                self.send(
                    write.method, write.path, body, write.versions[0], CONTENT_LENGTH=str(length)
                )
        self.require_health()

    def send_request(self, request: generated.Request) -> Answer:
        method, path, query, body, environ, version = request
        return self.send(method, path, body, version, query, **environ)

    def test_generated_requests(self) -> None:
        """The first of the requests that `python -m tools.hostile` sends by the 100,000."""
        for request in generated.cloud():
            self.send_request(request)
        generator = generated.Generator(self.random, self)
        statuses = {self.send_request(generator.request()).status for _ in range(600)}
        self.assertLessEqual({200, 204, 400, 404, 405}, statuses)
        self.require_health()

    def test_generated_queries_are_valid(self) -> None:
        for request in generated.cloud():
            self.send_request(request)
        for _ in range(40):
            request = generated.valid_query(self.random)
            self.assertEqual(200, self.send_request(request).status, request)
