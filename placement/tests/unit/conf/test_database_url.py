"""URLs of databases: their syntax, secrets, the name of the database, and files."""

import itertools
from pathlib import Path
import urllib.parse

import fixtures
from oslotest import base
import sqlalchemy as sa

from placement.conf import database_url


class UrlTest(base.BaseTestCase):
    def assert_invalid(self, url: str, option: str = 'connection') -> None:
        error = self.assertRaises(database_url.InvalidUrlError, database_url.validate, url, option)
        self.assertIn(f'[placement_database] {option} ', str(error))
        for secret in ('SECRET', 'ONE', 'TWO', 'THREE'):
            self.assertNotIn(secret, str(error))

    def test_valid(self):
        for url in (
            'sqlite://',
            'sqlite:////var/lib/placement.db',
            'sqlite:////home/u@h/a#b:c/d.db',
            'sqlite:///file:a?mode=memory&uri=true',
            'mysql://u:p@h/d',
            'mysql+pymysql://u:p@h/d?charset=utf8mb4',
            'postgresql+psycopg://u:p@h/d',
            'postgresql+psycopg://u:p@/d?host=/run/postgresql&port=5432',
            'mysql://me@server:p@h/d',
            'mysql://u:a%40b@h/d',
            'mysql://u:a/b@h/d',
            'mysql://u:a#b?c:d@h/d',
            'mysql://u:p@[2001:db8::1]:3306/d',
            'mysql://u:p@h:3306/d?ssl_ca=/etc/ssl/a.pem&x=%40',
            'mysql://u@h/d',
            'mysql://h/d',
        ):
            self.assertIsNone(database_url.validate(url, 'connection'))
            self.assertEqual(sa.make_url(url), database_url.parse(url))
        password = ''.join(map(chr, range(0x20, 0x7F)))
        url = f'mysql://u:{urllib.parse.quote(password, safe="")}@h/d'
        self.assertIsNone(database_url.validate(url, 'connection'))
        self.assertEqual(password, database_url.parse(url).password)

    def test_invalid(self):
        for url in ('', 'SECRET', 'mysql+pymysql://u:p@h:SECRET/d', 'mariadb://u:SECRET@h/d'):
            self.assert_invalid(url, 'slave_connection')

    def test_a_password_that_ends_too_early(self):
        """All passwords with an `@` and up to two other special characters."""
        others = [
            ''.join(some) for n in range(3) for some in itertools.product('@/#?:=&[]', repeat=n)
        ]
        for driver in ('mysql+pymysql', 'postgresql+psycopg'):
            for text in others:
                for password in (f'ONE@{text}TWO', f'ONE{text}@TWO', f'ONE@THREE{text}TWO'):
                    url = f'{driver}://u:{password}@h/d'
                    self.assert_invalid(url)
                    self.assertIsNone(database_url.masked(url))

    def test_secrets(self):
        for url, masked, secrets in (
            (
                'mysql+pymysql://u:a%40b@h:1/d?passwd=c&charset=d',
                'mysql+pymysql://u:***@h:1/d',
                ['a@b', 'c'],
            ),
            ('sqlite://', 'sqlite://', []),
            ('SECRET', None, []),
            # The user ends too early.
            ('mysql://u/SECRET@h/d', None, []),
            ('mysql://u/SECRET:x@h/d', None, []),
            ('mysql://u/SECRET#x', None, []),
            ('mysql://u/a/SECRET', None, []),
        ):
            self.assertEqual(masked, database_url.masked(url))
            self.assertEqual(secrets, list(database_url.secrets(url)))

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
            if expected:
                self.assert_invalid(text)

    def test_parameters_are_added(self):
        for text, expected in (
            ('mysql://db/a', 'mysql://db/a?b=c'),
            ('mysql://db/a?x=y', 'mysql://db/a?x=y&b=c'),
        ):
            self.assertEqual(expected, database_url.with_parameters(text, 'b=c'))
            self.assertEqual(text, database_url.with_parameters(text, ''))

    def test_files(self):
        path = Path(self.useFixture(fixtures.TempDir()).path) / 'ca'

        def unreadable(parameters: str) -> str | None:
            return database_url.unreadable_file(f'mysql+pymysql://me@db/placement?{parameters}')

        self.assertEqual(
            f'The file {path} (ssl_key in [placement_database]) cannot be read: No such file '
            'or directory',
            unreadable(f'charset=utf8mb4&ssl_key={path}'),
        )
        path.touch()
        for parameters in (f'ssl_ca={path}', 'sslrootcert=system', 'ssl_mode=REQUIRED', ''):
            self.assertIsNone(unreadable(parameters), parameters)
        self.assertIsNone(database_url.unreadable_file('no url'))
