"""The recording of examples, and their comparison with the committed files.

The layout and the constant values of recorded examples are those of the committed examples, which
`placement/tests/functional/test_api.py` compares.
"""

from pathlib import Path
import tempfile
from unittest import mock

from oslotest import base

from placement.tests import where
from placement.tests.examples import collection, handlers
from placement.tests.functional.examples import recorder

GIVEN = '5e4c1cd7-a61f-44cf-ad27-2cee38b81000'
OTHER = 'b7f4a8b2-58ad-4a2c-8b0c-3d1f1f0f0a11'

GABBI = f"""
fixtures: [APIFixture]
defaults:
  request_headers: {{x-auth-token: admin, content-type: application/json}}
tests:
- name: create a provider
  POST: /resource_providers
  data: {{name: host, uuid: {GIVEN}}}
  status: 201
  response_example: create-a-provider
- name: read it
  GET: /resource_providers/{GIVEN}
- name: an unknown provider
  GET: /resource_providers/{OTHER}
  status: 404
  response_example: unknown-provider
"""


@where.only_on('sqlite', reason='No SQL statement is executed.')
class ComparisonTest(base.BaseTestCase):
    """The files of a recording, and the handler that compares them."""

    def setUp(self):
        super().setUp()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.file = Path(folder.name) / 'some-requests.yaml'
        self.file.write_text(GABBI)
        self.collection = collection.Collection('some-', Path(folder.name) / 'examples')
        patch = mock.patch.object(collection, 'COLLECTIONS', (self.collection,))
        self.enterContext(patch)
        self.addCleanup(handlers.committed_entries.cache_clear)
        self.recordings = recorder.record_files([self.file])
        self.files = collection.all_files(self.recordings)

    def compare(self):
        """Send the requests again, and compare them with the files."""
        handlers.committed_entries.cache_clear()
        return recorder.failures(self.file, handlers.ExampleHandler)

    def assertDifferent(self, files, name):
        """With these committed files, only the example with a name has changed."""
        self.collection.write(files)
        (failure,) = self.compare()
        self.assertIn(f'The example {name} has changed.', failure)

    def test_equal_files(self):
        """What differs from run to run is not part of a recording."""
        names = {'create-a-provider-request.json', 'unknown-provider-response.json', 'index.yaml'}
        self.assertEqual(names, self.files.keys())
        self.assertNotIn('X-Auth-Token', self.recordings[0].request.headers)
        self.assertEqual(self.recordings, recorder.record_files([self.file]))
        self.assertEqual(sorted(self.files), self.collection.write(self.files))
        self.assertEqual([], self.compare())
        self.assertEqual([], self.collection.write(self.files))

    def test_changed_files(self):
        name = 'create-a-provider-request.json'
        self.assertDifferent({**self.files, name: f'{self.files[name]} '}, 'create-a-provider')
        index = self.files['index.yaml'].replace('/resource_providers/', '/providers/', 1)
        self.assertDifferent({**self.files, 'index.yaml': index}, 'create-a-provider')
        del self.files['unknown-provider-response.json']
        self.assertDifferent(self.files, 'unknown-provider')

    def test_superfluous_files_are_deleted(self):
        self.collection.write({**self.files, 'old-response.json': '{}\n'})
        self.assertEqual(['old-response.json'], self.collection.write(self.files))
        self.assertEqual(sorted(self.files), sorted(self.collection.committed()))

    def test_errors(self):
        """A name is repeated, or a test of the file fails."""
        self.assertRaises(ValueError, collection.all_files, [*self.recordings, self.recordings[0]])
        self.file.write_text(GABBI.replace('404', '403'))
        self.assertRaises(recorder.RecordingError, recorder.record_files, [self.file])
