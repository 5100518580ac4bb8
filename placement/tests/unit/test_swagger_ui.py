"""The files of Swagger UI in doc/browser/swagger-ui are those of the package, with its licenses.

`python tools/vendor_swagger_ui.py` writes the files and their digests.
"""

import hashlib
from pathlib import Path

from oslotest import base

import placement

FOLDER = Path(placement.__file__).parents[1] / 'doc' / 'browser' / 'swagger-ui'
# The script and the style sheet, and the licenses of Swagger UI and of the packages in the script.
FILES = {
    *('swagger-ui-bundle.js', 'swagger-ui.css'),
    *('LICENSE', 'NOTICE', 'swagger-ui-bundle.js.LICENSE.txt'),
}


class SwaggerUITest(base.BaseTestCase):
    def test_the_files_are_those_of_the_package(self):
        lines = (FOLDER / 'SHA256SUMS').read_text().splitlines()
        recorded = {name: digest for digest, name in (line.split('  ') for line in lines)}
        actual = {
            path.name: hashlib.sha256(path.read_bytes()).hexdigest()
            for path in FOLDER.iterdir()
            if path.name != 'SHA256SUMS'
        }
        self.assertEqual(recorded, actual)
        self.assertEqual(FILES, set(actual))

    def test_the_licenses_are_complete(self):
        for name, words in (
            ('LICENSE', 'Apache License'),
            ('NOTICE', 'SmartBear'),
            ('swagger-ui-bundle.js.LICENSE.txt', '@license React'),
        ):
            self.assertIn(words, (FOLDER / name).read_text(), name)
