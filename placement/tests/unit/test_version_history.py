"""The version history describes every microversion, with its anchor and its OpenStack release."""

import pathlib
import re

from oslotest import base

import placement
from placement import microversion

PAGE = pathlib.Path(placement.__file__).parent / 'rest_api_version_history.rst'
# The anchor, the microversion, the title, and the release of a section.
_SECTION = re.compile(
    r'^\.\. _(\S+):\n\n(\d+\.\d+) (.+)\n-+\n\nNew in OpenStack (\w+(?:\.\d)?)\.\n\n', re.MULTILINE
)
# The release, its newest microversion with the anchor, and its new microversions.
_ROW = re.compile(
    r'^([A-Z\d]\w+(?:\.\d)?(?: \w+)*)  +(?:from )?\d{4}  +`(\S+) <(\S+)_>`__  +(.+)$', re.M
)


def anchor(version: str) -> str:
    return f'microversion-{version.replace(".", "-")}'


def summary(versions: list[str]) -> str:
    """The text of the table for the new microversions of a release."""
    if not versions:
        return 'None'
    if len(versions) < 3:
        return ' and '.join(versions)
    return f'{versions[0]} to {versions[-1]}'


class VersionHistoryTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.sections = _SECTION.findall(PAGE.read_text())

    def test_every_microversion_has_a_section_with_its_anchor(self):
        found = [(version, name) for name, version, _, _ in self.sections]
        self.assertEqual([(one, anchor(one)) for one in microversion.VERSIONS], found)
        # Sphinx derives a second anchor from the title.
        titles = {title.lower() for _, _, title, _ in self.sections}
        self.assertEqual(len(self.sections), len(titles))

    def test_the_table_lists_the_releases_with_their_microversions(self):
        rows = _ROW.findall(PAGE.read_text())
        table = PAGE.read_text().partition('\nRelease  ')[2].split('\n=')[1]
        self.assertEqual(len(table.splitlines()[1:]), len(rows))
        found, maximum = [], ''
        for release, newest, target, new in rows:
            own = [version for _, version, _, name in self.sections if name == release]
            maximum = own[-1] if own else maximum
            self.assertEqual((summary(own), maximum), (new, newest), release)
            self.assertEqual(anchor(maximum), target)
            found += own
        self.assertEqual(microversion.VERSIONS, found)
