"""The worked examples of the user guide show the real requests and responses.

Each page is compared with its gabbi file, as `example_pages` describes. After an intended change,
`python -m tools.pages` writes the requests and responses into the pages.
"""

import difflib

import ddt
from oslotest import base

from placement.tests import where
from placement.tests.functional import example_pages


@where.only_on('sqlite', reason='The API tests execute the same statements.')
@ddt.ddt
class PagesTest(base.BaseTestCase):
    @ddt.data(*example_pages.guides())
    def test_the_page_shows_the_recorded_requests_and_responses(self, guide):
        page = example_pages.page(guide)
        before, recorded = page.read_text(), example_pages.record(guide)
        lines = difflib.unified_diff(
            before.splitlines(),
            example_pages.updated(before, recorded).splitlines(),
            str(page),
            'recorded',
            lineterm='',
        )
        self.assertEqual('', '\n'.join(lines))
        # The requests are in the order of the gabbi file.
        shown = example_pages.captions(before)
        self.assertGreater(len(shown), 5)
        self.assertEqual([caption for caption in recorded if caption in shown], shown)
