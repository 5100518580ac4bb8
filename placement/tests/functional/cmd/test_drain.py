"""The command `placement-manage drain`."""

import json
import pathlib
import subprocess
from typing import Any

import fixtures

from placement.db.sqlalchemy import models
from placement.objects import sync
from placement.tests import where, worlds
from placement.tests.functional.admin.drain import rows
from placement.tests.functional.cmd import base
from placement.tests.unit.admin.drain import clouds

# The load of `small` fits elsewhere, and that of `large` does not.
CASE = clouds.Case(
    style='flat',
    empty=worlds.World.of("""
small[V:4, M:64] @A
large[V:16, M:64] @B
child_of_none[V:6, M:64] @A
"""),
    consumers=(
        clouds.consumer('one', 'INSTANCE', (1, 'V', 2), (1, 'M', 8)),
        clouds.consumer('two', None, (1, 'V', 1)),
        clouds.consumer('three', 'INSTANCE', (2, 'V', 4)),
        clouds.consumer('four', 'INSTANCE', (2, 'V', 5)),
    ),
    drained=(),
    moving=(),
    options=clouds.Options(),
)
UUIDS = {name: worlds.uuid_of(name) for name in ('one', 'two', 'three', 'four', 'A')}
ROOTS = {host.name: host.uuid for host in CASE.empty.hosts}


class TestCase(base.TestCase):
    module = 'placement.cmd.manage'

    def drain(self, *arguments: str, status: int = 0) -> subprocess.CompletedProcess:
        return self.run_with_status(status, 'drain', *arguments)


@where.only_on('sqlite', reason='The tests of the functions run on each database.')
class CloudTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        models.metadata.create_all(self.engine)
        sync.sync_resource_classes()
        sync.sync_traits()
        rows.fill(self.engine, CASE)

    def document(self, *arguments: str, status: int = 0) -> Any:
        done = self.drain(*arguments, '--format', 'json', status=status)
        self.assertEqual('', done.stderr)
        return json.loads(done.stdout)

    def test_results(self):
        fits = {
            'trees': [{'uuid': ROOTS['small'], 'name': 'small'}],
            'verdict': 'fits',
            'reason': None,
            'consumers': 2,
            'placed': 2,
            'missing': {},
            'unplaced': [],
        }
        self.assertEqual([fits], self.document('small'))
        self.assertEqual([fits], self.document(ROOTS['small'], 'small'))
        unplaced = {'consumer': UUIDS['three'], 'type': 'INSTANCE', 'resources': {'VCPU': 4}}
        impossible = {
            'trees': [{'uuid': ROOTS['large'], 'name': 'large'}],
            'verdict': 'impossible',
            'reason': 'sum',
            'consumers': 2,
            'placed': 1,
            'missing': {'VCPU': 4},
            'unplaced': [{**unplaced, 'nowhere': False}],
        }
        self.assertEqual([impossible], self.document('large', status=1))
        self.assertEqual([impossible, fits], self.document('--each', status=1))
        (both,) = self.document('small', 'large', status=1)
        self.assertEqual(['large', 'small'], [tree['name'] for tree in both['trees']])
        self.assertEqual(('impossible', 'sum', 4), (both['verdict'], both['reason'], 3 + 1))
        (empty,) = self.document('--each', 'child_of_none')
        self.assertEqual(('fits', 0), (empty['verdict'], empty['consumers']))

    def test_single_consumers(self):
        (one,) = self.document('--consumer', UUIDS['three'].upper(), UUIDS['two'])
        self.assertEqual(['large', 'small'], [tree['name'] for tree in one['trees']])
        self.assertEqual((2, 'fits'), (one['placed'], one['verdict']))
        done = self.drain('--consumer', UUIDS['four'])
        self.assertIn('The consumer can move.', done.stdout)

    def test_conditions(self):
        (one,) = self.document('small', '--where', f'member_of=!{UUIDS["A"]}')
        self.assertEqual('fits', one['verdict'])
        for options in (
            ['--where', 'root_required=HW_CPU_X86_AVX2'],
            ['--where', 'required=HW_CPU_X86_AVX2'],
        ):
            (one,) = self.document('small', *options, status=1)
            self.assertEqual('nowhere', one['reason'])
        (one,) = self.document('large', '--same-aggregates', status=1)
        self.assertEqual(('nowhere', 0), (one['reason'], one['placed']))
        self.assertEqual('fits', self.document('small', '--same-aggregates')[0]['verdict'])
        self.assertEqual('fits', self.document('small', '--same-traits', 'HW_*')[0]['verdict'])

    def test_sentences(self):
        for arguments, status, sentence in (
            (['small'], 0, 'small can be drained.'),
            (['--each', 'small'], 0, 'Each of 1 host can be drained.'),
            (
                ['large'],
                1,
                'large cannot be drained: the free capacity of the other trees is too small.',
            ),
            (
                ['--each'],
                1,
                '1 of 2 hosts can be drained; large lacks room for 1 consumer (4 VCPU).',
            ),
        ):
            with self.subTest(arguments):
                done = self.drain(*arguments, status=status)
                self.assertEqual(sentence, done.stdout.splitlines()[-1])

    def test_names(self):
        path = self.folder / 'names.json'
        path.write_text(json.dumps([{'ID': UUIDS['three'], 'Name': 'web-3'}]))
        done = self.drain('large', '--names', str(path), status=1)
        self.assertRegex(done.stdout, rf'\| web-3 {UUIDS["three"]} +\| INSTANCE \| 4 VCPU')
        names = self.drain('large', '--names', str(path), '--format', 'json', status=1)
        self.assertNotIn('web-3', names.stdout)

    def test_moves(self):
        path = self.folder / 'moves.jsonl'
        self.document('--each', 'small', '--moves', str(path))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        self.assertEqual([UUIDS['one'], UUIDS['two']], [line['consumer'] for line in lines])
        self.assertEqual(
            {
                'consumer': UUIDS['two'],
                'from': [ROOTS['small']],
                'to': ROOTS['child_of_none'],
                'microversion': '1.37',
                'body': {
                    'allocations': {ROOTS['child_of_none']: {'resources': {'VCPU': 1}}},
                    'project_id': 'projects-2',
                    'user_id': 'users-1',
                    'consumer_generation': 1,
                },
            },
            lines[1],
        )
        self.assertEqual('INSTANCE', lines[0]['body']['consumer_type'])
        done = self.drain('--each', '--moves', str(path), status=2)
        self.assertIn('--moves with --each requires a single tree.', done.stderr)

    def test_unknown_names(self):
        for arguments, sentence in (
            (['none'], "No resource provider has the name or the UUID 'none'."),
            (['--consumer', 'none'], 'The consumer none does not exist or has no allocations.'),
            (
                ['small', '--where', 'required=CUSTOM_NONE'],
                '--where is not valid: No such trait: CUSTOM_NONE.',
            ),
        ):
            done = self.drain(*arguments, status=2)
            self.assertEqual(('', f'Error: {sentence}\n'), (done.stdout, done.stderr))

    def test_assumptions(self):
        change = 'set:VCPU.total=9?name=child_of_none'
        (one,) = self.document('large', '--assume', change)
        self.assertEqual(('fits', [change], {}), (one['verdict'], one['assumptions'], one['over']))
        done = self.drain('large', '--assume', change)
        self.assertIn(f'Assumed: {change}\n', done.stdout)
        # Copies of a tree have no consumers, and a tree can be gone.
        options = ('--assume', 'copies:2*large', '--assume', 'without:child_of_none')
        results = self.document('--each', *options)
        self.assertEqual(
            [('large', 2, 'fits'), ('small', 2, 'fits')],
            [(one['trees'][0]['name'], one['consumers'], one['verdict']) for one in results],
        )
        (one,) = self.document('large-copy-1', *options)
        self.assertEqual(0, one['consumers'])
        options = ('--assume', 'without:large', '--assume', 'without:child_of_none')
        (one,) = self.document('--consumer', UUIDS['one'], *options, status=1)
        self.assertEqual(('impossible', 'nowhere'), (one['verdict'], one['reason']))
        done = self.drain('large', '--assume', 'without:large', status=2)
        self.assertIn("No resource provider has the name or the UUID 'large'.", done.stderr)

    def test_damaged_data(self):
        with self.engine.begin() as conn:
            consumers = models.consumers
            conn.execute(consumers.delete().where(consumers.c.uuid == UUIDS['four']))
        done = self.drain('large', status=2)
        self.assertIn('`placement-manage audit --only orphan-allocation`', done.stderr)
        self.drain('small')
        with self.engine.begin() as conn:
            conn.execute(models.projects.delete())
            conn.execute(models.resource_providers.insert(), {'uuid': ROOTS['small'][::-1]})
        done = self.drain('small')
        self.assertIn('lacks the resource providers without a root (1)', done.stderr)
        done = self.drain('small', '--moves', str(self.folder / 'moves'), status=2)
        self.assertIn('`placement-manage audit --only owner-missing`', done.stderr)


@where.only_on('sqlite', reason='The tests of the functions run on each database.')
class NewDatabaseTest(TestCase):
    """The schema exists, but the service has not yet started, so no resource class exists."""

    def test_each(self):
        models.metadata.create_all(self.engine)
        self.assertEqual('[]\n', self.drain('--each', '--format', 'json').stdout)
        done = self.drain('host', status=2)
        self.assertIn("No resource provider has the name or the UUID 'host'.", done.stderr)


@where.only_on('sqlite', reason='The tests of the functions run on each database.')
class RefusalTest(TestCase):
    """What is not valid is refused with one sentence, before the database is read."""

    def test_refusals(self):
        for arguments, sentence in (
            ([], 'The command needs PROVIDER, --each, or --consumer.'),
            (['host', '--consumer', 'one'], '--consumer excludes PROVIDER and --each.'),
            (['--each', '--consumer', 'one'], '--consumer excludes PROVIDER and --each.'),
            (['host', '--where', 'resources=VCPU:1'], '--where accepts member_of, required'),
            (['host', '--where', 'required1=A'], 'but not required1.'),
            (['host', '--where', 'member_of=x'], '--where is not valid: '),
            (['host', '--moves', '-'], 'standard output contains the result'),
            (['host', '--moves', '/nowhere/moves'], 'The file /nowhere/moves cannot be written'),
        ):
            done = self.drain(*arguments, status=2)
            self.assertEqual('', done.stdout)
            (line,) = done.stderr.splitlines()
            self.assertTrue(line.startswith('Error: '), line)
            self.assertIn(sentence, line)
