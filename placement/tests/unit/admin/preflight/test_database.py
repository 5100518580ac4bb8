"""URLs and drivers of databases."""

import pathlib

import fixtures
from oslotest import base
import sqlalchemy as sa

from placement.admin.preflight import database
from placement.admin.preflight.model import Result


class DriverTest(base.BaseTestCase):
    def test_an_installed_driver(self):
        self.assertEqual(Result.OK, database.judge_driver('mysql+pymysql', None).result)

    def test_the_remedy_names_the_extra(self):
        for name, remedy in (
            ('mysql+pymysql', "pip install 'openstack-placement[mysql]'"),
            ('mysql', "pip install 'openstack-placement[mysqlclient]'"),
            ('mysql+mysqldb', "pip install 'openstack-placement[mysqlclient]'"),
            ('postgresql+psycopg', "pip install 'openstack-placement[postgresql]'"),
            ('postgresql+psycopg2', 'install it'),
        ):
            verdict = database.judge_driver(name, 'No module')
            self.assertEqual(Result.FAILURE, verdict.result, name)
            self.assertIn(remedy, verdict.remedy)


class UrlTest(base.BaseTestCase):
    def bounded(self, text: str) -> sa.URL:
        return database.bounded(sa.make_url(text))

    def test_connections_have_time_limits(self):
        for driver, names in (
            ('mysql+pymysql', {'connect_timeout', 'read_timeout'}),
            ('postgresql+psycopg', {'connect_timeout'}),
        ):
            url = self.bounded(f'{driver}://me@db/placement?charset=utf8')
            self.assertEqual(names | {'charset'}, set(url.query), driver)

    def test_a_limit_in_the_url_stays(self):
        url = self.bounded('mysql+pymysql://me@db/placement?connect_timeout=1')
        self.assertEqual('1', url.query['connect_timeout'])

    def test_locations_have_no_secrets(self):
        for text, expected in (
            ('mysql+pymysql://me:hush@db:3306/placement?passwd=hush', 'placement at db:3306'),
            ('postgresql+psycopg://me:hush@db/placement', 'placement at db'),
            ('sqlite:////var/placement.db', '/var/placement.db'),
            ('sqlite://', 'memory'),
        ):
            self.assertEqual(expected, database.location(sa.make_url(text)))

    def test_files_are_opened_without_changes(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        url = f'sqlite:///{folder}/a b.db'
        self.assertEqual(
            {'mode': 'ro', 'uri': 'true', 'immutable': '1'}, dict(self.bounded(url).query)
        )
        (folder / 'a b.db-wal').touch()
        self.assertEqual({'mode': 'ro', 'uri': 'true'}, dict(self.bounded(url).query))
        self.assertEqual(f'file:{folder}/a%20b.db', self.bounded(url).database)

    def test_a_database_in_memory(self):
        self.assertEqual('sqlite://', str(self.bounded('sqlite://')))
