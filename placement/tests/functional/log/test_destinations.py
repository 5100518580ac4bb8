"""The page about logging: each example configuration logs to its destination."""

import dataclasses
import json
import os
from pathlib import Path
import re
import subprocess
import sys
import syslog
import tempfile
from types import ModuleType
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslotest import base

from placement.tests import where
from placement.tests.functional import programs
from placement.tests.functional.log import examples, forged_identity, three_requests
from placement.tests.functional.log.three_requests import GLOBAL_ID, QUERY
from placement.tests.waiting import LONGEST

_BINDINGS = Path(__file__).parent / 'bindings'
_SERVICE = """
[placement_database]
connection = sqlite://
sync_on_startup = true

[api]
auth_strategy = noauth2
"""
# The option that changes the form of the lines at every destination.
JSON = 'use_json = true\n'
# A file for the option `log_config_append`, as OpenStack-Helm writes it.
LOGGERS = """
[loggers]
keys = root,placement
[handlers]
keys = stdout
[formatters]
keys = context
[logger_root]
handlers =
[logger_placement]
level = INFO
handlers = stdout
qualname = placement
[handler_stdout]
class = StreamHandler
args = (sys.stdout,)
formatter = context
[formatter_context]
class = oslo_log.formatters.ContextFormatter
datefmt = %Y-%m-%d %H:%M:%S
"""
# The values that differ between two runs.
_MASKS = (
    (r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ ', 'TIME PID '),
    (r' req-[0-9a-f-]{36} ', ' ID '),
    (r'time: \d+\.\d{6}$', 'time: SECONDS'),
    (r' took \d+\.\d seconds$', ' took SECONDS'),
)


# The logger, the level, the number of the request, and the message of the expected lines. Their
# order is that of the requests.
EXPECTED = (
    (
        'placement.handlers.allocation_candidate',
        'INFO',
        0,
        examples.example('empty-search').strip(),
    ),
    ('placement.requestlog', 'INFO', 0, examples.example('request-line').strip()),
    ('placement.changes', 'INFO', 1, examples.example('change-lines').splitlines()[0]),
    (
        *('placement.claims', 'WARNING', 2),
        next(line for line in examples.example('refusal-lines').splitlines() if 'VGPU' in line),
    ),
)
(_START, _, _) = examples.example('log-line').strip().partition('] ')


def line_of(logger: str, level: str, message: str) -> str:
    """Return a line with the beginning of the line on the page."""
    start = _START.replace(' INFO ', f' {level} ').replace(EXPECTED[0][0], logger)
    return masked(f'{start}] {message}')


def is_expected(logger: str, message: str) -> bool:
    """Return whether a message is one of the expected messages, and not about another request."""
    loggers = {expected[0] for expected in EXPECTED}
    return logger in loggers and (logger != 'placement.requestlog' or QUERY in message)


def masked(line: str) -> str:
    """Return a line without the values that differ between two runs."""
    for pattern, name in _MASKS:
        line = re.sub(pattern, name, line)
    return line


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a service that served the requests."""

    status: int
    output: str
    error: str

    @property
    def request_ids(self) -> list[str]:
        """The request IDs of all responses."""
        return [line for line in self.output.splitlines() if line.startswith('req-')]


@where.only_on('sqlite', reason='Tests of the log run only on SQLite.')
class TestCase(base.BaseTestCase):
    """`serve` starts a service in its own process, and sends it requests."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='placement-log-')
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.directory = self.folder / 'log'
        self.directory.mkdir()

    def serve(
        self,
        configuration: str,
        path: Path | None = None,
        program: ModuleType = three_requests,
        **environment: str,
    ) -> Outcome:
        """Serve requests with a configuration.

        :param configuration: the section DEFAULT; logs go to a temporary directory
        :param path: a directory with Python modules
        :param program: the module that creates the application and sends the requests
        :param environment: additional environment variables
        """
        text = configuration.replace(examples.DIRECTORY, str(self.directory)) + _SERVICE
        (self.folder / 'placement.conf').write_text(text)
        paths = [str(path), *(entry for entry in sys.path if entry)]
        clean = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        variables = {'OS_PLACEMENT_CONFIG_DIR': str(self.folder), **environment}
        command = ('-m', program.__name__)
        if not path:
            done = programs.shared().run(command, (), variables)
            return Outcome(done.status, done.stdout, done.stderr)
        process = subprocess.run(
            [sys.executable, *command],
            env={**clean, 'PYTHONPATH': os.pathsep.join(paths), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        return Outcome(process.returncode, process.stdout, process.stderr)

    def serve_example(self, name: str, *, more_options: str = '', **more: Any) -> Outcome:
        """Serve requests successfully with an example of the page, and with more options."""
        outcome = self.serve(examples.example(name) + more_options, **more)
        self.assertEqual(0, outcome.status, outcome.error)
        return outcome

    def assert_lines(self, text: str, outcome: Outcome) -> None:
        """Check that a text contains the expected lines, with the IDs of their requests."""
        lines = [
            line
            for line in text.splitlines()
            if any(is_expected(word, line) for word in line.split(' ')[:5])
        ]
        expected = [line_of(logger, level, message) for logger, level, _, message in EXPECTED]
        self.assertEqual(expected, [masked(line) for line in lines])
        for line, (_, _, number, _) in zip(lines, EXPECTED, strict=True):
            self.assertIn(f'[{GLOBAL_ID} {outcome.request_ids[number]} ', line)

    def assert_json(self, lines: list[str]) -> None:
        """Check that lines contain the expected messages in JSON."""
        records = [
            one for one in map(json.loads, lines) if is_expected(one['name'], one['message'])
        ]
        expected = [(logger, level, masked(message)) for logger, level, _, message in EXPECTED]
        found = [(one['name'], one['levelname'], masked(one['message'])) for one in records]
        self.assertEqual(expected, found)


class DestinationsTest(TestCase):
    def test_standard_error(self) -> None:
        outcome = self.serve_example('log-to-stderr')
        self.assert_lines(outcome.error, outcome)
        self.assertEqual(outcome.request_ids, outcome.output.splitlines())

    def test_standard_output_is_the_default(self) -> None:
        outcome = self.serve('[DEFAULT]\n')
        self.assertEqual('', outcome.error)
        self.assert_lines(outcome.output, outcome)
        # Lines outside of a request
        lines = outcome.output.splitlines()
        self.assertRegex(lines[0], r' INFO alembic\.\S+ \[-\] ')
        (warning,) = [line for line in lines if ' WARNING placement.wsgi ' in line]
        self.assertIn(' [-] Every client chooses its own user ', warning)

    def test_without_changes(self) -> None:
        outcome = self.serve('[DEFAULT]\n', OS_API__LOG_CHANGES='false')
        self.assertNotIn(' placement.changes ', outcome.output)
        self.assertIn(' placement.claims ', outcome.output)

    def test_a_slow_request(self) -> None:
        outcome = self.serve('[DEFAULT]\n', OS_API__SLOW_REQUEST_SECONDS='0.000001')
        found = [one for one in outcome.output.splitlines() if 'Slow request' in one]
        message = examples.example('slow-line').strip()
        expected = line_of('placement.requestlog', 'WARNING', message)
        self.assertEqual(expected, masked(found[0]))

    def test_file_and_directory(self) -> None:
        for name in ('log-to-file', 'log-to-directory'):
            outcome = self.serve_example(name)
            (path,) = self.directory.iterdir()
            self.assertEqual('placement.log', path.name)
            self.assert_lines(path.read_text(), outcome)
            self.assertEqual('', outcome.error)
            path.unlink()

    def test_a_file_with_loggers(self) -> None:
        file = self.folder / 'logging.conf'
        file.write_text(LOGGERS)
        outcome = self.serve(f'[DEFAULT]\nlog_config_append = {file}\n')
        self.assertEqual('', outcome.error)
        self.assert_lines(outcome.output, outcome)
        self.assertNotIn(' alembic.', outcome.output)

    def test_a_file_that_cannot_be_opened(self) -> None:
        self.directory.rmdir()
        outcome = self.serve(examples.example('log-to-file'))
        self.assertEqual(1, outcome.status)
        self.assertIn('No such file or directory', outcome.error.splitlines()[-1])

    def test_json(self) -> None:
        outcome = self.serve_example('log-json')
        lines = (self.directory / 'placement.log').read_text().splitlines()
        self.assert_json(lines)
        (line,) = [line for line in lines if 'placement.requestlog' in line and QUERY in line]
        actual, shown = json.loads(line), json.loads(examples.example('json-line'))
        self.assertEqual(shown['args'][:-1], actual['args'][:-1])
        self.assertIsInstance(actual['args'][-1], float)
        for key in ('thread_name', 'traceback'):
            self.assertEqual(shown[key], actual[key], key)
        self.assertLessEqual(shown.keys(), actual.keys())
        context = {key: actual['context'][key] for key in shown['context']}
        self.assertEqual({**shown['context'], 'request_id': outcome.request_ids[0]}, context)
        self.assertNotIn(three_requests.TOKEN, '\n'.join(lines))


class LevelsTest(TestCase):
    def test_levels(self) -> None:
        outcome = self.serve_example('log-levels')
        self.assertNotIn(QUERY, outcome.output)
        self.assertIn(' INFO alembic', outcome.output)

    def test_the_example_keeps_levels_of_the_default(self) -> None:
        config = cfg.ConfigOpts()
        log.register_options(config)
        config([], default_config_files=[], default_config_dirs=[])
        ours = {
            'placement.requestlog=WARN',
            'placement.handlers.allocation_candidate=WARN',
            'oslo_db.sqlalchemy.exc_filters=CRITICAL',
        }
        _, _, levels = examples.example('log-levels').partition(' = ')
        self.assertEqual(set(levels.strip().split(',')) - set(config.default_log_levels), ours)

    def test_debug(self) -> None:
        outcome = self.serve('[DEFAULT]\ndebug = true\n')
        start = f'Starting request: {three_requests.ADDRESS} "GET {three_requests.PATH}"'
        self.assertIn(start, outcome.output)
        self.assertRegex(outcome.output, r'DEBUG placement\.wsgi .* debug +=')

    def test_the_address_of_the_client_behind_a_proxy(self) -> None:
        outcome = self.serve('[oslo_middleware]\nenable_proxy_headers_parsing = true\n')
        self.assertIn(f'] {three_requests.FORWARDED_FOR} "GET ', outcome.output)
        self.assertNotIn(three_requests.ADDRESS, outcome.output)

    def test_forged_identities(self) -> None:
        """Without a token, the log contains no identity, whatever headers the client sends."""
        keystone = {
            'OS_API__AUTH_STRATEGY': 'keystone',
            'OS_KEYSTONE_AUTHTOKEN__AUTH_TYPE': 'password',
            'OS_KEYSTONE_AUTHTOKEN__AUTH_URL': 'http://127.0.0.1:1',
        }
        for environment in (keystone, {'OS_API__AUTH_STRATEGY': 'noauth2'}):
            outcome = self.serve(
                # The lines of successful health checks are at DEBUG.
                '[DEFAULT]\ndefault_log_levels = placement.requestlog=DEBUG\n',
                program=forged_identity,
                OS_METRICS__ENABLED='true',
                **environment,
            )
            self.assertEqual(0, outcome.status, outcome.error)
            lines = [line for line in outcome.output.splitlines() if ' status: ' in line]
            for path, line in zip(forged_identity.PATHS, lines, strict=True):
                start = r' req-[0-9a-f-]{36} - - - - - -\] - '
                self.assertRegex(line, rf'{start}"GET {path}" status: ')
            self.assertNotIn(forged_identity.TEXT, outcome.output)


class StandInTest(TestCase):
    """With a stand-in for systemd-python, and for the module `syslog`."""

    def entries(self, name: str, options: str = '') -> tuple[list[dict[str, Any]], Outcome]:
        """Serve requests with an example; return the entries that the stand-in received."""
        if name == 'log-to-syslog' and 'syslog' in sys.builtin_module_names:
            self.skipTest('No module can replace syslog, which is a part of this Python.')
        journal = self.folder / 'journal'
        outcome = self.serve_example(
            name, more_options=options, path=_BINDINGS, TEST_JOURNAL=str(journal)
        )
        lines = journal.read_text().splitlines()
        journal.unlink()
        return [json.loads(line) for line in lines], outcome

    def test_json(self) -> None:
        for name in ('log-to-journal', 'log-to-syslog'):
            entries, _ = self.entries(name, JSON)
            self.assert_json([entry['MESSAGE'] for entry in entries])

    def test_syslog(self) -> None:
        entries, outcome = self.entries('log-to-syslog')
        for entry in entries:
            warning = ' WARNING ' in entry['MESSAGE']
            expected = syslog.LOG_WARNING if warning else syslog.LOG_INFO
            self.assertEqual(expected, entry['PRIORITY'], entry)
            self.assertEqual(['placement', syslog.LOG_LOCAL0], entry['OPENED'])
        self.assert_lines('\n'.join(entry['MESSAGE'] for entry in entries), outcome)
        # Without another destination, the lines are also in standard output.
        self.assert_lines(outcome.output, outcome)

    def test_journal(self) -> None:
        entries, outcome = self.entries('log-to-journal')
        self.assertEqual('', outcome.error)
        self.assert_lines('\n'.join(entry['MESSAGE'] for entry in entries), outcome)
        entries = [one for one in entries if is_expected(one.get('LOGGER_NAME'), one['MESSAGE'])]
        for entry, (logger, level, number, _) in zip(entries, EXPECTED, strict=True):
            expected = {
                'SYSLOG_IDENTIFIER': 'placement',
                'REQUEST_ID': outcome.request_ids[number],
                'PROJECT_ID': 'service',
                'PRIORITY': {'INFO': 6, 'WARNING': 4}[level],
                'LOGGER_LEVEL': level,
                'LOGGER_NAME': logger,
            }
            self.assertEqual(expected, {key: entry[key] for key in expected})

    def test_missing_bindings(self) -> None:
        without = self.folder / 'systemd'
        without.mkdir()
        (without / '__init__.py').touch()
        outcome = self.serve(examples.example('log-to-journal'), path=self.folder)
        self.assertEqual(1, outcome.status)
        error = 'RuntimeError: Systemd bindings do not exist'
        self.assertEqual(error, outcome.error.splitlines()[-1])
        self.assertIn(error, ' '.join(examples.PAGE.read_text().split()))
