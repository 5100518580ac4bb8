"""All schemas are valid, and they accept or reject sample documents."""

from collections.abc import Iterator
import importlib
import json
import pkgutil
from typing import Any

import ddt
import jsonschema
from oslotest import base

from placement import microversion, operations, schemas, validation
from placement.microversion import Variants, Version
from placement.schemas import (
    aggregate,
    allocation,
    common,
    inventory,
    reshaper,
    resource_class,
    resource_provider,
    trait,
)

LATEST = microversion.MAX_VERSION
P = '6a3b1f53-7a0f-4d8b-9c57-0f1f4d3a2c01'
C = '0c5f4a64-9d1e-4c07-a8a3-5a8f0e9a7b02'


def all_schemas() -> Iterator[dict[str, Any]]:
    """Return all schemas of the package, including the variants for all microversions."""
    for module_info in pkgutil.iter_modules(schemas.__path__):
        module = importlib.import_module(f'placement.schemas.{module_info.name}')
        for name, value in vars(module).items():
            if isinstance(value, Variants):
                yield from value._by_version.values()
            elif isinstance(value, dict) and name.isupper() and 'type' in value:
                yield value


def patterns(schema: Any) -> Iterator[str]:
    """Return all patterns in a schema, at any depth."""
    if isinstance(schema, dict):
        if isinstance(schema.get('pattern'), str):
            yield schema['pattern']
        yield from schema.get('patternProperties', {})
        for value in schema.values():
            yield from patterns(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from patterns(value)


def formats(schema: Any) -> Iterator[str]:
    """Return the formats at any depth of a schema."""
    if isinstance(schema, dict):
        for key, value in schema.items():
            if key == 'format' and isinstance(value, str):
                yield value
            else:
                yield from formats(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from formats(value)


def bodies(module) -> Iterator[dict[str, Any]]:
    """Return the schemas of bodies of a module, in all microversions."""
    for value in vars(module).values():
        if isinstance(value, Variants):
            yield from (window.variant for window in value.windows())


def properties(schema: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """Return the properties of a schema, at any depth."""
    if isinstance(schema, list):
        for one in schema:
            yield from properties(one)
    elif isinstance(schema, dict):
        for keyword in ('properties', 'patternProperties'):
            yield from schema.get(keyword, {}).items()
        for keyword, one in schema.items():
            if keyword != 'if':  # a condition is not a description
                yield from properties(one)


class EverySchemaTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.schemas = list(all_schemas())
        self.assertGreater(len(self.schemas), 100)

    def test_every_schema_is_valid(self):
        # Many microversions have the same schema.
        different = {json.dumps(schema, sort_keys=True): schema for schema in self.schemas}
        for schema in different.values():
            jsonschema.Draft202012Validator.check_schema(schema)

    def test_no_pattern_allows_a_trailing_newline(self):
        found = {pattern for schema in self.schemas for pattern in patterns(schema)}
        self.assertGreater(len(found), 2)
        self.assertEqual([], [pattern for pattern in found if '$' in pattern])

    def test_every_format_is_supported(self):
        # jsonschema ignores unknown formats.
        found = {name for schema in self.schemas for name in formats(schema)}
        self.assertEqual({'uuid'}, found)


class DescriptionsTest(base.BaseTestCase):
    def test_every_property_of_a_body_has_a_description(self):
        bare = {
            name
            for module_info in pkgutil.iter_modules(schemas.__path__)
            for schema in bodies(importlib.import_module(f'placement.schemas.{module_info.name}'))
            for name, one in properties(schema)
            if 'description' not in one
        }
        self.assertEqual(set(), bare)


class MessagesTest(base.BaseTestCase):
    def test_patterns_are_those_of_the_documents(self):
        for schema, value, expected in (
            (resource_class.NAME, 'x', r"'x' does not match '^CUSTOM_[A-Z0-9_]+$'"),
            (
                resource_class.NAME,
                r'a\Z match ',
                r"'a\\Z match ' does not match '^CUSTOM_[A-Z0-9_]+$'",
            ),
            (
                allocation.POST.pick(LATEST),
                {'x': 1, 'y': 1},
                "'x', 'y' do not match any of the regexes: '^[0-9a-fA-F-]{36}$'",
            ),
            (
                resource_class.BODY,
                {'name': 'CUSTOM_A', r' match \Z': 1},
                r"Additional properties are not allowed (' match \\Z' was unexpected)",
            ),
        ):
            self.assertEqual(expected, validation.problem(schema, value))


class SchemaTestCase(base.BaseTestCase):
    """Assertions about documents and schemas."""

    def assert_valid(self, schema, *documents):
        for document in documents:
            self.assertIsNone(validation.problem(schema, document), document)

    def assert_invalid(self, schema, *documents):
        for document in documents:
            self.assertIsNotNone(validation.problem(schema, document), document)


class NamesTest(SchemaTestCase):
    def test_custom_names(self):
        for schema in (resource_class.NAME, trait.NAME):
            self.assert_valid(schema, 'CUSTOM_A', 'CUSTOM__', 'CUSTOM_' + 'A' * 248)
            self.assert_invalid(
                schema,
                'CUSTOM_',
                'VCPU',
                'CUSTOM_a',
                'CUSTOM_A\n',
                ' CUSTOM_A',
                'CUSTOM_É',
                'CUSTOM_A","name":"CUSTOM_B',
                'CUSTOM_' + 'A' * 249,
                '',
            )

    def test_consumer_types(self):
        schema = allocation._CONSUMER_TYPE
        self.assert_valid(schema, 'INSTANCE', '_', 'A' * 255)
        self.assert_invalid(schema, '', 'instance', 'A\n', 'A' * 256, None, 1)

    def test_consumer_types_in_queries(self):
        schema = operations.usage.LIST.query_schemas().pick(LATEST)
        for text, valid in (
            ('INSTANCE', True),
            ('all', True),
            ('alliance', True),
            ('unknown', True),
            ('unknowns', False),
            ('instance', False),
            ('unknown\n', False),
        ):
            check = self.assert_valid if valid else self.assert_invalid
            check(schema, {'project_id': 'p', 'consumer_type': text})


class UuidTest(SchemaTestCase):
    def test_bodies_are_lenient(self):
        bare = P.replace('-', '')
        self.assert_valid(
            common.UUID, P, P.upper(), bare, f'{{{P}}}', f'urn:uuid:{P}', f'{bare[:4]}-{bare[4:]}'
        )
        self.assert_invalid(
            common.UUID,
            '',
            P[:-1],
            P + '0',
            f'0x{bare[2:]}',
            f'{bare[:-1]} ',
            f'{P}\n',
            '-' * 36,
            7,
        )

    def test_the_error_has_the_words_that_clients_match(self):
        self.assertEqual("'x' is not a 'uuid'", validation.problem(common.UUID, 'x'))

    def test_queries_are_strict(self):
        schema = operations.resource_provider.LIST.query_schemas().pick(LATEST)
        for name in ('uuid', 'in_tree'):
            self.assert_valid(schema, {name: P}, {name: P.upper()})
            self.assert_invalid(schema, {name: P.replace('-', '')}, {name: f'{P}\n'}, {name: ''})

    def test_keys(self):
        schema = allocation.POST.pick(Version(1, 13))
        body = {'allocations': {}, 'project_id': 'p', 'user_id': 'u'}
        self.assert_valid(schema, {P: body}, {P.upper(): body}, {'-' * 36: body})
        self.assert_invalid(schema, {P.replace('-', ''): body}, {f'{P}\n': body}, {'x': body}, {})

    def test_an_aggregate_fits_its_column(self):
        schema = aggregate.PUT.pick(Version(1, 1))
        self.assert_valid(schema, [], [P], [P.replace('-', '')])
        self.assert_invalid(
            schema, [f'{{{P}}}'], [f'urn:uuid:{P}'], [P, P], {'aggregates': [P]}, None
        )


class InventoryTest(SchemaTestCase):
    def inventory(self, **more):
        return {'total': 4, **more}

    def test_numbers(self):
        schema = inventory.POST_INVENTORY
        for more in (
            {'total': 1},
            {'total': 2147483647},
            {'total': 2.0},
            {'reserved': 0},
            {'allocation_ratio': -1},
            {'allocation_ratio': 3.40282e38},
        ):
            self.assert_valid(schema, {'resource_class': 'VCPU', **self.inventory(**more)})
        for more in (
            {'total': 0},
            {'total': 2147483648},
            {'total': 1e30},
            {'total': 1.5},
            {'total': True},
            {'total': '1'},
            {'total': None},
            {'reserved': -1},
            {'min_unit': 0},
            {'max_unit': 0},
            {'step_size': 0},
            {'allocation_ratio': 3.5e38},
            {'allocation_ratio': '1'},
            {'allocation_ratio': False},
            {'colour': 'red'},
        ):
            self.assert_invalid(schema, {'resource_class': 'VCPU', **self.inventory(**more)})

    def test_every_class_needs_an_inventory(self):
        def body(inventories):
            return {'resource_provider_generation': 0, 'inventories': inventories}

        self.assert_valid(inventory.PUT_INVENTORIES, body({}), body({'VCPU': self.inventory()}))
        self.assert_valid(inventory.PUT_INVENTORIES, body({'no class': self.inventory()}))
        self.assert_invalid(
            inventory.PUT_INVENTORIES, body({'no class': 1.5}), body({'VCPU': {}}), body([])
        )


@ddt.ddt
class ProviderTest(SchemaTestCase):
    @ddt.data((13, False), (14, True), (39, True))
    @ddt.unpack
    def test_parents_are_new_in_1_14(self, minor, supported):
        for variants in (resource_provider.POST, resource_provider.PUT):
            check = self.assert_valid if supported else self.assert_invalid
            for parent in (P, None):
                document = {'name': 'a', 'parent_provider_uuid': parent}
                check(variants.pick(Version(1, minor)), document)

    def test_names(self):
        schema = resource_provider.POST.pick(LATEST)
        self.assert_valid(schema, {'name': 'x' * 200})
        self.assert_invalid(schema, {'name': 'x' * 201}, {}, {'name': None}, [], 'x', None)

    @ddt.data(
        ('name', 0),
        ('uuid', 0),
        ('member_of', 3),
        ('resources', 4),
        ('in_tree', 14),
        ('required', 18),
    )
    @ddt.unpack
    def test_filters(self, name, since):
        variants = operations.resource_provider.LIST.query_schemas()
        document = {name: P if name in ('uuid', 'in_tree') else 'x'}
        self.assert_valid(variants.pick(Version(1, since)), document)
        if since:
            self.assert_invalid(variants.pick(Version(1, since - 1)), document)


class AllocationTest(SchemaTestCase):
    old = {'allocations': [{'resource_provider': {'uuid': P}, 'resources': {'VCPU': 1}}]}
    owner = {'project_id': 'p', 'user_id': 'u'}
    new = {'allocations': {P: {'resources': {'VCPU': 1}, 'generation': 4}}, **owner}

    def put(self, minor):
        return allocation.PUT.pick(Version(1, minor))

    def test_forms_of_the_body(self):
        with_owner = {**self.old, **self.owner}
        with_generation = {**self.new, 'consumer_generation': None}
        with_type = {**with_generation, 'consumer_type': 'INSTANCE'}
        self._check_change(8, before=self.old, after=with_owner)
        self._check_change(12, before=with_owner, after=self.new)
        self._check_change(28, before=self.new, after=with_generation)
        self._check_change(38, before=with_generation, after=with_type)
        with_mappings = {**with_generation, 'mappings': {'_1': [P]}}
        self.assert_invalid(self.put(33), with_mappings)
        self.assert_valid(self.put(34), with_mappings)

    def _check_change(self, minor, before, after):
        """Require that a minor version replaces one form of the body by another."""
        self.assert_valid(self.put(minor - 1), before)
        self.assert_invalid(self.put(minor - 1), after)
        self.assert_valid(self.put(minor), after)
        self.assert_invalid(self.put(minor), before)

    def test_clearing(self):
        empty = {'allocations': {}, **self.owner}
        self.assert_invalid(self.put(12), empty)
        self.assert_valid(self.put(28), {**empty, 'consumer_generation': 1})
        self.assert_valid(allocation.POST.pick(Version(1, 13)), {C: empty})

    def test_amounts(self):
        for amount in (1, 2.0, 10**30, 2**64):
            self.assert_valid(
                self.put(12), {**self.new, 'allocations': {P: {'resources': {'A': amount}}}}
            )
        for resources in ({}, {'A': 0}, {'A': 1.5}, {'A': '1'}, {'A': True}, {'a': 1}, [], None):
            self.assert_invalid(
                self.put(12), {**self.new, 'allocations': {P: {'resources': resources}}}
            )

    def test_mappings(self):
        body = {**self.new, 'consumer_generation': 0}
        for mappings in ({'': 'whatever'}, {'_A': [P]}, {'1': [P], '': None}):
            self.assert_valid(self.put(34), {**body, 'mappings': mappings})
        for mappings in ({}, [], {'_A': []}, {'_A': ['x']}, {'1': P}):
            self.assert_invalid(self.put(34), {**body, 'mappings': mappings})

    def test_owners(self):
        for text in ('', 'x' * 256, None, 7):
            self.assert_invalid(self.put(12), {**self.new, 'project_id': text})

    def test_reshaper(self):
        inventories = {P: {'resource_provider_generation': 0, 'inventories': {}}}
        claim = {**self.new, 'consumer_generation': None}
        low, high = reshaper.POST.pick(Version(1, 30)), reshaper.POST.pick(LATEST)
        self.assert_valid(low, {'inventories': inventories, 'allocations': {}})
        self.assert_valid(low, {'inventories': inventories, 'allocations': {C: claim}})
        self.assert_invalid(high, {'inventories': inventories, 'allocations': {C: claim}})
        self.assert_invalid(
            low, {'inventories': {}, 'allocations': {}}, {'inventories': inventories}
        )


class TraitTest(SchemaTestCase):
    def test_query(self):
        schema = operations.trait.LIST.query_schemas().pick(LATEST)
        self.assert_valid(
            schema, {}, {'name': 'in:A'}, {'name': 'startswith:A', 'associated': 'tRuE'}
        )
        self.assert_invalid(
            schema,
            {'name': 'A'},
            {'name': ''},
            {'associated': 'yes'},
            {'associated': 'true\n'},
        )

    def test_body(self):
        def body(*names):
            return {'traits': names, 'resource_provider_generation': 1}

        self.assert_valid(trait.PUT_TRAITS, {**body(), 'traits': ['x', 'x', 'a' * 255]})
        self.assert_invalid(
            trait.PUT_TRAITS, {**body(), 'traits': ['']}, {**body(), 'traits': ['a' * 256]}
        )
