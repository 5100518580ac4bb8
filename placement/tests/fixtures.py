"""The database fixture, also for tests of other projects."""

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
from placement.db import engine
from placement.db.sqlalchemy import models
from placement.objects import sync
from placement.tests import servers


class _KeptSchema(provision.SchemaResource):
    """Keeps the tables for the next test, because a server creates and drops tables slowly."""

    def clean(self, resource: provision.Schema) -> None:
        servers.delete_all_rows(resource.database.engine)


class Database(test_fixtures.GeneratesSchema, test_fixtures.AdHocDbFixture):
    """Creates all tables, standard traits and resource classes in the configured database.

    The tables are created from the models, without migrations. The service uses the database until
    the cleanup of the fixture, which drops the tables.

    :param conf_fixture: the configuration with `[placement_database]`
    :param set_config: whether to register the option `connection` if it is not registered, and to
        set it to a database in memory if it has no value
    """

    def __init__(self, conf_fixture: config_fixture.Config, set_config: bool = False):
        self._lease: servers.Lease | None = None
        if set_config:
            self._set_connection(conf_fixture)
        super().__init__(url=conf_fixture.conf.placement_database.connection)
        # oslo.db generates the name with `random`, and a test may have set its seed.
        self.ident = uuid.uuid4().hex
        self.resource_key = (self.driver, self.__class__, self.ident)
        self._configured = self._configure(conf_fixture.conf)

    def _set_connection(self, conf_fixture: config_fixture.Config) -> None:
        # If the option is registered already, it is the real one with all its attributes.
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
        # Another fixture may have configured the service, so its configuration is restored.
        configured = enginefacade.transaction_context()
        restore = db_api.placement_context_manager.patch_factory(configured)
        try:
            db_api.configure.reset()
            db_api.configure(conf)
        finally:
            restore()
            db_api.configure.reset()
        return configured

    def _setUp(self) -> None:
        sync.reset()
        self.addCleanup(sync.reset)
        if self._lease is not None:
            self.addCleanup(self._lease.release)
        # Cleanups run in reverse order: the tables are dropped before the connections are closed.
        self.addCleanup(self._dispose)
        super()._setUp()
        self._pools = engine.get_pools()
        sync.sync_traits()
        sync.sync_resource_classes()

    def _dispose(self) -> None:
        if (pools := getattr(self, '_pools', None)) is not None:
            pools.pool.dispose()

    def get_enginefacade(self) -> enginefacade._TransactionContextManager:
        return self._configured

    def get_per_test_enginefacade(self) -> enginefacade._TransactionContextManager:
        return db_api.placement_context_manager

    def _generate_database_resource(self, _enginefacade: Any) -> provision.DatabaseResource:
        # By default, oslo.db first tries to connect to a server on localhost, whatever the URL is.
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
