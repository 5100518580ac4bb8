"""The pictures of the guides are drawn from their current sources, and pages show all of them."""

import re

from oslotest import base

from placement.db.sqlalchemy import models
from tools import pictures, schema_picture
from tools.perf import plots

REMEDY = 'Draw the pictures with: tox -e pictures'


def text_of_source(name: str) -> str:
    return (pictures.SOURCES / f'{name}.dot').read_text()


class PicturesTest(base.BaseTestCase):
    def test_every_picture_is_drawn_from_its_current_source(self):
        for name in pictures.DIRECTORIES:
            with self.subTest(name):
                first_line = pictures.svg_path(name).read_text().partition('\n')[0]
                self.assertIn(pictures.digest(text_of_source(name)), first_line, REMEDY)

    def test_a_page_shows_every_picture_with_a_text(self):
        for name, directory in pictures.DIRECTORIES.items():
            with self.subTest(name):
                shown = re.compile(rf'^\.\. image:: {name}\.svg\n   :alt: \w', re.MULTILINE)
                pages = (pictures.GUIDES / directory).glob('*.rst')
                self.assertEqual(1, sum(bool(shown.search(page.read_text())) for page in pages))

    def test_the_picture_of_the_schema_is_that_of_the_models(self):
        self.assertEqual(schema_picture.source(models.metadata), text_of_source('schema'), REMEDY)

    def test_the_page_of_the_schema_describes_every_table(self):
        page = (pictures.GUIDES / 'contributor' / 'architecture.rst').read_text()
        described = re.findall(r'^``(\w+)``  +[A-Z]', page, re.MULTILINE)
        self.assertEqual(sorted(models.metadata.tables), sorted(described))

    def test_the_plots_of_the_performance_are_those_of_the_data(self):
        page = (plots.FOLDER / 'performance.rst').read_text()
        for name, plot in plots.PLOTS.items():
            path = plots.path(name)
            self.assertEqual(plot().svg(), path.read_text(), 'Run: python -m tools.perf.plots')
            self.assertIn(f'.. image:: {path.name}\n   :alt: ', page)
