"""The fixtures that other projects' tests use, used as those do."""

import logging
import pathlib
from unittest import mock
import warnings

import fixtures
from keystoneauth1 import adapter, session, token_endpoint
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslotest import base
import requests
import sqlalchemy as sa

from placement import conf, db_api
from placement.db.sqlalchemy import models
from placement.tests import fixtures as placement_fixtures
from placement.tests.functional.fixtures import capture, placement


class PlacementFixtureTest(base.BaseTestCase):
    def ask(self, fixture: placement.PlacementFixture, path: str) -> requests.Response:
        return requests.get(fixture.endpoint + path, headers={'X-Auth-Token': fixture.token})

    def names(self, fixture: placement.PlacementFixture) -> list[str]:
        found = self.ask(fixture, '/resource_providers').json()['resource_providers']
        return [provider['name'] for provider in found]

    def create(self, fixture: placement.PlacementFixture, name: str) -> None:
        answer = requests.post(
            fixture.endpoint + '/resource_providers',
            json={'name': name},
            headers={'X-Auth-Token': fixture.token},
        )
        self.assertEqual(201, answer.status_code)

    def test_arguments_are_attributes(self):
        fixture = placement.PlacementFixture('t', None, False, False, False)

        self.assertEqual(
            ('t', None, False, False, False),
            (
                fixture.token,
                fixture.conf_fixture,
                fixture.db,
                fixture.use_intercept,
                fixture.register_opts,
            ),
        )

    def test_a_service_for_a_command_line_client(self):
        fixture = self.useFixture(placement.PlacementFixture())
        client = adapter.Adapter(
            session.Session(auth=token_endpoint.Token(fixture.endpoint, fixture.token)),
            service_type='placement',
        )

        versions = client.get('/').json()['versions']
        self.assertEqual('1.39', versions[0]['max_version'])
        self.assertEqual(200, client.get('/resource_providers').status_code)

    def test_each_fixture_has_a_database_of_its_own(self):
        first = self.useFixture(placement.PlacementFixture())
        self.create(first, 'first')
        with placement.PlacementFixture() as second:
            self.create(second, 'second')
            self.assertEqual(['second'], self.names(second))

    def test_one_after_the_other(self):
        for name in ('a', 'b', 'c'):
            with placement.PlacementFixture() as fixture:
                self.create(fixture, name)
                self.assertEqual([name], self.names(fixture))
            self.assertRaises(requests.RequestException, self.ask, fixture, '/')

    def test_several_services_on_one_database(self):
        """As a functional test of a compute service restarts its placement service."""
        conf_fixture = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        first = self.useFixture(placement.PlacementFixture(conf_fixture=conf_fixture))
        for name in ('a', 'b'):
            with placement.PlacementFixture(
                conf_fixture=conf_fixture, db=False, register_opts=False
            ) as again:
                self.create(again, name)
                self.assertNotEqual(first.endpoint, again.endpoint)
        self.assertEqual({'a', 'b'}, set(self.names(first)))

    def test_options_are_read_when_they_are_needed(self):
        fixture = self.useFixture(placement.PlacementFixture())
        fixture.conf_fixture.config(
            group='placement', allocation_candidates_generation_strategy='breadth-first'
        )
        fixture.conf_fixture.config(group='workarounds', optimize_for_wide_provider_trees=True)
        answer = requests.get(
            f'{fixture.endpoint}/allocation_candidates?resources=VCPU:1',
            headers={'X-Auth-Token': 'admin', 'OpenStack-API-Version': 'placement 1.39'},
        )
        self.assertEqual([], answer.json()['allocation_requests'])

    def test_administrators_may_do_everything(self):
        fixture = self.useFixture(placement.PlacementFixture())
        answer = requests.post(
            f'{fixture.endpoint}/reshaper',
            json={'inventories': {}, 'allocations': {}},
            headers={'X-Auth-Token': 'admin', 'OpenStack-API-Version': 'placement 1.39'},
        )
        self.assertNotEqual(403, answer.status_code)

    def test_without_an_application(self):
        fixture = self.useFixture(placement.PlacementFixture(use_intercept=False))

        self.assertFalse(hasattr(fixture, 'endpoint'))
        self.assertEqual('noauth2', fixture.conf_fixture.conf.api.auth_strategy)

    def test_other_requests_go_to_the_network(self):
        self.useFixture(placement.PlacementFixture())
        with mock.patch('requests.adapters.HTTPAdapter.send', side_effect=ZeroDivisionError):
            self.assertRaises(ZeroDivisionError, requests.get, 'http://example.com/placement')


class ComputeFixture(placement.PlacementFixture):
    """A subclass as other projects have it."""

    folder: str

    def _configure_placement(self, conf_fixture: config_fixture.Config) -> None:
        super()._configure_placement(conf_fixture)
        url = f'sqlite:///{self.folder}/placement.db'
        conf_fixture.config(connection=url, group='placement_database')

    def setUp(self) -> None:
        super().setUp()
        self.connected = str(db_api.get_placement_engine().url)


class SubclassTest(base.BaseTestCase):
    def test_a_database_of_the_subclass(self):
        fixture = ComputeFixture(db=True)
        fixture.folder = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(fixture.folder, 'placement.db')
        with fixture:
            self.assertEqual(f'sqlite:///{path}', fixture.connected)
            self.assertTrue(path.exists())
            answer = requests.get(fixture.endpoint + '/', headers={'X-Auth-Token': 'admin'})
            self.assertEqual(200, answer.status_code)
        self.assertFalse(path.exists())


class DatabaseTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        self.conf_fixture = self.useFixture(config_fixture.Config(config))

    def count(self, table: sa.Table) -> int:
        with db_api.reader() as conn:
            return conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one()

    def test_tables_traits_and_classes(self):
        self.useFixture(placement_fixtures.Database(self.conf_fixture, set_config=True))

        self.assertEqual(0, self.count(models.resource_providers))
        self.assertLess(300, self.count(models.traits))
        self.assertEqual(21, self.count(models.resource_classes))

    def test_the_engine_before_comes_back(self):
        with placement_fixtures.Database(self.conf_fixture, set_config=True):
            outer = db_api.get_placement_engine()
            other = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
            conf.register_opts(other.conf)
            with placement_fixtures.Database(other, set_config=True):
                self.assertIsNot(outer, db_api.get_placement_engine())
            self.assertIs(outer, db_api.get_placement_engine())

    def test_a_connection_that_is_set_stays(self):
        url = f'sqlite:///{self.useFixture(fixtures.TempDir()).path}/mine.db'
        self.conf_fixture.config(connection=url, group='placement_database')
        self.useFixture(placement_fixtures.Database(self.conf_fixture, set_config=True))

        self.assertEqual(url, str(db_api.get_placement_engine().url))

    def test_a_configuration_without_our_options(self):
        bare = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        bare.register_opt(cfg.BoolOpt('sync_on_startup'), group='placement_database')
        bare.register_opt(cfg.IntOpt('mysql_wsrep_sync_wait'), group='placement_database')
        self.useFixture(placement_fixtures.Database(bare, set_config=True))

        self.assertIsNotNone(bare.conf.placement_database.connection)


class CaptureTest(base.BaseTestCase):
    def test_levels(self):
        self.useFixture(fixtures.EnvironmentVariable('OS_LOG_CAPTURE', '1'))
        self.useFixture(fixtures.EnvironmentVariable('OS_DEBUG'))
        captured = self.useFixture(capture.Logging())
        logger = logging.getLogger('placement.something')
        logger.info('shown %s', 1)
        logger.debug('hidden %s', 2)

        self.assertIn('shown 1', captured.logger.output)
        self.assertNotIn('hidden', captured.logger.output)

    def test_debug(self):
        self.useFixture(fixtures.EnvironmentVariable('OS_LOG_CAPTURE', '1'))
        self.useFixture(fixtures.EnvironmentVariable('OS_DEBUG', '1'))
        captured = self.useFixture(capture.Logging())
        logging.getLogger('placement.something').debug('shown')

        self.assertIn('shown', captured.logger.output)

    def test_records_that_cannot_be_formatted_surface(self):
        self.useFixture(fixtures.EnvironmentVariable('OS_LOG_CAPTURE', '1'))
        self.useFixture(capture.Logging())

        logger = logging.getLogger('placement.something')
        self.assertRaises(TypeError, logger.debug, 'one %s', 'two', 'three')

    def test_warnings(self):
        before = list(warnings.filters)
        with capture.WarningsFixture():
            self.assertRaises(sa.exc.SAWarning, warnings.warn, 'bad', sa.exc.SAWarning)
            self.assertRaises(FutureWarning, warnings.warn, 'an invalid UUID', FutureWarning)
            warnings.warn('Policy x failed scope check', UserWarning, stacklevel=1)
            warnings.warn_explicit('old', sa.exc.SADeprecationWarning, 'f', 1, module='other')
            self.assertRaises(
                sa.exc.SADeprecationWarning,
                warnings.warn_explicit,
                'old',
                sa.exc.SADeprecationWarning,
                'f',
                1,
                module='placement.objects',
            )
        self.assertEqual(before, list(warnings.filters))
