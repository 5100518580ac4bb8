"""The files that doc/openapi_browser.py writes for the page with the OpenAPI documents.

The tests in placement/tests/functional/openapi_browser open the page.
"""

import json
from pathlib import Path
import re
import tempfile

from oslotest import base

from placement.tests import openapi_browser

browser = openapi_browser.load()

PARTS = {
    *('browse.css', 'browse.js'),
    *('swagger-ui-bundle.js', 'swagger-ui.css'),
    *('LICENSE', 'NOTICE', 'swagger-ui-bundle.js.LICENSE.txt'),
}
TEXT = 'openapi: 3.1.0\ninfo: {title: "</script> \u2028 ü", version: "%s"}\npaths: {}\n'


class PageTest(base.BaseTestCase):
    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='placement-openapi-')
        self.addCleanup(folder.cleanup)
        self.documents = Path(folder.name, 'documents')
        self.documents.mkdir()
        self.target = Path(folder.name, 'html')

    def write(self, *versions: str) -> str:
        """Write the page with a document of each version, and return its text."""
        for version in versions:
            path = self.documents / f'placement-{version}.yaml'
            path.write_text(TEXT % version, encoding='utf-8')
        (self.documents / 'placement.yaml').write_text(TEXT % '1.10', encoding='utf-8')
        browser.write(self.documents, self.target, '17.0.0', (('Guides', '../index.html'),))
        return (self.target / 'browse.html').read_text(encoding='utf-8')

    def test_the_newest_microversion_is_the_first_option(self):
        page = self.write('1.2', '1.10', '1.9')
        self.assertEqual(['1.10', '1.9', '1.2'], re.findall('<option value="([^"]+)"', page))

    def test_the_page_links_each_document_and_the_combined_document(self):
        page = self.write('1.0', '1.1')
        links = re.findall('<a href="(openapi/[^"]+)" download>', page)
        names = ('placement.yaml', 'placement-1.1.yaml', 'placement-1.0.yaml')
        self.assertEqual([f'openapi/{name}' for name in names], links)
        for name in names:
            source = (self.documents / name).read_bytes()
            self.assertEqual(source, (self.target / 'openapi' / name).read_bytes(), name)

    def test_the_script_of_a_document_contains_its_text(self):
        self.write('1.0')
        script = (self.target / 'openapi' / 'placement-1.0.js').read_text(encoding='utf-8')
        arguments = re.fullmatch(r'showDocument\((.*)\);\n', script)[1]
        self.assertEqual(['1.0', TEXT % '1.0'], json.loads(f'[{arguments}]'))

    def test_the_page_and_its_files_are_complete(self):
        page = self.write('1.0')
        self.assertNotIn('$', page)
        urls = re.findall(r'(?:href|src)="(browse/[^"]+)"', page)
        self.assertGreater(len(urls), 4)
        for url in urls:
            self.assertTrue((self.target / url).is_file(), url)
        copied = {path.name for path in (self.target / 'browse').iterdir()}
        self.assertEqual(PARTS, copied)

    def test_files_of_an_earlier_build_are_removed(self):
        self.write('1.0')
        obsolete = self.target / 'openapi' / 'placement-1.99.yaml'
        obsolete.write_text('')
        self.write('1.0')
        self.assertFalse(obsolete.exists())

    def test_missing_documents_are_an_error(self):
        arguments = (self.documents, self.target, '17.0.0', ())
        self.assertRaises(FileNotFoundError, browser.write, *arguments)
        self.write('1.0')
        (self.documents / 'placement.yaml').unlink()
        self.assertRaises(FileNotFoundError, browser.write, *arguments)
