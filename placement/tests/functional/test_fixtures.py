"""The fixtures for other projects, used in the same way as in the tests of these projects."""

import logging
import pathlib
from unittest import mock

import fixtures
from keystoneauth1 import adapter, session, token_endpoint
from oslo_config import cfg
from oslo_config import fixture as config_fixture
from oslotest import base
import requests

from placement import conf, db_api
from placement.microversion import VERSIONS
from placement.tests import fixtures as placement_fixtures
from placement.tests.functional.fixtures import capture, placement


class PlacementFixtureTest(base.BaseTestCase):
    def get(self, fixture: placement.PlacementFixture, path: str) -> requests.Response:
        return requests.get(fixture.endpoint + path, headers={'X-Auth-Token': fixture.token})

    def names(self, fixture: placement.PlacementFixture) -> list[str]:
        providers = self.get(fixture, '/resource_providers').json()['resource_providers']
        return [provider['name'] for provider in providers]

    def create(self, fixture: placement.PlacementFixture, name: str) -> None:
        response = requests.post(
            fixture.endpoint + '/resource_providers',
            json={'name': name},
            headers={'X-Auth-Token': fixture.token},
        )
        self.assertEqual(201, response.status_code)

    def test_a_keystoneauth_adapter_can_use_the_service(self):
        fixture = self.useFixture(placement.PlacementFixture())
        client = adapter.Adapter(
            session.Session(auth=token_endpoint.Token(fixture.endpoint, fixture.token)),
            service_type='placement',
        )

        versions = client.get('/').json()['versions']
        self.assertEqual(VERSIONS[-1], versions[0]['max_version'])
        self.assertEqual(200, client.get('/resource_providers').status_code)

    def test_each_fixture_has_a_database_and_a_service_of_its_own(self):
        first = self.useFixture(placement.PlacementFixture())
        self.create(first, 'first')
        with placement.PlacementFixture() as second:
            self.create(second, 'second')
            self.assertEqual(['second'], self.names(second))
        self.assertRaises(requests.RequestException, self.get, second, '/')

    def test_several_services_on_one_database(self):
        """The functional tests of Nova restart the service by starting another fixture."""
        conf_fixture = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        first = self.useFixture(placement.PlacementFixture(conf_fixture=conf_fixture))
        for name in ('a', 'b'):
            with placement.PlacementFixture(
                conf_fixture=conf_fixture, db=False, register_opts=False
            ) as restarted:
                self.create(restarted, name)
                self.assertNotEqual(first.endpoint, restarted.endpoint)
        self.assertEqual({'a', 'b'}, set(self.names(first)))

    def test_options_set_after_the_start_take_effect(self):
        """Administrators have all permissions, for example that of the reshaper."""
        fixture = self.useFixture(placement.PlacementFixture())
        headers = {'X-Auth-Token': 'admin', 'OpenStack-API-Version': 'placement latest'}
        for name in ('first', 'second'):
            self.create(fixture, name)
        inventories = {
            provider['uuid']: {
                'resource_provider_generation': 0,
                'inventories': {'VCPU': {'total': 1}},
            }
            for provider in self.get(fixture, '/resource_providers').json()['resource_providers']
        }
        body = {'inventories': inventories, 'allocations': {}}
        response = requests.post(f'{fixture.endpoint}/reshaper', json=body, headers=headers)
        self.assertEqual(204, response.status_code)
        url = f'{fixture.endpoint}/allocation_candidates?resources=VCPU:1'
        for limit in (2, 1):
            fixture.conf_fixture.config(group='placement', max_allocation_candidates=limit)
            found = requests.get(url, headers=headers).json()['allocation_requests']
            self.assertEqual(limit, len(found))

    def test_requests_to_other_urls_use_the_network(self):
        self.useFixture(placement.PlacementFixture())
        with mock.patch('requests.adapters.HTTPAdapter.send', side_effect=ZeroDivisionError):
            self.assertRaises(ZeroDivisionError, requests.get, 'http://example.com/placement')


class ComputeFixture(placement.PlacementFixture):
    """A subclass like those of other projects."""

    folder: str

    def _configure_placement(self, conf_fixture: config_fixture.Config) -> None:
        super()._configure_placement(conf_fixture)
        url = f'sqlite:///{self.folder}/placement.db'
        conf_fixture.config(connection=url, group='placement_database')

    def setUp(self) -> None:
        super().setUp()
        self.connected = str(db_api.get_placement_engine().url)


class SubclassTest(base.BaseTestCase):
    def test_a_subclass_configures_the_database(self):
        fixture = ComputeFixture(db=True)
        fixture.folder = self.useFixture(fixtures.TempDir()).path
        path = pathlib.Path(fixture.folder, 'placement.db')
        with fixture:
            self.assertEqual(f'sqlite:///{path}', fixture.connected)
            self.assertTrue(path.exists())
            response = requests.get(fixture.endpoint + '/', headers={'X-Auth-Token': 'admin'})
            self.assertEqual(200, response.status_code)
        self.assertFalse(path.exists())


class DatabaseTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        self.conf_fixture = self.useFixture(config_fixture.Config(config))

    def test_the_cleanup_restores_the_previous_engine(self):
        with placement_fixtures.Database(self.conf_fixture, set_config=True):
            outer = db_api.get_placement_engine()
            other = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
            conf.register_opts(other.conf)
            with placement_fixtures.Database(other, set_config=True):
                self.assertIsNot(outer, db_api.get_placement_engine())
            self.assertIs(outer, db_api.get_placement_engine())

    def test_a_configuration_without_the_options_of_placement(self):
        bare = self.useFixture(config_fixture.Config(cfg.ConfigOpts()))
        bare.register_opt(cfg.BoolOpt('sync_on_startup'), group='placement_database')
        bare.register_opt(cfg.IntOpt('mysql_wsrep_sync_wait'), group='placement_database')
        self.useFixture(placement_fixtures.Database(bare, set_config=True))

        self.assertIsNotNone(bare.conf.placement_database.connection)


class CaptureTest(base.BaseTestCase):
    def captured(self, level: str | None) -> str:
        """Return what is captured with a value of the variable OS_DEBUG."""
        self.useFixture(fixtures.EnvironmentVariable('OS_LOG_CAPTURE', '1'))
        self.useFixture(fixtures.EnvironmentVariable('OS_DEBUG', level))
        with capture.Logging() as captured:
            logger = logging.getLogger('placement.something')
            logger.info('information')
            logger.debug('details')
            # The arguments of hidden records are checked, too.
            self.assertRaises(TypeError, logger.debug, 'one %s', 'two', 'three')
        return captured.logger.output

    def test_os_debug_sets_the_level(self):
        self.assertIn('details', self.captured('1'))
        captured = self.captured(None)
        self.assertIn('information', captured)
        self.assertNotIn('details', captured)
