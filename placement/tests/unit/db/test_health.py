"""The statement of the health check, on SQLite databases and on nodes of Galera."""

import pathlib
from unittest import mock

import fixtures
from oslotest import base
import sqlalchemy as sa

from placement import health
from placement.db import engine as db_engine


class SQLiteTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'a b%20?#.db')

    def use(self, url: sa.URL | str) -> sa.Engine:
        engine = sa.create_engine(url)
        self.addCleanup(engine.dispose)
        self.useFixture(fixtures.MockPatchObject(db_engine, 'get_placement_engine', lambda: engine))
        return engine

    def test_a_file(self):
        engine = self.use(sa.URL.create('sqlite', database=str(self.path)))
        with engine.begin() as conn:
            conn.exec_driver_sql('CREATE TABLE t (n INTEGER)')
        health.check_database()
        self.path.write_bytes(b'x' * 4096)
        self.assertRaises(sa.exc.DatabaseError, health.check_database)

    def test_a_missing_file_is_not_created(self):
        self.use(sa.URL.create('sqlite', database=str(self.path)))
        self.assertRaises(sa.exc.OperationalError, health.check_database)
        self.assertFalse(self.path.exists())

    def test_a_uri(self):
        self.use(f'sqlite:///file:{self.path.parent}/other.db?mode=rw&uri=true')
        self.assertRaises(sa.exc.OperationalError, health.check_database)

    def test_a_database_in_memory(self):
        manager = db_engine.enginefacade.transaction_context()
        manager.configure(connection='sqlite://')
        self.useFixture(fixtures.MockPatchObject(db_engine, 'placement_context_manager', manager))
        health.check_database()


class GaleraTest(base.BaseTestCase):
    def connection(self, **settings) -> mock.Mock:
        """Return a connection to a server with the variable wsrep_on and status wsrep_ready."""
        rows = {f"'{name}'": (name, value) for name, value in settings.items()}
        conn = mock.Mock()
        conn.dialect.name = 'mysql'
        conn.exec_driver_sql.side_effect = lambda text: mock.Mock(
            first=lambda: rows.get(text.split()[-1])
        )
        return conn

    def test_a_node_must_be_ready(self):
        for settings in ({}, {'wsrep_on': 'OFF', 'wsrep_ready': 'OFF'}):
            health._require_ready_node(self.connection(**settings))
        health._require_ready_node(self.connection(wsrep_on='ON', wsrep_ready='ON'))
        for ready in ({}, {'wsrep_ready': 'OFF'}):
            self.assertRaises(
                health.exception.DatabaseUnavailable,
                health._require_ready_node,
                self.connection(wsrep_on='ON', **ready),
            )
