"""Candidates over HTTP: every worked example, large queries, and the options of a search.

The gabbits `candidates-*.yaml` have the shapes of responses, the grammar of queries, and errors.
"""

import itertools
from typing import Any

from placement import db_api
from placement.microversion import Version
from placement.tests import worlds
from placement.tests.functional import base
from placement.tests.unit.candidates import cases
from placement.tests.worlds import rows

# More trees than a first page has. If none of them has a candidate, the database evaluates the
# conditions on all other trees.
MANY = 40


class CandidatesTest(base.WorldTestCase):
    def fill(self, world: worlds.World) -> None:
        self.world = world
        rows.fill(db_api.get_placement_engine(), world)

    def candidates(self, query: str, version: Version = worlds.NEWEST) -> Any:
        path = f'/allocation_candidates?{self.world.query(query)}'
        return self.send_ok('GET', path, version=str(version))


class WorkedExamplesTest(CandidatesTest):
    def test_each_row(self):
        for world, group in itertools.groupby(cases.CASES, lambda case: case.world):
            found = list(group)
            for one in (world, world.behind(MANY)):
                self.fill(one)
                for case in found:
                    with self.subTest(case.name):
                        self.check(case)

    def check(self, case: cases.Case) -> None:
        body = self.candidates(case.row.query, case.version)
        self.assertEqual(case.expected, case.comparable(case.world.from_body(body)))
        if case.row.summaries is not None:
            names = {case.world.names[uuid] for uuid in body['provider_summaries']}
            self.assertEqual(set(case.row.summaries.split()), names)


class LargeValuesTest(CandidatesTest):
    """Values that databases cannot store, and queries with more parts than a statement may have."""

    def test_a_large_capacity(self):
        self.fill(worlds.World.of('CN[M: total 8 allocation_ratio 100000000000000000000.0]'))
        (summary,) = self.candidates('resources=M:1')['provider_summaries'].values()
        shown = summary['resources']['MEMORY_MB']
        self.assertEqual({'capacity': int(8 * 1e20), 'used': 0}, shown)

    def test_no_provider_can_serve_an_amount_that_its_columns_cannot_store(self):
        world = worlds.World.of('CN[V:8]')
        for one in (world, world.behind(MANY)):
            self.fill(one)
            for amount in (2**31, 10**40):
                body = self.candidates(f'resources=V:{amount}')
                self.assertEqual([], body['allocation_requests'])
                path = f'/resource_providers?resources=VCPU:{amount}'
                self.assertEqual([], self.send_ok('GET', path)['resource_providers'])

    def test_many_parts(self):
        """More classes, traits, aggregates and groups than databases allow tables in a join."""
        names = [f'N{n}' for n in range(70)]
        classes = [f'CUSTOM_{name}' for name in names]
        inventories = {'VCPU': worlds.inventory(1), **dict.fromkeys(classes, worlds.inventory(10))}
        able = worlds.Host('ABLE', None, inventories, tuple(names), tuple(names))
        self.fill(worlds.World((able,)).behind(MANY))
        either = (f'in:{a},{b}' for a, b in itertools.pairwise(names))
        conditions = (
            ('required', [','.join(names)]),
            ('required', list(either)),
            ('member_of', names),
            ('member_of', [f'in:{",".join(names)}']),
        )
        queries = [f'resources=V:1&root_required={",".join(names)}']
        groups = [f'resources_{n}={name}:{n % 9 + 1}' for n, name in enumerate(classes)]
        queries.append('&'.join(['group_policy=none', *groups]))
        for suffix in ('', '_A'):
            queries.append(f'resources{suffix}={",".join(f"{name}:1" for name in classes)}')
            for key, values in conditions:
                items = (f'{key}{suffix}={value}' for value in values)
                queries.append('&'.join([f'resources{suffix}=V:1', *items]))
        for query in queries:
            found = [
                list(one['allocations']) for one in self.candidates(query)['allocation_requests']
            ]
            self.assertEqual([[able.uuid]], found, query)

    def test_a_repeated_same_subtree(self):
        self.fill(worlds.World.of('R\n  C0[VGPU:1]\n    D0[VGPU:1]\n  C1[VGPU:1]'))
        for condition in ('_1', '_1,_2'):
            groups = 'resources_1=VGPU:1&resources_2=VGPU:1&group_policy=none'
            one = self.candidates(f'{groups}&same_subtree={condition}')
            many = self.candidates('&'.join([groups, *[f'same_subtree={condition}'] * 1000]))
            self.assertEqual(self.world.from_body(one), self.world.from_body(many))


class OptionsTest(CandidatesTest):
    """Limits, strategies and random order."""

    query = 'resources_1=VF:1&resources_2=VF:1&group_policy=none'

    def setUp(self) -> None:
        super().setUp()
        self.fill(cases.GENERATION)

    def option(self, **options: Any) -> None:
        self.service.conf_fixture.config(group='placement', **options)

    def request(self, more: str = '') -> tuple[list[Any], set[str], set[str]]:
        """Allocation requests, roots of their providers, roots of the summaries."""
        body = self.candidates(self.query + more)
        elements = body['allocation_requests']
        roots = {
            body['provider_summaries'][uuid]['root_provider_uuid']
            for element in elements
            for uuid in element['allocations']
        }
        summarised = {s['root_provider_uuid'] for s in body['provider_summaries'].values()}
        return elements, roots, summarised

    def test_the_same_order_each_time(self):
        before = self.request()
        self.assertEqual(before, self.request())
        # PostgreSQL moves the row of a provider to which something is written.
        for host in self.world.hosts[:-1]:
            path = f'/resource_providers/{host.uuid}'
            body = self.send_ok('GET', path)
            self.send_ok('PUT', path, {'name': f'{body["name"]}-renamed'})
        self.assertEqual(before, self.request())

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
