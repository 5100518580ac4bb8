"""Empty databases for tests that create the tables themselves."""

import os
import pathlib

import fixtures
from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
from oslotest import base
import sqlalchemy as sa

from placement import conf, db_api
from placement.objects import sync
from placement.tests import servers
from placement.tests.functional.fixtures import capture


class EmptyDatabase(fixtures.Fixture):
    """An empty SQLite file, or a database on the server of this test run, for the service."""

    url: str
    engine: sa.Engine

    def _setUp(self) -> None:
        if servers.ADMIN_URL in os.environ:
            self.url = servers.create()
        else:
            folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
            self.url = f'sqlite:///{folder / "placement.db"}'
        manager = enginefacade.transaction_context()
        manager.configure(connection=self.url)
        self.addCleanup(db_api.placement_context_manager.patch_factory(manager))
        sync.reset()
        self.addCleanup(sync.reset)
        self.engine = db_api.get_placement_engine()
        self.addCleanup(self.engine.dispose)


class TestCase(base.BaseTestCase):
    """Provides an empty database and a configuration for each test."""

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(capture.Logging())
        self.useFixture(capture.WarningsFixture())
        self.database = self.useFixture(EmptyDatabase())
        self.engine = self.database.engine
        self.config = cfg.ConfigOpts()
        conf.register_opts(self.config)
        self.config.set_override('connection', self.database.url, group='placement_database')
        self.config([], default_config_files=[])

    def count(self, table: sa.FromClause) -> int:
        """The number of rows of a table."""
        with self.engine.connect() as conn:
            return conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
