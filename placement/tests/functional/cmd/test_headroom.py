"""The command `placement-manage headroom`."""

import json
import pathlib
import subprocess
from typing import Any

import fixtures

from placement.db.sqlalchemy import models
from placement.microversion import VERSIONS
from placement.objects import sync
from placement.tests import where, worlds
from placement.tests.functional.cmd import base
from placement.tests.worlds import rows as world_rows

WORLD = worlds.World.of("""
compute1[V:8, M:4096] @A,B
compute2[V:4, M:4096] @A
compute3[V:1, M:4096]
""")
UUIDS = {host.name: host.uuid for host in WORLD.hosts}
QUERY = 'resources=VCPU:2,MEMORY_MB:512'
TOO_LARGE = 'resources=VCPU:9'


class TestCase(base.TestCase):
    module = 'placement.cmd.manage'

    def headroom(
        self, *arguments: str, status: int = 0, stdin: str = ''
    ) -> subprocess.CompletedProcess:
        return self.run_with_status(status, 'headroom', *arguments, stdin=stdin)


@where.only_on('sqlite', reason='The tests of the functions run on each database.')
class CloudTest(TestCase):
    """Queries on a small cloud."""

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        models.metadata.create_all(self.engine)
        sync.sync_resource_classes()
        world_rows.fill(self.engine, WORLD)

    def document(self, *arguments: str, status: int = 0, stdin: str = '') -> Any:
        done = self.headroom(*arguments, '--format', 'json', status=status, stdin=stdin)
        self.assertEqual('', done.stderr)
        return json.loads(done.stdout)

    def test_results(self):
        expected = {
            'query': QUERY,
            'microversion': VERSIONS[-1],
            'fits': 6,
            'at_most': 6,
            'by': {UUIDS['compute1']: 4, UUIDS['compute2']: 2},
            # compute1: 4096 MB, compute2: 4096 MB, and compute3: 4096 MB and one VCPU
            'lost': {'VCPU': 1, 'MEMORY_MB': 3 * 4096 - 6 * 512},
        }
        self.assertEqual([expected], self.document(QUERY))
        too_large = {'query': TOO_LARGE, 'fits': 0, 'at_most': 0, 'by': {}}
        too_large['lost'] = {'VCPU': 13}
        self.assertEqual(
            [expected, too_large | {'microversion': VERSIONS[-1]}],
            self.document('-', stdin=f' {QUERY}\n\n{TOO_LARGE}\n', status=1),
        )
        # Each query is computed from the present state.
        (one, other) = self.document(QUERY, QUERY, '--by', 'aggregate', '--microversion', '1.10')
        self.assertEqual(one, other)
        by = {worlds.uuid_of('A'): 6, worlds.uuid_of('B'): 4}
        self.assertEqual(expected | {'microversion': '1.10', 'by': by}, one)

    def test_tables(self):
        done = self.headroom(QUERY)
        self.assertRegex(done.stdout, r'\| resources=VCPU:2,MEMORY_MB:512 \| +6 \| +6 \|')
        self.assertIn('6 fit; by memory alone 24 would: 75 % of the free memory', done.stdout)
        self.assertRegex(done.stdout, rf'\| compute1 +\| {UUIDS["compute1"]} \| +4 \|')
        self.assertEqual('', done.stderr)
        done = self.headroom(QUERY, TOO_LARGE, status=1)
        self.assertNotIn('compute1', done.stdout)
        self.assertEqual(
            '`placement-manage explain` explains why a query has no candidates.\n', done.stderr
        )

    def test_names(self):
        path = self.folder / 'names.json'
        uuid = worlds.uuid_of('A')
        path.write_text(json.dumps([{'UUID': uuid, 'Name': 'fast'}]))
        options = ('--by', 'aggregate', '--names', str(path))
        done = self.headroom(QUERY, *options)
        self.assertRegex(done.stdout, rf'\| fast {uuid} +\| +6 \|')
        self.assertIn(f'| {worlds.uuid_of("B")} ', done.stdout)
        self.assertNotIn('fast', self.headroom(QUERY, *options, '--format', 'json').stdout)
        self.headroom(QUERY, '--names', str(self.folder / 'none'), status=2)

    def test_claims(self):
        path = self.folder / 'claims.jsonl'
        options = ('--claims', str(path), '--format', 'json')
        self.headroom(QUERY, *options)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual(6, len(lines))
        providers = [provider for line in lines for provider in line['allocations']]
        self.assertEqual(4, providers.count(UUIDS['compute1']))
        self.assertEqual(('headroom', 'headroom'), (lines[0]['project_id'], lines[0]['user_id']))

        more = ('--max-claims', '5', '--project', 'p' * 255, '--user', 'ü')
        done = self.headroom(QUERY, *options, *more)
        self.assertEqual(
            f'{path} contains the first 5 of 6 claims, as --max-claims requires.\n', done.stderr
        )
        self.assertEqual(6, json.loads(done.stdout)[0]['fits'])
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual(5, len(lines))
        self.assertEqual(('p' * 255, 'ü'), (lines[4]['project_id'], lines[4]['user_id']))

        self.headroom(TOO_LARGE, *options, status=1)
        self.assertEqual('', path.read_text())
        self.assertEqual([path], list(self.folder.iterdir()))

    def test_assumptions(self):
        aggregate = worlds.uuid_of('A')
        changes = ('without:compute1', 'set:VCPU.total=21?name=compute3')
        options = [word for change in changes for word in ('--assume', change)]
        (before,) = self.document(QUERY)
        (one, other) = self.document(QUERY, TOO_LARGE, *options)
        by = {UUIDS['compute3']: 8, UUIDS['compute2']: 2}
        added = {'assumptions': list(changes), 'over': {}}
        lost = {'VCPU': 5, 'MEMORY_MB': 3072}
        expected = {'fits': 10, 'at_most': 10, 'by': by, 'lost': lost}
        self.assertEqual(before | expected | added, one)
        self.assertEqual((2, added), (other['fits'], {key: other[key] for key in added}))

        done = self.headroom(QUERY, *options)
        self.assertEqual(f'Assumed: {", ".join(changes)}', done.stdout.splitlines()[0])
        self.assertRegex(done.stdout, rf'\| compute3 +\| {UUIDS["compute3"]} \| +8 \|')
        path = self.folder / 'names.json'
        path.write_text(json.dumps([{'UUID': aggregate, 'Name': 'fast'}]))
        change = f'aggregate:-{aggregate}?name=compute1'
        done = self.headroom(QUERY, '--assume', change, '--names', str(path))
        self.assertIn(f'Assumed: aggregate:-fast {aggregate}?name=compute1\n', done.stdout)
        self.assertEqual([before], self.document(QUERY))

        done = self.headroom(QUERY, '--assume', 'without:compute4', status=2)
        self.assertEqual(
            "Error: The assumption 'without:compute4' is not valid: No resource provider has the "
            "name or the UUID 'compute4'.\n",
            done.stderr,
        )
        self.assertEqual('', done.stdout)

    def test_unknown_names(self):
        done = self.headroom(QUERY, 'resources=VCPU:1&required=CUSTOM_NOTHING', status=2)
        self.assertEqual(
            'Error: Query 2 is not valid: No such trait: CUSTOM_NOTHING.\n', done.stderr
        )
        done = self.headroom('resources=CUSTOM_NOTHING:1', status=2)
        self.assertIn('Error: Unknown resource class: No such resource class', done.stderr)
        self.assertEqual('', done.stdout)


@where.only_on('sqlite', reason='The tests of the functions run on each database.')
class RefusalTest(TestCase):
    """What is not valid is refused with one sentence, before the database is read."""

    def test_refusals(self):
        claims = ('--claims', '/nowhere/claims')
        for arguments, sentence in (
            (['resources=VCPU:x'], "the amount of 'VCPU:x' is not an integer"),
            ([QUERY, '--microversion', '1.9'], "'1.9' is not a microversion"),
            (['-'], 'Standard input contains no query.'),
            ([QUERY, *claims], 'The file /nowhere/claims cannot be written: No such file'),
            ([QUERY, '--claims', '-'], 'standard output contains the result'),
            ([QUERY, QUERY, *claims], '--claims requires a single query; there are 2.'),
            ([QUERY, '--user', 'me'], '--user requires --claims.'),
            ([QUERY, '--max-claims', '1'], '--max-claims requires --claims.'),
            ([QUERY, *claims, '--project', ''], '--project is not valid'),
            ([QUERY, '--assume', 'set:VCPU.total=0'], "The assumption 'set:VCPU.total=0' is not"),
            ([QUERY, *claims, '--user', 'u' * 256], '--user is not valid'),
        ):
            done = self.headroom(*arguments, status=2)
            self.assertEqual('', done.stdout)
            (line,) = done.stderr.splitlines()
            self.assertTrue(line.startswith('Error: '), line)
            self.assertIn(sentence, line)
