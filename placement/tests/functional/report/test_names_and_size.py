"""The page of `placement-manage report` with hostile names, and with the data of 10,000 hosts."""

import dataclasses
import sys
import uuid

from placement.admin import audit, progress
from placement.admin.report import make
from placement.admin.report.model import Consumer
from placement.tests.functional.browser import DESKTOP, PHONE, PageTestCase
from placement.tests.unit.admin.report import clouds
from placement.tests.unit.admin.report.clouds import DISK_GB, MEMORY_MB, VCPU, inventory, provider

HOSTS, CONSUMERS = 10_000, 30
# The texts of the elements that a selector selects and that are not displayed completely.
CUT = """
return [...document.querySelectorAll(arguments[0])]
  .filter((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight)
  .map((one) => one.textContent)
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


def consumers_of(number: int) -> list[Consumer]:
    uuids = (str(uuid.UUID(int=number * CONSUMERS + one)) for one in range(CONSUMERS))
    return [Consumer(one, 'INSTANCE', f'project-{number % 50}', {VCPU: 4}) for one in uuids]


class PageTest(PageTestCase):
    def setUp(self) -> None:
        super().setUp()
        self.page = self.folder / 'report.html'

    def write(self, *providers, findings=(), **options) -> None:
        contents = make.Contents(clouds.ORIGIN, clouds.cloud(*providers, **options), findings)
        self.page.write_bytes(make.html(contents, progress.silent))

    def test_names_are_text(self):
        numbers = range(1, len(HOSTILE) + 1)
        names = dict(zip(numbers, HOSTILE, strict=True))
        self.write(
            *(
                provider(
                    number, inventory(number, 8, used=4), traits=(number,), aggregates=(number,)
                )
                for number in numbers
            ),
            names=names,
            classes=names,
            traits=names,
            aggregates=names,
            projects=tuple((name, 1, 1) for name in HOSTILE),
            findings=(audit.Finding('duplicate-name', 'notice', 1, rows=({'name': HOSTILE[0]},)),),
        )
        self.browser.open(self.page)
        for name in HOSTILE[:4]:
            with self.subTest(name):
                self.browser.button(name, '#provider-table tbody').click()
                self.assertEqual([name], self.browser.texts('#details-title'))
                self.browser.find('.close').click()
        shown = self.browser.texts('#provider-table tbody th')
        self.assertIn('line\\u2028separator', shown)
        self.assertIn('right\\u202eto left', shown)
        self.assertEqual('Placement report, 2026-11-22 12:30:00 UTC', self.browser.driver.title)
        self.assertEqual([], self.browser.texts('img'))
        self.assertEqual([], self.browser.violations())
        self.assertEqual([], self.browser.messages())
        self.assertEqual([self.page.as_uri()], self.browser.requests())

    def test_trees_that_can_be_drained(self):
        inventories = [inventory(class_, 8, used=4) for class_ in (VCPU, MEMORY_MB, DISK_GB)]
        providers = [provider(number, *inventories) for number in (1, 2, 4)]
        self.write(*providers, drains=clouds.DRAINS)
        self.browser.open(self.page)
        cells = self.browser.texts('#provider-table tbody .drain')
        self.assertEqual(['yes', 'no: lacks 24 VCPU, 10 DISK_GB', '\u2013'], cells)
        self.browser.button('Can be drained', '#provider-table thead').click()
        cells = self.browser.texts('#provider-table tbody .drain')
        self.assertEqual(['\u2013', 'no: lacks 24 VCPU, 10 DISK_GB', 'yes'], cells)
        self.assertIn('1 of 3', self.browser.texts('.counts dd'))
        self.assertEqual([], self.browser.script(CUT, '#provider-table thead button, .drain span'))
        self.browser.button('provider-2', '#provider-table').click()
        self.assertEqual(
            'Can be drained: no: lacks 24 VCPU, 10 DISK_GB',
            self.browser.find('#details .drain').text,
        )
        self.assertEqual([], self.browser.violations())
        self.assertEqual([], self.browser.messages())

    def test_long_texts_about_a_drain(self):
        """The details show the text that the table cuts, also on a phone."""
        root = str(uuid.UUID(int=2))
        amounts = {f'CUSTOM_RESOURCE_CLASS_{number}': 10**6 for number in range(6)}
        drain = dataclasses.replace(clouds.DRAINS[root], missing=amounts)
        self.write(provider(2), drains={root: drain})
        text = f'no: lacks {", ".join(f"1000000 {name}" for name in amounts)}'
        for size in (DESKTOP, PHONE):
            with self.subTest(size):
                self.browser.open(self.page, size)
                cut = [text] if size == DESKTOP else []
                self.assertEqual(cut, self.browser.script(CUT, '.drain span'))
                self.browser.button('provider-2', '#provider-table').click()
                shown = '#details .drain'
                self.assertEqual(f'Can be drained: {text}', self.browser.find(shown).text)
                self.assertEqual([], self.browser.script(CUT, shown))
                self.assertEqual([], self.browser.violations())

    def test_an_empty_database(self):
        self.write()
        self.browser.open(self.page)
        self.assertIn('no inventory', self.browser.find('#classes').text)
        self.assertEqual('0 trees', self.browser.find('#match-count').text)
        self.assertEqual([], self.browser.violations())
        self.assertEqual([], self.browser.messages())

    def test_a_negative_capacity(self):
        self.write(
            provider(1, inventory(VCPU, 4, reserved=12)), provider(2, inventory(VCPU, 8, used=2))
        )
        self.browser.open(self.page)
        self.assertIn('0 / -8', self.browser.texts('#provider-table td.optional')[0])
        (first, second) = self.browser.script(
            'return [...document.querySelectorAll("#provider-table .use .used")].map((one) => '
            '[one.classList.contains("over"), one.width.baseVal.valueInSpecifiedUnits])'
        )
        self.assertEqual(([True, 100], [False, 25]), (first, second))
        self.assertEqual(['1'], self.browser.texts('#legend li:nth-child(7) .band-count'))
        self.browser.button('provider-1', '#provider-table').click()
        self.assertIn('over', self.browser.find('.inventory').text)
        self.assertIn('0 of -8 used, 0 free', self.browser.find('.inventory').text)
        self.assertEqual([], self.browser.violations())

    def test_many_hosts(self):
        self.write(
            *(
                provider(
                    number,
                    inventory(VCPU, 64, used=number * 7 % 257, ratio=4.0),
                    inventory(MEMORY_MB, 262144, used=number * 1021 % 262144, reserved=512),
                    inventory(DISK_GB, 4000, used=number % 4000),
                    aggregates=(number % 10,),
                    traits=(clouds.FAST,) if number % 3 else (),
                )
                for number in range(1, HOSTS + 1)
            ),
            consumers={number: consumers_of(number) for number in range(1, HOSTS + 1)},
        )
        self.browser.open(self.page)
        usable = self.browser.script('return performance.getEntriesByName("usable")[0].startTime')
        print(
            f'{HOSTS} hosts: {self.page.stat().st_size / 2**20:.1f} MiB, '
            f'usable after {usable / 1000:.2f} s',
            file=sys.stderr,
        )
        self.assertEqual('10,000 trees', self.browser.find('#match-count').text)
        self.browser.button('Provider', '#provider-table').click()
        # Only the rows in view are elements.
        rows = 'return document.querySelectorAll("#provider-table tbody tr").length'
        self.assertLess(self.browser.script(rows), 60)
        self.browser.script('document.querySelector(".scroller").scrollTop = 1e9')
        self.browser.wait(
            'return [...document.querySelectorAll("#provider-table tbody th")]'
            '.some((one) => one.textContent === "provider-10000")'
        )
        self.browser.find('#search').send_keys('provider-4711')
        self.assertEqual(['provider-4711'], self.browser.texts('#provider-table tbody th'))
        self.browser.button('provider-4711', '#provider-table').click()
        self.assertEqual(CONSUMERS, len(self.browser.texts('.consumers tbody tr')))
        self.assertEqual(consumers_of(4711)[0].name, self.browser.texts('.consumers tbody th')[0])
        self.assertEqual([], self.browser.messages())

    def test_a_large_table_is_printed_in_part(self):
        self.write(*(provider(number, inventory(VCPU, 1)) for number in range(1, 1001)))
        self.browser.open(self.page)
        self.browser.script('dispatchEvent(new Event("beforeprint"))')
        rows = 'return document.querySelectorAll("#provider-table tbody th").length'
        self.assertEqual(500, self.browser.script(rows))
        self.assertEqual(
            ['These are the first 500 of 1,000 rows.'],
            self.browser.texts('#provider-table .note:not([hidden])'),
        )
        self.browser.script('dispatchEvent(new Event("afterprint"))')
        self.assertLess(self.browser.script(rows), 60)
