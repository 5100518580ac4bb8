"""The worked examples of the user guide show the real requests and responses.

Each page is compared with its gabbi file, as `example_pages` describes. After an intended change,
`python -m tools.pages` writes the requests and responses into the pages.
"""

import difflib

import ddt
from oslotest import base

from placement.tests import where
from placement.tests.functional import example_pages

PAGE = """
A page
======

.. code-block:: text
   :caption: Create the host

   ?

Text

.. code-block:: text
   :caption: Search

   GET /old

   200 OK
   {"summaries": ...}

.. code-block:: text

   not a recorded block
"""

UPDATED = """
A page
======

.. code-block:: text
   :caption: Create the host

   POST /resource_providers
   {"name": "host", "uuid": "HOST"}

   200 OK
   {"uuid": "HOST", "links": ...}

Text

.. code-block:: text
   :caption: Search

   GET /allocation_candidates
       ?resources=VCPU:1
       &required=CUSTOM_TRAIT_WITH_A_LONG_NAME,CUSTOM_ANOTHER_TRAIT_WITH_A_LONG_NAME

   200 OK
   {
     "requests": [
       "a string that does not fit into one line with the other",
       "another long string of about the same length"
     ],
     "summaries": ...
   }

.. code-block:: text

   not a recorded block
"""

EXCHANGES = {
    'Create the host': example_pages.Exchange(
        'POST /resource_providers',
        {'name': 'host', 'uuid': 'HOST'},
        200,
        {'uuid': 'HOST', 'links': [{'rel': 'self'}]},
    ),
    'Search': example_pages.Exchange(
        'GET /allocation_candidates?resources=VCPU:1'
        '&required=CUSTOM_TRAIT_WITH_A_LONG_NAME,CUSTOM_ANOTHER_TRAIT_WITH_A_LONG_NAME',
        None,
        200,
        {
            'requests': [
                'a string that does not fit into one line with the other',
                'another long string of about the same length',
            ],
            'summaries': {'HOST': {}},
        },
    ),
}


@where.only_on('sqlite', reason='The API tests execute the same statements.')
@ddt.ddt
class PagesTest(base.BaseTestCase):
    @ddt.data(*example_pages.guides())
    def test_the_page_shows_the_recorded_requests_and_responses(self, guide):
        page = example_pages.page(guide)
        before = page.read_text()
        after = example_pages.updated(before, example_pages.record(guide))
        lines = difflib.unified_diff(
            before.splitlines(), after.splitlines(), str(page), 'recorded', lineterm=''
        )
        self.assertEqual('', '\n'.join(lines))

    @ddt.data(*example_pages.guides())
    def test_the_page_shows_the_requests_in_the_order_of_the_gabbi_file(self, guide):
        shown = example_pages.captions(example_pages.page(guide).read_text())
        self.assertGreater(len(shown), 5)
        sent = [caption for caption in example_pages.record(guide) if caption in shown]
        self.assertEqual(sent, shown)


@where.only_on('sqlite', reason='The API tests execute the same statements.')
class BlocksTest(base.BaseTestCase):
    def test_the_captions_of_a_page(self):
        self.assertEqual(['Create the host', 'Search'], example_pages.captions(PAGE))

    def test_blocks_are_replaced_by_the_recorded_requests(self):
        self.assertEqual(UPDATED, example_pages.updated(PAGE, EXCHANGES))
        self.assertEqual(UPDATED, example_pages.updated(UPDATED, EXCHANGES))

    def test_a_caption_without_a_request_is_an_error(self):
        page = PAGE.replace('Create the host', 'Create the hosts')
        self.assertRaisesRegex(KeyError, 'Create the hosts', example_pages.updated, page, EXCHANGES)
