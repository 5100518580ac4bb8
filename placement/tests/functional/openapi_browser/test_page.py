"""The page with the OpenAPI documents in Chromium, opened from disk.

doc/openapi_browser.py writes the page from the documents of some microversions.
"""

from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from placement.tests.functional.browser import DESKTOP, PHONE
from placement.tests.functional.openapi_browser.page import (
    BLOCK,
    COMPLETE,
    NEWEST,
    OFFERED,
    OLDEST,
    TestCase,
    operations,
)

UPDATE = 'allocations/consumer_uuid:put'
CREATE = 'resource_classes:post'
TITLES = (
    'const titles = [...document.querySelectorAll(arguments[0])];'
    'return titles.length && titles.map((one) => one.textContent)'
)
# All responses have the same elements, and axe-core needs a second for each.
SHORTEN = 'document.querySelectorAll(".response:nth-child(n+3)").forEach((one) => one.remove())'


class ChoiceTest(TestCase):
    def test_the_newest_document_is_displayed_first(self):
        """All microversions with a document are offered."""
        self.open()
        offered = [option.text for option in self.choice().options]
        self.assertEqual(list(reversed(OFFERED)), offered)
        self.assert_shows(NEWEST)

    def test_the_address_selects_a_microversion(self):
        self.open('?microversion=1.28')
        self.assert_shows('1.28')

    def test_another_microversion_displays_its_operations(self):
        """The address contains the selected microversion."""
        self.open()
        self.select(OLDEST)
        self.assert_shows(OLDEST)
        self.assertNotEqual(operations(OLDEST), operations(NEWEST))
        link = self.browser.find('#download')
        self.assertEqual(f'placement-{OLDEST}.yaml', link.text)
        self.assertTrue(link.get_attribute('href').endswith(f'openapi/placement-{OLDEST}.yaml'))
        self.select('1.10')
        self.assertEqual('?microversion=1.10', self.address())
        self.select('1.11')
        self.browser.driver.back()
        self.wait_for_document('1.10')
        self.assert_shows('1.10')
        self.browser.driver.back()
        self.wait_for_document(OLDEST)
        self.assert_shows(OLDEST)

    def test_an_unknown_microversion(self):
        self.open('?microversion=1.99')
        status = self.browser.find('#status').text
        self.assertTrue(status.startswith('There is no document of microversion 1.99.'), status)
        self.assertEqual(operations(NEWEST), self.shown())

    def test_a_missing_document(self):
        path = self.page.parent / 'openapi' / 'placement-1.5.js'
        script = path.read_text(encoding='utf-8')
        path.unlink()
        self.addCleanup(path.write_text, script, encoding='utf-8')
        self.open()
        self.choice().select_by_value('1.5')
        self.browser.wait(
            'return document.getElementById("status").textContent === arguments[0]',
            'The document of microversion 1.5 cannot be loaded.',
        )
        self.assertEqual([], self.shown())


class OperationTest(TestCase):
    def body(self) -> str:
        """The text of the open operation."""
        self.browser.wait(f'return document.querySelector("{BLOCK} .responses-wrapper")')
        # Selenium would need two seconds for `text`.
        return self.browser.script('return document.querySelector(arguments[0]).innerText', BLOCK)

    def titles(self) -> set[str]:
        """The names in the schemas of the open operation."""
        return set(self.browser.wait(TITLES, f'{BLOCK} .json-schema-2020-12__title'))

    def test_the_fragment_of_the_address_opens_an_operation(self):
        self.open(f'#{UPDATE}')
        self.assertIn('PUT', self.body())
        self.assertEqual(
            ['/allocations/{consumer_uuid}'],
            self.browser.script(
                'const opened = [...document.querySelectorAll(arguments[0])];'
                'return opened.map((one) => one.dataset.path)',
                f'{BLOCK} .opblock-summary-path',
            ),
        )
        self.browser.wait(
            'const block = document.querySelector(arguments[0]).getBoundingClientRect();'
            'return block.top >= 0 && block.top < innerHeight / 2',
            BLOCK,
        )
        # References are resolved.
        self.assertEqual([], self.browser.texts('.errors-wrapper'))
        self.assertIn('AllocationSet_Allocations_For_ConsumerRequest', self.titles())

    def test_the_address_contains_the_open_operation(self):
        """The schema of the operation differs between microversions."""
        self.open(f'?microversion={COMPLETE}')
        self.assert_shows(COMPLETE)
        button = self.browser.script(
            'return [...document.querySelectorAll(".opblock-put")].find((one) =>'
            'one.querySelector("[data-path=\'/allocations/{consumer_uuid}\']"))'
            '.querySelector(".opblock-summary-control")'
        )
        button.click()
        self.body()
        self.assertEqual(f'?microversion={COMPLETE}#{UPDATE}', self.address())
        self.assertEqual([], self.browser.texts('.errors-wrapper'))
        self.assertLessEqual({'project_id', 'consumer_type'}, self.titles())
        self.select('1.37')
        self.assertIn('Update allocations', self.body())
        self.assertEqual(f'?microversion=1.37#{UPDATE}', self.address())
        self.assertEqual({'project_id'}, self.titles() & {'project_id', 'consumer_type'})
        self.browser.find(f'{BLOCK} .opblock-summary-control').click()
        self.assertEqual('?microversion=1.37', self.address())


class SafetyTest(TestCase):
    def test_the_page_requests_only_local_files(self):
        """It offers no form for requests."""
        self.open(f'#{UPDATE}')
        self.browser.wait(f'return document.querySelector("{BLOCK} .responses-wrapper")')
        for selector in ('.try-out', '.authorize', '.authorization__btn', '.servers'):
            self.assertEqual([], self.browser.texts(selector), selector)
        self.select(OLDEST)
        requested = self.browser.requests()
        folder = self.page.parent.as_uri()
        self.assertIn(f'{folder}/openapi/placement-{NEWEST}.js', requested)
        self.assertIn(f'{folder}/openapi/placement-{OLDEST}.js', requested)
        # The style sheet of Swagger UI contains images.
        others = [url for url in requested if not url.startswith((f'{folder}/', 'data:image/'))]
        self.assertEqual([], others)
        self.assertEqual([], self.browser.messages())

    def test_the_policy_forbids_inline_scripts_and_requests(self):
        self.open()
        self.assertIs(False, self.browser.runs_inline_scripts())
        self.browser.script('fetch("https://placement.invalid/").catch(() => {})')
        messages = ''.join(self.browser.messages())
        self.assertIn('script-src', messages)
        self.assertIn('connect-src', messages)
        self.assertNotIn('https://placement.invalid/', self.browser.requests())

    def test_without_javascript_all_documents_are_linked(self):
        self.browser.cdp('Emulation.setScriptExecutionDisabled', value=True)
        enable = {'value': False}
        self.addCleanup(self.browser.cdp, 'Emulation.setScriptExecutionDisabled', **enable)
        self.browser.driver.get(self.page.as_uri())
        links = self.browser.driver.find_elements(By.CSS_SELECTOR, '#downloads a')
        names = [link.text for link in links if link.is_displayed()]
        expected = [f'placement-{version}.yaml' for version in reversed(OFFERED)]
        self.assertEqual(['placement.yaml', *expected], names)
        self.assertTrue(self.browser.find('.notice').is_displayed())
        self.assertFalse(self.browser.find('#choice').is_displayed())


class AccessibilityTest(TestCase):
    def test_the_keyboard_selects_a_microversion(self):
        self.open()
        self.browser.tab_to('#microversion')
        self.browser.press(Keys.ARROW_DOWN)
        second = OFFERED[-2]
        self.wait_for_document(second)
        self.assert_shows(second)
        focused = self.browser.script('return document.activeElement.id')
        self.assertEqual('microversion', focused)

    def test_the_keyboard_opens_an_operation(self):
        """The first link leads to the document."""
        self.open()
        self.browser.press(Keys.TAB)
        self.assertEqual('Skip to the document', self.browser.focused())
        self.browser.press(Keys.ENTER)
        self.browser.wait('return document.activeElement.id === "document"')
        self.browser.tab_to('.opblock-summary-control')
        self.browser.press(Keys.ENTER)
        self.browser.wait(f'return document.querySelector("{BLOCK}")')

    def test_no_violation_of_the_rules_of_axe_core(self):
        for options in ({}, {'size': PHONE}):
            with self.subTest(**options):
                self.open(**options)
                self.browser.script('document.getElementById("downloads").open = true')
                self.assertEqual([], self.browser.violations())

    def test_an_open_operation_has_one_violation(self):
        """In Swagger UI, a label and the select element of the media type have the same id.

        The operation needs no horizontal scrolling.
        """
        for operation, size in ((UPDATE, PHONE), (CREATE, DESKTOP)):
            with self.subTest(operation):
                self.open(f'#{operation}', size=size)
                self.browser.wait(f'return document.querySelector("{BLOCK} .responses-wrapper")')
                width = 'return document.documentElement.scrollWidth'
                self.assertEqual(size[0], self.browser.script(width))
                self.browser.script(SHORTEN)
                rules = [rule for rule, _ in self.browser.violations()]
                self.assertEqual(['duplicate-id-active'], rules)
