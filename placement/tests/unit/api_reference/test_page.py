"""The pages of the API reference have a section for each operation.

Other projects link to these sections. Their anchors are derived from the titles. They must not
change; the examples in api-ref/examples have their names.
"""

from pathlib import Path
import re

from oslotest import base

from api_reference.operations import OPERATIONS
import placement

SOURCE = Path(placement.__file__).parents[1] / 'api-ref' / 'source'
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

    def test_all_titles_have_different_anchors(self):
        anchors = [anchor(title) for title, _ in _TITLE.findall(page())]
        self.assertGreater(len(anchors), len(OPERATIONS))
        self.assertEqual(sorted(set(anchors)), sorted(anchors))

    def test_the_text_contains_no_json_typed_by_hand(self):
        self.assertNotIn('.. code-block:: json', page())
