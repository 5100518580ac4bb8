"""The command `placement-manage explain` on the demo cloud."""

import json
import pathlib
import subprocess

import fixtures
import sqlalchemy as sa

import placement
from placement.db.sqlalchemy import models
from placement.microversion import MAX_VERSION
from placement.tests import where
from placement.tests.functional.cmd import base
from tools import demo_cloud

ROOT = pathlib.Path(placement.__file__).parent.parent
# The hosts with this trait have too little of one class each.
FULL = 'resources=VCPU:4,MEMORY_MB:8192&required=HW_CPU_X86_AVX512F'


@where.only_on('sqlite', reason='The tests of the functions run on each database.')
class ExplainTest(base.TestCase):
    module = 'placement.cmd.manage'

    def setUp(self) -> None:
        super().setUp()
        self.assertEqual(0, self.register_demo_cloud().returncode)

    def test_explanations(self) -> None:
        self.check_reasons()
        self.check_forms_of_the_query()
        self.check_other_results()
        self.check_names()
        self.check_assumptions()
        self.check_providers_without_a_root()

    def check_assumptions(self) -> None:
        changes = ['set:VCPU.total=64?name=compute-01', 'set:MEMORY_MB.total=4097']
        options = [word for change in changes for word in ('--assume', change)]
        document = json.loads(self.explain(FULL, *options[:2], '--format', 'json', status=0).stdout)
        self.assertEqual(changes[:1], document['assumptions'])
        self.assertEqual({}, document['over'])
        document = json.loads(self.explain(FULL, *options, '--format', 'json').stdout)
        self.assertEqual(changes, document['assumptions'])
        self.assertEqual(['MEMORY_MB'], list(document['over']))
        over = document['over']['MEMORY_MB']
        first, second, *_ = self.explain(FULL, *options).stdout.splitlines()
        self.assertEqual(f'Assumed: {", ".join(changes)}', first)
        self.assertEqual(
            f'The usage of MEMORY_MB exceeds the capacity of {over["inventories"]} inventories by '
            f'{over["amount"]} in total.',
            second,
        )
        done = self.explain(FULL, '--assume', 'trait:+CUSTOM_NOTHING', status=2)
        self.assertEqual(
            "Error: The assumption 'trait:+CUSTOM_NOTHING' is not valid: No such trait: "
            'CUSTOM_NOTHING.\n',
            done.stderr,
        )

    def check_names(self) -> None:
        zone = demo_cloud.uuid_of('az-south')
        query = f'{FULL}&member_of={zone}'
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'names.json')
        path.write_text(json.dumps([{'UUID': zone, 'Name': 'south'}]))
        done = self.explain(query, '--names', str(path))
        self.assertIn(f'not in the aggregate south {zone}', ' '.join(done.stdout.split()))
        self.assertNotIn('south', self.explain(query).stdout)
        options = ('--format', 'json')
        self.assertEqual(
            self.explain(query, *options).stdout,
            self.explain(query, *options, '--names', str(path)).stdout,
        )
        path.write_text('[{"ID": 1, "Name": "south"}]')
        done = self.explain(query, '--names', str(path), status=2)
        self.assertIn('--os-compute-api-version 2.53', done.stderr)

    def check_reasons(self) -> None:
        done = self.explain(FULL, '--format', 'json')
        document = json.loads(done.stdout)
        self.assertEqual({'trees': 0, 'more': False}, document['candidates'])
        self.assertEqual(
            [
                ['resources:VCPU'],
                ['resources:MEMORY_MB'],
                ['required:HW_CPU_X86_AVX512F'],
            ],
            [relaxation['without'] for relaxation in document['relaxations']],
        )
        self.assertEqual(
            {'key': 'resources:VCPU', 'fact': 'VCPU 128 of 128 used, 4 requested'},
            document['nearest'][0]['failures'][0],
        )
        # No compute host has as much free capacity as the storage that some of them share.
        done = self.explain('resources=VCPU:4,DISK_GB:200000', '--format', 'json')
        (relaxation,) = json.loads(done.stdout)['relaxations']
        most_free = relaxation['most_free']['resources:DISK_GB']
        self.assertEqual([31000, 'storage-01'], [most_free['amount'], most_free['provider']])
        done = self.explain(FULL, '--nearest', '1')
        self.assertIn('compute-01: VCPU 128 of 128 used, 4 requested', done.stdout)
        self.assertNotIn('compute-02:', done.stdout)
        self.assertLessEqual(max(map(len, done.stdout.splitlines())), 100)

    def check_providers_without_a_root(self) -> None:
        commands = (('explain', FULL), ('headroom', FULL), ('exporter', '--once'))
        for command in commands:
            self.assertNotIn('without a root', self.run_command(*command).stderr)
        providers = models.resource_providers
        condition = providers.c.name.in_(['compute-01', 'compute-02'])
        with self.engine.begin() as conn:
            conn.execute(sa.update(providers).where(condition).values(root_provider_id=None))
        notice = (
            'The result lacks the resource providers without a root (2). Run `placement-manage '
            'audit --only root-missing`.\n'
        )
        for command in commands:
            done = self.run_command(*command)
            self.assertIn(notice, done.stderr)
            self.assertNotIn('without a root', done.stdout)

    def check_forms_of_the_query(self) -> None:
        expected = json.loads(self.explain(FULL, '--format', 'json').stdout)['relaxations']
        encoded = FULL.replace(',', '%2C').replace(':', '%3A')
        for text in (
            f'/allocation_candidates?{encoded}',
            f'http://127.0.0.1:8778/placement/allocation_candidates?{FULL}&limit=3',
        ):
            done = self.explain(text, '--format', 'json')
            self.assertEqual(expected, json.loads(done.stdout)['relaxations'])
        done = self.explain('-', '--format', 'json', stdin=f'{encoded}\n')
        self.assertEqual(expected, json.loads(done.stdout)['relaxations'])

    def check_other_results(self) -> None:
        done = self.explain('resources=VCPU:1', status=0)
        self.assertRegex(
            done.stdout,
            rf'\A\d+ provider trees have allocation candidates in microversion {MAX_VERSION}\.\n',
        )
        # A NUMA node and its network device are different providers of one tree.
        nested = 'resources=PCPU:2,SRIOV_NET_VF:1'
        done = self.explain(nested, '--microversion', '1.28')
        self.assertRegex(
            done.stdout,
            r'\ANo provider tree has allocation candidates in microversion 1.28.\n'
            r'\d+ provider trees have allocation candidates from microversion 1.29 on.\n',
        )
        for arguments, message in (
            (['resources=VCPU:0'], "the amount of 'VCPU:0' is less than 1"),
            (['resources=CUSTOM_A:1&required=CUSTOM_B'], 'No such resource class CUSTOM_A'),
            (['resources=VCPU:1', '--microversion', '1.9'], "'1.9' is not a microversion"),
        ):
            done = self.explain(*arguments, status=2)
            self.assertEqual('', done.stdout)
            self.assertIn(message, done.stderr)
            self.assertNotIn('Traceback', done.stderr)

    def explain(
        self, *arguments: str, status: int = 1, stdin: str = ''
    ) -> subprocess.CompletedProcess:
        done = self.run_command('explain', *arguments, stdin=stdin)
        self.assertEqual(status, done.returncode, done.stderr)
        return done


@where.only_on('sqlite', reason='The tests of the functions run on each database.')
class MissingFileTest(base.TestCase):
    module = 'placement.cmd.manage'

    @where.only_on('sqlite', reason='The test is for SQLite.')
    def test_a_missing_database_file_is_not_created(self) -> None:
        file = pathlib.Path(self.engine.url.database)
        self.engine.dispose()
        file.unlink(missing_ok=True)
        done = self.run_command('explain', 'resources=VCPU:1')
        self.assertEqual(2, done.returncode)
        self.assertIn(f'The database file {file} does not exist. Run `placement-', done.stderr)
        self.assertFalse(file.exists())
