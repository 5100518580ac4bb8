"""The command `placement-manage explain`, and its naive definition in random worlds.

The environment variable PLACEMENT_TEST_EXPLAIN sets the seeds, for example 0-2000.
"""

from collections import Counter
from collections.abc import Iterator
import contextlib
import dataclasses
import json
import os
import pathlib
import random
import re
import string
from typing import Any
from urllib import parse

import fixtures
import sqlalchemy as sa

from placement import db_api, microversion
from placement.admin import cloud
from placement.admin.console import Advance, silent
from placement.admin.explain import explanation, render
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.microversion import Version
from placement.tests import servers, where, worlds
from placement.tests.functional import base, in_process
from placement.tests.properties import Seeds
from placement.tests.worlds import naive_explain as naive
from placement.tests.worlds import rows, seeded

# On a server, the same statements only have to be valid there.
SEEDS = Seeds('PLACEMENT_TEST_EXPLAIN', '0-40' if servers.ADMIN_URL in os.environ else '0-300')


class RandomWorldsTest(base.WorldTestCase):
    def test_explanations(self) -> None:
        sizes: Counter[int] = Counter()
        for seed in SEEDS.range:
            case = seeded.search(seed)
            world = _doubled(random.Random(seed), case.world)
            pairs = parse.parse_qsl(world.query(case.text))
            query = (parse.urlencode(pairs), case.version, -1, 99)
            rows.fill(db_api.get_placement_engine(), world)
            with self.subTest(seed=seed, version=str(case.version), query=pairs):
                with engine.snapshot() as conn:
                    found = explanation.explain(conn, cloud.read(conn), *query, silent).document
                every = naive.conditions(pairs, case.version)
                self.assertEqual({c.key for c in every}, {c['key'] for c in found['conditions']})
                self.assertEqual(len(every), len(found['conditions']))
                nested = case.version >= microversion.NESTED_CANDIDATES
                self._check(naive.Cloud(world, every, nested), world, found)
                if not found['candidates']['trees']:
                    first = [one['without'] for one in found['relaxations'][:1]]
                    sizes[sum(map(len, first))] += 1
        # Many queries have relaxations of one condition, of two conditions, and none.
        SEEDS.show(sizes)
        self.assertGreater(min(sizes[0], sizes[1], sizes[2]), len(SEEDS.range) // 25, sizes)

    def _check(self, cloud: naive.Cloud, world: worlds.World, found: Any) -> None:
        self.assertEqual(cloud.trees(), found['candidates']['trees'])
        if not cloud.nested:
            self.assertEqual(cloud.trees(nested=True), found['candidates_in_1.29']['trees'])
        self.assertEqual(
            cloud.relaxations(),
            {frozenset(one['without']): one['trees'] for one in found['relaxations']},
        )
        for of_group in found['funnel'][:-1]:
            self.assertEqual(
                cloud.funnel(of_group['group'], of_group['resources']),
                list(of_group['providers'].values()),
            )
        failures = [(one.root.uuid, cloud.failures(one)) for one in cloud.anchors]
        self.assertEqual(
            sorted(failures, key=lambda item: (len(item[1]), world.names[item[0]])),
            [(tree['uuid'], {f['key'] for f in tree['failures']}) for tree in found['nearest']],
        )


def _doubled(rng: random.Random, world: worlds.World) -> worlds.World:
    """Return a world with a second copy of small worlds, with other usages.

    No condition can distinguish many of the copies from the original.
    """
    if len(world.hosts) > 4:
        return world
    copies = tuple(
        dataclasses.replace(
            host,
            name=f'Q{host.name}',
            parent=host.parent and f'Q{host.parent}',
            inventories={
                name: {**values, 'used': max(0, values['used'] - rng.choice((0, 0, 1)))}
                for name, values in host.inventories.items()
            },
        )
        for host in world.hosts
    )
    return worlds.World(world.hosts + copies)


# Eight devices, for nine groups that need one device each.
DEVICES = 'R[V:8]\n' + '\n'.join(f'  D{n}[VGPU:1]' for n in range(8))
GROUPS = '&'.join(f'resources_{n}=VGPU:1' for n in range(9)) + '&group_policy=isolate'
LIMIT = 'The search reached the limit [placement] max_candidate_search_steps'
X86 = 'SSE SSE2 SSE3 SSSE3 SSE41 SSE42 AVX AVX2 FMA3 FMA4 F16C MMX'
# Each example is a query, the lines of a drawing with "/" between them, and parts of the text.
EXAMPLES = """
resources=V:4
H[V:8]
    1 host fits: H.
    Next: placement-manage headroom resources=VCPU%3A4 --microversion 1.39 --assume 'a b'
resources=V:4
A[V:9]/H3[V:8]/H1[V: total 8 used 2]/H2[V:1]
    3 hosts fit: H1 (1 more), A.
resources=V:4
$different
    12 hosts fit: H0, H1, H10, H11, H2, H3, H4, H5, H6, ... Hosts
resources=V:4
$thousand
    More than 1,000 hosts fit
resources=V:9
H[V:8]
    Nothing fits. 1 host would fit without resources:VCPU.
    Next: openstack resource provider inventory list $uuid
resources=V:4
H[V: total 8 used 8]
    Next: placement-manage drain H --assume 'a b'
root_required=GOLD&resources=V:1
H[V:8]
    Next: openstack resource provider trait list $uuid
resources_1=V:1&member_of_1=A
H[V:8]
    Next: openstack resource provider aggregate list $uuid
resources=V:6,M:8&required=GOLD
A[V: total 9 used 4, M:9] {GOLD}/B[V:9, M: total 9 used 4] {GOLD}/C[V:9, M:9]/D[V:9, M:9]
    Nothing fits. 2 hosts would fit without CUSTOM_GOLD; A lacks 1 VCPU.
    required:CUSTOM_GOLD 2 resources:VCPU 1 resources:MEMORY_MB 1
    fail: A: VCPU 4 of 9 used, 6 requested B: MEMORY_MB 4 of 9 used, 8 requested C (1 more): lacks
    lacks CUSTOM_GOLD Hosts
    Next: placement-manage drain A
resources=M:2048
H[M: total 4096 used 4096]
    ; H lacks 2,048 MB of memory.
$impossible
H[V:8]
    Nothing fits. No single condition
$sums
H1[V:8190]/H2[V:8191]/H3[V:9999]
    2 hosts fit: H2, H3.
resources=V:9&required=GOLD&root_required=BLUE
H[V:8]
    Nothing fits. No single condition is the reason, and no pair of conditions.
resources=V:9&required=GOLD&$forbidden
H[V:8]
    No single condition is the reason.
    for at most 40 conditions; this query has 42.
resources=V:8,D:10
H[V:7, D:9]
    without resources:VCPU and resources:DISK_GB.
resources_1=V:1&resources_2=V:1&group_policy=isolate
R[V:8]
    R: each condition is satisfied, but not all together
resources=V:5
H/  K2[V: total 8 max_unit 4]/  K1[V: total 8 max_unit 4]/  K3[V: total 6 max_unit 2]
    H: VCPU max_unit 4 on K1, 5 requested
resources_1=V:1&resources_2=D:1&same_subtree=_1,_2&group_policy=none
H1/  A1[V:8]/  B1[D:9]/H2/  A2[V:8]/    B2[D:9]
    1 host fits: H2.
resources=V:4&required=in:GOLD,BLUE
H1[V:8]/H2[V:8]/H3[V:1]
    Request Inventory Capacity VCPU:4 3 2
    all hosts 3 resources:VCPU 2 required:in:CUSTOM_BLUE,CUSTOM_GOLD 0 each
resources_1=V:1&required_1=GOLD&in_tree_1=H1
H1[V:8]/H2[V:8]/H3[V:1]
    Request Inventory in_tree Traits group _1: VCPU:1 3 1 0
resources=V:1&required=$x86
H[V:8]
    ; and 2 more, which --format json lists
resources_1=V:1&in_tree_1=A&resources_2=V:1&in_tree_2=B&group_policy=none
A[V:8]/B[V:8]
    in_tree_1 1 in_tree_2 1
resources=V:1&member_of=A&member_of=B
R @A/  C[V:8] @B
    member_of:$a 1 member_of:$b 1 each group has a provider 0 all
"""
TEXTS = {
    'different': '/'.join(f'H{n}[V:{n + 4}]' for n in range(12)),
    'thousand': '/'.join(f'H{n}[V:8]' for n in range(1001)),
    'uuid': worlds.uuid_of('H'),
    'a': worlds.uuid_of('A'),
    'b': worlds.uuid_of('B'),
    # Amounts that no inventory can have, and many different sums of amounts.
    'impossible': '&'.join(f'resources_{n}=V:{10**30}' for n in range(15)) + '&group_policy=none',
    'sums': '&'.join(f'resources_{n}=V:{2**n}' for n in range(13)) + '&group_policy=none',
    'forbidden': '&'.join(f'member_of=!X{n}' for n in range(40)),
    'x86': ','.join(f'HW_CPU_X86_{name}' for name in X86.split()),
}


@where.only_on('sqlite', reason='The random worlds execute the same statements.')
class ExamplesTest(base.WorldTestCase):
    def explain(
        self, drawing: str, text: str, version: Version = worlds.NEWEST, max_steps: int = -1
    ) -> explanation.Explanation:
        world = worlds.World.of(drawing)
        rows.fill(db_api.get_placement_engine(), world)
        self.counts: Counter[str] = Counter()
        query = (world.query(text), version, max_steps, 5)
        with engine.snapshot() as conn:
            return explanation.explain(conn, cloud.read(conn), *query, self.progress)

    @contextlib.contextmanager
    def progress(self, label: str, _total: int | None = None) -> Iterator[Advance]:
        yield lambda count: self.counts.update({label: count})

    def text(self, found: explanation.Explanation) -> str:
        """Return the text without the lines of tables, and with one blank between words."""
        text = render.text(found, render.next_command(found, ['a b']))
        tables = [line for line in text.splitlines() if line.startswith(('+', '|'))]
        others = [line for line in text.splitlines() if line not in tables and 'Next: ' not in line]
        self.assertLessEqual(max(map(len, others)), 100)
        return ' '.join(re.sub(r'[|+]|--+(?=[+-])', ' ', text).split())

    def test_examples(self):
        examples = string.Template(EXAMPLES.strip()).substitute(TEXTS)
        for example in re.split(r'\n(?=\S.*\n\S)', examples):
            query, drawing, *parts = example.splitlines()
            with self.subTest(query, drawing=drawing[:99]):
                text = self.text(self.explain(drawing.replace('/', '\n'), query))
                for part in parts:
                    self.assertIn(part.strip(), text)
        self.assertNotIn('Next', self.text(self.explain('', 'resources=V:1')))

    def test_many_equal_trees(self):
        found = self.explain('\n'.join(f'H{n}[V:8]' for n in range(9)), 'resources=V:9')
        self.assertEqual(5, len(found.document['nearest']))
        self.assertIn('H0 (8 more): VCPU capacity 8', self.text(found))

    def test_the_newer_microversion(self):
        found = self.explain('R[V:8]\n  C[D:9]', 'resources=V:1,D:1', Version(1, 28))
        self.assertIn('Nothing fits. From microversion 1.29 on: 1 host fits. ', self.text(found))

    def test_searches_that_reach_the_limit(self):
        found = self.explain(DEVICES, GROUPS, max_steps=5)
        self.assertEqual({'trees': 0, 'more': True, 'cut': True}, found.document['candidates'])
        self.assertIn(f'{LIMIT}, so hosts may fit. The hosts in which', self.text(found))
        # A tree with enough devices is searched first.
        more = 'S\n  ' + '\n  '.join(f'S{n}[VGPU:1]' for n in range(9))
        found = self.explain(f'{more}\n{DEVICES}', GROUPS, max_steps=120)
        self.assertIn('At least 1 host fits: S, ... Hosts', self.text(found))
        # No tree can serve the query, or the query without one condition, so there is no search.
        query = f'{GROUPS}&resources=V:9&required=GOLD'
        found = self.explain(DEVICES, query, max_steps=0)
        pair = ['resources:VCPU', 'required:CUSTOM_GOLD']
        self.assertEqual([{'without': pair, 'cut': True}], found.document['relaxations'])
        self.assertIn(
            f'Nothing fits. {LIMIT} without these conditions, so hosts may fit: resources:VCPU and '
            'required:CUSTOM_GOLD ',
            self.text(found),
        )

    def test_a_complete_search(self):
        found = self.explain(DEVICES, GROUPS).document['relaxations']
        expected = [[f'resources_{n}:VGPU', 'group_policy'] for n in range(9)]
        self.assertEqual(expected, [one['without'] for one in found])

    def test_progress(self):
        self.explain('H1[V:8]\nH2[V:8]\nH3[V:1]', 'resources=V:4')
        self.assertEqual({'Checking conditions': 3, 'Searching candidates': 2}, self.counts)


WORLD = worlds.World.of("""
compute1[V: total 8 used 8, M:100] {AVX} @A
compute2[V:8, M:2] {AVX} @A
compute3[V:8, M:100] @B
""")
QUERY = 'resources=VCPU:4,MEMORY_MB:8&required=CUSTOM_AVX'
ENCODED = QUERY.replace(',', '%2C').replace(':', '%3A')
ZONE = worlds.uuid_of('B')
LOGGER = 'placement.handlers.allocation_candidate'
CLIENT, REQUEST = 'req-b9a0a5c1', 'req-0f3e2a1d'


@where.only_on('sqlite', reason='The random worlds execute the same statements.')
class CommandTest(base.WorldTestCase, in_process.Commands):
    def setUp(self) -> None:
        super().setUp()
        rows.fill(db_api.get_placement_engine(), WORLD)
        self.names = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'names.json')

    def test_results(self):
        found = self.document(1, 'explain', QUERY)
        self.assertEqual({'trees': 0, 'more': False}, found['candidates'])
        relaxations = [['resources:VCPU'], ['resources:MEMORY_MB'], ['required:CUSTOM_AVX']]
        self.assertEqual(relaxations, [one['without'] for one in found['relaxations']])
        self.assertEqual(
            {'key': 'resources:VCPU', 'fact': 'VCPU 8 of 8 used, 4 requested'},
            found['nearest'][0]['failures'][0],
        )
        text = self.manage(1, 'explain', QUERY, '--nearest', '1').stdout
        self.assertIn('compute1: VCPU 8 of 8 used, 4 requested', text)
        self.assertNotIn('compute2:', text)
        text = self.manage(0, 'explain', 'resources=VCPU:1').stdout
        self.assertEqual('2 hosts fit: compute2 (1 more).', text.splitlines()[0])

    def test_each_form_in_which_logs_contain_a_query(self):
        expected = self.document(1, 'explain', QUERY)['relaxations']
        for text in (
            ENCODED,
            f'?{QUERY}',
            f' {QUERY}\n',
            f'/allocation_candidates?{ENCODED}',
            f'allocation_candidates?{QUERY}',
            f'/placement/allocation_candidates?{QUERY}',
            f'http://controller/placement/allocation_candidates?{QUERY}&limit=3',
            f'https://[::1]:8778/allocation_candidates?{ENCODED}#top',
        ):
            for arguments in ({}, {'stdin': f'{text}\n'}):
                argument = '-' if arguments else text
                found = self.document(1, 'explain', argument, **arguments)
                self.assertEqual(expected, found['relaxations'], text)

    def test_each_form_of_the_line_of_the_log(self):
        expected = self.document(1, 'explain', QUERY, '--microversion', '1.31')
        line = f'No allocation candidates: {ENCODED} microversion: 1.31'
        for text in (
            line,
            f'2026-11-27 06:26:23.1 7 INFO {LOGGER} [{CLIENT} {REQUEST} u p - - d d] {line}\n',
            f'{ENCODED} microversion: 1.31',
            f'10.0.0.1 "GET /placement/allocation_candidates?{ENCODED}" status: 200 len: 53 '
            'microversion: 1.31 time: 0.01',
            json.dumps({'message': line}),
            json.dumps({'message': f'"GET /a?{ENCODED}" status: 200 len: 5 microversion: 1.31'}),
        ):
            found = self.document(1, 'explain', text)
            self.assertIn(ENCODED, found['query'])
            self.assertEqual(expected, found | {'query': QUERY})
            found = self.document(1, 'explain', text, '--microversion', '1.36')
            self.assertEqual('1.36', found['microversion'])

    def test_a_request_and_a_log_file(self):
        path = self.names.with_name('placement.log')
        own, other = f'[{CLIENT} {REQUEST} u] ', '[req-2 req-3 u] '
        nothing = 'No allocation candidates: {} microversion: 1.31'
        searched = '1.1.1.1 "GET /allocation_candidates?{}" status: 200 len: 5 microversion: {}'
        lines = [
            own + '1.1.1.1 "GET /traits?x=y" status: 200 len: 5 microversion: 1.31',
            own + nothing.format(ENCODED),
            own + searched.format(ENCODED, '1.31'),
            other + nothing.format('resources=VCPU:1'),
            own + nothing.format('incomplete'),
        ]
        lines[-1] = lines[-1].partition(' micro')[0]
        path.write_text('\n'.join(lines))
        expected = self.document(1, 'explain', nothing.format(ENCODED))
        for id_ in (REQUEST, CLIENT):
            self.assertEqual(expected, self.document(1, 'explain', '--request', id_, str(path)))
        log = '\n'.join([*lines, own + searched.format('resources=VCPU:2', '1.36')])
        done = self.manage(0, 'explain', '--request', REQUEST, '-', stdin=log)
        self.assertIn('2 different searches; this is the last one', done.stderr)
        self.assertIn('--microversion 1.36', done.stdout)
        for sentence, *arguments in (
            ('contains no search of the request req-9; ', 'req-9', str(path)),
            (f'{path}.1 cannot be used: No such file', REQUEST, f'{path}.1'),
        ):
            self.assertRefused(sentence, 'explain', '--request', *arguments)

    def test_refusals(self):
        limit = 'resources=VCPU:1&limit=5'
        for sentence, *arguments in (
            # The sentences are those of the API.
            ("the amount of 'VCPU:0' is less than 1", 'resources=VCPU:0'),
            ('No such resource class CUSTOM_A', 'resources=CUSTOM_A:1&required=CUSTOM_B'),
            ("'1.9' is not a microversion", QUERY, '--microversion', '1.9'),
            ("'1' is not a microversion", QUERY, '--microversion', '1'),
            ("'limit' is not supported before microv", limit, '--microversion', '1.15'),
            ('request group', ''),
            ('request group', '/allocation_candidates'),
            ("'resources' is required", '/?', '--microversion', '1.10'),
            # Python passes the byte 0xff of a command line as this surrogate.
            *(('not valid UTF-8', text) for text in ('resources=%ff', 'resources=\udcff')),
            ('NUL', 'resources=%00'),
            ("'VCPU:\\x1b'", 'resources=VCPU:%1b'),
            ('No such trait: ?A=B.', 'resources=VCPU:4&required=?A=B'),
        ):
            with self.subTest(arguments):
                self.assertRefused(sentence, 'explain', *arguments)

    def test_numbers(self):
        for number in ('-1', '1.5', 'x', '', '1_0', '٣', '9' * 30):
            done = in_process.run('explain', QUERY, f'--nearest={number}')
            self.assertEqual(2, done.status)
            self.assertIn(f"'{number}' is not a number from 0 to 999999999", done.stderr)

    def test_names_from_the_columns_of_the_client(self):
        query, options = f'{QUERY}&member_of={ZONE}', ('--names', str(self.names))
        expected = self.document(1, 'explain', query)
        for row in (
            {'ID': ZONE, 'Name': 'south', 'Status': 'ACTIVE'},
            {'ID': ZONE.upper(), 'Hypervisor Hostname': 'south', 'State': 'up'},
            {'ID': 7, 'UUID': ZONE, 'Name': 'south'},
            {'UUID': 'seven', 'id': ZONE, 'name': 'south'},
            {'Id': ZONE, 'Name': None, 'name': 'south'},
        ):
            self.names.write_text(json.dumps([row]))
            text = self.manage(1, 'explain', query, *options).stdout
            self.assertIn(f'not in the aggregate south {ZONE}', ' '.join(text.split()))
            self.assertIn(f'| member_of:south {ZONE} | ', text)
        self.assertEqual(expected, self.document(1, 'explain', query, *options))

    def test_files_that_are_refused(self):
        arguments = ('explain', QUERY, '--names', str(self.names))
        self.assertRefused('cannot be read', *arguments)
        for text, sentence in (
            ('[', 'is not valid JSON'),
            ('[' * 100_000, 'is not valid JSON'),
            (f'{{"ID": "{ZONE}", "Name": "one"}}', 'is not a list'),
            (f'["{ZONE}"]', 'is not a list'),
            ('[{"ID": 7, "Hypervisor Hostname": "one"}]', '--os-compute-api-version 2.53'),
            (f'[{{"ID": "{ZONE}"}}]', 'has no name'),
        ):
            with self.subTest(text[:99]):
                self.names.write_text(text)
                self.assertRefused(sentence, *arguments)

    def test_providers_without_a_root(self):
        commands = (('explain', QUERY), ('headroom', QUERY), ('exporter', '--once'))
        providers = models.resource_providers
        condition = providers.c.name.in_(['compute1', 'compute2'])
        for number, values in enumerate(({}, {'root_provider_id': None})):
            with db_api.get_placement_engine().begin() as conn:
                conn.execute(sa.update(providers).where(condition).values(generation=1, **values))
            for command in commands:
                done = in_process.run(*command)
                self.assertEqual(
                    number,
                    done.stderr.count(
                        'The result lacks the resource providers without a root (2). Run '
                        '`placement-manage audit --only root-missing`.\n'
                    ),
                )
                self.assertNotIn('without a root', done.stdout)

    def test_a_missing_database_file_is_not_created(self):
        file = self.names.with_name('placement.db')
        done = in_process.run('explain', QUERY, url=f'sqlite:///{file}')
        self.assertEqual(2, done.status)
        self.assertIn(f'The database file {file} does not exist. Run `placement-', done.stderr)
        self.assertFalse(file.exists())
