"""The page of `placement-manage report` in Chromium, with the demo cloud of tools/demo.py."""

from pathlib import Path

from selenium.webdriver.common.keys import Keys

from placement.tests.functional.browser import PHONE, PageTestCase
from placement.tests.functional.report import demo_page
from tools import demo_cloud

ROWS = '#provider-table tbody tr:not(.space)'
NAMES = f'{ROWS} th'
MATCHES = '#match-count'
DETAILS = '#details'
HEAD = '#details-title'
# Returns the resource classes in the table that are longer than their space.
CUT = """return [...document.querySelectorAll("#provider-table .pair bdi")].filter((one) =>
    one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight + 1)
    .map((one) => one.textContent)"""


class TestCase(PageTestCase):
    """Opens the report of the demo cloud."""

    page: Path

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.page = cls.folder / 'report.html'
        cls.page.write_bytes(demo_page.content())

    def setUp(self) -> None:
        super().setUp()
        self.open()

    def open(self, *arguments, **options) -> None:
        self.browser.open(self.page, *arguments, **options)

    def names(self) -> list[str]:
        return self.browser.texts(NAMES)

    def search(self, text: str) -> None:
        field = self.browser.find('#search')
        field.clear()
        field.send_keys(text)

    def details(self) -> str:
        """The text of the open dialog."""
        return self.browser.find(DETAILS).text

    def select(self, name: str) -> None:
        self.browser.button(name, '#provider-table').click()
        self.assertEqual([name], self.browser.texts(HEAD))
        self.assertNotIn('null', self.details())


class ContentTest(TestCase):
    def test_the_summary_of_resource_classes(self):
        rows = self.browser.texts('#class-table tbody tr')
        self.assertEqual(11, len(rows))
        cells = self.browser.texts('#class-table tbody tr:nth-child(2) > *')
        self.assertEqual(['MEMORY_MB', '', '47 %'], cells[:3])
        # Without the free 94,208 MB of compute-04, which is disabled.
        self.assertEqual(['773,120755 GiB', '783,360765 GiB', '1,650,6881.57 TiB'], cells[3:6])
        self.assertEqual(['53,24852 GiB', '16'], cells[6:])

    def test_what_the_report_was_made_from(self):
        footer = self.browser.find('footer').text
        self.assertRegex(footer, r'sqlite:///.*/placement\.db')
        self.assertIn('a082b8bb98d0', footer)
        self.assertEqual(['18', '36', '53', '178', '4'], self.browser.texts('footer dd')[4:])

    def test_the_findings_of_the_audit(self):
        self.assertEqual(['over-capacity'], self.browser.texts('.finding summary code'))
        self.browser.find('.finding summary').click()
        self.assertIn('compute-07', self.browser.find('.finding table').text)

    def test_the_breakdown_by_aggregate_trait_and_project(self):
        rows = self.browser.texts('#parts-aggregate tbody tr')
        self.assertEqual(len(demo_cloud.AGGREGATES), len(rows))
        self.browser.button('Projects 4').click()
        self.assertEqual(
            ['research', 'tools', 'web-shop'], self.browser.texts('#parts-project tbody th')
        )
        self.browser.find('#parts-class option[value="2"]').click()
        self.assertEqual(
            ['tools', 'web-shop', 'research', 'telecom'],
            self.browser.texts('#parts-project tbody th'),
        )
        self.browser.button('Traits 11').click()
        self.browser.button('HW_CPU_X86_AVX512F', '#parts').click()
        self.assertEqual(['compute-01', 'compute-02'], self.names())

    def test_the_page_makes_no_request_and_no_message(self):
        self.select('compute-05')
        self.search('numa')
        self.browser.find('#theme').click()
        self.assertEqual([self.page.as_uri()], self.browser.requests())
        self.assertEqual([], self.browser.messages())

    def test_the_policy_forbids_other_scripts_and_styles(self):
        self.assertIs(False, self.browser.runs_inline_scripts())
        self.assertIn('Content Security Policy', ''.join(self.browser.messages()))


class TableTest(TestCase):
    def test_the_fullest_trees_are_first(self):
        self.assertEqual(['compute-07', 'baremetal-01', 'compute-01'], self.names()[:3])
        self.assertEqual('18 trees', self.browser.find(MATCHES).text)

    def test_sorting_by_a_column(self):
        self.browser.button('Provider', '#provider-table').click()
        self.assertEqual(['baremetal-01', 'baremetal-02', 'compute-01'], self.names()[:3])
        self.assertEqual(['Provider'], self.browser.texts('th[aria-sort="ascending"]'))
        self.browser.button('Provider', '#provider-table').click()
        self.assertEqual(['storage-02', 'storage-01', 'numa-03'], self.names()[:3])
        self.browser.button('Consumers', '#provider-table').click()
        self.assertEqual(['Consumers'], self.browser.texts('th[aria-sort="descending"]'))
        self.assertEqual(['compute-07', 'storage-02', 'compute-01'], self.names()[:3])

    def test_searching(self):
        for text, expected in (
            ('compute-03', ['compute-03']),
            ('NUMA-02-node-1-card', ['numa-02']),
            ('custom_gpu_80gb', ['gpu-01']),
            ('acc315fb-8a59-5953-9704-0faa8da15669', ['gpu-01']),
            ('numa physnet_data 3', ['numa-03', 'numa-02', 'numa-01']),
            ('nothing of this', []),
        ):
            with self.subTest(text):
                self.search(text)
                self.assertEqual(sorted(expected), sorted(self.names()))
                self.assertEqual(f'{len(expected)} of 18 trees', self.browser.find(MATCHES).text)

    def test_the_legend_selects_trees(self):
        self.browser.button('over 100 % 1', '#legend').click()
        self.assertEqual(['compute-07'], self.names())
        self.browser.button('over 100 % 1', '#legend').click()
        self.assertEqual('18 trees', self.browser.find(MATCHES).text)

    def test_the_verdict_selects_trees(self):
        self.assertEqual(
            '1 host over capacity, 4 hosts and 1 pool above 90 %, 4 of 13 hosts can be drained, '
            '54 more of m1.large fit, 1 finding.',
            self.browser.find('.verdict').text,
        )
        for number, expected in ((1, 1), (2, 5)):
            # The header covers the link after the page has scrolled to the map.
            link = self.browser.find(f'.verdict a:nth-child({number})')
            self.browser.script('arguments[0].click()', link)
            self.assertEqual(f'{expected} of 18 trees', self.browser.find(MATCHES).text)
            self.assertEqual(expected, len(self.names()))
        for number, section in enumerate(('map', 'map', 'providers', 'headroom', 'findings'), 1):
            link = self.browser.find(f'.verdict a:nth-child({number})')
            self.assertEqual(f'#{section}', link.get_dom_attribute('href'))
            self.assertTrue(self.browser.find(f'#{section}').is_displayed())

    def test_the_map_colors_one_class(self):
        self.browser.find('#map-class option[value="0"]').click()
        counts = [text.rpartition(' ')[2] for text in self.browser.texts('#legend button')]
        # VCPU: eight trees have none, and compute-08 does not use it.
        self.assertEqual(['8', '1', '6', '0', '0', '1', '1', '1'], counts)

    def test_a_disabled_host(self):
        self.browser.button('disabled 1', '#legend').click()
        self.assertEqual(['compute-04'], self.names())
        cell = self.browser.texts(f'{ROWS} td')[0]
        self.assertEqual('MEMORY_MBdisabled, 26 %', cell)
        self.select('compute-04')
        self.assertIn('COMPUTE_STATUS_DISABLED, so Nova does not schedule', self.details())
        self.assertIn('16 of 128 used, 0 free', self.details())


class DetailsTest(TestCase):
    def test_a_provider_tree(self):
        self.select('numa-03')
        self.assertEqual(
            [
                *('numa-03', 'numa-03-node-0', 'numa-03-node-0-card'),
                *('numa-03-node-1', 'numa-03-node-1-card'),
            ],
            self.browser.texts('.provider h3'),
        )
        self.assertEqual(2, len(self.browser.texts('.tree > li > ul > li')))
        node = self.browser.texts('.provider')[1]
        for text in (
            'MEMORY_MB52 %32,768 of 63,488 used, 30,720 free',
            'total 65,536, reserved 2,048, min unit 2, step 2',
            'PCPU100 %16 of 16 used, 0 free',
            'HW_NUMA_ROOT',
        ):
            self.assertIn(text, node)

    def test_sharing_providers(self):
        self.select('compute-05')
        self.assertIn('Uses these sharing providers', self.details())
        self.assertIn('storage-01 DISK_GB 21 %', self.details())
        self.browser.button('storage-01', DETAILS).click()
        self.assertIn('storage-01 shares with 2 trees', self.details())
        self.browser.button('compute-06', DETAILS).click()
        self.assertEqual(['compute-06'], self.browser.texts(HEAD))

    def test_the_consumers_of_a_tree(self):
        self.select('numa-03')
        self.assertEqual(
            ['Consumer', 'Type', 'Project', 'Amounts'], self.browser.texts('.consumers thead th')
        )
        cells = self.browser.texts('.consumers tbody tr:nth-child(1) > *')
        self.assertEqual(demo_cloud.uuid_of('gateway-5'), cells[0])
        self.assertEqual(['INSTANCE', 'telecom'], cells[1:3])
        self.assertIn('PCPU 16', cells[3])
        self.assertIn('NET_BW_EGR_KILOBIT_PER_SEC 1,000,000', cells[3])
        self.assertEqual(2, len(self.browser.texts('.consumers tbody tr')))
        self.select('compute-08')
        self.assertEqual([], self.browser.texts('.consumers'))

    def test_the_address_names_the_selected_provider(self):
        self.select('gpu-02')
        fragment = self.browser.script('return location.hash')
        self.assertEqual('#provider=', fragment[:10])
        self.open(fragment=fragment)
        self.assertEqual(['gpu-02'], self.browser.texts(HEAD))

    def test_a_click_on_the_map(self):
        self.browser.find('#map-canvas canvas').click()  # in the middle of the map
        self.assertEqual(1, len(self.browser.texts(HEAD)))
        self.browser.find('.close').click()
        self.assertEqual('CANVAS', self.browser.script('return document.activeElement.tagName'))


class KeyboardTest(TestCase):
    def test_the_table(self):
        self.browser.tab_to(f'{ROWS} button')
        self.assertEqual('compute-07', self.browser.focused())
        self.browser.press(Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ENTER)
        self.assertEqual(['compute-01'], self.browser.texts(HEAD))
        self.assertEqual('compute-01', self.browser.focused())
        self.browser.press(Keys.ESCAPE)
        self.assertIs(False, self.browser.script('return document.querySelector("dialog").open'))
        self.assertEqual('BUTTON', self.browser.script('return document.activeElement.tagName'))
        self.browser.press(Keys.END)
        self.assertEqual('baremetal-02', self.browser.focused())
        self.browser.press(Keys.HOME)
        self.assertEqual('compute-07', self.browser.focused())

    def test_the_map(self):
        self.browser.tab_to('#map-canvas canvas')
        self.browser.press(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        self.assertEqual(['compute-01: VCPU 100 %'], self.browser.texts('[aria-live="polite"]'))
        self.browser.press(Keys.ENTER)
        self.assertEqual(['compute-01'], self.browser.texts(HEAD))
        self.browser.press(Keys.ESCAPE)
        self.assertEqual('CANVAS', self.browser.script('return document.activeElement.tagName'))

    def test_the_tabs(self):
        self.browser.tab_to('[role="tab"]')
        self.browser.press(Keys.ARROW_RIGHT)
        self.assertEqual(['Traits 11'], self.browser.texts('[aria-selected="true"]'))

    def test_the_link_to_the_table(self):
        self.browser.press(Keys.TAB)
        self.assertEqual('Skip to the table of providers', self.browser.focused())


class DisplayTest(TestCase):
    def color(self) -> str:
        return self.browser.script('return getComputedStyle(document.body).backgroundColor')

    def test_the_theme(self):
        light = self.color()
        self.open(dark=True)
        dark = self.color()
        self.assertNotEqual(light, dark)
        map_ = self.browser.script('return document.querySelector("canvas").toDataURL()')
        self.browser.find('#theme').click()
        self.assertEqual(light, self.color())
        self.assertNotEqual(
            map_, self.browser.script('return document.querySelector("canvas").toDataURL()')
        )
        self.browser.find('#theme').click()
        self.assertEqual(dark, self.color())

    def test_a_phone_needs_no_horizontal_scrolling(self):
        self.open(PHONE)
        width = 'return document.documentElement.scrollWidth'
        self.assertEqual(PHONE[0], self.browser.script(width))
        self.assertEqual([], self.browser.script(CUT))
        self.select('compute-05')
        self.assertEqual(PHONE[0], self.browser.script(width))
        self.assertEqual(
            PHONE[0], self.browser.script('return document.querySelector("dialog").scrollWidth')
        )

    def test_printing(self):
        drawn = 'return document.querySelector("canvas").toDataURL()'
        light = self.browser.script(drawn)
        self.open(dark=True)
        self.assertNotEqual(light, self.browser.script(drawn))
        self.browser.script('dispatchEvent(new Event("beforeprint"))')
        self.assertEqual(light, self.browser.script(drawn))
        self.assertEqual(4, len(self.browser.texts('#parts-trait tbody tr')))
        self.browser.cdp('Emulation.setEmulatedMedia', media='print')
        self.assertEqual('rgb(255, 255, 255)', self.color())
        for hidden in ('nav', '#search', '[role="tablist"]'):
            self.assertFalse(self.browser.find(hidden).is_displayed(), hidden)
        for shown in ('#parts-aggregate', '#parts-trait', '#parts-project', '#legend'):
            self.assertTrue(self.browser.find(shown).is_displayed(), shown)
        document = self.browser.pdf()
        self.assertEqual(b'%PDF', document[:4])
        self.assertGreater(document.count(b'/Type /Page\n'), 2)

    def test_no_violation_of_the_rules_of_axe_core(self):
        for options in ({}, {'dark': True}, {'size': PHONE}):
            with self.subTest(**options):
                self.open(**options)
                self.assertEqual([], self.browser.violations())
                self.select('numa-03')
                self.browser.script('document.querySelector(".finding").open = true')
                self.assertEqual([], self.browser.violations())
