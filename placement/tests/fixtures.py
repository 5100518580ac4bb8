"""A database for a test."""

import contextlib
import os
from typing import Any
from unittest import mock
import uuid

from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslo_db.sqlalchemy import enginefacade, provision, test_fixtures
import sqlalchemy as sa

from placement import db_api
from placement.db.sqlalchemy import models
from placement.objects import sync
from placement.tests import servers


class _KeptSchema(provision.SchemaResource):
    """Keeps the tables for the next test: on a server, making and dropping them is slow."""

    def clean(self, resource: provision.Schema) -> None:
        servers.delete_all_rows(resource.database.engine)


class Database(test_fixtures.GeneratesSchema, test_fixtures.AdHocDbFixture):
    """All tables, with the standard traits and classes, in the database that is configured.

    The tables are made from the model, without migrations. The database becomes that of the
    service until the fixture is cleaned up, which drops it again.

    :param conf_fixture: configuration to read `[placement_database]` from
    :param set_config: register the option `connection` if need be and, where it has no value,
        set it to a database in memory
    """

    def __init__(self, conf_fixture: config_fixture.Config, set_config: bool = False):
        self._lease: servers.Lease | None = None
        if set_config:
            self._set_connection(conf_fixture)
        super().__init__(url=conf_fixture.conf.placement_database.connection)
        # oslo.db draws the name with `random`, which a test may have seeded.
        self.ident = uuid.uuid4().hex
        self.resource_key = (self.driver, self.__class__, self.ident)
        self._configured = self._configure(conf_fixture.conf)

    def _set_connection(self, conf_fixture: config_fixture.Config) -> None:
        # A duplicate is the real option, with all its attributes.
        with contextlib.suppress(cfg.DuplicateOptError):
            conf_fixture.register_opt(cfg.StrOpt('connection'), group='placement_database')
        if conf_fixture.conf.placement_database.connection is not None:
            return
        url = 'sqlite://'
        if servers.ADMIN_URL in os.environ:
            self._lease = servers.lease()
            url = self._lease.url
        conf_fixture.config(connection=url, group='placement_database')

    def _configure(self, conf: cfg.ConfigOpts) -> enginefacade._TransactionContextManager:
        # The service may have a database already, that of another fixture, which is in use.
        configured = enginefacade.transaction_context()
        put_back = db_api.placement_context_manager.patch_factory(configured)
        try:
            db_api.configure.reset()
            db_api.configure(conf)
        finally:
            put_back()
            db_api.configure.reset()
        return configured

    def _setUp(self) -> None:
        sync.reset()
        self.addCleanup(sync.reset)
        if self._lease is not None:
            self.addCleanup(self._lease.give_back)
        # Cleanups run backwards: the tables are dropped before the connections are.
        self.addCleanup(self._dispose)
        super()._setUp()
        self._engine = db_api.get_placement_engine()
        sync.sync_traits()
        sync.sync_resource_classes()

    def _dispose(self) -> None:
        if (engine := getattr(self, '_engine', None)) is not None:
            engine.dispose()

    def get_enginefacade(self) -> enginefacade._TransactionContextManager:
        return self._configured

    def get_per_test_enginefacade(self) -> enginefacade._TransactionContextManager:
        return db_api.placement_context_manager

    def _generate_database_resource(self, _enginefacade: Any) -> provision.DatabaseResource:
        # oslo.db first tries a server of its own choice at localhost, whatever the URL is.
        backends = provision.Backend.backends_by_database_type
        backend = provision.Backend(self.driver, self.url) if self.url else backends['sqlite']
        with mock.patch.dict(backends, {self.driver: backend}):
            return super()._generate_database_resource(_enginefacade)

    def _generate_schema_resource(
        self, database_resource: provision.DatabaseResource
    ) -> provision.SchemaResource:
        if self._lease is None:
            return super()._generate_schema_resource(database_resource)
        return _KeptSchema(database_resource, self.generate_schema_create_all)

    def generate_schema_create_all(self, engine: sa.Engine) -> None:
        models.metadata.create_all(engine)
