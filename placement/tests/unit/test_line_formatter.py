"""The form of the lines of the log."""

import logging
import pathlib
import sys

import fixtures
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_context import context
from oslo_log import formatters, handlers, log
from oslotest import base

from placement import messages
from placement.tests.properties import REPEATABLE

_TEXTS = st.none() | st.text(max_size=8)
_FORMATS = (
    '%(isotime)s %(message)s',
    '%(message)s%(error_summary)s',
    '%(message)d',
    '[%(user)s %(project_id)s %(roles)s %(domain)s] %(color)s%(resource)s%(project)s %(message)s',
    '[%(user)s %(project_id)s %(roles)s %(domain)s] %(project)s %(message)s',
)


def configuration(**options: object) -> cfg.ConfigOpts:
    config = cfg.ConfigOpts()
    log.register_options(config)
    for name, value in options.items():
        config.set_override(name, value)
    config([], default_config_files=[], default_config_dirs=[])
    return config


CONFIGURATIONS = (
    configuration(),
    configuration(logging_user_identity_format='%(user)s %(unknown)s'),
    *(configuration(logging_context_format_string=one) for one in _FORMATS),
)


def inner(config: cfg.ConfigOpts) -> formatters.ContextFormatter:
    return formatters.ContextFormatter(
        project='placement', version='1', datefmt=config.log_date_format, config=config
    )


def line_formatter(
    chosen: logging.Formatter | None, config: cfg.ConfigOpts, handler: logging.Handler | None = None
) -> messages.LineFormatter:
    """Return the formatter for a handler for which oslo.log chose a formatter."""
    handler = handler or logging.StreamHandler()
    handler.setFormatter(chosen)
    return messages.LineFormatter(handler, config)


class EscapingTest(base.BaseTestCase):
    def test_control_characters_are_escaped(self):
        formatter = line_formatter(logging.Formatter('%(user)s %(message)s'), configuration())
        error = ValueError('\x1b]0;title\x07')
        record = logging.LogRecord(
            'x', logging.ERROR, '', 0, 'a\tb\x00\x7f\x9b%s', ('\r',), (ValueError, error, None)
        )
        record.user = '\x1b[31m'
        first, *_, last = formatter.format(record).split('\n')
        self.assertEqual(r'\u001b[31m a' + '\t' + r'b\u0000\u007f\u009b\u000d', first)
        self.assertEqual(r'ValueError: \u001b]0;title\u0007', last)

    def test_colors_of_the_log_are_not_escaped(self):
        if 'log_color' not in configuration():
            self.skipTest('This version of oslo.log does not have the option log_color.')
        formatter = line_formatter(None, configuration(log_color=True))
        record = logging.LogRecord(
            'x', logging.ERROR, '', 0, '\x1b[00;36mred\x1b[0m\x1b[2J', (), None
        )
        self.assertEqual('\x1b[00;36mred\x1b[0m' + r'\u001b[2J', formatter.format(record))

    def test_a_formatter_that_returns_no_text(self):
        """The formatter of oslo.log for Fluentd returns a dictionary."""
        formatter = line_formatter(formatters.FluentFormatter(), configuration())
        record = logging.LogRecord('x', logging.ERROR, '', 0, 'message', (), None)
        self.assertEqual('message', formatter.format(record)['message'])

    def test_handlers_of_loggers_of_placement(self):
        """The file of `log_config_append` can declare them, and none for other lines."""
        self.useFixture(fixtures.MonkeyPatch('logging.root.handlers', []))
        self.addCleanup(logging.captureWarnings, False)
        logger = logging.getLogger('placement.tests.declared')
        handlers_of = {name: logging.StreamHandler() for name in (logger.name, 'other.declared')}
        for name, handler in handlers_of.items():
            logging.getLogger(name).addHandler(handler)
            self.addCleanup(logging.getLogger(name).removeHandler, handler)
        messages.set_up_log(configuration())
        own, other = (handler.formatter for handler in handlers_of.values())
        self.assertIsInstance(own, messages.LineFormatter)
        self.assertIsNone(other)


def record(
    name: str = 'placement.changes',
    level: int = logging.INFO,
    message: str = 'message',
    args: tuple[object, ...] = (),
    failed: bool = False,
) -> logging.LogRecord:
    failure = ValueError('reason') if failed else None
    info = (ValueError, failure, None) if failure else None
    made = logging.LogRecord(name, level, 'file', 1, message, args, info)
    made.created, made.msecs = 1_700_000_000.25, 250.0
    return made


def outcome(formatter: logging.Formatter, made: logging.LogRecord) -> str | type:
    try:
        return messages._CONTROLS.sub(messages._escaped, formatter.format(made))
    except TypeError as exc:
        return type(exc)


class LineOfARequestTest(base.BaseTestCase):
    """The text of each line is the text that oslo.log returns."""

    def setUp(self):
        super().setUp()
        self.addCleanup(setattr, context._request_store, 'context', context.get_current())

    @REPEATABLE
    @given(
        st.none()
        | st.builds(
            context.RequestContext,
            user_id=_TEXTS,
            project_id=_TEXTS,
            domain_id=_TEXTS,
            user_domain_id=_TEXTS,
            global_request_id=_TEXTS,
            auth_token=_TEXTS,
            roles=st.lists(st.text(max_size=3), max_size=2),
        ),
        st.sampled_from(('placement.changes', 'placement.requestlog', 'sqlalchemy.pool', 'root')),
        st.sampled_from((logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR)),
        st.sampled_from((('message', ()), ('%s of %d', ('a', 1)), ('%s of %d', ('a',)))),
        st.booleans(),
    )
    def test_any_line(self, caller, name, level, message, failed):
        context._request_store.context = caller
        for config in CONFIGURATIONS:
            expected = record(name, level, *message, failed)
            made = record(name, level, *message, failed)

            formatter = line_formatter(inner(config), config)
            self.assertEqual(outcome(inner(config), expected), outcome(formatter, made))

    def test_a_warning_about_an_exception(self):
        """oslo.log appends the active exception to a warning of a library."""
        context.RequestContext()
        formatter = line_formatter(inner(configuration()), configuration())
        missing = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'file')
        for name, appended in (('placement.claims', False), ('sqlalchemy.pool', True)):
            try:
                missing.read_text()
            except OSError:
                line = formatter.format(record(name, logging.WARNING))
            self.assertEqual(appended, 'FileNotFoundError' in line)

    def test_the_record_has_the_values_of_the_context(self):
        """The handler for the journal reads them."""
        self.useFixture(fixtures.MockPatchObject(handlers, 'journal'))
        context.RequestContext(request_id='req-1', user_id='user')
        config = configuration()
        made, expected = record(), record()
        inner(config).format(expected)
        line_formatter(inner(config), config, handlers.OSJournalHandler()).format(made)

        names = {*context.get_current().get_logging_values(), 'instance', 'message'}
        values = [{name: vars(one)[name] for name in names} for one in (expected, made)]
        self.assertEqual(*values)

    def test_other_formatters_stay(self):
        """The file of `log_config_append` can declare formatters."""
        context.RequestContext()
        for formatter in (formatters.JSONFormatter(), logging.Formatter('%(message)s')):
            made = record()
            formatted = line_formatter(formatter, configuration()).format(made)
            self.assertEqual(formatter.format(made), formatted)


def fail() -> None:
    raise OSError('the reason\nand more')


class SummaryTest(base.BaseTestCase):
    """The lines of the log, formatted by oslo.log while an exception is handled."""

    def line(self, name: str, with_traceback: bool = False, **options: str) -> str:
        config = configuration(**options)
        formatter = line_formatter(inner(config), config)
        try:
            fail()
        except OSError:
            exc_info = sys.exc_info() if with_traceback else None
            made = logging.LogRecord(name, logging.WARNING, '', 0, 'It failed', (), exc_info)
            return formatter.format(made).splitlines()[0].partition('] ')[2]

    def test_a_line_of_placement_contains_no_summary(self):
        self.assertEqual('It failed', self.line('placement.db.retry'))

    def test_a_line_with_a_traceback_contains_the_summary(self):
        self.assertEqual('It failed: OSError: the reason', self.line('placement', True))

    def test_a_line_of_a_library_contains_the_summary(self):
        for name in ('keystonemiddleware.auth_token', 'placement_extension'):
            self.assertEqual('It failed: OSError: the reason', self.line(name))

    def test_a_format_with_a_summary(self):
        text = '[] %(message)s (%(error_summary)s)'
        line = self.line(
            'placement',
            logging_default_format_string=text,
            # Another test can have left the context of a request.
            logging_context_format_string=text,
        )
        self.assertEqual('It failed (-)', line)
