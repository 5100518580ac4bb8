"""The command `placement-manage headroom`, and its promise over HTTP in random clouds.

Sent to the API in the order of the file, all claims are granted; afterwards, the query has no
candidate. To check other clouds than the suite, set PLACEMENT_TEST_HEADROOM, for example to
`1000-2000`.
"""

from collections import Counter
import json
import pathlib
from typing import Any
import uuid

import fixtures

from placement import db_api
from placement.admin import cloud
from placement.admin.headroom import reading
from placement.db import engine
from placement.tests import where, worlds
from placement.tests.functional import base, in_process
from placement.tests.properties import Seeds
from placement.tests.worlds import rows, seeded

SEEDS = Seeds('PLACEMENT_TEST_HEADROOM', '0-60')
WORLD = worlds.World.of("""
compute1[V:8, M:4096] @A,B
compute2[V:4, M:4096] @A
compute3[V:1, M:4096]
""")
UUIDS = {host.name: host.uuid for host in WORLD.hosts}
QUERY = 'resources=VCPU:2,MEMORY_MB:512'
TOO_LARGE = 'resources=VCPU:9'
RESULT = {
    'query': QUERY,
    'microversion': '1.39',
    'fits': 6,
    'by': {UUIDS['compute1']: 4, UUIDS['compute2']: 2},
}


class TestCase(base.WorldTestCase, in_process.Commands):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.claims = self.folder / 'claims.jsonl'

    def lines(self) -> list[Any]:
        """Return the bodies in the file of claims."""
        return [json.loads(line) for line in self.claims.read_text().splitlines()]


class PromiseTest(TestCase):
    def test_all_claims_are_granted_and_then_there_is_no_candidate(self):
        counts: Counter[str] = Counter()
        for seed in SEEDS.range:
            case = seeded.search(seed)
            with self.subTest(seed=seed, query=case.text, version=str(case.version)):
                rows.fill(db_api.get_placement_engine(), case.world)
                counts.update(self._check(case))
        SEEDS.show(counts)
        self.assertGreater(counts['queries with claims'], len(SEEDS.range) // 8)

    def _check(self, case: seeded.Search) -> Counter[str]:
        query, version = case.world.query(case.text), str(case.version)
        path = f'/allocation_candidates?{query}'
        before = self.send_ok('GET', path, version=version)
        fits = bool(before['allocation_requests'])
        options = ('--microversion', version, '--claims', str(self.claims))
        (found,) = self.document(0 if fits else 1, 'headroom', query, *options)
        bodies = self.lines()
        self.assertEqual(found['fits'], len(bodies))
        for body in bodies:
            response = self.send('PUT', f'/allocations/{uuid.uuid4()}', body)
            self.assertEqual(204, response.status_code, response.text)
        after = self.send_ok('GET', path, version=version)
        self.assertEqual([], after['allocation_requests'])
        return Counter({'queries': 1, 'queries with claims': fits, 'claims': len(bodies)})

    def test_the_number_of_statements_does_not_depend_on_the_size_of_the_cloud(self):
        world = worlds.World.of(
            'SS[D:10] {SHARE} @A\n' + '\n'.join(f'H{n}[V:2] @A' for n in range(9))
        )
        texts = [world.query(text) for text in ('resources=V:1', 'resources=V:1,D:1')]
        for size in (2, 10):
            part = worlds.World(world.hosts[:size])
            rows.fill(db_api.get_placement_engine(), part)
            with self.counted() as counts, engine.snapshot() as conn:
                found = cloud.read(conn, with_usage=False)
                reading.with_ids(conn, found, reading.parse(texts, worlds.NEWEST))
            # The cloud, and the names of each query.
            self.assertEqual(4 + 2, counts['all'])


@where.only_on('sqlite', reason='The random worlds execute the same statements.')
class CommandTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        rows.fill(db_api.get_placement_engine(), WORLD)

    def test_results(self):
        self.assertEqual([RESULT], self.document(0, 'headroom', QUERY))
        too_large = RESULT | {'query': TOO_LARGE, 'fits': 0, 'by': {}}
        self.assertEqual(
            [RESULT, too_large],
            self.document(1, 'headroom', '-', stdin=f' {QUERY}\n\n{TOO_LARGE}\n'),
        )
        # Each query is computed from the present state.
        options = ('--by', 'aggregate', '--microversion', '1.10')
        by = {worlds.uuid_of('A'): 6, worlds.uuid_of('B'): 4}
        self.assertEqual(
            [RESULT | {'microversion': '1.10', 'by': by}] * 2,
            self.document(0, 'headroom', QUERY, QUERY, *options),
        )

    def test_tables(self):
        done = self.manage(0, 'headroom', QUERY)
        self.assertEqual(
            f'6 more of {QUERY} fit. The limit is VCPU: 3 of 3 trees lack it for one more.',
            done.stdout.splitlines()[0],
        )
        self.assertRegex(done.stdout, rf'\| compute1 +\| {UUIDS["compute1"]} \| +4 \|')
        self.assertEqual('', done.stderr)
        done = self.manage(1, 'headroom', QUERY, TOO_LARGE)
        self.assertRegex(done.stdout, r'\| +6 \| VCPU  \| resources=VCPU:2,MEMORY_MB:512 \|')
        self.assertRegex(done.stdout, r'\| +0 \| VCPU  \| resources=VCPU:9 ')
        self.assertNotIn('compute1', done.stdout)
        self.assertIn(f'Run `placement-manage explain {TOO_LARGE}`.', done.stdout)
        path = self.folder / 'names.json'
        path.write_text(json.dumps([{'UUID': worlds.uuid_of('A'), 'Name': 'fast'}]))
        done = self.manage(0, 'headroom', QUERY, '--by', 'aggregate', '--names', str(path))
        self.assertRegex(done.stdout, rf'\| fast +\| {worlds.uuid_of("A")} +\| +6 \|')
        self.assertIn(f'| {worlds.uuid_of("B")} ', done.stdout)

    def test_claims(self):
        options = ('headroom', QUERY, '--claims', str(self.claims))
        self.manage(0, *options)
        lines = self.lines()
        providers = [provider for line in lines for provider in line['allocations']]
        self.assertEqual((6, 4), (len(lines), providers.count(UUIDS['compute1'])))
        self.assertEqual(
            {
                'allocations': {providers[0]: {'resources': {'VCPU': 2, 'MEMORY_MB': 512}}},
                'mappings': {'': [providers[0]]},
                'project_id': 'headroom',
                'user_id': 'headroom',
                'consumer_generation': None,
                'consumer_type': 'INSTANCE',
            },
            lines[0],
        )
        for number in range(1, 6):
            more = ('--max-claims', str(number), '--project', 'p' * 255, '--user', 'ü')
            done = self.manage(0, *options, *more)
            self.assertEqual(
                f'{self.claims} contains the first {number} of 6 claims, as --max-claims '
                'requires.\n',
                done.stderr,
            )
            lines = self.lines()
            self.assertEqual(number, len(lines))
            self.assertEqual(('p' * 255, 'ü'), (lines[-1]['project_id'], lines[-1]['user_id']))
        self.manage(1, 'headroom', TOO_LARGE, '--claims', str(self.claims))
        self.assertEqual('', self.claims.read_text())
        self.assertEqual([self.claims], list(self.folder.iterdir()))

    def test_assumptions(self):
        changes = ('without:compute1', 'set:VCPU.total=21?name=compute3')
        options = [word for change in changes for word in ('--assume', change)]
        (one, other) = self.document(0, 'headroom', QUERY, TOO_LARGE, *options)
        added = {'assumptions': list(changes), 'over': {}}
        by = {UUIDS['compute3']: 8, UUIDS['compute2']: 2}
        self.assertEqual(RESULT | {'fits': 10, 'by': by} | added, one)
        self.assertEqual((2, added), (other['fits'], {key: other[key] for key in added}))
        done = self.manage(0, 'headroom', QUERY, *options)
        self.assertEqual(f'Assumed: {", ".join(changes)}', done.stdout.splitlines()[0])
        self.assertRegex(done.stdout, rf'\| compute3 +\| {UUIDS["compute3"]} \| +8 \|')
        self.assertEqual([RESULT], self.document(0, 'headroom', QUERY))

    def test_refusals(self):
        """What is not valid is refused with one sentence."""
        claims = ('--claims', '/nowhere/claims')
        for arguments, sentence in (
            ((QUERY, 'resources=VCPU:1&required=CUSTOM_NO'), 'Query 2 is not valid: No such trait'),
            (('resources=CUSTOM_NO:1',), 'Error: Unknown resource class: No such resource class'),
            (('resources=VCPU:x',), "the amount of 'VCPU:x' is not an integer"),
            ((QUERY, 'resources=VCPU:x'), 'Query 2 is not valid: '),
            ((QUERY, '--microversion', '1.9'), "'1.9' is not a microversion"),
            ((QUERY, '--names', '/nowhere'), '/nowhere cannot be read'),
            ((QUERY, '--assume', 'without:compute4'), "the name or the UUID 'compute4'."),
            (('-',), 'Standard input contains no query.'),
            ((QUERY, '--max-claims', '5'), '--max-claims requires --claims.'),
            ((QUERY, '--claims', '-'), 'standard output contains the result'),
            ((QUERY, QUERY, *claims), '--claims requires a single query; there are 2.'),
            ((QUERY, *claims), '/nowhere/claims cannot be written'),
            ((QUERY, *claims, '--user', ''), '--user is not valid: '),
            ((QUERY, *claims, '--project', 'p' * 256), '--project is not valid: '),
            ((QUERY, *claims, '--project', '\udcff'), 'it is not valid UTF-8'),
        ):
            with self.subTest(arguments):
                self.assertRefused(sentence, 'headroom', *arguments)

    def test_numbers(self):
        for number in ('0', '-1', '1.5', 'x', '', '1_0', '٣', '9' * 30):
            done = in_process.run('headroom', QUERY, f'--max-claims={number}')
            self.assertEqual(2, done.status)
            self.assertIn(f"'{number}' is not a number from 1 to 999999999", done.stderr)
