"""The formatters of the log."""

import logging
import pathlib
from unittest import mock

import fixtures
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg
from oslo_context import context
from oslo_log import formatters, log
from oslotest import base

from placement import messages
from placement.tests.properties import REPEATABLE
from placement.wsgi import log_lines

_TEXTS = st.none() | st.text(max_size=8)
_FORMATS = (
    '%(isotime)s %(message)s',
    '%(message)s%(error_summary)s',
    '%(message)d',
    '[%(user)s %(project_id)s %(roles)s %(domain)s] %(color)s%(resource)s%(project)s %(message)s',
)


class EscapingTest(base.BaseTestCase):
    def test_control_characters_are_escaped(self):
        formatter = log_lines.EscapingFormatter(
            logging.Formatter('%(user)s %(message)s'), colored=False
        )
        error = ValueError('\x1b]0;title\x07')
        record = logging.LogRecord(
            'x', logging.ERROR, '', 0, 'a\tb\x00\x7f\x9b%s', ('\r',), (ValueError, error, None)
        )
        record.user = '\x1b[31m'
        first, *_, last = formatter.format(record).split('\n')
        self.assertEqual(r'\u001b[31m a' + '\t' + r'b\u0000\u007f\u009b\u000d', first)
        self.assertEqual(r'ValueError: \u001b]0;title\u0007', last)

    def test_colors_of_the_log_are_not_escaped(self):
        formatter = log_lines.EscapingFormatter(None, colored=True)
        record = logging.LogRecord(
            'x', logging.ERROR, '', 0, '\x1b[00;36mred\x1b[0m\x1b[2J', (), None
        )
        self.assertEqual('\x1b[00;36mred\x1b[0m' + r'\u001b[2J', formatter.format(record))

    def test_a_formatter_that_returns_no_text(self):
        """The formatter of oslo.log for Fluentd returns a dictionary."""
        formatter = log_lines.EscapingFormatter(formatters.FluentFormatter(), colored=False)
        record = logging.LogRecord('x', logging.ERROR, '', 0, 'message', (), None)
        self.assertEqual('message', formatter.format(record)['message'])


def configuration(**options: object) -> cfg.ConfigOpts:
    config = cfg.ConfigOpts()
    log.register_options(config)
    for name, value in options.items():
        config.set_override(name, value)
    config([], default_config_files=[], default_config_dirs=[])
    return config


CONFIGURATIONS = (
    configuration(),
    *(configuration(logging_context_format_string=one) for one in _FORMATS),
)


def inner(config: cfg.ConfigOpts) -> formatters.ContextFormatter:
    return formatters.ContextFormatter(
        project='placement', version='1', datefmt=config.log_date_format, config=config
    )


def record(
    name: str = 'placement.changes',
    level: int = logging.INFO,
    message: str = 'message',
    args: tuple[object, ...] = (),
    failed: bool = False,
) -> logging.LogRecord:
    failure = ValueError('reason') if failed else None
    info = (ValueError, failure, None) if failure else None
    made = messages.LogRecord(name, level, 'file', 1, message, args, info)
    made.created, made.msecs = 1_700_000_000.25, 250.0
    return made


def outcome(formatter: logging.Formatter, made: logging.LogRecord) -> str | type:
    try:
        return formatter.format(made)
    except TypeError as exc:
        return type(exc)


class RequestFormatterTest(base.BaseTestCase):
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

            formatter = log_lines.RequestFormatter(inner(config))
            self.assertEqual(outcome(inner(config), expected), outcome(formatter, made))

    def test_a_warning_about_an_exception(self):
        """oslo.log appends the active exception to a warning of a library."""
        context.RequestContext()
        formatter = log_lines.RequestFormatter(inner(configuration()))
        missing = pathlib.Path(self.useFixture(fixtures.TempDir()).path, 'file')
        for name, appended in (('placement.claims', False), ('sqlalchemy.pool', True)):
            try:
                missing.read_text()
            except OSError:
                line = formatter.format(record(name, logging.WARNING))
            self.assertEqual(appended, 'FileNotFoundError' in line)

    def test_the_lines_of_several_requests(self):
        """Threads log the lines of their requests in any order."""
        formatter = log_lines.RequestFormatter(inner(configuration()))
        callers = [context.RequestContext(user_id=user) for user in ('first', 'second')]
        for caller in (*callers, *callers):
            caller.update_store()
            self.assertIn(
                f'[None {caller.request_id} {caller.user_id} ', formatter.format(record())
            )

    def test_the_record_has_the_values_of_the_context(self):
        """The handler for the journal reads them."""
        context.RequestContext(request_id='req-1', user_id='user')
        made, expected = record(), record()
        inner(configuration()).format(expected)
        log_lines.RequestFormatter(inner(configuration())).format(made)

        names = {*context.get_current().get_logging_values(), 'instance', 'message'}
        values = [{name: vars(one)[name] for name in names} for one in (expected, made)]
        self.assertEqual(*values)


class ServiceFormatterTest(base.BaseTestCase):
    def test_other_formatters_stay(self):
        """With colors, and with the formatters of a file, the lines are those of oslo.log."""
        path = self.useFixture(fixtures.TempDir()).join('logging.ini')
        colors = mock.Mock(log_config_append=None, log_color=True, spec=['__contains__'])
        colors.__contains__ = mock.Mock(return_value=True)
        context.RequestContext()
        formats = '%(user)s %(message)s %(color)s'
        for formatter, config in (
            (formatters.JSONFormatter(), configuration()),
            (logging.Formatter('%(message)s'), configuration()),
            (logging.Formatter(formats), configuration(log_config_append=path)),
            (logging.Formatter(formats), colors),
        ):
            made = record()
            made.user, made.color = 'u', '\x1b[00;36m' if config is colors else ''
            formatted = log_lines.service_formatter(formatter, config).format(made)
            self.assertEqual(formatter.format(made), formatted)
