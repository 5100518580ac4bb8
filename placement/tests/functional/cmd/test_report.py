"""The command `placement-manage report`. Damaged worlds compare its data with the API."""

import base64
import collections
import hashlib
import html
from html import parser
import json
from pathlib import Path
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

from placement import db_api
from placement.db.sqlalchemy import migration, models
from placement.tests import where, worlds
from placement.tests.functional import base, in_process
from placement.tests.functional.cmd import base as program_base
from placement.tests.worlds import rows

HOSTILE = '</script><img src=x onerror=alert(1)>&amp;"\''
DOCUMENT = r'<script type="application/json" id="{}">(.*?)</script>'
# From the fullest to the emptiest tree.
WORLD = worlds.World.of("""
over[V:4]
full[V: total 4 reserved 1 allocation_ratio 2.0, D:10] {T1 T2} @A,B
  b[M:8]
  a[M:8]
SS[D:100] {SHARE} @A
off[V:16] {DISABLED} @B
spare[V:1]
""")


CONSUMERS = [
    worlds.Consumer('one', {'over': {'VCPU': 6}}, project='p1'),
    worlds.Consumer(
        'two', {'full': {'VCPU': 2}, 'b': {'MEMORY_MB': 1}, 'SS': {'DISK_GB': 20}}, project='p2'
    ),
    worlds.Consumer('three', {'full': {'VCPU': 4}, 'SS': {'DISK_GB': 30}}, 'MIGRATION', 'p1'),
    worlds.Consumer('four', {'off': {'VCPU': 1}}, None, 'p2'),
]


class _Parser(parser.HTMLParser):
    """Collects the elements of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))


class TestCase(base.WorldTestCase, in_process.Commands):
    def fill(self, world: worlds.World, *consumers: worlds.Consumer) -> None:
        rows.fill(db_api.get_placement_engine(), world.claimed(*consumers))

    def report(self, *options: str) -> str:
        return self.manage(0, 'report', '-', *options).stdout

    def data(self, *options: str, id_: str = 'data') -> Any:
        return json.loads(re.search(DOCUMENT.format(id_), self.report(*options))[1])


@where.only_on('sqlite', reason='Damaged worlds execute the same statements.')
class ContentTest(TestCase):
    def setUp(self) -> None:
        super().setUp()
        self.fill(WORLD, *CONSUMERS)
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)

    def limit(self, name: str, number: int) -> None:
        self.useFixture(fixtures.MockPatch(f'placement.admin.report.{name}', number))

    def test_trees(self):
        found = self.data()
        names, providers = found['providers']['name'], found['providers']
        self.assertEqual(['over', 'full', 'a', 'b', 'SS', 'off', 'spare'], names)
        self.assertEqual([-1, -1, 0, 0, -1, -1, -1], providers['parent'])
        self.assertEqual([1, 3, 1, 1, 1], found['trees']['size'])
        self.assertEqual([1, 2, 2, 1, 0], found['trees']['consumers'])
        self.assertEqual([0, 0, 0, 1, 0], found['trees']['disabled'])
        self.assertIsNone(found['trees']['drain'])
        fullest = [found['classes'][n] if n >= 0 else '' for n in found['trees']['fullest']]
        self.assertEqual(['VCPU', 'VCPU', 'DISK_GB', 'VCPU', 'VCPU'], fullest)
        self.assertEqual([[], [0], [], [], []], found['trees']['sharing'])
        self.assertEqual(
            {'name': ['SS'], 'position': [4], 'trees': [1]}, found['sharing_providers']
        )

    def test_sums(self):
        """What claims can use is free: neither a disabled host, nor a negative amount."""
        found = self.data()
        totals = found['class_totals']
        self.assertEqual(['VCPU', 'MEMORY_MB', 'DISK_GB'], found['classes'])
        self.assertEqual([4 + 6 + 16 + 1, 16, 110], totals['capacity'])
        self.assertEqual([13, 1, 50], totals['used'])
        self.assertEqual([1, 15, 60], totals['free'])
        part = found['parts']['trait']
        self.assertEqual(['CUSTOM_T1', 'CUSTOM_T2'], sorted(part['name'])[1:3])
        project = found['parts']['project']
        self.assertEqual(['p1', 'p2'], sorted(project['name']))

    def test_limits(self):
        self.limit('page.TREES', 1)
        self.limit('page.LINKS', 1)
        self.limit('page.PROJECTS', 1)
        self.limit('page.CONSUMERS', 1)
        text = ' '.join(self.report().split())
        self.assertIn('The map and the table show the fullest 1 of 5 trees.', text)
        found = self.data()
        self.assertEqual(['over'], found['providers']['name'])
        # The sums include all trees.
        self.assertEqual([13, 1, 50], found['class_totals']['used'])
        for kind, number in (('aggregate', 2), ('trait', 4), ('project', 2)):
            part = found['parts'][kind]
            self.assertEqual((1, number), (len(part['name']), part['all']), kind)
        self.assertEqual([worlds.uuid_of('one')], self.data(id_='consumers')['name'])

    def test_consumers(self):
        found = self.data(id_='consumers')
        columns = zip(found['name'], found['type'], found['amounts'], strict=True)
        shown = [
            (name, found['types'][type_], found['amount_sets'][amounts])
            for name, type_, amounts in columns
        ]
        one, two, three, four = (one.uuid for one in CONSUMERS)
        self.assertEqual([1, 2, 2, 1, 0], found['size'])
        self.assertEqual(
            [
                (one, 'INSTANCE', [['VCPU', 6]]),
                (three, 'MIGRATION', [['VCPU', 4]]),
                (two, 'INSTANCE', [['VCPU', 2], ['MEMORY_MB', 1]]),
                (three, 'MIGRATION', [['DISK_GB', 30]]),
                (two, 'INSTANCE', [['DISK_GB', 20]]),
                (four, 'unknown', [['VCPU', 1]]),
            ],
            shown,
        )

    def test_trees_that_can_be_drained(self):
        drains = self.data('--drain')['trees']['drain']
        self.assertEqual('', drains[4])
        expected = collections.Counter(
            one['verdict'] for one in self.document(1, 'drain', '--each')
        )
        found = collections.Counter(text.partition(':')[0] for text in drains if text)
        self.assertEqual({'yes': expected['fits'], 'no': expected['impossible']}, {**found})
        self.assertEqual('no: lacks 6 VCPU', drains[0])

    def test_the_verdict(self):
        """It counts hosts and pools, without disabled trees, as the legend does."""
        two = ['One=resources=VCPU:1', 'none=resources=VCPU:99&required=!COMPUTE_STATUS_DISABLED']
        options = [word for one in two for word in ('--headroom', one)]
        self.assertEqual(
            [
                ('1 host over capacity', '#map', '6'),
                ('1 host above 90 %', '#map', '5'),
                ('1 of 3 hosts can be drained', '#providers', None),
                ('16 more of One fit', '#headroom', None),
                ('no more of none fits', '#headroom', None),
                ('1 finding', '#findings', None),
            ],
            self.verdict('--drain', *options),
        )
        page = ' '.join(self.report(*options).split())
        limit = 'The limit is VCPU: 3 of 3 trees lack it for one more.'
        self.assertIn(f'<dt>none</dt><dd>0 fit. {limit}</dd>', page)
        self.fill(worlds.World.of('SS[D: total 9 used 10] {SHARE} @A\nH[V: total 10 used 9]'))
        self.assertEqual('1 pool over capacity', self.verdict()[0][0])
        self.assertEqual('no host above 90 %', self.verdict()[1][0])
        self.fill(worlds.World.of('\n'.join(f'H{n}[V: total 100 used 91]' for n in range(2))))
        self.assertEqual('No host over capacity', self.verdict()[0][0])
        self.assertEqual('2 hosts above 90 %', self.verdict()[1][0])

    def verdict(self, *options: str) -> list[tuple[str, str, str | None]]:
        """Return the text, the target, and the band of each part of the verdict."""
        text = self.report(*options).partition('id="verdict"')[2].partition('</p>')[0]
        links = re.findall(r'<a href="(.*?)"(?: data-band="(\d)")?>(.*?)</a>', text)
        return [(html.unescape(shown), target, band or None) for target, band, shown in links]

    def test_names(self):
        path = self.folder / 'names.json'
        known = [(worlds.uuid_of('A'), 'north'), (worlds.uuid_of('one'), 'web-1')]
        path.write_text(json.dumps([{'ID': uuid, 'Name': name} for uuid, name in known]))
        zone, one = (f'{name} {uuid}' for uuid, name in known)
        found = self.data('--names', str(path))
        self.assertIn(zone, found['aggregates'])
        self.assertIn(zone, found['parts']['aggregate']['name'])
        self.assertIn(one, self.data('--names', str(path), id_='consumers')['name'])

    def test_facts(self):
        text = ' '.join(self.report().split())
        counts = dict(re.findall(r'<dt>([\w ]+)</dt><dd>([\d,]+)</dd>', text))
        self.assertEqual(
            ['5', '7', '4', '7', '2'],
            [
                counts[name]
                for name in ('Provider trees', 'Providers', 'Consumers', 'Allocations', 'Projects')
            ],
        )
        self.assertIn('<code>sqlite://', text)
        self.assertIn('<code>over-capacity</code>', text)

    def test_the_policy_names_the_style_sheet_and_the_script(self):
        text = self.report()
        policy = next(
            attributes['content']
            for _, attributes in _Parser(text).elements
            if attributes.get('http-equiv') == 'Content-Security-Policy'
        )
        self.assertIn("default-src 'none'", policy)
        for start, end in (('<style>', '</style>'), ('<script>', '</script>')):
            content = text.partition(start)[2].partition(end)[0]
            digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
            self.assertIn(f"'sha256-{digest}'", policy)

    def test_the_page_has_no_address_and_no_inline_style_or_handler(self):
        text = self.report()
        for tag, attributes in _Parser(text).elements:
            self.assertNotIn('style', attributes, tag)
            self.assertFalse([name for name in attributes if name.startswith('on')], tag)
            for name in ('src', 'href', 'action'):
                self.assertEqual('#', (attributes.get(name) or '#')[0], tag)
        scripts = text.replace('http://www.w3.org/2000/svg', '')
        self.assertNotRegex(scripts, r'https?://|@import|url\(')

    def test_hostile_names_are_text(self):
        plain = [tag for tag, _ in _Parser(self.report()).elements]
        with db_api.get_placement_engine().begin() as conn:
            for table, column, old, new in (
                (models.resource_providers, 'name', 'over', HOSTILE),
                (models.resource_providers, 'name', 'spare', 'a\u202eb\u2028c\x1b'),
                (models.resource_providers, 'name', 'off', '  '),
                (models.resource_classes, 'name', 'MEMORY_MB', HOSTILE),
                (models.traits, 'name', 'CUSTOM_T1', HOSTILE),
                (models.projects, 'external_id', 'p1', HOSTILE),
            ):
                update = sa.update(table).where(table.c[column] == old)
                conn.execute(update.values({column: new}))
        text = self.report()
        self.assertEqual(plain, [tag for tag, _ in _Parser(text).elements])
        found, data = self.data(), re.search(DOCUMENT.format('data'), text)[1]
        self.assertNotRegex(data, '[<>&]')
        names = found['providers']['name']
        self.assertEqual([HOSTILE, "'  '", 'a\\u202eb\\u2028c\\x1b'], [names[0], *names[-2:]])

    def test_files(self):
        page = self.folder / 'report.html'
        self.manage(0, 'report', str(page))
        self.assertEqual([page], list(self.folder.iterdir()))
        self.assertEqual(0o600, stat.S_IMODE(page.stat().st_mode))
        for arguments, sentence in (
            ((str(self.folder / 'missing' / 'report.html'),), 'cannot be written: No such file'),
            (('-', '--names', str(self.folder / 'none')), 'none cannot be read: No such file'),
        ):
            self.assertRefused(sentence, 'report', *arguments)

    def test_an_empty_database(self):
        self.fill(worlds.World.of(''))
        found = self.data()
        self.assertEqual([], found['classes'])
        self.assertEqual([], found['trees']['size'])

    def test_damaged_rows(self):
        numbers = {'total': 4, 'reserved': 9, 'min_unit': 1, 'max_unit': 2**31 - 1, 'step_size': 1}
        with db_api.get_placement_engine().begin() as conn:
            conn.execute(models.inventories.delete())
            inventory = {'resource_provider_id': 7, 'resource_class_id': 4711, **numbers}
            conn.execute(models.inventories.insert(), {**inventory, 'allocation_ratio': 1.0})
            conn.execute(models.projects.delete())
            conn.execute(models.allocations.update().values(resource_class_id=4711))
        found = self.data()
        self.assertIn('unknown class 4711', found['classes'])
        projects = {'unknown project 1', 'unknown project 2'}
        self.assertEqual(projects, {*found['parts']['project']['name']})
        self.assertEqual([-5], found['shapes']['capacity'])
        sets = self.data(id_='consumers')['amount_sets']
        self.assertIn([['unknown class 4711', 6]], sets)


class ServerTest(TestCase):
    def test_the_number_of_statements_does_not_depend_on_the_data(self):
        numbers = []
        for size in (3, 9):
            world = worlds.World.of('\n'.join(f'H{n}[V:8] @A' for n in range(size)))
            self.fill(
                world, *(worlds.Consumer(f'{n}', {f'H{n}': {'VCPU': 1}}) for n in range(1, size))
            )
            with self.counted() as counts:
                self.report()
            numbers.append(counts['all'])
        self.assertEqual(*numbers)


class OutputTest(program_base.TestCase):
    module = 'placement.cmd.manage'

    def setUp(self) -> None:
        super().setUp()
        self.folder = Path(self.useFixture(fixtures.TempDir()).path)
        self.page = self.folder / 'report.html'

    def test_a_database_without_tables_and_then_without_rows(self):
        done = self.run_command('report', str(self.page))
        self.assertEqual(2, done.status)
        self.assertIn('placement-manage db sync', done.stderr)
        self.assertFalse(self.page.exists())
        migration.upgrade('head')
        done = self.run_command('report', str(self.page))
        self.assertEqual((0, ''), (done.status, done.stderr))
        text, url = self.page.read_text(), sa.make_url(self.database.url)
        self.assertIn(f'{url.database}</code>', text)
        if url.password:
            self.assertNotIn(str(url.password), text)

    @where.only_on('sqlite', reason='The output does not depend on the database server.')
    def test_the_disk_is_full_and_an_interrupt(self):
        migration.upgrade('head')
        self.page.write_text('an older page')
        # The measurement of the coverage would write a file, too.
        environment = self.environment({'COVERAGE_PROCESS_START': ''})
        # Without a connection, SQLite would have to write the index of its log.
        with db_api.snapshot() as conn:
            conn.scalar(sa.select(sa.func.count()).select_from(models.traits))
            done = subprocess.run(
                [sys.executable, '-m', self.module, 'report', str(self.page)],
                env=environment,
                capture_output=True,
                text=True,
                preexec_fn=limit_files,
            )
        self.assertEqual(2, done.returncode)
        self.assertIn('cannot be written: File too large', done.stderr)
        self.assertEqual('an older page', self.page.read_text())
        with Path('/dev/full').open('wb') as full:
            process = self.start('report', '-', interrupted=False, stdout=full)
        with process.stderr as stderr:
            self.assertIn(b'No space left on device', stderr.read())
        self.assertEqual(2, process.wait())
        # A forked command runs for about 0.2 seconds.
        for delay in (0.02, 0.05, 0.1, 0.15, 0.2):
            process = self.start('report', str(self.page))
            time.sleep(delay)
            process.send_signal(signal.SIGINT)
            process.wait()
            process.stderr.close()
            # The command may have finished before the signal.
            self.assertEqual([self.page], [*self.folder.glob('*')])


def limit_files() -> None:
    """Limit the size of files, so that writing the page fails."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000))
