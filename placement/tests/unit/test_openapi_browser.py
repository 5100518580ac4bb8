"""The files that doc/openapi_browser.py writes for the page with the OpenAPI documents.

The tests in placement/tests/functional/openapi_browser open the page.
"""

import hashlib
import json
from pathlib import Path
import re
import tempfile

from oslotest import base

from placement.tests import openapi_browser

browser = openapi_browser.load()

# The files of Swagger UI, with its licenses and those of the packages in the script.
FOLDER = openapi_browser.ROOT / 'doc' / 'browser' / 'swagger-ui'
SWAGGER_UI = {
    *('swagger-ui-bundle.js', 'swagger-ui.css'),
    *('LICENSE', 'NOTICE', 'swagger-ui-bundle.js.LICENSE.txt'),
}
PARTS = {'browse.css', 'browse.js', *SWAGGER_UI}
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

    def test_the_page_and_its_files_are_complete(self):
        """The newest document is the first option, and files of an earlier build are removed."""
        obsolete = self.target / 'openapi' / 'placement-1.99.yaml'
        obsolete.parent.mkdir(parents=True)
        obsolete.write_text('')
        page = self.write('1.2', '1.10', '1.9')
        self.assertFalse(obsolete.exists())
        self.assertNotIn('$', page)
        self.assertEqual(['1.10', '1.9', '1.2'], re.findall('<option value="([^"]+)"', page))
        links = re.findall('<a href="(openapi/[^"]+)" download>', page)
        versions = ('', '-1.10', '-1.9', '-1.2')
        self.assertEqual([f'openapi/placement{version}.yaml' for version in versions], links)
        for name in (link.removeprefix('openapi/') for link in links):
            source = (self.documents / name).read_bytes()
            self.assertEqual(source, (self.target / 'openapi' / name).read_bytes(), name)
        script = (self.target / 'openapi' / 'placement-1.9.js').read_text(encoding='utf-8')
        arguments = re.fullmatch(r'showDocument\((.*)\);\n', script)[1]
        self.assertEqual(['1.9', TEXT % '1.9'], json.loads(f'[{arguments}]'))
        urls = re.findall(r'(?:href|src)="(browse/[^"]+)"', page)
        self.assertGreater(len(urls), 4)
        self.assertEqual([], [url for url in urls if not (self.target / url).is_file()])
        copied = {path.name for path in (self.target / 'browse').iterdir()}
        self.assertEqual(PARTS, copied)

    def test_missing_documents_are_an_error(self):
        arguments = (self.documents, self.target, '17.0.0', ())
        self.assertRaises(FileNotFoundError, browser.write, *arguments)
        self.write('1.0')
        (self.documents / 'placement.yaml').unlink()
        self.assertRaises(FileNotFoundError, browser.write, *arguments)


class SwaggerUITest(base.BaseTestCase):
    """`python tools/vendor_swagger_ui.py` writes the files and their digests."""

    def test_the_files_are_those_of_the_package(self):
        lines = (FOLDER / 'SHA256SUMS').read_text().splitlines()
        recorded = {name: digest for digest, name in (line.split('  ') for line in lines)}
        actual = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in FOLDER.iterdir()
            if path.name != 'SHA256SUMS'
        }
        self.assertEqual(recorded, actual)
        self.assertEqual(SWAGGER_UI, set(actual))
