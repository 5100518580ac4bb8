"""The messages of errors for operators: one line, with a remedy, and without a secret."""

import sqlite3
from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_db import exception as db_exc
from oslotest import base
import psycopg
import sqlalchemy as sa

from placement import exception, messages
from placement.conf import database_url
from placement.db import engine

PASSWORD = 'abc def'
URL = 'mysql+pymysql://placement:abc%20def@db.example.com/placement?ssl_key_password=xyz'


class MySQLError(Exception):
    """An error of PyMySQL."""

    __module__ = 'pymysql.err'


def mysql(number: int, text: str) -> sa.exc.DBAPIError:
    """Return the error of SQLAlchemy for an error of MySQL."""
    return sa.exc.OperationalError('SELECT secret', {}, MySQLError(number, text))


def sqlite(text: str) -> sa.exc.DBAPIError:
    """Return the error of SQLAlchemy for an error of SQLite."""
    return sa.exc.OperationalError('SELECT secret', {}, sqlite3.OperationalError(text))


def postgresql(text: str) -> sa.exc.DBAPIError:
    """Return the error of SQLAlchemy for a rejected connection to PostgreSQL."""
    return sa.exc.OperationalError(None, None, psycopg.OperationalError(text))


class SentenceTest(base.BaseTestCase):
    """The tests of the programs (functional/mistakes) cause other errors."""

    def setUp(self):
        super().setUp()
        urls = engine.configure.urls
        self.addCleanup(setattr, engine.configure, 'urls', urls)
        engine.configure.urls = (URL,)

    def test_a_ca_that_pymysql_does_not_use(self):
        """PyMySQL replaces the CA if the URL contains one of two other parameters."""
        error = mysql(2026, 'SSL connection error: certificate verify failed')
        ca = '?charset=utf8mb4&ssl_ca=/nonexistent'
        self.useFixture(
            fixtures.MockPatchObject(database_url, 'unreadable_file', return_value=None)
        )
        for driver, parameters, remedy in (
            ('pymysql', f'{ca}&ssl_verify_cert=true', 'Remove ssl_verify_cert from the URL, '),
            ('pymysql', f'{ca}&ssl_verify_identity=1', 'Remove ssl_verify_identity from the URL, '),
            ('pymysql', ca, 'Correct the certificate of the server, '),
            ('pymysql', '?ssl_verify_cert=true', 'Correct the certificate of the server, '),
            ('mysqldb', f'{ca}&ssl_verify_cert=true', 'Correct the certificate of the server, '),
        ):
            engine.configure.urls = (f'mysql+{driver}://placement@db/placement{parameters}',)
            self.assertIn(f'verify failed. {remedy}', messages.sentence(error))

    def test_sentences(self):
        for error, sentence in (
            (ValueError('the reason\nin two lines'), 'the reason in two lines'),
            (RuntimeError(), 'RuntimeError'),
            (KeyError('name'), "KeyError: 'name'"),
            (TypeError('got an argument'), 'TypeError: got an argument'),
            (OSError('text'), 'text'),
            (
                db_exc.DBInvalidUnicodeParameter(),
                'A name contains bytes that are not UTF-8. Correct the name.',
            ),
            (
                cfg.ConfigFileParseError('a.conf', f'line with {PASSWORD}'),
                'The configuration file a.conf is malformed. Correct it.',
            ),
            (
                cfg.ConfigFilesPermissionDeniedError(['a.conf', 'b.conf']),
                'The configuration file a.conf, b.conf is not readable. Allow this user to read '
                'it.',
            ),
            (
                sa.exc.ArgumentError(f'text with {PASSWORD}'),
                'A URL in [placement_database] is not a valid database URL. Correct the URL.',
            ),
            # Secrets of the URL are masked.
            (ValueError(f'"{PASSWORD}", xyz, and xyzzy'), '"***", ***, and xyzzy'),
        ):
            self.assertEqual(sentence, messages.sentence(error))

    def test_errors_of_databases(self):
        lacking, surplus = (
            'lacks a table or a column',
            'has a table that its migration would create',
        )
        unreachable, denied = 'is not reachable', 'denies access'
        server = 'mysql+pymysql://placement:***@db.example.com/placement'
        locked = 'sqlite:////p.db'
        for urls, error, start in (
            *(
                ((URL,), mysql(number, 'text'), f'The database {server} {verdict}: text. ')
                for number, verdict in (
                    (1045, denied),
                    (1044, denied),
                    (1049, 'does not exist'),
                    (1146, lacking),
                    (1050, surplus),
                    (2003, unreachable),
                )
            ),
            *(
                ((locked,), sqlite(text), f'The database {locked} {verdict}: {text}. ')
                for text, verdict in (
                    ('attempt to write a readonly database', 'cannot be opened'),
                    ('database is locked', 'is in use'),
                )
            ),
            # The replica is named, and a URL that cannot be parsed is not.
            (('sqlite:///a', 'sqlite:///b'), mysql(2003, 'text'), 'The database sqlite:///a or '),
            ((PASSWORD,), mysql(2003, 'text'), f'The database {unreachable}: text.'),
        ):
            engine.configure.urls = urls
            sentence = messages.sentence(error)
            self.assertTrue(sentence.startswith(start), sentence)
            unavailable = exception.DatabaseUnavailable()
            unavailable.__cause__ = error
            self.assertEqual(sentence, messages.sentence(unavailable))
        sentence = messages.sentence(db_exc.DBError(sa.exc.InternalError('s', {}, OSError('text'))))
        self.assertTrue(sentence.endswith(' failed: text.'), sentence)

    def test_too_many_connections(self):
        setting = "SHOW VARIABLES LIKE '{}'"
        for error, statement in (
            (mysql(1040, 'Too many connections'), setting.format('max_connections')),
            (
                mysql(1203, "User p already has more than 'max_user_connections' connections"),
                setting.format('max_user_connections'),
            ),
            (postgresql('sorry, too many clients already'), 'SHOW max_connections'),
            (postgresql('remaining connection slots are reserved'), 'SHOW max_connections'),
            (
                postgresql('too many connections for role "placement"'),
                'SELECT rolname, rolconnlimit FROM pg_roles',
            ),
            (
                postgresql('too many connections for database "placement"'),
                'SELECT datname, datconnlimit FROM pg_database',
            ),
        ):
            with mock.patch.object(engine.configure, 'connections', 16):
                sentence = messages.sentence(error)
            self.assertIn(f'(`{statement}` prints it), or decrease max_pool_size', sentence)
            self.assertIn('each process of the service opens up to 16 connections', sentence)

    def test_too_many_connections_of_the_user(self):
        text = "User 'p' has exceeded the 'max_user_connections' resource (current value: 9)"
        sentence = messages.sentence(mysql(1226, text))
        self.assertIn(f'{text}. Increase max_user_connections of the user, or', sentence)
        sentence = messages.sentence(mysql(1226, "exceeded 'max_connections_per_hour'"))
        self.assertIn('Increase max_connections_per_hour of the user, or', sentence)
        sentence = messages.sentence(mysql(1226, "User 'placement' has exceeded 'max_queries'"))
        self.assertIn('is not reachable', sentence)

    def test_an_unverified_server(self):
        text = "Can't connect to MySQL server ([SSL] certificate verify failed: expired)"
        self.assertEqual(
            'The database mysql+pymysql://placement:***@db.example.com/placement cannot be '
            f'verified with TLS: {text}. Correct the certificate of the server, or correct '
            '[placement_database] connection.',
            messages.sentence(mysql(2003, text)),
        )
