"""Candidates over HTTP: every worked example, response shapes, errors, options."""

import collections
from dataclasses import dataclass
import itertools
from typing import Any
from unittest import mock

from placement.candidates import paging, tree_search
from placement.microversion import Version
from placement.tests import worlds
from placement.tests.functional import base
from placement.tests.unit.candidates import cases
from placement.tests.worlds import api


class CandidatesTest(base.TestCase):
    """Builds worlds and requests candidates."""

    def build(self, world: worlds.World) -> None:
        api.create(self, world)

    def _put(self, path: str, generation: Any, **body: Any) -> None:
        self.send_ok('PUT', path, {'resource_provider_generation': next(generation), **body})

    def candidates(self, world: worlds.World, query: str, version: Version = worlds.NEWEST) -> Any:
        path = f'/allocation_candidates?{world.query(query)}'
        return self.send_ok('GET', path, version=str(version))


class WorkedExamplesTest(CandidatesTest):
    """Each test is one world with all its rows."""

    def check(self, rows: list[cases.Case]) -> None:
        self.build(rows[0].world)
        for case in rows:
            self.check_case(case)
            # If the first page has no candidate, all further pages are strict.
            with mock.patch.object(paging, 'FIRST_PAGE', 1):
                self.check_case(case)

    def check_case(self, case: cases.Case) -> None:
        body = self.candidates(case.world, case.row.query, case.version)
        found = case.world.from_body(body)
        expected = worlds.expected(case.row.candidates)
        if any(mappings is None for _, mappings in expected):
            found = worlds.without_mappings(found)
        self.assertEqual(expected, found, case.name)
        if case.row.summaries is not None:
            names = {case.world.names[uuid] for uuid in body['provider_summaries']}
            self.assertEqual(set(case.row.summaries.split()), names, case.name)


def _add_tests() -> None:
    rows = collections.defaultdict(list)
    for case in cases.CASES:
        rows[case.name.rsplit('.', 1)[0]].append(case)
    for number, (name, found) in enumerate(rows.items()):
        test = f'test_{number:02d}_{name}'.replace(' ', '_').replace(',', '')
        setattr(WorkedExamplesTest, test, lambda self, found=found: self.check(found))


_add_tests()


class ManyTest(CandidatesTest):
    """Queries with more parts than databases allow tables in a join or levels in an expression."""

    MANY = 70

    def setUp(self) -> None:
        super().setUp()
        # The first page has no candidate, so all further pages are strict.
        self.patch(paging, 'FIRST_PAGE', 1)
        self.make_provider('unable', {'VCPU': 1})
        self.classes = [f'CUSTOM_MANY_{n}' for n in range(self.MANY)]
        self.traits = [f'CUSTOM_TRAIT_{n}' for n in range(self.MANY)]
        self.aggregates = [worlds.uuid_of(f'many {n}') for n in range(self.MANY)]
        for name in self.classes:
            self.send_ok('PUT', f'/resource_classes/{name}')
        for name in self.traits:
            self.send_ok('PUT', f'/traits/{name}')
        self.uuid = self.make_provider('able', {'VCPU': 1, **dict.fromkeys(self.classes, 10)})
        path, generation = f'/resource_providers/{self.uuid}', itertools.count(1)
        self._put(f'{path}/traits', generation, traits=self.traits)
        self._put(f'{path}/aggregates', generation, aggregates=self.aggregates)

    def check(self, *items: str) -> None:
        body = self.send_ok('GET', '/allocation_candidates?' + '&'.join(items))
        found = [list(one['allocations']) for one in body['allocation_requests']]
        self.assertEqual([[self.uuid]], found)

    def test_classes(self):
        amounts = ','.join(f'{name}:1' for name in self.classes)
        for suffix in ('', '_A'):
            self.check(f'resources{suffix}={amounts}')

    def test_groups(self):
        groups = [f'resources_{n}={name}:{n % 9 + 1}' for n, name in enumerate(self.classes)]
        self.check('group_policy=none', *groups)

    def test_traits(self):
        self.check('resources=VCPU:1', 'root_required=' + ','.join(self.traits))
        for suffix in ('', '_A'):
            one = f'resources{suffix}=VCPU:1'
            self.check(one, f'required{suffix}=' + ','.join(self.traits))
            either = (f'required{suffix}=in:{a},{b}' for a, b in itertools.pairwise(self.traits))
            self.check(one, *either)

    def test_aggregates(self):
        for suffix in ('', '_A'):
            one = f'resources{suffix}=VCPU:1'
            self.check(one, *(f'member_of{suffix}={uuid}' for uuid in self.aggregates))
            self.check(one, f'member_of{suffix}=in:' + ','.join(self.aggregates))


class HardQueriesTest(CandidatesTest):
    """Short queries whose search would take years if every combination were tried."""

    def siblings(self, count: int) -> worlds.World:
        """A host with sibling devices, and a host with pairs of parent and child devices."""
        above = (line for n in range(4) for line in (f'  D{n}[VGPU:1]', f'    E{n}[VGPU:1]'))
        devices = (f'  C{n}[VGPU:1]' for n in range(count))
        return worlds.World.of('\n'.join(['R', *devices, 'S', *above]))

    def test_pairs_of_groups_in_subtrees(self):
        """A tree that cannot serve the query does not hide a tree that can."""
        world = self.siblings(60)
        self.build(world)
        groups = '&'.join(f'resources_{n}=VGPU:1' for n in range(8))
        pairs = '&'.join(f'same_subtree=_{n},_{n + 1}' for n in range(0, 8, 2))
        body = self.candidates(world, f'{groups}&{pairs}&group_policy=isolate&limit=1')
        (request,) = body['allocation_requests']
        self.assertEqual(
            {worlds.uuid_of(f'{name}{n}') for name in 'DE' for n in range(4)},
            set(request['allocations']),
        )

    def test_a_repeated_same_subtree(self):
        world = self.siblings(2)
        self.build(world)
        for condition in ('_1', '_1,_2'):
            repeated = '&'.join([f'same_subtree={condition}'] * 1000)
            groups = 'resources_1=VGPU:1&resources_2=VGPU:1&group_policy=none'
            one = self.candidates(world, f'{groups}&same_subtree={condition}')
            many = self.candidates(world, f'{groups}&{repeated}')
            self.assertEqual(world.from_body(one), world.from_body(many))


class ShapesTest(CandidatesTest):
    """The shape of the response in different microversions."""

    world = worlds.World.of('CN[V:8, D:10]')
    resources = {'VCPU': {'capacity': 8, 'used': 0}, 'DISK_GB': {'capacity': 10, 'used': 0}}
    amounts = {'VCPU': 1, 'DISK_GB': 1}

    def setUp(self) -> None:
        super().setUp()
        self.build(self.world)
        self.uuid = worlds.uuid_of('CN')

    def test_list_of_allocations(self):
        self.assertEqual(
            {
                'allocation_requests': [
                    {
                        'allocations': [
                            {'resource_provider': {'uuid': self.uuid}, 'resources': self.amounts}
                        ]
                    }
                ],
                'provider_summaries': {self.uuid: {'resources': self.resources}},
            },
            self.candidates(self.world, 'resources=V:1,D:1', Version(1, 10)),
        )

    def test_keyed_allocations(self):
        body = self.candidates(self.world, 'resources=V:1,D:1', Version(1, 12))
        self.assertEqual(
            [{'allocations': {self.uuid: {'resources': self.amounts}}}],
            body['allocation_requests'],
        )

    def test_newest_microversion(self):
        body = self.candidates(self.world, 'resources=V:1,D:1')
        self.assertEqual(
            [
                {
                    'allocations': {self.uuid: {'resources': self.amounts}},
                    'mappings': {'': [self.uuid]},
                }
            ],
            body['allocation_requests'],
        )
        self.assertEqual(
            {
                self.uuid: {
                    'resources': self.resources,
                    'traits': [],
                    'parent_provider_uuid': None,
                    'root_provider_uuid': self.uuid,
                }
            },
            body['provider_summaries'],
        )

    def test_a_large_capacity(self):
        uuid = self.make_provider('large')
        inventories = {'MEMORY_MB': {'total': 8, 'allocation_ratio': 1e20}}
        self._put(
            f'/resource_providers/{uuid}/inventories', itertools.count(), inventories=inventories
        )
        body = self.candidates(self.world, 'resources=M:1')
        shown = body['provider_summaries'][uuid]['resources']['MEMORY_MB']
        self.assertEqual({'capacity': int(8 * 1e20), 'used': 0}, shown)

    def test_members_of_summaries(self):
        for minor, members in (
            (16, {'resources'}),
            (17, {'resources', 'traits'}),
            (28, {'resources', 'traits'}),
            (29, {'resources', 'traits', 'parent_provider_uuid', 'root_provider_uuid'}),
        ):
            body = self.candidates(self.world, 'resources=V:1', Version(1, minor))
            self.assertEqual(members, body['provider_summaries'][self.uuid].keys())

    def test_classes_of_summaries(self):
        for minor, classes in ((26, {'VCPU'}), (27, {'VCPU', 'DISK_GB'})):
            body = self.candidates(self.world, 'resources=V:1', Version(1, minor))
            self.assertEqual(classes, body['provider_summaries'][self.uuid]['resources'].keys())

    def test_no_candidates(self):
        self.assertEqual(
            {'allocation_requests': [], 'provider_summaries': {}},
            self.candidates(self.world, 'resources=V:9'),
        )

    def test_no_provider_can_serve_an_amount_that_its_columns_cannot_store(self):
        for amount in (2**31, 10**40):
            # A first page without a candidate makes all further pages strict.
            for first_page in (1, paging.FIRST_PAGE):
                with mock.patch.object(paging, 'FIRST_PAGE', first_page):
                    body = self.candidates(self.world, f'resources=V:{amount}')
                self.assertEqual([], body['allocation_requests'])
            path = f'/resource_providers?resources=VCPU:{amount}'
            self.assertEqual([], self.send_ok('GET', path)['resource_providers'])

    def test_headers(self):
        for minor, present in ((14, False), (15, True)):
            response = self.send(
                'GET', '/allocation_candidates?resources=VCPU:1', version=f'1.{minor}'
            )
            self.assertEqual(present, 'last-modified' in response.headers)
            self.assertEqual(present, response.headers.get('cache-control') == 'no-cache')

    def test_first_microversion(self):
        response = self.send('GET', '/allocation_candidates?resources=VCPU:1', version='1.9')
        self.assertEqual(404, response.status_code)

    def test_candidates_can_be_claimed(self):
        body = self.candidates(self.world, 'resources=V:8,D:1')
        claim = base.claim({})
        claim['allocations'] = body['allocation_requests'][0]['allocations']
        self.send_ok('PUT', f'/allocations/{worlds.uuid_of("consumer")}', claim)
        self.assertEqual([], self.candidates(self.world, 'resources=V:1')['allocation_requests'])


UNDEFINED = 'placement.undefined_code'
BAD_VALUE = 'placement.query.bad_value'
MISSING = 'placement.query.missing_value'
DUPLICATE = 'placement.query.duplicate_key'
A = worlds.uuid_of('A')


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A query and its error."""

    query: str
    # The first minor version with this error.
    minor: int
    code: str
    # A part of the detail.
    names: str


REFUSALS = (
    Refusal(query='', minor=36, code=MISSING, names=''),
    Refusal(query='', minor=25, code=UNDEFINED, names=''),
    Refusal(query='', minor=10, code=UNDEFINED, names='resources'),
    Refusal(query='resources=VCPU:1&unknown=1', minor=10, code=UNDEFINED, names='unknown'),
    Refusal(query='resources=VCPU:1&limit=1', minor=10, code=UNDEFINED, names='limit'),
    Refusal(query='resources=VCPU:1&required=AVX', minor=16, code=UNDEFINED, names='required'),
    Refusal(
        query='resources=VCPU:1&root_required=X', minor=34, code=UNDEFINED, names='root_required'
    ),
    Refusal(
        query='resources1=VCPU:1&same_subtree=1', minor=35, code=UNDEFINED, names='same_subtree'
    ),
    Refusal(query='resources=VCPU:1&in_tree=' + A, minor=30, code=UNDEFINED, names='in_tree'),
    Refusal(query='resources_A=VCPU:1', minor=32, code=UNDEFINED, names='resources_A'),
    Refusal(query='resources01=VCPU:1', minor=25, code=UNDEFINED, names='resources01'),
    Refusal(query='resources' + 'x' * 65 + '=VCPU:1', minor=39, code=UNDEFINED, names=''),
    Refusal(query='resources=VCPU:1%ff', minor=39, code=UNDEFINED, names=''),
    Refusal(query='resources=VCPU:1&limit=0', minor=16, code=UNDEFINED, names='limit'),
    Refusal(query='resources=VCPU:1&limit=1%0a', minor=16, code=UNDEFINED, names='limit'),
    Refusal(query='resources=VCPU:1&limit=a&limit=1', minor=16, code=UNDEFINED, names='limit'),
    Refusal(
        query='resources=VCPU:1&group_policy=maybe', minor=25, code=UNDEFINED, names='group_policy'
    ),
    Refusal(
        query='resources=VCPU:1&root_required=X&root_required=Y',
        minor=35,
        code=DUPLICATE,
        names='root_required',
    ),
    Refusal(query='resources=VCPU:1&root_required=X,', minor=35, code=UNDEFINED, names=''),
    Refusal(query='resources=VCPU:1&root_required=in:X', minor=35, code=UNDEFINED, names=''),
    Refusal(query='resources=VCPU:1&root_required=X,!X', minor=35, code=BAD_VALUE, names='X'),
    Refusal(query='resources1=VCPU:1&same_subtree=1,', minor=36, code=BAD_VALUE, names=''),
    Refusal(query='resources1=VCPU:1&same_subtree=1,2', minor=36, code=BAD_VALUE, names='2'),
    Refusal(query='resources=VCPU:0', minor=10, code=UNDEFINED, names='VCPU:0'),
    Refusal(query='resources=VCPU:x&resources=VCPU:1', minor=10, code=UNDEFINED, names='VCPU:x'),
    Refusal(query='resources=VCPU:1&required=!HW_CPU_X86_AVX', minor=17, code=UNDEFINED, names='!'),
    Refusal(
        query='resources=VCPU:1&required=in:HW_CPU_X86_AVX', minor=38, code=UNDEFINED, names='in:'
    ),
    Refusal(
        query='resources=VCPU:1&required=in:HW_CPU_X86_AVX,!HW_CPU_X86_AVX2',
        minor=39,
        code=UNDEFINED,
        names='!',
    ),
    Refusal(query=f'resources=VCPU:1&member_of=!{A}', minor=31, code=UNDEFINED, names='!'),
    Refusal(
        query=f'resources=VCPU:1&member_of={A}&member_of={A}',
        minor=23,
        code=UNDEFINED,
        names='member_of',
    ),
    Refusal(query='resources=VCPU:1&member_of=x', minor=21, code=UNDEFINED, names='x'),
    Refusal(query='resources=VCPU:1&in_tree=x', minor=31, code=UNDEFINED, names='in_tree'),
    Refusal(query='resources=VCPU:1&required1=HW_CPU_X86_AVX', minor=25, code=UNDEFINED, names='1'),
    Refusal(query=f'resources=VCPU:1&member_of1={A}', minor=25, code=UNDEFINED, names='1'),
    Refusal(query=f'resources=VCPU:1&in_tree1={A}', minor=31, code=UNDEFINED, names='1'),
    Refusal(
        query='resources_G=VCPU:1&required_N=HW_CPU_X86_AVX', minor=36, code=BAD_VALUE, names='_N'
    ),
    Refusal(query='required_N=HW_CPU_X86_AVX&same_subtree=_N', minor=36, code=MISSING, names=''),
    Refusal(
        query='resources1=VCPU:1&required=HW_CPU_X86_AVX&same_subtree=1',
        minor=36,
        code=BAD_VALUE,
        names='',
    ),
    Refusal(
        query='resources=VCPU:1&required=HW_CPU_X86_AVX,!HW_CPU_X86_AVX',
        minor=22,
        code=UNDEFINED,
        names='HW_CPU_X86_AVX',
    ),
    Refusal(
        query=(
            'resources=VCPU:1&required=in:HW_CPU_X86_AVX,HW_CPU_X86_AVX2'
            '&required=!HW_CPU_X86_AVX,!HW_CPU_X86_AVX2'
        ),
        minor=39,
        code=UNDEFINED,
        names='HW_CPU_X86_AVX2',
    ),
    Refusal(
        query='resources1=VCPU:1&resources2=VCPU:1', minor=25, code=UNDEFINED, names='group_policy'
    ),
    Refusal(
        query='resources_G=VCPU:1&required_N=HW_CPU_X86_AVX&same_subtree=_N',
        minor=36,
        code=UNDEFINED,
        names='group_policy',
    ),
    Refusal(
        query='resources=NOTHING:1',
        minor=10,
        code=UNDEFINED,
        names='No such resource class NOTHING',
    ),
    Refusal(
        query='resources=vcpu:1', minor=10, code=UNDEFINED, names='No such resource class vcpu'
    ),
    Refusal(query='resources=VCPU:1&required=NOTHING', minor=17, code=UNDEFINED, names='NOTHING'),
    Refusal(query='resources=VCPU:1&required=!NOTHING', minor=22, code=UNDEFINED, names='NOTHING'),
    Refusal(
        query='resources=VCPU:1&required=in:HW_CPU_X86_AVX,NOTHING',
        minor=39,
        code=UNDEFINED,
        names='NOTHING',
    ),
    Refusal(
        query='resources=NOTHING:1&root_required=MISSING', minor=35, code=UNDEFINED, names='MISSING'
    ),
)


class RefusalsTest(CandidatesTest):
    """Queries that fail with 400 Bad Request, and their error codes."""

    def test_refusals(self):
        for refusal in REFUSALS:
            path = f'/allocation_candidates?{refusal.query}'
            response = self.send('GET', path, version=f'1.{refusal.minor}')
            self.assertEqual(400, response.status_code, refusal)
            error = response.json()['errors'][0]
            expected = refusal.code if refusal.minor >= 23 else None
            self.assertEqual(expected, error.get('code'), refusal)
            self.assertIn(refusal.names, error['detail'], refusal)

    def test_allowed(self):
        for query, minor in (
            ('resources=VCPU:1&limit=1', 16),
            ('resources=VCPU:1&required=HW_CPU_X86_AVX', 17),
            (f'resources=VCPU:1&member_of={A}', 21),
            ('resources=VCPU:1&required=!HW_CPU_X86_AVX', 22),
            (f'resources=VCPU:1&member_of={A}&member_of=in:{A},{A}', 24),
            ('resources=VCPU:1&resources1=VCPU:1', 25),
            ('resources1=VCPU:1&resources2=VCPU:1&group_policy=none', 25),
            (f'resources=VCPU:1&in_tree=%20{A}%20', 31),
            (f'resources=VCPU:1&member_of=!in:{A}&member_of={A}', 32),
            ('resources_a-B=VCPU:1', 33),
            ('resources=VCPU:1&root_required=HW_CPU_X86_AVX,!HW_CPU_X86_AVX2', 35),
            ('resources1=VCPU:1&same_subtree=1', 36),
            ('resources=VCPU:1&required=in:HW_CPU_X86_AVX,HW_CPU_X86_AVX2', 39),
            ('resources=VCPU:' + '9' * 40, 10),
            ('resources=VCPU:1&limit=' + '9' * 40, 16),
        ):
            response = self.send('GET', f'/allocation_candidates?{query}', version=f'1.{minor}')
            self.assertEqual(200, response.status_code, response.text)


class OptionsTest(CandidatesTest):
    """Limits, strategies and random order."""

    query = 'resources_1=VF:1&resources_2=VF:1&group_policy=none'

    def setUp(self) -> None:
        super().setUp()
        self.world = cases.GENERATION
        self.build(self.world)

    def option(self, **options: Any) -> None:
        self.service.conf_fixture.config(group='placement', **options)

    def request(self, more: str = '') -> tuple[list[Any], set[str], set[str]]:
        """Allocation requests, roots of their providers, roots of the summaries."""
        body = self.candidates(self.world, self.query + more)
        elements = body['allocation_requests']
        roots = {
            body['provider_summaries'][uuid]['root_provider_uuid']
            for element in elements
            for uuid in element['allocations']
        }
        summarised = {s['root_provider_uuid'] for s in body['provider_summaries'].values()}
        return elements, roots, summarised

    def test_all(self):
        elements, roots, _ = self.request()
        self.assertEqual((27, 3), (len(elements), len(roots)))

    def test_the_same_order_each_time(self):
        before = self.request()
        self.assertEqual(before, self.request())
        # PostgreSQL moves the row of a provider to which something is written.
        for host in self.world.hosts[:-1]:
            path = f'/resource_providers/{host.uuid}'
            body = self.send_ok('GET', path)
            self.send_ok('PUT', path, {'name': f'{body["name"]}-renamed'})
        self.assertEqual(before, self.request())

    def test_depth_first(self):
        self.option(max_allocation_candidates=5)
        elements, roots, _ = self.request()
        self.assertEqual((5, 1), (len(elements), len(roots)))

    def test_breadth_first(self):
        self.option(
            max_allocation_candidates=5, allocation_candidates_generation_strategy='breadth-first'
        )
        elements, roots, _ = self.request()
        self.assertEqual((5, 3), (len(elements), len(roots)))
        elements, _, _ = self.request('&limit=3')
        self.assertEqual(3, len(elements))

    def test_the_strategy_selects_the_candidates_of_a_limit(self):
        for strategy, trees in (('depth-first', 1), ('breadth-first', 3)):
            self.option(allocation_candidates_generation_strategy=strategy)
            elements, roots, _ = self.request('&limit=9')
            self.assertEqual((9, trees), (len(elements), len(roots)), strategy)

    def test_without_a_limit_the_strategy_has_no_effect(self):
        depth_first = self.request()
        self.option(allocation_candidates_generation_strategy='breadth-first')
        self.assertEqual(depth_first, self.request())

    def test_a_maximum_of_zero_means_one(self):
        self.option(max_allocation_candidates=0)
        self.assertEqual(1, len(self.request()[0]))

    def test_limit(self):
        for limit in (1, 2, 10, 27, 28):
            elements, roots, summarised = self.request(f'&limit={limit}')
            self.assertEqual(min(limit, 27), len(elements))
            self.assertEqual(roots, summarised)

    def test_the_first_of_repeated_limits_is_used(self):
        self.assertEqual(2, len(self.request('&limit=2&limit=3')[0]))

    def test_the_maximum_applies_before_the_removal_for_old_clients(self):
        """A tree has nine candidates; three of them use one provider only."""
        path = (
            '/allocation_candidates?resources1=SRIOV_NET_VF:1&resources2=SRIOV_NET_VF:1'
            '&group_policy=none'
        )
        whole = self.send_ok('GET', path, version='1.28')
        self.assertEqual(9, len(whole['allocation_requests']))
        self.option(max_allocation_candidates=9)
        capped = self.send_ok('GET', path, version='1.28')
        self.assertEqual(3, len(capped['allocation_requests']))
        self.assertEqual(3, len(capped['provider_summaries']))

    def test_randomize(self):
        self.option(randomize_allocation_candidates=True)
        whole = self.request()[0]
        self.assertEqual(27, len(whole))
        seen = set()
        for _ in range(60):
            elements, roots, summarised = self.request('&limit=1')
            self.assertEqual(1, len(elements))
            self.assertIn(elements[0], whole)
            self.assertEqual(roots, summarised)
            seen |= roots
        self.assertEqual(3, len(seen))

    def test_wide_trees_option_changes_nothing(self):
        before = self.request()
        self.service.conf_fixture.config(group='workarounds', optimize_for_wide_provider_trees=True)
        self.assertEqual(before, self.request())

    def test_search_limit(self):
        self.option(max_candidate_search_steps=30)
        with self.assertLogs(tree_search.LOG, 'WARNING'):
            elements, _, _ = self.request()
        self.assertLess(len(elements), 27)
