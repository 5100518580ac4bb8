"""The configuration, the logging and the profiler of the WSGI application."""

import logging
import pathlib
from typing import Any
from unittest import mock

import fixtures
from oslo_config import cfg
from oslotest import base
import webob

from placement import wsgi
from placement.tests.unit import edge


def hello(environ: dict[str, Any], start_response: Any) -> list[bytes]:
    start_response('200 OK', [('Content-Type', 'text/plain')])
    return [b'hello']


class ConfigurationTest(base.BaseTestCase):
    """The tests of the sources of the configuration are in `placement.tests.unit.conf`."""

    def test_the_configuration_is_read_and_validated(self):
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path)
        self.useFixture(fixtures.EnvironmentVariable('OS_PLACEMENT_CONFIG_DIR', str(folder)))
        self.useFixture(fixtures.MockPatch('placement.wsgi._set_up_logging'))
        for strategy, is_valid in (('depth-first', True), ('sideways', False)):
            (folder / 'placement.conf').write_text(
                '[placement_database]\nconnection = sqlite:///here\n'
                f'[placement]\nallocation_candidates_generation_strategy = {strategy}\n'
            )
            config = cfg.ConfigOpts()
            if is_valid:
                wsgi.read_configuration(config)
                self.assertEqual('sqlite:///here', config.placement_database.connection)
            else:
                self.assertRaises(ValueError, wsgi.read_configuration, config)

    def test_embedders_receive_the_original_exception(self):
        self.useFixture(fixtures.EnvironmentVariable('OS_PLACEMENT_CONFIG_DIR', '/nonexistent'))
        self.assertRaises(cfg.ConfigFilesNotFoundError, wsgi.init_application)

    def test_every_handler_of_the_log_escapes(self):
        self.useFixture(fixtures.MonkeyPatch('logging.root.handlers', []))
        self.addCleanup(logging.captureWarnings, False)
        wsgi._set_up_logging(edge.configuration())
        self.assertNotEqual([], logging.getLogger().handlers)
        for handler in logging.getLogger().handlers:
            record = logging.LogRecord('placement', logging.ERROR, '', 0, '\x1b[31m', (), None)
            self.assertIn(r'\u001b[31m', handler.format(record))


class InitApplicationTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.config = edge.configuration()
        self.useFixture(fixtures.EnvironmentVariable(wsgi.PROFILER_DIR))

    def init(self) -> Any:
        """Return the application, without effects on the logging and the garbage collector."""
        with (
            mock.patch.object(wsgi.engine, 'configure'),
            mock.patch.object(wsgi.deploy, 'loadapp', return_value=hello),
            mock.patch.object(wsgi, 'tune_garbage_collector'),
        ):
            return wsgi.build(self.config)

    def test_a_profile_of_each_request(self):
        self.assertIs(hello, self.init())
        folder = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'profiles')
        self.useFixture(fixtures.EnvironmentVariable(wsgi.PROFILER_DIR, str(folder)))
        application = self.init()
        for path in ('/', '/resource_providers/a', '/' + 'x' * 3000):
            response = webob.Request.blank(path).get_response(application)
            self.assertEqual(b'hello', response.body)
        names = sorted(path.name for path in folder.iterdir())
        self.assertEqual(3, len(names))
        self.assertTrue(any(name.startswith('GET.resource_providers.a.') for name in names))
        self.assertTrue(any(name.startswith('GET.root.') for name in names))

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
