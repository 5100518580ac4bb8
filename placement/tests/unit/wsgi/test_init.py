"""The configuration, the logging and the profiler of the WSGI application."""

import logging
import os
import pathlib
from typing import Any
from unittest import mock

import fixtures
from oslo_config import cfg
from oslotest import base
import webob

from placement import conf, messages, wsgi
from placement.wsgi import log_lines


def hello(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [b'hello']


class ConfigurationTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        for name in list(os.environ):
            if name.startswith('OS_PLACEMENT_'):
                self.useFixture(fixtures.EnvironmentVariable(name))

    def set(self, name: str, value: str) -> None:
        self.useFixture(fixtures.EnvironmentVariable(name, value))

    def read(self) -> cfg.ConfigOpts:
        config = cfg.ConfigOpts()
        with mock.patch.object(wsgi, '_set_up_logging'):
            wsgi.read_configuration(config)
        return config

    def write(self, text: str) -> None:
        (self.folder / 'placement.conf').write_text(text)

    def test_only_the_file_in_the_directory_is_read(self):
        self.write('[placement_database]\nconnection = sqlite:///here\n')
        self.set('OS_PLACEMENT_CONFIG_DIR', f' {self.folder} ')
        config = self.read()

        self.assertEqual('sqlite:///here', config.placement_database.connection)
        self.assertEqual([str(self.folder / 'placement.conf')], config.config_file)
        self.assertIsNot(cfg.CONF, config)

    def test_a_missing_file_raises(self):
        self.set('OS_PLACEMENT_DATABASE__CONNECTION', 'sqlite://')
        self.set('OS_PLACEMENT_CONFIG_DIR', str(self.folder))

        self.assertRaises(cfg.ConfigFilesNotFoundError, self.read)

    def test_a_blank_directory_selects_the_default_directories(self):
        self.set('OS_PLACEMENT_DATABASE__CONNECTION', 'sqlite:///there')
        self.set('OS_PLACEMENT_CONFIG_DIR', '  ')
        with mock.patch.object(cfg, 'find_config_files', return_value=[]) as find:
            config = self.read()

        self.assertEqual('sqlite:///there', config.placement_database.connection)
        self.assertEqual('placement', find.call_args.args[0])

    def test_the_environment_overrides_the_file(self):
        self.write('[placement_database]\nconnection = sqlite:///here\n')
        self.set('OS_PLACEMENT_CONFIG_DIR', str(self.folder))
        self.set('OS_PLACEMENT_DATABASE__CONNECTION', 'sqlite:///there')
        self.set('OS_PLACEMENT_DATABASE__SYNC_ON_STARTUP', 'true')
        config = self.read()

        self.assertEqual('sqlite:///there', config.placement_database.connection)
        self.assertTrue(config.placement_database.sync_on_startup)

    def test_a_missing_connection_raises(self):
        self.write('[api]\nauth_strategy = noauth2\n')
        self.set('OS_PLACEMENT_CONFIG_DIR', str(self.folder))

        self.assertRaises(cfg.RequiredOptError, self.read)

    def test_an_invalid_value_raises(self):
        self.write(
            '[placement_database]\nconnection = sqlite://\n'
            '[placement]\nallocation_candidates_generation_strategy = sideways\n'
        )
        self.set('OS_PLACEMENT_CONFIG_DIR', str(self.folder))

        self.assertRaises(ValueError, self.read)


class LoggingTest(base.BaseTestCase):
    def test_every_handler_of_the_service_escapes(self):
        root = logging.getLogger()
        self.useFixture(fixtures.MonkeyPatch('logging.root.handlers', []))
        self.addCleanup(logging.captureWarnings, False)
        self.addCleanup(logging.setLogRecordFactory, logging.getLogRecordFactory())
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.set_default('connection', 'sqlite://', 'placement_database')
        config([], default_config_files=[], default_config_dirs=[])
        wsgi._set_up_logging(config)
        self.assertIs(messages.LogRecord, logging.getLogRecordFactory())

        self.assertNotEqual([], root.handlers)
        for handler in root.handlers:
            self.assertIsInstance(handler.formatter, log_lines.EscapingFormatter)


class ProfilerTest(base.BaseTestCase):
    def test_a_file_for_each_request(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'profiles')
        application = wsgi._profiled(hello, str(folder))
        for path in ('/', '/resource_providers/a', '/' + 'x' * 3000):
            response = webob.Request.blank(path).get_response(application)
            self.assertEqual(b'hello', response.body)

        names = sorted(path.name for path in folder.iterdir())
        self.assertEqual(3, len(names))
        self.assertTrue(any(name.startswith('GET.resource_providers.a.') for name in names))
        self.assertTrue(any(name.startswith('GET.root.') for name in names))


class InitApplicationTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.config = cfg.ConfigOpts()
        conf.register_opts(self.config)
        self.config.set_default('connection', 'sqlite://', 'placement_database')
        self.config.set_default('auth_strategy', 'noauth2', 'api')
        self.config([], default_config_files=[], default_config_dirs=[])
        self.useFixture(fixtures.EnvironmentVariable(wsgi.PROFILER_DIR))

    def init(self) -> Any:
        """Return the application, without effects on the logging and the garbage collector."""
        with (
            mock.patch.object(wsgi.engine, 'configure'),
            mock.patch.object(wsgi.deploy, 'loadapp', return_value=hello),
            mock.patch.object(wsgi, 'tune_garbage_collector'),
        ):
            return wsgi.build(self.config)

    def test_no_profiles_by_default(self):
        self.assertIs(hello, self.init())

    def test_the_environment_variable_selects_the_directory_of_profiles(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'profiles')
        self.useFixture(fixtures.EnvironmentVariable(wsgi.PROFILER_DIR, str(folder)))
        response = webob.Request.blank('/').get_response(self.init())
        self.assertEqual(b'hello', response.body)
        self.assertEqual(1, len(list(folder.iterdir())))

    def test_log_options(self):
        for log_options in (True, False):
            self.config.set_override('log_options', log_options)
            with mock.patch.object(cfg.ConfigOpts, 'log_opt_values') as log_values:
                self.init()
            self.assertEqual(int(log_options), log_values.call_count)

    def test_logged_options_contain_no_secrets(self):
        self.config.set_override('log_options', True)
        for option in ('connection', 'slave_connection', 'connection_parameters'):
            self.config.set_override(option, f'{option}=SECRET', 'placement_database')
        with fixtures.FakeLogger('placement', logging.DEBUG) as log:
            self.init()
        self.assertIn('placement_database.connection_parameters = ****', log.output)
        self.assertNotIn('SECRET', log.output)

    def test_a_warning_without_authentication(self):
        for strategy, lines in (('noauth2', 1), ('keystone', 0)):
            self.config.set_override('auth_strategy', strategy, 'api')
            with (
                fixtures.FakeLogger('placement', logging.WARNING) as log,
                mock.patch.object(wsgi.authtoken, 'validate'),
            ):
                self.init()
            self.assertEqual(lines, len(log.output.splitlines()))
            self.assertEqual(lines, log.output.count('roles, because [api] auth_strategy is '))
