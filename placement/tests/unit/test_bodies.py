"""Valid and invalid bodies of requests, and names in paths."""

from collections.abc import Iterator
import itertools
import json
from typing import Any

import jsonschema

from placement import microversion
from placement.microversion import Version
from placement.operations import OPERATIONS
from placement.tests.unit.api import ApiTestCase

P = '6a3b1f53-7a0f-4d8b-9c57-0f1f4d3a2c01'
C = '0c5f4a64-9d1e-4c07-a8a3-5a8f0e9a7b02'
BARE = P.replace('-', '')
PROVIDER = f'/resource_providers/{P}'
OWNER = {'project_id': 'p', 'user_id': 'u'}
GENERATION = {'resource_provider_generation': 0}
BY_PROVIDER = {'allocations': {P: {'resources': {'VCPU': 1}, 'generation': 4}}}
# The body of PUT /allocations/{consumer_uuid} by the microversion since which it is valid.
FORMS = {
    0: {'allocations': [{'resource_provider': {'uuid': P}, 'resources': {'VCPU': 1}}]},
    12: {**BY_PROVIDER, **OWNER},
    28: {**BY_PROVIDER, **OWNER, 'consumer_generation': None},
    38: {**BY_PROVIDER, **OWNER, 'consumer_generation': None, 'consumer_type': 'INSTANCE'},
}
FORMS[8] = {**FORMS[0], **OWNER}
NAMES = ('A', '_', 'A' * 248)
NO_NAMES = ('', 'a', 'A\n', 'É', 'A","name":"CUSTOM_B', 'A' * 249)


def inventory(**more: Any) -> dict[str, Any]:
    return {'resource_class': 'VCPU', 'total': 4, **more}


class BodiesTest(ApiTestCase):
    def check(
        self, method: str, path: str, valid: list[Any], invalid: list[Any], minor: int = 39
    ) -> None:
        """Check that valid bodies are accepted, and that invalid ones are refused."""
        for bodies, is_valid in ((valid, True), (invalid, False)):
            for body in bodies:
                problem = self.problem(method, path, Version(1, minor), body)
                self.assertEqual(is_valid, problem is None, (path, minor, body, problem))

    def test_providers(self):
        self.check(
            'POST',
            '/resource_providers',
            [{'name': 'x' * 200}],
            [{'name': 'x' * 201}, {}, {'name': None}, [], 'x', b'null', 7],
        )
        uuids = (P, P.upper(), BARE, f'{{{P}}}', f'urn:uuid:{P}', f'{BARE[:4]}-{BARE[4:]}')
        wrong = ('', P[:-1], f'{P}0', f'0x{BARE[2:]}', f'{BARE[:-1]} ', f'{P}\n', '-' * 36, 7)
        self.check(
            'POST',
            '/resource_providers',
            [{'name': 'a', 'uuid': uuid} for uuid in uuids],
            [{'name': 'a', 'uuid': uuid} for uuid in wrong],
        )
        parents = [{'name': 'a', 'parent_provider_uuid': parent} for parent in (P, None)]
        for method, path in (('POST', '/resource_providers'), ('PUT', PROVIDER)):
            self.check(method, path, [], parents, minor=13)
            self.check(method, path, parents, [], minor=14)

    def test_aggregates(self):
        path = f'{PROVIDER}/aggregates'
        lists = ([f'{{{P}}}'], [f'urn:uuid:{P}'], [P, P], {'aggregates': [P]}, b'null')
        self.check('PUT', path, [[], [P], [BARE]], list(lists), minor=1)
        self.check('PUT', path, [{'aggregates': [P], **GENERATION}], [[P]], minor=19)

    def test_inventories(self):
        self.check(
            'POST',
            f'{PROVIDER}/inventories',
            [
                inventory(**{name: value})
                for name, values in (
                    ('total', (1, 2147483647, 2.0)),
                    ('reserved', (0,)),
                    ('allocation_ratio', (-1, 3.40282e38)),
                )
                for value in values
            ],
            [
                inventory(**{name: value})
                for name, values in (
                    ('total', (0, 2147483648, 1e30, 1.5, True, '1', None)),
                    ('reserved', (-1,)),
                    ('min_unit', (0,)),
                    ('max_unit', (0,)),
                    ('step_size', (0,)),
                    ('allocation_ratio', (3.5e38, '1', False)),
                    ('colour', ('red',)),
                )
                for value in values
            ],
        )
        self.check(
            'PUT',
            f'{PROVIDER}/inventories',
            [
                {**GENERATION, 'inventories': one}
                for one in ({}, {'VCPU': {'total': 4}}, {'no class': {'total': 4}})
            ],
            [
                {**GENERATION, 'inventories': one}
                for one in ({'no class': 1.5}, {'VCPU': {}}, [], {'VCPU': inventory()})
            ],
        )

    def test_traits(self):
        for names, valid in ((['x', 'x', 'a' * 255], True), ([''], False), (['a' * 256], False)):
            body = {'traits': names, **GENERATION}
            bodies = ([body], []) if valid else ([], [body])
            self.check('PUT', f'{PROVIDER}/traits', *bodies)

    def test_names(self):
        for name in (*NAMES, *NO_NAMES, None):
            name = 'VCPU' if name is None else f'CUSTOM_{name}'
            valid = name.removeprefix('CUSTOM_') in NAMES
            body = {'name': name}
            self.check('POST', '/resource_classes', *(([body], []) if valid else ([], [body])))
            path = name.encode().decode('latin-1')
            for prefix in ('/resource_classes', '/traits'):
                if name != 'CUSTOM_A\n':
                    problem = self.problem('PUT', f'{prefix}/{path}')
                    self.assertEqual(valid, problem is None, (prefix, name, problem))

    def test_forms_of_allocations(self):
        bounds = [*sorted(FORMS), 40]
        for since, end in itertools.pairwise(bounds):
            others = [body for minor, body in FORMS.items() if minor != since]
            for minor in (since, end - 1):
                self.check('PUT', f'/allocations/{C}', [FORMS[since]], others, minor)
        mapped = {**FORMS[28], 'mappings': {'_1': [P]}}
        self.check('PUT', f'/allocations/{C}', [], [mapped], minor=33)
        self.check('PUT', f'/allocations/{C}', [mapped], [], minor=34)

    def test_parts_of_allocations(self):
        def with_resources(resources: Any) -> dict[str, Any]:
            return {**FORMS[12], 'allocations': {P: {'resources': resources}}}

        path = f'/allocations/{C}'
        self.check(
            'PUT',
            path,
            [with_resources({'A': amount}) for amount in (1, 2.0)],
            [
                *map(with_resources, ({}, {'A': 0}, {'A': 1.5}, {'A': '1'}, {'A': True})),
                *map(with_resources, ({'a': 1}, [], None)),
                *({**FORMS[12], 'project_id': text} for text in ('', 'x' * 256, None, 7)),
                {'allocations': {}, **OWNER},
            ],
            minor=12,
        )
        self.check(
            'PUT',
            path,
            [
                {**FORMS[38], **more}
                for more in (
                    {'mappings': {'': 'whatever'}},
                    {'mappings': {'_A': [P]}},
                    {'mappings': {'1': [P], '': None}},
                    {'consumer_type': '_'},
                    {'consumer_type': 'A' * 255},
                    {'allocations': {}, 'consumer_generation': 1},
                )
            ],
            [
                *(
                    {**FORMS[38], 'mappings': one}
                    for one in ({}, [], {'_A': []}, {'_A': ['x']}, {'1': P})
                ),
                *(
                    {**FORMS[38], 'consumer_type': one}
                    for one in ('', 'instance', 'A\n', 'A' * 256, None, 1)
                ),
            ],
        )

    def test_several_consumers(self):
        empty = {'allocations': {}, **OWNER}
        self.check(
            'POST',
            '/allocations',
            [{key: empty} for key in (P, P.upper(), '-' * 36)],
            [{key: empty} for key in (BARE, f'{P}\n', 'x')] + [{}],
            minor=13,
        )
        inventories = {P: {**GENERATION, 'inventories': {}}}
        claim = {'inventories': inventories, 'allocations': {C: FORMS[28]}}
        self.check(
            'POST',
            '/reshaper',
            [{'inventories': inventories, 'allocations': {}}, claim],
            [{'inventories': {}, 'allocations': {}}, {'inventories': inventories}],
            minor=30,
        )
        self.check('POST', '/reshaper', [], [claim])

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
            ('POST', '/resource_classes', b'[' * 1000 + b']' * 1000, 'nested too deeply'),
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
        # The last of repeated keys counts, and an escaped backslash is no NUL character.
        for body in (rb'{"name": 1, "name": "a"}', rb'{"name": "x\\u0000"}'):
            self.check('POST', '/resource_providers', [body], [])

    def test_a_client_disconnects(self):
        class Disconnected:
            def read(self, length):
                raise OSError('connection reset')

        body = {'wsgi.input': Disconnected()}
        problem = self.problem('POST', '/resource_providers', body={'name': 'a'}, **body)
        self.assertIn('Malformed JSON: the request body could not be read', problem)


class SchemasTest(ApiTestCase):
    """The declared schemas of bodies and queries, which the OpenAPI documents contain."""

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
