"""Databases without rows, with and without tables."""

import os
import pathlib
from typing import ClassVar

import fixtures
from oslo_config import cfg
from oslo_db.sqlalchemy import enginefacade
from oslotest import base
import sqlalchemy as sa

from placement import conf, db_api
from placement.db import engine
from placement.db.sqlalchemy import migration
from placement.objects import sync
from placement.tests import servers
from placement.tests.functional.fixtures import capture


class EmptyDatabase(fixtures.Fixture):
    """An empty SQLite file, or a database on the server of this test run, for the service."""

    url: str
    engine: sa.Engine

    def _create(self) -> str:
        if servers.ADMIN_URL in os.environ:
            return servers.create()
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        return f'sqlite:///{folder / "placement.db"}'

    def _setUp(self) -> None:
        self.url = self._create()
        manager = enginefacade.transaction_context()
        manager.configure(connection=self.url)
        self.addCleanup(db_api.placement_context_manager.patch_factory(manager))
        sync.reset()
        self.addCleanup(sync.reset)
        self.engine = db_api.get_placement_engine()
        self.addCleanup(engine.get_pools().pool.dispose)


class MigratedDatabase(EmptyDatabase):
    """A database with the tables of the newest revision, and without rows.

    On a server, the tests of this process use the same databases one after the other, because
    migrations take longer than most tests.

    :ivar is_reused: whether other tests use the database; a test that changes tables sets it to
        False
    """

    _free: ClassVar[dict[int, list[str]]] = {}
    is_reused = servers.ADMIN_URL in os.environ

    def _setUp(self) -> None:
        super()._setUp()
        if migration.version() is None:
            migration.upgrade('head')
        self.addCleanup(self._release)

    def _create(self) -> str:
        free = self._free.setdefault(os.getpid(), [])
        return free.pop() if free else super()._create()

    def _release(self) -> None:
        if self.is_reused:
            servers.delete_all_rows(self.engine)
            self._free[os.getpid()].append(self.url)


class TestCase(base.BaseTestCase):
    """Provides an empty database and a configuration for each test."""

    kind_of_database: ClassVar[type[EmptyDatabase]] = EmptyDatabase

    def setUp(self) -> None:
        super().setUp()
        self.useFixture(capture.Logging())
        self.useFixture(capture.WarningsFixture())
        self.database = self.useFixture(self.kind_of_database())
        self.engine = self.database.engine
        self.config = cfg.ConfigOpts()
        conf.register_opts(self.config)
        self.config.set_override('connection', self.database.url, group='placement_database')
        self.config([], default_config_files=[])

    def count(self, table: sa.FromClause) -> int:
        """The number of rows of a table."""
        with self.engine.connect() as conn:
            return conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()
