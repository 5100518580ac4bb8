"""Valid and invalid bodies of requests, and names in paths."""

from collections.abc import Callable, Iterator
import json
from typing import Any
from unittest import mock

import jsonschema

from api_reference.operations import OPERATIONS
from placement import microversion
from placement.microversion import Version
from placement.tests.unit.api import ApiTestCase

P = '6a3b1f53-7a0f-4d8b-9c57-0f1f4d3a2c01'
C = '0c5f4a64-9d1e-4c07-a8a3-5a8f0e9a7b02'
BARE = P.replace('-', '')
OWNER = {'project_id': 'p', 'user_id': 'u'}


class BodiesTest(ApiTestCase):
    """Values of unusual types and forms. gabbi tests each member of each body."""

    def check(
        self,
        method: str,
        path: str,
        body: Callable[[Any], Any],
        valid: tuple[Any, ...],
        invalid: tuple[Any, ...],
        minor: int = 39,
    ) -> None:
        """Check that bodies with some values are accepted, and that others are refused."""
        for values, is_valid in ((valid, True), (invalid, False)):
            for value in values:
                problem = self.problem(method, path, Version(1, minor), body(value))
                self.assertEqual(is_valid, problem is None, (path, value, problem))

    def test_documents(self):
        self.check(
            *('POST', '/resource_providers', lambda body: body),
            # The last of repeated keys counts, and an escaped backslash is no NUL character.
            ({'name': 'a'}, b'{"name": 1, "name": "a"}', rb'{"name": "x\\u0000"}'),
            ({'name': None}, {}, [], 'x', 7, b'null'),
        )

    def test_uuids(self):
        self.check(
            *('POST', '/resource_providers', lambda uuid: {'name': 'a', 'uuid': uuid}),
            (P, P.upper(), BARE, f'{{{P}}}', f'urn:uuid:{P}', f'{BARE[:4]}-{BARE[4:]}'),
            ('', P[:-1], f'{P}0', f'0x{BARE[2:]}', f'{BARE[:-1]} ', f'{P}\n', '-' * 36, 7),
        )
        # An aggregate is stored as it is written, in a column of 36 characters.
        self.check(
            *('PUT', f'/resource_providers/{P}/aggregates', lambda uuids: uuids),
            ([], [P], [BARE]),
            ([f'{{{P}}}'], [f'urn:uuid:{P}'], [P, P], b'null'),
            minor=1,
        )
        self.check(
            *('POST', '/allocations', lambda key: {key: {'allocations': {}, **OWNER}}),
            (P, P.upper(), '-' * 36),
            (BARE, f'{P}\n', 'x'),
            minor=13,
        )

    def test_numbers(self):
        path = f'/resource_providers/{P}/inventories'
        for name, valid, invalid in (
            ('total', (1, 2147483647, 2.0), (0, 2147483648, 1e30, 1.5, True, '1', None)),
            ('allocation_ratio', (-1, 3.40282e38), (3.5e38, '1', False)),
        ):

            def inventory(value: Any, name: str = name) -> dict[str, Any]:
                return {'resource_class': 'VCPU', 'total': 1, name: value}

            self.check('POST', path, inventory, valid, invalid)
        self.check(
            *('PUT', f'/allocations/{C}'),
            lambda one: {'allocations': {P: {'resources': one}}, **OWNER},
            ({'A': 1}, {'A': 2.0}),
            ({}, {'A': 0}, {'A': 1.5}, {'A': '1'}, {'A': True}, {'a': 1}, [], None),
            minor=12,
        )

    def test_malformed(self):
        for body in (
            b'',
            b'{',
            b'{"name": NaN}',
            b'{"name": -Infinity}',
            b'{"name": 1e400}',
            b'{"name": "\xff"}',
            b'\xef\xbb\xbf{}',
            rb'{"name": "\ud800"}',
            b'[' * 2000 + b']' * 2000,
            b'{"name":' * 2000 + b'1' + b'}' * 2000,
        ):
            headers = {'CONTENT_TYPE': 'application/json'}
            problem = self.problem('POST', '/resource_providers', body=body, **headers)
            self.assertIn('Malformed JSON: ', problem)

    def test_messages(self):
        for method, path, body, expected in (
            ('POST', '/resource_classes', b'7', '7 is not of type'),
            ('POST', '/resource_classes', b'[' * 1000 + b']' * 1000, 'JSON does not validate: '),
            ('POST', '/resource_classes', rb'{"name": "x\u0000"}', 'NUL characters'),
            ('POST', '/resource_classes', rb'{"\u0000": 1}', 'NUL characters'),
            ('POST', '/resource_classes', rb'[[{"a": ["\u0000"]}]]', 'NUL characters'),
            (
                *('POST', '/resource_classes', {'name': 'x'}),
                "'x' does not match '^CUSTOM_[A-Z0-9_]+$'",
            ),
            (
                *('POST', '/resource_classes', {'name': r'a\Z match '}),
                r"'a\\Z match ' does not match '^CUSTOM_[A-Z0-9_]+$'",
            ),
            (
                *('POST', '/resource_classes', {'name': 'CUSTOM_A', r' match \Z': 1}),
                r"Additional properties are not allowed (' match \\Z' was unexpected)",
            ),
            (
                *('POST', '/allocations', {'x': 1, 'y': 1}),
                "'x', 'y' do not match any of the regexes: '^[0-9a-fA-F-]{36}$'",
            ),
            ('POST', '/resource_providers', {'name': 'a', 'uuid': 'x'}, "'x' is not a 'uuid'"),
        ):
            self.assertIn(expected, self.problem(method, path, body=body))
        problem = self.problem('POST', '/resource_classes', body=['x\n' * 100_000])
        self.assertLess(len(problem), 2000)
        self.assertEqual(3, len(problem.splitlines()))

    def test_texts_without_rules_are_not_validated(self):
        """Most reads have a parameter that can have any text, and the validation takes longer."""
        with mock.patch('placement.validation.problem') as problem:
            query = 'name=&required=!&name=x'
            self.problem('GET', '/resource_providers', QUERY_STRING=query)
        problem.assert_not_called()

    def test_a_client_disconnects(self):
        class Disconnected:
            def read(self, length):
                raise OSError('connection reset')

        body = {'wsgi.input': Disconnected()}
        problem = self.problem('POST', '/resource_providers', body={'name': 'a'}, **body)
        self.assertIn('Malformed JSON: the request body could not be read', problem)


class SchemasTest(ApiTestCase):
    """The schemas of bodies, which the OpenAPI documents contain with descriptions."""

    def schemas(self) -> list[dict[str, Any]]:
        found = {}
        for methods in OPERATIONS.values():
            for operation in methods.values():
                for version in map(microversion.of_text, microversion.VERSIONS):
                    if version >= operation.since and (body := operation.body_at(version)):
                        found[json.dumps(body, sort_keys=True)] = body
        return list(found.values())

    def test_schemas(self):
        self.assertGreater(len(self.schemas()), 10)
        for schema in self.schemas():
            jsonschema.Draft202012Validator.check_schema(schema)
            for keyword, value in keywords(schema):
                if keyword == 'pattern':
                    # It would allow a newline at the end.
                    self.assertNotIn('$', value)
                elif keyword == 'format':
                    # jsonschema ignores unknown formats.
                    self.assertEqual('uuid', value)
                elif keyword in ('properties', 'patternProperties'):
                    for name, one in value.items():
                        self.assertIn('description', one, name)


def keywords(schema: Any) -> Iterator[tuple[str, Any]]:
    """Yield the keywords of a schema and their values, at any depth."""
    if isinstance(schema, list):
        for one in schema:
            yield from keywords(one)
    elif isinstance(schema, dict):
        for name, one in schema.items():
            if name != 'if':  # a condition is not a description
                yield name, one
                nested = name in ('properties', 'patternProperties') and isinstance(one, dict)
                yield from keywords(list(one.values()) if nested else one)
