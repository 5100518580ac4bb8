"""The start in a web server: a failure is one line, unless `debug` is true."""

import contextlib
import io
import logging
import sys
from unittest import mock

import fixtures
from oslo_config import cfg
from oslotest import base

from placement import wsgi
from placement.wsgi import startup


class StartTest(base.BaseTestCase):
    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.MonkeyPatch('sys.excepthook', sys.__excepthook__))
        self.addCleanup(vars(sys).pop, 'tracebacklimit', None)
        self.log = self.useFixture(fixtures.FakeLogger('placement.wsgi.startup', logging.INFO))

    def start(self, read: object = None, build: object = None, debug: bool = False) -> object:
        """Start with functions that raise the given exceptions, or return the given values."""

        def read_configuration(config: cfg.ConfigOpts) -> None:
            config.register_opt(cfg.BoolOpt('debug', default=debug))
            if isinstance(read, Exception):
                raise read

        with (
            mock.patch.object(wsgi, 'read_configuration', read_configuration),
            mock.patch.object(wsgi, 'build', side_effect=[build]),
        ):
            return startup.start()

    def printed(self, error: Exception) -> str:
        """Return what Python prints for an exception that nothing handles."""
        output = io.StringIO()
        with contextlib.redirect_stderr(output):
            sys.excepthook(type(error), error, error.__traceback__)
        return output.getvalue()

    def test_a_failure_is_printed_and_logged_in_one_line(self):
        error = self.assertRaises(startup.StartError, self.start, build=ValueError('the\nreason'))
        self.assertIsNone(error.__context__)
        self.assertEqual('placement.wsgi.startup.StartError: the reason\n', self.printed(error))
        self.assertEqual('The service does not start: the reason\n', self.log.output)

    def test_without_a_configuration_the_failure_is_not_logged(self):
        self.assertRaises(startup.StartError, self.start, read=ValueError('the reason'))
        self.assertEqual('', self.log.output)

    def test_other_exceptions_are_printed_as_before(self):
        hook = self.useFixture(fixtures.MockPatch('sys.excepthook')).mock
        for _ in range(2):
            self.assertRaises(startup.StartError, self.start, build=ValueError())
        error = KeyError('x')
        self.printed(error)
        hook.assert_called_once_with(KeyError, error, None)

    def test_a_later_success_restores_tracebacks(self):
        self.assertRaises(startup.StartError, self.start, build=ValueError())
        self.assertEqual(0, sys.tracebacklimit)
        self.start(build=object())
        self.assertFalse(hasattr(sys, 'tracebacklimit'))
