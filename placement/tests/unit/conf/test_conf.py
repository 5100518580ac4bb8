"""The options: their defaults and their registration."""

import pathlib
from unittest import mock

import fixtures
from oslo_config import cfg
from oslo_middleware import cors, sizelimit
from oslo_middleware.healthcheck import opts as healthcheck_opts
from oslotest import base

from placement import conf
from placement.conf import base as conf_base
from placement.conf import opts

CONNECTION = 'OS_PLACEMENT_DATABASE__CONNECTION'


class ConfTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.EnvironmentVariable(CONNECTION, 'sqlite://'))

    def parse(self, text: str = '') -> cfg.ConfigOpts:
        """Parse the text of a configuration file."""
        path = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'placement.conf')
        path.write_text(text)
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config([], default_config_files=[str(path)])
        return config

    def test_numbers_have_a_least_value(self):
        for group, name, least in (
            ('api', 'token_memory', 0),
            ('api', 'slow_request_seconds', 0),
            ('placement', 'max_candidate_search_steps', -1),
            ('placement', 'max_candidates_response_size', -1),
            ('placement', 'allocation_conflict_retry_count', 0),
            ('placement_database', 'connect_timeout', 0),
            ('placement_database', 'read_timeout', 0),
            ('placement_database', 'write_timeout', 0),
        ):
            with self.subTest(name):
                config = self.parse(f'[{group}]\n{name} = {least}\n')
                self.assertEqual(least, config[group][name])
                config = self.parse(f'[{group}]\n{name} = {least - 1}\n')
                self.assertRaises(ValueError, getattr, config[group], name)

    def test_defaults(self):
        config = self.parse()

        self.assertEqual(
            {
                'auth_strategy': 'keystone',
                'token_memory': 10000,
                'slow_request_seconds': 5,
                'log_changes': True,
            },
            dict(config.api),
        )
        self.assertEqual(
            {
                'randomize_allocation_candidates': False,
                'max_allocation_candidates': -1,
                'allocation_candidates_generation_strategy': 'depth-first',
                'max_candidate_search_steps': 10000000,
                'max_candidates_response_size': 67108864,
                'allocation_conflict_retry_count': 10,
                'incomplete_consumer_project_id': '00000000-0000-0000-0000-000000000000',
                'incomplete_consumer_user_id': '00000000-0000-0000-0000-000000000000',
            },
            dict(config.placement),
        )
        self.assertEqual(
            {
                'connection': 'sqlite://',
                'connection_parameters': '',
                'slave_connection': None,
                'sqlite_synchronous': True,
                'mysql_sql_mode': 'TRADITIONAL',
                'mysql_wsrep_sync_wait': None,
                'connection_recycle_time': 3600,
                'max_pool_size': None,
                'max_overflow': None,
                'pool_timeout': None,
                'max_retries': 10,
                'retry_interval': 10,
                'connection_debug': 0,
                'connection_trace': False,
                'connect_timeout': 10,
                'read_timeout': 30,
                'write_timeout': 30,
                'sync_on_startup': False,
            },
            dict(config.placement_database),
        )
        self.assertIs(False, config.workarounds.optimize_for_wide_provider_trees)
        self.assertIs(False, config.metrics.enabled)
        self.assertIs(True, config.log_options)
        self.assertIsNone(config.tempdir)
        self.assertEqual(config.pybasedir, config.state_path)
        self.assertTrue(pathlib.Path(config.pybasedir, 'placement', 'conf').is_dir())

    def test_defaults_of_libraries(self):
        config = self.parse()
        self.assertEqual('policy.yaml', config.oslo_policy.policy_file)
        self.assertIs(True, config.oslo_policy.enforce_new_defaults)
        self.assertIs(False, config.oslo_middleware.enable_proxy_headers_parsing)
        self.assertIsNone(config.cors.allowed_origin)
        self.assertEqual(['GET', 'PUT', 'POST', 'DELETE', 'PATCH'], config.cors.allow_methods)
        self.assertIn('OpenStack-API-Version', config.cors.allow_headers)
        self.assertIn('X-Subject-Token', config.cors.expose_headers)
        self.assertEqual(1024 * 1024, config.oslo_middleware.max_request_body_size)
        self.assertEqual(['placement_database'], config.healthcheck.backends)
        self.assertIs(False, config.debug)
        # They do not change for other services in the process.
        other = cfg.ConfigOpts()
        other.register_opts(cors.OPTS, group='cors')
        other.register_opts(sizelimit.OPTS, group='oslo_middleware')
        other.register_opts(healthcheck_opts.HEALTHCHECK_OPTS, group='healthcheck')
        other([], default_config_files=[])
        self.assertIn('TRACE', other.cors.allow_methods)
        self.assertEqual(114688, other.oslo_middleware.max_request_body_size)
        self.assertEqual([], other.healthcheck.backends)
        # A file overrides them.
        config = self.parse('[cors]\nallow_methods = GET\n[oslo_policy]\npolicy_file = mine.yaml\n')
        self.assertEqual(['GET'], config.cors.allow_methods)
        self.assertEqual('mine.yaml', config.oslo_policy.policy_file)

    def test_the_options_of_osprofiler_are_registered_if_it_is_installed(self):
        profiler_opts = mock.Mock()
        self.useFixture(fixtures.MockPatchObject(conf_base, 'profiler_opts', new=profiler_opts))
        config = self.parse()

        profiler_opts.set_defaults.assert_called_once_with(config)

    def test_objects_do_not_share_options_or_values(self):
        config = self.parse('[api]\nauth_strategy = noauth2\n')
        conf.register_opts(config)
        self.assertEqual('noauth2', config.api.auth_strategy)
        self.assertEqual('keystone', self.parse().api.auth_strategy)
        ours, others = cfg.ConfigOpts(), cfg.ConfigOpts()
        for config in (ours, others):
            conf.register_opts(config)
        ours.set_override('connection', 'sqlite://', 'placement_database')
        ours.set_override('auth_strategy', 'noauth2', 'api')
        self.assertIsNone(others.placement_database.connection)
        self.assertEqual('keystone', others.api.auth_strategy)
        for group in ('api', 'placement', 'placement_database', 'cors', 'workarounds'):
            self.assertNotIn(group, cfg.CONF)

    def test_the_connection_is_required(self):
        self.useFixture(fixtures.EnvironmentVariable(CONNECTION))

        error = self.assertRaises(cfg.RequiredOptError, self.parse)
        self.assertIn('connection', str(error))
        self.assertIn('placement_database', str(error))

    def test_sources_of_a_value(self):
        self.assertEqual(
            'noauth2', self.parse('[DEFAULT]\nauth_strategy = noauth2\n').api.auth_strategy
        )
        self.useFixture(fixtures.EnvironmentVariable('OS_API__AUTH_STRATEGY', 'noauth2'))
        self.assertEqual(
            'noauth2', self.parse('[api]\nauth_strategy = keystone\n').api.auth_strategy
        )

    def test_invalid_values_fail(self):
        for group, option in (
            ('api', 'auth_strategy'),
            ('placement', 'allocation_candidates_generation_strategy'),
            ('placement_database', 'max_retries'),
        ):
            config = self.parse(f'[{group}]\n{option} = something\n')
            error = self.assertRaises(ValueError, conf.validate, config)
            self.assertIn(option, str(error))


class SampleTest(base.BaseTestCase):
    def test_the_sample_has_the_groups_of_the_service(self):
        listed = dict(opts.list_opts())

        self.assertEqual(
            ['DEFAULT', 'api', 'metrics', 'placement', 'placement_database', 'workarounds'],
            list(listed),
        )
        self.assertEqual(
            ['tempdir', 'pybasedir', 'state_path'], [option.name for option in listed['DEFAULT']]
        )
        self.assertEqual('<Path>', listed['DEFAULT'][1].sample_default)
        for options in listed.values():
            for option in options:
                self.assertGreater(len(option.help), 20, option.name)
        # The generator of the sample can change the defaults.
        listed['api'][0].default = 'changed'
        self.assertEqual('keystone', dict(opts.list_opts())['api'][0].default)

    def test_the_sample_has_the_defaults_for_libraries(self):
        self.addCleanup(cors.set_defaults, **{o.name: o.default for o in cors.OPTS[1:]})
        self.addCleanup(cfg.set_defaults, healthcheck_opts.HEALTHCHECK_OPTS, backends=[])
        (limit,) = sizelimit.OPTS
        self.addCleanup(setattr, limit, 'default', limit.default)
        conf_base.set_lib_defaults()

        self.assertEqual(1024 * 1024, limit.default)
        backends = {option.name: option.default for option in healthcheck_opts.HEALTHCHECK_OPTS}
        self.assertEqual(['placement_database'], backends['backends'])
        defaults = {option.name: option.default for option in cors.OPTS}
        self.assertEqual(['GET', 'PUT', 'POST', 'DELETE', 'PATCH'], defaults['allow_methods'])
