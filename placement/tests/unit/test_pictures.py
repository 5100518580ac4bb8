"""The pictures of the guides are drawn from their current sources, and pages show all of them."""

import itertools
import re
from unittest import mock

from oslo_config import cfg
from oslotest import base
import sqlalchemy as sa

from placement import deploy
from placement.db.sqlalchemy import models
from placement.tests.unit import edge
from tools import pictures, schema_picture

REMEDY = 'Draw the pictures with: tox -e pictures'


def text_of_source(name: str) -> str:
    return (pictures.SOURCES / f'{name}.dot').read_text()


def names_of_layers(application) -> list[str]:
    """The class names of the middleware; numbers distinguish the layers of the same class."""
    names = []
    while application is not None:
        names.append(type(application).__name__)
        application = getattr(application, 'application', None)
    numbers = itertools.count(1)
    return [f'{name}{next(numbers)}' if names.count(name) > 1 else name for name in names]


class DrawnPicturesTest(base.BaseTestCase):
    def test_every_source_is_drawn(self):
        sources = {path.stem for path in pictures.SOURCES.iterdir()}
        self.assertEqual(sources, set(pictures.DIRECTORIES))

    def test_every_picture_is_drawn_from_its_current_source(self):
        for name in pictures.DIRECTORIES:
            with self.subTest(name):
                first_line = pictures.svg_path(name).read_text().partition('\n')[0]
                self.assertIn(pictures.digest(text_of_source(name)), first_line, REMEDY)

    def test_a_picture_refers_to_no_other_file(self):
        for name in pictures.DIRECTORIES:
            with self.subTest(name):
                document = pictures.svg_path(name).read_text()
                self.assertIsNone(re.search(r'href|url\(|@import|<style|<script', document))

    def test_a_page_shows_every_picture_with_a_text(self):
        for name, directory in pictures.DIRECTORIES.items():
            with self.subTest(name):
                shown = re.compile(rf'^\.\. image:: {name}\.svg\n   :alt: \w', re.MULTILINE)
                pages = (pictures.GUIDES / directory).glob('*.rst')
                self.assertEqual(1, sum(bool(shown.search(page.read_text())) for page in pages))


class LayersTest(base.BaseTestCase):
    def test_the_layers_are_those_of_the_application(self):
        conf = edge.configuration()
        if 'profiler' not in conf:
            conf.register_opt(cfg.BoolOpt('enabled'), 'profiler')
        conf.set_override('enabled', True, 'profiler')
        conf.set_override('auth_strategy', 'keystone', 'api')
        conf.set_override('allowed_origin', ['http://here'], 'cors')
        conf.set_override('enabled', True, 'metrics')
        conf.set_override('enable_proxy_headers_parsing', True, 'oslo_middleware')

        class WsgiMiddleware:
            def __init__(self, application):
                self.application = application

        profiler = mock.Mock(WsgiMiddleware=WsgiMiddleware)
        for name, value in (('profiler', profiler), ('profiler_initializer', mock.Mock())):
            patch = mock.patch.object(deploy, name, value, create=True)
            patch.start()
            self.addCleanup(patch.stop)
        chain = re.search(r'^  request ->(.+?)\n\n', text_of_source('layers'), re.M | re.S)[1]
        drawn = re.findall(r'\w+', chain)
        self.assertEqual(names_of_layers(deploy._build(conf)), drawn[: drawn.index('requirements')])


class SchemaTest(base.BaseTestCase):
    def test_the_source_contains_the_tables_of_the_models(self):
        self.assertEqual(schema_picture.source(models.metadata), text_of_source('schema'), REMEDY)

    def test_every_column_of_a_model_is_drawn_except_the_times(self):
        source = text_of_source('schema')
        for table in models.metadata.tables.values():
            node = re.search(rf'^  {table.name} \[.+?\]$', source, re.M | re.S)[0]
            drawn = re.findall(r'port="(\w+)"', node)
            self.assertEqual(
                set(table.columns.keys()) - {'created_at', 'updated_at'}, set(drawn), table.name
            )

    def test_every_reference_is_drawn(self):
        columns = [column for table in models.metadata.tables.values() for column in table.columns]
        referring = {
            str(column)
            for column in columns
            if column.name.endswith('_id') and column.name != 'external_id'
        }
        drawn = {str(column) for column in columns if schema_picture.reference(column)}
        self.assertEqual(referring, drawn)
        targets = {schema_picture.reference(column) for column in columns} - {None}
        self.assertEqual(set(), {target for target, _ in targets} - set(map(str, columns)))

    def test_a_reference_without_a_foreign_key_is_dashed(self):
        metadata = sa.MetaData()
        sa.Table('traits', metadata, sa.Column('id', sa.Integer, primary_key=True))
        sa.Table(
            'links',
            metadata,
            sa.Column('trait_id', sa.Integer),
            sa.Column('other', sa.Integer, sa.ForeignKey('traits.id')),
        )
        source = schema_picture.source(metadata)
        self.assertIn('links:trait_id -> traits:id [style=dashed]\n', source)
        self.assertIn('links:other -> traits:id\n', source)

    def test_the_page_describes_every_table(self):
        page = (pictures.GUIDES / 'contributor' / 'schema.rst').read_text()
        described = re.findall(r'^``(\w+)``  +[A-Z]', page, re.MULTILINE)
        self.assertEqual(sorted(models.metadata.tables), sorted(described))
