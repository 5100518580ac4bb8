"""The page of `placement-manage report` with hostile names, and with the data of 10,000 hosts."""

from collections.abc import Mapping, Sequence

import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.tests import worlds
from placement.tests.functional import base, in_process
from placement.tests.functional.browser import DESKTOP, PHONE, PageTestCase
from placement.tests.worlds import rows

HOSTS, CONSUMERS = 10_000, 30
# The texts of the elements that a selector selects and that are not displayed completely.
CUT = """
return [...document.querySelectorAll(arguments[0])]
  .filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight)
  .map((one) => one.textContent)
"""
# Keeps the texts that the map draws.
RECORD = """
window.drawn = [];
const draw = CanvasRenderingContext2D.prototype.fillText;
CanvasRenderingContext2D.prototype.fillText = function (text, ...position) {
  window.drawn.push(text);
  draw.call(this, text, ...position);
};
"""
HOSTILE = (
    '</script><img src=x onerror=document.title=1>',
    '"><svg onload=document.title=1>',
    "${document.title=1}{{7*7}}'",
    '<!-- <script>',
    'line\u2028separator',
    'right\u202eto left',
    'אבג',
    '  ',
    'a' * 200,
)
IDS = worlds.World.of('').ids.classes
# The traits that get the names.
TRAITS = worlds.EXISTING_TRAITS[: len(HOSTILE)]


class PageTest(PageTestCase, base.WorldTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.page = self.folder / 'report.html'

    def write(
        self,
        world: worlds.World,
        names: Mapping[sa.Table, Mapping[str, str]] | None = None,
        options: Sequence[str] = (),
    ) -> None:
        """Write the page of a world.

        :param names: table -> old name -> new name, of rows that get names which the API refuses
        """
        database = db_api.get_placement_engine()
        rows.fill(database, world)
        with database.begin() as conn:
            for table, of_table in (names or {}).items():
                column = table.c.external_id if table is models.projects else table.c.name
                for old, new in of_table.items():
                    conn.execute(sa.update(table).where(column == old).values({column: new}))
        done = in_process.run('report', str(self.page), *options)
        self.assertEqual((0, ''), (done.status, done.stderr))
        self.browser.open(self.page)

    def test_names_are_text(self):
        hosts = tuple(
            worlds.Host(name, None, {'VCPU': worlds.inventory(8, used=4)}, (trait,), ('A',))
            for name, trait in zip(HOSTILE, TRAITS, strict=True)
        )
        traits = dict(zip(map(worlds.trait, TRAITS), HOSTILE, strict=True))
        renamed = {
            models.traits: traits,
            models.resource_classes: {'VCPU': HOSTILE[0]},
            models.projects: {'p': HOSTILE[1]},
        }
        consumer = worlds.Consumer('one', {HOSTILE[0]: {'VCPU': 1}}, project='p')
        self.write(worlds.World(hosts).claimed(consumer), renamed)
        for name in HOSTILE[:4]:
            with self.subTest(name):
                self.browser.button(name, '#provider-table tbody').click()
                self.assertEqual([name], self.browser.texts('#details-title'))
                self.browser.find('.close').click()
        shown = self.browser.texts('#provider-table tbody th')
        self.assertIn('line\\u2028separator', shown)
        self.assertIn('right\\u202eto left', shown)
        self.assertRegex(self.browser.driver.title, r'^Placement report, [\d-]+ [\d:]+ UTC$')
        self.assertEqual([], self.browser.texts('img'))
        self.assertEqual([], self.browser.violations())
        self.assertEqual([], self.browser.messages())
        self.assertEqual([self.page.as_uri()], self.browser.requests())

    def test_trees_that_can_be_drained(self):
        world = worlds.World.of('big[V:30, D:20]\nfits[V:4]\nspare[V:8]')
        consumers = (
            worlds.Consumer('one', {'big': {'VCPU': 24, 'DISK_GB': 10}}),
            worlds.Consumer('other', {'fits': {'VCPU': 4}}),
        )
        self.write(world.claimed(*consumers), options=['--drain'])
        cells = self.browser.texts('#provider-table tbody .drain')
        self.assertEqual(['yes', 'no: lacks 24 VCPU, 10 DISK_GB', '\u2013'], cells)
        self.browser.button('Can be drained', '#provider-table thead').click()
        cells = self.browser.texts('#provider-table tbody .drain')
        self.assertEqual(['\u2013', 'no: lacks 24 VCPU, 10 DISK_GB', 'yes'], cells)
        self.assertIn('1 of 2 hosts can be drained', self.browser.find('.verdict').text)
        self.assertEqual([], self.browser.script(CUT, '#provider-table thead button, .drain span'))
        self.assertEqual([], self.browser.violations())
        self.assertEqual([], self.browser.messages())

    def test_long_texts_about_a_drain(self):
        """The details show the text that the table cuts, also on a phone."""
        classes = [name for name in IDS if 9 < len(name) < 29][-6:]
        inventories = {name: worlds.inventory(10**6) for name in classes}
        world = worlds.World((worlds.Host('host', None, inventories),))
        consumer = worlds.Consumer('one', {'host': dict.fromkeys(classes, 10**6)})
        self.write(world.claimed(consumer), options=['--drain'])
        text = f'no: lacks {", ".join(f"1000000 {name}" for name in classes)}'
        for size in (DESKTOP, PHONE):
            with self.subTest(size):
                self.browser.open(self.page, size)
                cut = [text] if size == DESKTOP else []
                self.assertEqual(cut, self.browser.script(CUT, '.drain span'))
                self.browser.button('host', '#provider-table').click()
                shown = '#details .drain'
                self.assertEqual(f'Can be drained: {text}', self.browser.find(shown).text)
                self.assertEqual([], self.browser.script(CUT, shown))
                self.assertEqual([], self.browser.violations())

    def test_an_empty_database(self):
        self.write(worlds.World(()))
        self.assertIn('no inventory', self.browser.find('#classes').text)
        self.assertEqual('0 trees', self.browser.find('#match-count').text)
        self.assertEqual([], self.browser.violations())
        self.assertEqual([], self.browser.messages())

    def test_a_negative_capacity(self):
        self.write(worlds.World.of('one[V: total 4 reserved 12]\nother[V: total 8 used 2]'))
        self.assertIn('0 / -8', self.browser.texts('#provider-table td.optional')[0])
        (first, second) = self.browser.script(
            'return [...document.querySelectorAll("#provider-table .use .used")].map((one) => '
            '[one.classList.contains("over"), one.width.baseVal.valueInSpecifiedUnits])'
        )
        self.assertEqual(([True, 100], [False, 25]), (first, second))
        self.assertEqual(['1'], self.browser.texts('#legend li:nth-child(7) .band-count'))
        self.browser.button('one', '#provider-table').click()
        self.assertIn('over', self.browser.find('.inventory').text)
        self.assertIn('0 of -8 used, 0 free', self.browser.find('.inventory').text)
        self.assertEqual([], self.browser.violations())

    def test_the_map_has_the_names_of_200_hosts(self):
        self.browser.cdp('Page.addScriptToEvaluateOnNewDocument', source=RECORD)
        world = worlds.World.of('\n'.join(f'compute-{n:03d}[V:8]' for n in range(200)))
        self.write(world)
        drawn = set(self.browser.script('return window.drawn'))
        self.assertEqual(set(), {host.name for host in world.hosts} - drawn)

    def test_many_hosts(self):
        inventories = {worlds.CLASSES[one]: worlds.inventory(4000) for one in 'VMD'}
        hosts = [worlds.Host(f'host-{n}', None, inventories, (), ('A',)) for n in range(HOSTS)]
        consumers = [
            worlds.Consumer(f'{number} {one}', {f'host-{number}': {'VCPU': 4}})
            for number in range(0, HOSTS, 10)
            for one in range(CONSUMERS)
        ]
        self.write(worlds.World(tuple(hosts)).claimed(*consumers))
        self.assertEqual('10,000 trees', self.browser.find('#match-count').text)
        self.browser.button('Provider', '#provider-table').click()
        # Only the rows in view are elements.
        rows_shown = 'return document.querySelectorAll("#provider-table tbody tr").length'
        self.assertLess(self.browser.script(rows_shown), 60)
        self.browser.script('dispatchEvent(new Event("beforeprint"))')
        printed = 'return document.querySelectorAll("#provider-table tbody th").length'
        self.assertEqual(500, self.browser.script(printed))
        self.assertEqual(
            ['These are the first 500 of 10,000 rows.'],
            self.browser.texts('#provider-table .note:not([hidden])'),
        )
        self.browser.script('dispatchEvent(new Event("afterprint"))')
        self.assertLess(self.browser.script(printed), 60)
        self.browser.script('document.querySelector(".scroller").scrollTop = 1e9')
        self.browser.wait(
            'return [...document.querySelectorAll("#provider-table tbody th")]'
            '.some((one) => one.textContent === "host-9999")'
        )
        self.browser.find('#search').send_keys('host-4710')
        self.assertEqual(['host-4710'], self.browser.texts('#provider-table tbody th'))
        self.browser.button('host-4710', '#provider-table').click()
        self.assertEqual(CONSUMERS, len(self.browser.texts('.consumers tbody tr')))
        self.assertEqual([], self.browser.messages())
