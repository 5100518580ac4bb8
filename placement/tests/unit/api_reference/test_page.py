"""The pages of the API reference have a section for each operation.

Other projects link to these sections: their anchors are derived from the titles and must not
change.
"""

from pathlib import Path
import re

from oslotest import base

import placement
from placement.operations import OPERATIONS

SOURCE = Path(placement.__file__).parents[1] / 'api-ref' / 'source'
ANCHORS = [
    'list-versions',
    'list-resource-providers',
    'create-resource-provider',
    'show-resource-provider',
    'update-resource-provider',
    'delete-resource-provider',
    'list-resource-classes',
    'create-resource-class',
    'show-resource-class',
    'update-resource-class',
    'delete-resource-class',
    'list-resource-provider-inventories',
    'update-resource-provider-inventories',
    'delete-resource-provider-inventories',
    'create-resource-provider-inventory',
    'show-resource-provider-inventory',
    'update-resource-provider-inventory',
    'delete-resource-provider-inventory',
    'list-resource-provider-aggregates',
    'update-resource-provider-aggregates',
    'list-traits',
    'show-traits',
    'update-traits',
    'delete-traits',
    'list-resource-provider-traits',
    'update-resource-provider-traits',
    'delete-resource-provider-traits',
    'manage-allocations',
    'list-allocations',
    'update-allocations',
    'delete-allocations',
    'list-resource-provider-allocations',
    'list-usages',
    'list-resource-provider-usages',
    'list-allocation-candidates',
    'reshaper',
]

_OPERATION = re.compile(r'^(\S.*)\n([=-])\2+\n\n\.\. operation:: (\S+ \S+)$', re.MULTILINE)
_TITLE = re.compile(r'^(?!\.\.)(\S.*)\n([=~-])\2+$', re.MULTILINE)


def page():
    """Return the text of all pages."""
    return '\n'.join(path.read_text() for path in sorted(SOURCE.glob('*.rst')))


def anchor(title):
    return re.sub('[^a-z0-9]+', '-', title.lower()).strip('-')


class PageTest(base.BaseTestCase):
    def test_each_operation_has_one_section_with_its_title(self):
        sections = sorted((route, title) for title, _, route in _OPERATION.findall(page()))
        declared = sorted(
            (f'{method} {path}', operation.title)
            for path, methods in OPERATIONS.items()
            for method, operation in methods.items()
            if path  # the empty path is the same as '/'
        )
        self.assertEqual(declared, sections)
        self.assertEqual(len(declared), page().count('.. operation::'))

    def test_the_anchors_do_not_change(self):
        sections = {anchor(title) for title, _, _ in _OPERATION.findall(page())}
        self.assertEqual(set(ANCHORS), sections)

    def test_all_titles_have_different_anchors(self):
        anchors = [anchor(title) for title, _ in _TITLE.findall(page())]
        self.assertGreater(len(anchors), len(ANCHORS))
        self.assertEqual(sorted(set(anchors)), sorted(anchors))

    def test_the_text_contains_no_json_typed_by_hand(self):
        self.assertNotIn('.. code-block:: json', page())
