"""The files of Swagger UI, which the page with the OpenAPI documents uses."""

import hashlib

from oslotest import base

from placement.tests import openapi_browser

FOLDER = openapi_browser.ROOT / 'doc' / 'browser' / 'swagger-ui'


class SwaggerUITest(base.BaseTestCase):
    """`python tools/vendor_swagger_ui.py` writes the files and their digests."""

    def test_the_files_are_those_of_the_package(self):
        lines = (FOLDER / 'SHA256SUMS').read_text().splitlines()
        actual = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in FOLDER.iterdir()
            if path.name != 'SHA256SUMS'
        }
        self.assertEqual({line[66:]: line[:64] for line in lines}, actual)
