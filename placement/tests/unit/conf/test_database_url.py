"""URLs of databases: the name of the database, and the files in the parameters."""

from pathlib import Path

import fixtures
from oslotest import base
import sqlalchemy as sa

from placement.conf import database_url


class NameTest(base.BaseTestCase):
    def test_urls_without_a_database(self):
        for text, expected in (
            ('mysql+pymysql://me@db', True),
            ('mysql+pymysql://me@db/', True),
            ('mysql://me@db/?charset=utf8mb4', True),
            ('mysql+pymysql://me@db/placement', False),
            ('mysql+pymysql://me@db?database=placement', False),
            ('mysql+pymysql://me@db/?read_default_file=/etc/my.cnf', False),
            # The database has the name of the user.
            ('postgresql+psycopg://me@db', False),
            ('sqlite://', False),
        ):
            self.assertEqual(expected, database_url.names_no_database(sa.make_url(text)), text)

    def test_parameters_are_added(self):
        for text, expected in (
            ('mysql://db/a', 'mysql://db/a?b=c'),
            ('mysql://db/a?x=y', 'mysql://db/a?x=y&b=c'),
        ):
            self.assertEqual(expected, database_url.with_parameters(text, 'b=c'))
            self.assertEqual(text, database_url.with_parameters(text, ''))


class FileTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.path = Path(self.useFixture(fixtures.TempDir()).path) / 'ca'

    def unreadable(self, parameters: str) -> str | None:
        return database_url.unreadable_file(f'mysql+pymysql://me@db/placement?{parameters}')

    def test_a_missing_file_is_named_with_its_parameter(self):
        self.assertEqual(
            f'The file {self.path} (ssl_key in [placement_database]) cannot be read: No such file '
            'or directory',
            self.unreadable(f'charset=utf8mb4&ssl_key={self.path}'),
        )

    def test_other_parameters(self):
        self.path.touch()
        for parameters in (f'ssl_ca={self.path}', 'sslrootcert=system', 'ssl_mode=REQUIRED', ''):
            self.assertIsNone(self.unreadable(parameters), parameters)
        self.assertIsNone(database_url.unreadable_file('no url'))
