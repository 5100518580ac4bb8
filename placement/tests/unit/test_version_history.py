"""The version history describes every microversion, with its anchor and its OpenStack release."""

import itertools
import pathlib
import re
from typing import NamedTuple

from oslotest import base

import placement
from placement import microversion

PAGE = pathlib.Path(placement.__file__).parent / 'rest_api_version_history.rst'
_SECTION = re.compile(
    r'^\.\. _(?P<anchor>\S+):\n\n'
    r'(?P<version>\d+\.\d+) (?P<title>.+)\n-+\n\n'
    r'New in OpenStack (?P<release>\w+(?:\.\d)?)\.\n\n',
    re.MULTILINE,
)
_ROW = re.compile(
    r'^([A-Z\d]\w+(?:\.\d)?(?: \w+)*)  +(?:from )?\d{4}  +`(\S+) <(\S+)_>`__  +(.+)$', re.M
)


class Section(NamedTuple):
    """The heading of a section, with the lines before and after it."""

    anchor: str
    version: str
    title: str
    release: str


class Row(NamedTuple):
    """A row of the table of releases."""

    release: str
    maximum: str
    anchor: str
    new: str


def sections() -> list[Section]:
    return [Section(**match.groupdict()) for match in _SECTION.finditer(PAGE.read_text())]


def rows() -> list[Row]:
    return [Row(*match.groups()) for match in _ROW.finditer(PAGE.read_text())]


def last_versions() -> dict[str, str]:
    """The last microversion of each release that has new microversions, according to sections."""
    return {section.release: section.version for section in sections()}


def anchor(version: str) -> str:
    return f'microversion-{version.replace(".", "-")}'


def summary(versions: list[str]) -> str:
    """The text of the table for the new microversions of a release."""
    if not versions:
        return 'None'
    if len(versions) < 3:
        return ' and '.join(versions)
    return f'{versions[0]} to {versions[-1]}'


class SectionsTest(base.BaseTestCase):
    def test_the_headings_are_the_microversions_in_their_order(self):
        headings = re.findall(r'^(\d+\.\d+) .+\n-+$', PAGE.read_text(), re.MULTILINE)
        self.assertEqual(microversion.VERSIONS, headings)

    def test_every_section_has_its_anchor_and_a_release(self):
        expected = [(version, anchor(version)) for version in microversion.VERSIONS]
        self.assertEqual(expected, [(section.version, section.anchor) for section in sections()])

    def test_every_title_is_unique(self):
        """Sphinx derives a second anchor from the title."""
        titles = [section.title.lower() for section in sections()]
        self.assertEqual(len(titles), len(set(titles)))

    def test_the_sections_of_a_release_are_adjacent(self):
        changes = [release for release, _ in itertools.groupby(s.release for s in sections())]
        self.assertEqual(list(last_versions()), changes)


class TableTest(base.BaseTestCase):
    def test_every_line_of_the_table_is_a_row(self):
        _, _, table = PAGE.read_text().partition('\nRelease  ')
        body = table.split('\n=')[1].splitlines()[1:]
        self.assertGreater(len(body), len(last_versions()))
        self.assertEqual(len(body), len(rows()))

    def test_the_table_contains_the_releases_of_the_sections_in_their_order(self):
        self.assertEqual(
            list(last_versions()), [row.release for row in rows() if row.new != 'None']
        )

    def test_a_row_lists_the_new_microversions_of_its_release(self):
        for row in rows():
            new = [section.version for section in sections() if section.release == row.release]
            self.assertEqual(summary(new), row.new, row.release)

    def test_a_row_links_the_maximum_microversion_of_its_release(self):
        maximum = ''
        for row in rows():
            maximum = last_versions().get(row.release, maximum)
            self.assertEqual((maximum, anchor(maximum)), (row.maximum, row.anchor), row.release)
