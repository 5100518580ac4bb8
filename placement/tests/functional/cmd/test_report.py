"""The command `placement-manage report`: what the page contains, and how it is written."""

import collections
import itertools
import json
import os
import pathlib
import re
import resource
import signal
import stat
import subprocess
import sys
import time
from typing import Any

import fixtures
import sqlalchemy as sa

from placement import direct
from placement.admin import names, progress
from placement.admin.report import make
from placement.db import engine
from placement.db.sqlalchemy import migration, models
from placement.tests import statements, where
from placement.tests.functional.cmd import base
from tools import demo_cloud


class TestCase(base.TestCase):
    module = 'placement.cmd.manage'

    def setUp(self) -> None:
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.page = self.folder / 'report.html'

    def data(self, page: str, id_: str = 'data') -> dict[str, Any]:
        """A JSON document in a page."""
        text = re.search(rf'<script type="application/json" id="{id_}">(.*?)</script>', page)
        return json.loads(text[1])

    def assertSentence(self, sentence: str, done: subprocess.CompletedProcess) -> None:
        self.assertEqual(2, done.returncode)
        self.assertRegex(done.stderr, rf'\A.*{sentence}.*\n\Z')


class ContentTest(TestCase):
    def test_the_page_contains_what_the_api_returns(self):
        self.register_demo_cloud()
        done = self.run_command('report', str(self.page))
        self.assertEqual((0, '', ''), (done.returncode, done.stdout, done.stderr))
        self.assertEqual([self.page], list(self.folder.iterdir()))
        self.assertEqual(0o600, stat.S_IMODE(self.page.stat().st_mode))
        found = self.data(self.page.read_text())
        with direct.PlacementDirect(self.config, latest_microversion=True) as client:
            providers = client.get('/resource_providers').json()['resource_providers']
            self.assertEqual(
                {one['uuid']: (one['name'], one['generation']) for one in providers},
                dict(
                    zip(
                        found['providers']['uuid'],
                        zip(
                            found['providers']['name'],
                            found['providers']['generation'],
                            strict=True,
                        ),
                        strict=True,
                    )
                ),
            )
            for provider in self.providers(found):
                self.compare(client, provider)
            self.compare_projects(client, found)
            self.compare_consumers(client, found, self.data(self.page.read_text(), 'consumers'))
        self.check_counts(self.page.read_text(), found)

    def providers(self, found: dict[str, Any]) -> list[dict[str, Any]]:
        """The providers of a document, with the properties of the API."""
        columns, shapes = found['providers'], found['shapes']
        inventories = iter(zip(*found['inventories'].values(), strict=True))
        result = []
        for position, uuid in enumerate(columns['uuid']):
            own = [next(inventories) for _ in range(columns['inventories'][position])]
            names = [found['classes'][shapes['class'][shape]] for shape, _ in own]
            numbers = [
                {name: shapes[name][shape] for name in shapes if name not in ('class', 'capacity')}
                for shape, _ in own
            ]
            result.append(
                {
                    'uuid': uuid,
                    'inventories': dict(zip(names, numbers, strict=True)),
                    'usages': dict(zip(names, (used for _, used in own), strict=True)),
                    'traits': [
                        found['traits'][trait]
                        for trait in found['trait_sets'][columns['traits'][position]]
                    ],
                    'aggregates': [
                        found['aggregates'][aggregate]
                        for aggregate in found['aggregate_sets'][columns['aggregates'][position]]
                    ],
                }
            )
        return result

    def compare(self, client: Any, provider: dict[str, Any]) -> None:
        for name in ('inventories', 'usages', 'traits', 'aggregates'):
            document = client.get(f'/resource_providers/{provider["uuid"]}/{name}').json()
            expected = document[name]
            if isinstance(expected, list):
                expected = sorted(expected)
            self.assertEqual(expected, provider[name])

    def compare_projects(self, client: Any, found: dict[str, Any]) -> None:
        part = found['parts']['project']
        self.assertEqual({'research', 'telecom', 'tools', 'web-shop'}, set(part['name']))
        for position, project in enumerate(part['name']):
            rows = zip(*(part['totals'][name] for name in ('part', 'class', 'used')), strict=True)
            self.assertEqual(
                client.get(f'/usages?project_id={project}&consumer_type=all').json()['usages'][
                    'all'
                ],
                {
                    found['classes'][class_]: used
                    for owner, class_, used in rows
                    if owner == position
                }
                | {'consumer_count': part['count'][position]},
            )

    def compare_consumers(self, client: Any, found: dict[str, Any], listed: dict[str, Any]) -> None:
        """Compare the consumers of each tree with the allocations of its providers."""
        columns = ('name', 'type', 'project', 'amounts')
        consumers = iter(zip(*(listed[name] for name in columns), strict=True))
        uuids = iter(found['providers']['uuid'])
        for size, count in zip(found['trees']['size'], listed['size'], strict=True):
            expected: dict[str, collections.Counter[str]] = collections.defaultdict(
                collections.Counter
            )
            for uuid in itertools.islice(uuids, size):
                document = client.get(f'/resource_providers/{uuid}/allocations').json()
                for consumer, allocation in document['allocations'].items():
                    expected[consumer] += collections.Counter(allocation['resources'])
            shown = list(itertools.islice(consumers, count))
            self.assertEqual(
                expected, {one[0]: dict(listed['amount_sets'][one[3]]) for one in shown}
            )
            for uuid, type_, project, _ in shown:
                stored = client.get(f'/allocations/{uuid}').json()
                self.assertEqual(
                    (stored['consumer_type'], stored['project_id']),
                    (listed['types'][type_], listed['projects'][project]),
                )

    def check_counts(self, page: str, found: dict[str, Any]) -> None:
        consumers = dict(zip(self.roots(found), found['trees']['consumers'], strict=True))
        self.assertEqual(
            (8, 2, 10, 0),
            tuple(consumers[name] for name in ('compute-01', 'gpu-01', 'storage-02', 'compute-08')),
        )
        counts = dict(re.findall(r'<dt>([\w ]+)</dt><dd>([\d,]+)</dd>', page))
        self.assertEqual(
            {
                'Provider trees': '18',
                'Providers': '36',
                'Consumers': '53',
                'Allocations': '178',
                'Projects': '4',
                'Findings': '1',
            },
            {name: count for name, count in counts.items() if name != 'Placement'},
        )

    def roots(self, found: dict[str, Any]) -> list[str]:
        columns = found['providers']
        return [
            name
            for name, parent in zip(columns['name'], columns['parent'], strict=True)
            if parent == -1
        ]

    def test_names(self):
        self.register_demo_cloud()
        path = self.folder / 'names.json'
        rows = [(demo_cloud.uuid_of(name), f'the {name}') for name in ('az-north', 'metal-1')]
        path.write_text(json.dumps([{'ID': uuid, 'Name': name} for uuid, name in rows]))
        done = self.run_command('report', '-', '--names', str(path))
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        found = self.data(done.stdout)
        zone, consumer = (f'{name} {uuid}' for uuid, name in rows)
        self.assertIn(zone, found['aggregates'])
        self.assertIn(zone, found['parts']['aggregate']['name'])
        self.assertIn(consumer, self.data(done.stdout, 'consumers')['name'])
        done = self.run_command('report', str(self.page), '--names', str(self.folder / 'none'))
        self.assertSentence('none cannot be read: No such file or directory', done)
        self.assertFalse(self.page.exists())

    def test_trees_that_can_be_drained(self):
        self.register_demo_cloud()
        data = self.data(self.run_command('report', '-').stdout)
        self.assertIsNone(data['trees']['drain'])
        data = self.data(self.run_command('report', '-', '--drain').stdout)
        done = self.run_command('drain', '--each', '--format', 'json')
        expected = collections.Counter(one['verdict'] for one in json.loads(done.stdout))
        found = collections.Counter(
            text.partition(':')[0] for text in data['trees']['drain'] if text
        )
        self.assertEqual({'yes': expected['fits'], 'no': expected['impossible']}, {**found})

    def test_an_empty_database(self):
        migration.upgrade('head')
        done = self.run_command('report', '-')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        self.assertEqual(0, self.data(done.stdout)['all_trees'])

    def test_damaged_rows(self):
        migration.upgrade('head')
        with self.engine.begin() as conn:
            conn.execute(
                sa.insert(models.resource_providers), [{'id': 1, 'uuid': 'rp', 'name': None}]
            )
            numbers = {'total': 4, 'reserved': 9, 'min_unit': 1, 'max_unit': 4, 'step_size': 1}
            inventory = {'resource_provider_id': 1, 'resource_class_id': 4711, **numbers}
            conn.execute(sa.insert(models.inventories), [{**inventory, 'allocation_ratio': 1.0}])
            conn.execute(
                sa.insert(models.consumers), [{'uuid': 'c', 'project_id': 7, 'user_id': 7}]
            )
            columns = ('resource_provider_id', 'resource_class_id', 'consumer_id', 'used')
            rows = ((1, 4711, 'c', 2), (1, 4711, 'missing', 2), (99, 4711, 'c', 2))
            conn.execute(
                sa.insert(models.allocations),
                [dict(zip(columns, row, strict=True)) for row in rows],
            )
        done = self.run_command('report', '-')
        self.assertEqual((0, ''), (done.returncode, done.stderr))
        found = self.data(done.stdout)
        self.assertEqual(['unknown class 4711'], found['classes'])
        self.assertEqual(['unknown project 7'], found['parts']['project']['name'])
        listed = self.data(done.stdout, 'consumers')
        self.assertEqual(['c', 'missing'], listed['name'])
        self.assertEqual(['unknown project 7', 'unknown project'], listed['projects'])
        self.assertEqual([['unknown class 4711', 2]], listed['amount_sets'][0])
        self.assertEqual(['unknown'], listed['types'])
        self.assertEqual(([''], ['rp']), (found['providers']['name'], found['providers']['uuid']))
        self.assertIn('<code>unknown-class</code>', done.stdout)

    def test_the_number_of_statements_does_not_depend_on_the_data(self):
        migration.upgrade('head')
        numbers = []
        for first in (1, 1000):
            rows = [{'uuid': f'u{first + i}', 'name': f'n{first + i}'} for i in range(first)]
            with self.engine.begin() as conn:
                conn.execute(sa.insert(models.resource_providers), rows)
            with (
                statements.recorded(self.engine) as sent,
                engine.snapshot() as conn,
            ):
                make.contents(conn, 'database', 'incomplete', progress.silent, names.Names())
            numbers.append(len(sent))
        self.assertEqual(numbers[0], numbers[1])

    def test_the_password_is_not_in_the_page(self):
        migration.upgrade('head')
        done = self.run_command('report', str(self.page))
        self.assertEqual(0, done.returncode, done.stderr)
        text = self.page.read_text()
        url = sa.make_url(self.database.url)
        self.assertIn(f'{url.database}</code>', text)
        if url.password:
            self.assertNotIn(str(url.password), text)

    def test_a_database_without_tables(self):
        done = self.run_command('report', str(self.page))
        self.assertSentence('placement-manage db sync', done)
        self.assertFalse(self.page.exists())


@where.only_on('sqlite', reason='The output does not depend on the database server.')
@where.only_on('sqlite', reason='No SQL statement is executed.')
class OutputTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        migration.upgrade('head')

    def test_a_directory_that_does_not_exist(self):
        done = self.run_command('report', str(self.folder / 'missing' / 'report.html'))
        self.assertSentence('cannot be written: No such file or directory', done)

    def test_the_disk_is_full(self):
        self.page.write_text('an older page')
        # The measurement of the coverage would write a file, too.
        changes = {
            'OS_PLACEMENT_DATABASE__CONNECTION': self.database.url,
            'COVERAGE_PROCESS_START': '',
        }
        done = subprocess.run(
            [sys.executable, '-m', self.module, 'report', str(self.page)],
            env=os.environ | changes,
            capture_output=True,
            text=True,
            preexec_fn=limit_files,
        )
        self.assertSentence('cannot be written: File too large', done)
        self.assertEqual([self.page], [p for p in self.folder.iterdir() if p.suffix == '.html'])
        self.assertEqual('an older page', self.page.read_text())

    def test_standard_output_cannot_be_written(self):
        with pathlib.Path('/dev/full').open('wb') as full:
            process = self.start('report', '-', interrupted=False, stdout=full)
        with process.stderr as stderr:
            done = subprocess.CompletedProcess((), process.wait(), '', stderr.read().decode())
        self.assertSentence('No space left on device', done)

    def test_a_closed_pipe(self):
        reader, closed = os.pipe()
        os.close(reader)
        process = self.start('report', '-', interrupted=False, stdout=closed)
        os.close(closed)
        with process.stderr as stderr:
            self.assertEqual((141, b''), (process.wait(), stderr.read()))

    def test_an_interrupt_leaves_nothing_behind(self):
        # A forked command runs for about 0.2 seconds.
        for delay in (0.02, 0.05, 0.1, 0.15, 0.2):
            process = self.start('report', str(self.page))
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            process.wait()
            process.stderr.close()
            # The command may have finished before the signal.
            self.assertEqual([], [path for path in self.folder.iterdir() if path != self.page])


def limit_files() -> None:
    """Limit the size of files, so that writing the page fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
