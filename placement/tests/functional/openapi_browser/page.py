"""The page with the OpenAPI documents, which Chromium opens from disk."""

import atexit
from collections.abc import Iterator
import functools
import json
from pathlib import Path
import re
import tempfile
from typing import Any

from selenium.webdriver.support.ui import Select

from placement import microversion
from placement.openapi import files
from placement.tests import openapi_browser
from placement.tests.functional.browser import PageTestCase

builder = openapi_browser.load()

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
_REFERENCE = re.compile(r'"#/components/(\w+)/([^"]+)"')


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
        for kind, name in _REFERENCE.findall(json.dumps(reduced))
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
    builder.write(documents, Path(folder.name), '17.0.0', ())
    return Path(folder.name)


class TestCase(PageTestCase):
    """Opens the page."""

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
