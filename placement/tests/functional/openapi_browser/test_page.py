"""The page with the OpenAPI documents in Chromium, opened from disk.

doc/openapi_browser.py writes the page from the documents of some microversions.
"""

import atexit
from collections.abc import Iterator
import functools
import json
from pathlib import Path
import re
import runpy
import tempfile
from typing import Any

from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from api_reference.openapi import files
from placement import microversion
from placement.tests.functional.browser import PHONE, PageTestCase

# The directory `doc` is not a package.
BUILDER = Path(__file__).parents[4] / 'doc' / 'openapi_browser.py'
# The microversions that the page of the tests offers.
OLDEST, NEWEST = microversion.VERSIONS[0], microversion.VERSIONS[-1]
OFFERED = (OLDEST, '1.5', '1.10', '1.11', '1.28', '1.37', '1.38', NEWEST)
# The document of this microversion is complete. The others contain only these paths, because
# Swagger UI displays a complete document for seconds of processor time.
COMPLETE = '1.38'
PATHS = frozenset({'/', '/resource_classes', '/allocations/{consumer_uuid}'})
METHODS = frozenset({'get', 'post', 'put', 'delete'})
# The open operation.
BLOCK = '.opblock.is-open'
REFERENCE = re.compile(r'"#/components/(\w+)/([^"]+)"')
UPDATE = 'update_allocations'
TITLES = (
    'const titles = [...document.querySelectorAll(arguments[0])];'
    'return titles.length && titles.map((one) => one.textContent)'
)
# All responses have the same elements, and axe-core needs a second for each.
SHORTEN = 'document.querySelectorAll(".response:nth-child(n+3)").forEach((one) => one.remove())'


def operations(version: str) -> list[tuple[str, str]]:
    """The paths and methods in the document of a microversion on the page."""
    return sorted(_operations(_document(version)))


def _document(version: str) -> dict[str, Any]:
    """The document of a microversion, with the components that its paths use."""
    document = files.content(version)
    if version == COMPLETE:
        return document
    components = {'securitySchemes': document['components']['securitySchemes']}
    paths = {path: item for path, item in document['paths'].items() if path in PATHS}
    reduced = {**document, 'paths': paths, 'components': components}
    while missing := {
        (kind, name)
        for kind, name in REFERENCE.findall(json.dumps(reduced))
        if name not in components.setdefault(kind, {})
    }:
        for kind, name in missing:
            components[kind][name] = document['components'][kind][name]
    return reduced


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str]]:
    for path, item in document['paths'].items():
        for method in METHODS & item.keys():
            yield path, method


@functools.cache
def _written() -> Path:
    """Write the page once, because it takes seconds; return its directory."""
    folder = tempfile.TemporaryDirectory(prefix='placement-openapi-')
    atexit.register(folder.cleanup)
    documents = Path(folder.name, 'documents')
    files.write(documents, (files.COMBINED,))
    for version in OFFERED:
        # JSON is valid YAML. The oldest document has no examples.
        text = json.dumps(_document(version))
        if version == OLDEST:
            text = text.replace('"examples"', '"x-examples"')
        (documents / files.file_name(version)).write_text(text, encoding='utf-8')
    runpy.run_path(str(BUILDER))['write'](documents, Path(folder.name), '17.0.0', ())
    return Path(folder.name)


class PageTest(PageTestCase):
    page: Path

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.page = _written() / 'browse.html'

    def open(self, address: str = '', **options: Any) -> None:
        """Open the page with a query and a fragment."""
        self.browser.open(self.page, fragment=address, **options)

    def shown(self) -> list[tuple[str, str]]:
        """The displayed paths and methods."""
        pairs = self.browser.script(
            'return [...document.querySelectorAll(".opblock")].map((one) => ['
            'one.querySelector(".opblock-summary-path").dataset.path,'
            'one.querySelector(".opblock-summary-method").textContent.toLowerCase()])'
        )
        return sorted((path, method) for path, method in pairs)

    def choice(self) -> Select:
        return Select(self.browser.find('#microversion'))

    def select(self, version: str) -> None:
        """Select a microversion and wait until the page displays its document."""
        self.choice().select_by_value(version)
        self.wait_for_document(version)

    def wait_for_document(self, version: str) -> None:
        self.browser.wait(
            'const heading = document.querySelector("#document h2");'
            'return heading?.textContent === arguments[0]',
            f'Microversion {version}',
        )
        self.browser.wait('return !document.querySelector("[aria-busy]")')

    def address(self) -> str:
        """The query and the fragment of the page."""
        return self.browser.script('return location.search + location.hash')

    def assert_shows(self, version: str) -> None:
        expected = operations(version)
        self.assertEqual(expected, self.shown())
        self.assertEqual([f'Microversion {version}'], self.browser.texts('#document h2'))
        self.assertEqual(version, self.choice().first_selected_option.text)
        status = f'Microversion {version}: {len(expected)} operations'
        self.assertEqual(status, self.browser.find('#status').text)

    def wait_for_operation(self) -> None:
        """Wait until an open operation is displayed."""
        self.browser.wait(f'return document.querySelector("{BLOCK} .responses-wrapper")')

    def titles(self) -> set[str]:
        """The names in the schemas of the open operation."""
        return set(self.browser.wait(TITLES, f'{BLOCK} .json-schema-2020-12__title'))

    def test_the_reader_selects_a_microversion(self):
        """The address contains it, and the newest one is displayed first."""
        self.open()
        offered = [option.text for option in self.choice().options]
        self.assertEqual(list(reversed(OFFERED)), offered)
        self.assert_shows(NEWEST)
        self.select(OLDEST)
        self.assert_shows(OLDEST)
        self.assertNotEqual(operations(OLDEST), operations(NEWEST))
        link = self.browser.find('#download')
        self.assertTrue(link.get_attribute('href').endswith(f'openapi/placement-{OLDEST}.yaml'))
        self.select('1.10')
        self.assertEqual('?microversion=1.10', self.address())
        self.browser.driver.back()
        self.wait_for_document(OLDEST)
        self.open('?microversion=1.28')
        self.assert_shows('1.28')

    def test_missing_documents(self):
        self.open('?microversion=1.99')
        status = self.browser.find('#status').text
        self.assertTrue(status.startswith('There is no document of microversion 1.99.'), status)
        self.assertEqual(operations(NEWEST), self.shown())
        path = self.page.parent / 'openapi' / 'placement-1.5.js'
        script = path.read_text(encoding='utf-8')
        path.unlink()
        self.addCleanup(path.write_text, script, encoding='utf-8')
        self.choice().select_by_value('1.5')
        self.browser.wait(
            'return document.getElementById("status").textContent === arguments[0]',
            'The document of microversion 1.5 cannot be loaded.',
        )

    def test_the_address_contains_the_open_operation(self):
        """The schema of the operation differs between microversions."""
        self.open(f'?microversion={COMPLETE}#{UPDATE}')
        self.wait_for_operation()
        # References are resolved.
        self.assertEqual([], self.browser.texts('.errors-wrapper'))
        self.assertLessEqual({'project_id', 'consumer_type'}, self.titles())
        self.select('1.37')
        self.wait_for_operation()
        self.assertEqual(f'?microversion=1.37#{UPDATE}', self.address())
        self.assertEqual({'project_id'}, self.titles() & {'project_id', 'consumer_type'})
        self.browser.find(f'{BLOCK} .opblock-summary-control').click()
        self.assertEqual('?microversion=1.37', self.address())

    def test_only_examples_of_the_document_are_displayed(self):
        """Swagger UI can generate an example from a schema, with keys that the schema forbids."""
        for version, has_example in ((NEWEST, True), (OLDEST, False)):
            self.open(f'?microversion={version}#{UPDATE}')
            self.wait_for_operation()
            self.browser.button('Example Value', BLOCK).click()
            (text,) = self.browser.texts(f'{BLOCK} .body-param__example')
            self.assertEqual(has_example, '"allocations"' in text, text)

    def test_the_page_requests_only_local_files(self):
        """It offers no form for requests, and its policy forbids inline scripts and requests."""
        self.open(f'#{UPDATE}')
        self.wait_for_operation()
        for selector in ('.try-out', '.authorize', '.authorization__btn', '.servers'):
            self.assertEqual([], self.browser.texts(selector), selector)
        requested = self.browser.requests()
        folder = self.page.parent.as_uri()
        self.assertIn(f'{folder}/openapi/placement-{NEWEST}.js', requested)
        # The style sheet of Swagger UI contains images.
        others = [url for url in requested if not url.startswith((f'{folder}/', 'data:image/'))]
        self.assertEqual([], others)
        self.assertEqual([], self.browser.messages())
        self.assertIs(False, self.browser.runs_inline_scripts())
        self.browser.script('fetch("https://placement.invalid/").catch(() => {})')
        messages = ''.join(self.browser.messages())
        self.assertIn('script-src', messages)
        self.assertIn('connect-src', messages)

    def test_without_javascript_all_documents_are_linked(self):
        self.browser.cdp('Emulation.setScriptExecutionDisabled', value=True)
        enable = {'value': False}
        self.addCleanup(self.browser.cdp, 'Emulation.setScriptExecutionDisabled', **enable)
        self.browser.driver.get(self.page.as_uri())
        self.assertTrue(self.browser.find('#downloads a').is_displayed())
        self.assertTrue(self.browser.find('.notice').is_displayed())
        self.assertFalse(self.browser.find('#choice').is_displayed())

    def test_the_keyboard_selects_a_microversion_and_opens_an_operation(self):
        self.open()
        self.browser.tab_to('#microversion')
        self.browser.press(Keys.ARROW_DOWN)
        self.wait_for_document(OFFERED[-2])
        self.assertEqual('microversion', self.browser.script('return document.activeElement.id'))
        self.browser.tab_to('.opblock-summary-control')
        self.browser.press(Keys.ENTER)
        self.browser.wait(f'return document.querySelector("{BLOCK}")')

    def test_violations_of_the_rules_of_axe_core(self):
        """In Swagger UI, a label and the select element of the media type have the same id.

        The page needs no horizontal scrolling.
        """
        for address, expected in (('', []), (f'#{UPDATE}', ['duplicate-id-active'])):
            self.open(address, size=PHONE)
            self.browser.script('document.getElementById("downloads").open = true')
            if address:
                self.wait_for_operation()
            width = self.browser.script('return document.documentElement.scrollWidth')
            self.assertEqual(PHONE[0], width)
            self.browser.script(SHORTEN)
            self.assertEqual(expected, [rule for rule, _ in self.browser.violations()])
