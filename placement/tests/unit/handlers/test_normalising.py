"""Handlers turn valid bodies and queries into the arguments of the objects layer."""

from oslo_config import cfg
from oslotest import base

from placement import conf, exception, grammar, microversion
from placement.capacity import Inventory
from placement.handlers import allocation, inventory, resource_provider, trait
from placement.http import request
from placement.http.reply import Call
from placement.microversion import Version
from placement.tests.unit import edge

P1 = '6a3b1f53-7a0f-4d8b-9c57-0f1f4d3a2c01'
P2 = '6a3b1f53-7a0f-4d8b-9c57-0f1f4d3a2c02'
C = '0c5f4a64-9d1e-4c07-a8a3-5a8f0e9a7b02'


class ClaimTest(base.BaseTestCase):
    def claim(self, minor, body):
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        return allocation.to_claim(config, Version(1, minor), C, body)

    def test_body_at_1_7(self):
        body = {
            'allocations': [
                {'resource_provider': {'uuid': P1}, 'resources': {'VCPU': 1}},
                {'resource_provider': {'uuid': P2}, 'resources': {'VCPU': 2}},
                {'resource_provider': {'uuid': P1}, 'resources': {'DISK_GB': 3.0}},
            ]
        }
        claim = self.claim(7, body)
        self.assertEqual({P1: {'DISK_GB': 3}, P2: {'VCPU': 2}}, claim.allocations)
        default = '00000000-0000-0000-0000-000000000000'
        self.assertEqual((default, default), (claim.project_id, claim.user_id))
        self.assertFalse(claim.checks_generation)
        self.assertIsNone(claim.consumer_type)

    def test_body_at_1_38(self):
        body = {
            'allocations': {P1: {'resources': {'VCPU': 2.0}, 'generation': 7}},
            'project_id': 'p',
            'user_id': 'u',
            'consumer_generation': 4.0,
            'consumer_type': 'INSTANCE',
            'mappings': {'': [P1]},
        }
        claim = self.claim(38, body)
        self.assertEqual(C, claim.consumer_uuid)
        self.assertEqual({P1: {'VCPU': 2}}, claim.allocations)
        self.assertIs(int, type(claim.allocations[P1]['VCPU']))
        self.assertEqual(
            ('p', 'u', 'INSTANCE'), (claim.project_id, claim.user_id, claim.consumer_type)
        )
        self.assertEqual(4, claim.generation)
        self.assertTrue(claim.checks_generation)

    def test_null_generation(self):
        body = {'allocations': {}, 'project_id': 'p', 'user_id': 'u', 'consumer_generation': None}
        self.assertIsNone(self.claim(28, body).generation)


class InventoryTest(base.BaseTestCase):
    def test_missing_fields_get_their_default(self):
        self.assertEqual(Inventory(total=4), inventory.parse_inventory({'total': 4}))

    def test_all_fields(self):
        data = {
            'resource_provider_generation': 1,
            'resource_class': 'VCPU',
            'total': 8.0,
            'reserved': 1,
            'min_unit': 2,
            'max_unit': 4,
            'step_size': 2,
            'allocation_ratio': 3,
        }
        parsed = inventory.parse_inventory(data)
        self.assertEqual(Inventory(8, 1, 2, 4, 2, 3.0), parsed)
        self.assertIs(int, type(parsed.total))
        self.assertIs(float, type(parsed.allocation_ratio))

    def test_responses_repeat_the_numbers_of_the_request(self):
        shown = inventory._echo({'total': 8.0, 'allocation_ratio': 3})
        self.assertIs(float, type(shown['total']))
        self.assertIs(int, type(shown['allocation_ratio']))
        self.assertEqual(1, shown['step_size'])


class FiltersTest(base.BaseTestCase):
    def filters(self, query, minor=39):
        items = request.query_items(edge.environ(QUERY_STRING=query))
        return resource_provider.parse_filters(items, dict(items), Version(1, minor))

    def test_none(self):
        self.assertEqual(resource_provider.provider_search.Filters(), self.filters(''))
        self.assertIsNone(self.filters('name=').name)

    def test_all(self):
        filters = self.filters(
            f'name=a&uuid={P1}&in_tree={P2}&member_of={P1}&member_of=!in:{P2}'
            '&required=A,!B&required=in:C,D&resources=VCPU:2'
        )
        self.assertEqual(('a', P1, P2), (filters.name, filters.uuid, filters.in_tree))
        self.assertEqual((frozenset([P1]),), filters.member_of)
        self.assertEqual(frozenset([P2]), filters.forbidden_aggregates)
        self.assertEqual((frozenset('A'), frozenset('CD')), filters.required)
        self.assertEqual(frozenset('B'), filters.forbidden)
        self.assertEqual({'VCPU': 2}, filters.amounts)

    def test_the_last_of_repeated_parameters_is_used(self):
        self.assertEqual('b', self.filters('name=a&name=b').name)
        self.assertEqual({'A': 2}, self.filters('resources=bad&resources=A:2').amounts)
        self.assertEqual((frozenset('B'),), self.filters('required=A&required=B', 38).required)

    def test_member_of_is_repeatable_since_1_24(self):
        query = f'member_of={P1}&member_of={P2}'
        self.assertRaises(exception.BadInput, self.filters, query, 23)
        self.assertEqual(2, len(self.filters(query, 24).member_of))


class TraitFiltersTest(base.BaseTestCase):
    def test_filters(self):
        for query, expected in (
            ({}, {}),
            ({'name': 'in:A,B'}, {'names': ['A', 'B']}),
            ({'name': 'startswith:A_%'}, {'prefix': 'A_%'}),
            ({'name': 'other:A'}, {}),
            ({'associated': 'TRUE'}, {'associated': True}),
            ({'associated': 'false'}, {'associated': False}),
        ):
            self.assertEqual(expected, trait._filters(query))


class LinksTest(base.BaseTestCase):
    def test_links_by_microversion(self):
        for minor, names in (
            (0, 'self inventories usages'),
            (1, 'self inventories usages aggregates'),
            (6, 'self inventories usages aggregates traits'),
            (11, 'self inventories usages aggregates traits allocations'),
        ):
            call = Call({'SCRIPT_NAME': '/mount'}, Version(1, minor), {})
            shown = resource_provider._renderer(call)(Row())
            self.assertEqual(names.split(), [link['rel'] for link in shown['links']])
            self.assertEqual(
                {'/mount/resource_providers/' + P1},
                {'/'.join(link['href'].split('/')[:4]) for link in shown['links']},
            )

    def test_trees_since_1_14(self):
        below = resource_provider._renderer(Call({}, Version(1, 13), {}))(Row())
        above = resource_provider._renderer(Call({}, microversion.NESTED_PROVIDERS, {}))(Row())
        self.assertNotIn('root_provider_uuid', below)
        self.assertEqual(P2, above['root_provider_uuid'])
        self.assertIsNone(above['parent_provider_uuid'])


class Row:
    uuid, name, generation, parent_uuid, root_uuid = P1, 'a', 3, None, P2


class ConsumerUuidTest(base.BaseTestCase):
    def test_normalized_uuid(self):
        self.assertEqual(C, grammar.normalize_uuid(f'urn:uuid:{{{C.upper()}}}'))
