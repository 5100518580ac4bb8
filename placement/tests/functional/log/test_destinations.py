"""The page about logging: each example configuration logs to its destination."""

import contextlib
import dataclasses
import json
import os
from pathlib import Path
import re
import socket
import subprocess
import sys
import tempfile
from types import ModuleType
from typing import Any

from oslo_config import cfg
from oslo_log import log
from oslotest import base

from placement.tests import where
from placement.tests.functional import programs
from placement.tests.functional.log import (
    changing_requests,
    examples,
    forged_identity,
    one_request,
)
from placement.tests.waiting import LONGEST

_BINDINGS = Path(__file__).parent / 'bindings'
_SERVICE = """
[placement_database]
connection = sqlite://
sync_on_startup = true

[api]
auth_strategy = noauth2
"""
# Logger of the trail -> level of its lines.
_LEVELS = {'placement.changes': 'INFO', 'placement.claims': 'WARNING'}
# The option that changes the form of the lines at every destination.
JSON = 'use_json = true\n'
# The values that differ between two runs.
_MASKS = (
    (r'^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} \d+ ', 'TIME PID '),
    (r' req-[0-9a-f-]{36} ', ' ID '),
    (r'time: \d+\.\d{6}$', 'time: SECONDS'),
    (r' took \d+\.\d seconds$', ' took SECONDS'),
)


CHANGE = examples.example('change-lines').splitlines()[0]
(REFUSAL,) = (line for line in examples.example('refusal-lines').splitlines() if 'VGPU' in line)


def is_of_trail(line: str) -> bool:
    """Return whether a line is about a change or a refused claim."""
    return ' placement.changes ' in line or ' placement.claims ' in line


def masked(line: str) -> str:
    """Return a line without the values that differ between two runs."""
    for pattern, name in _MASKS:
        line = re.sub(pattern, name, line)
    return line


@dataclasses.dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a service that served one request."""

    status: int
    output: str
    error: str

    @property
    def request_id(self) -> str:
        """The request ID in the header of the response."""
        return self.request_ids[-1]

    @property
    def request_ids(self) -> list[str]:
        """The request IDs of all responses."""
        return [line for line in self.output.splitlines() if line.startswith('req-')]


@where.only_on('sqlite', reason='Tests of the log run only on SQLite.')
class TestCase(base.BaseTestCase):
    """`serve` starts a service in its own process, and sends it one request."""

    def setUp(self) -> None:
        super().setUp()
        folder = tempfile.TemporaryDirectory(prefix='placement-log-')
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.directory = self.folder / 'log'
        self.directory.mkdir()
        # `log-line` has the prefix of `empty-search`, and `request-line` has the same prefix.
        empty = examples.example('log-line').strip()
        prefix, _, message = empty.partition('] ')
        self.assertEqual(examples.example('empty-search').strip(), message)
        prefix = prefix.replace('.handlers.allocation_candidate', '.requestlog')
        self.lines = [
            masked(empty),
            masked(f'{prefix}] {examples.example("request-line").strip()}'),
        ]

    def serve(
        self,
        configuration: str,
        *prefix: str,
        path: Path | None = None,
        program: ModuleType = one_request,
        **environment: str,
    ) -> Outcome:
        """Serve a request with a configuration.

        :param configuration: the section DEFAULT; logs go to a temporary directory
        :param prefix: the beginning of the command
        :param path: a directory with Python modules
        :param program: the module that creates the application and sends the request
        :param environment: additional environment variables
        """
        text = configuration.replace(examples.DIRECTORY, str(self.directory)) + _SERVICE
        (self.folder / 'placement.conf').write_text(text)
        modules = [str(path)] if path else []
        paths = [*modules, *(entry for entry in sys.path if entry)]
        clean = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        variables = {'OS_PLACEMENT_CONFIG_DIR': str(self.folder), **environment}
        command = ('-m', program.__name__)
        if not prefix and not path:
            done = programs.shared().run(command, (), variables)
            return Outcome(done.status, done.stdout, done.stderr)
        process = subprocess.run(
            [*prefix, sys.executable, *command],
            env={**clean, 'PYTHONPATH': os.pathsep.join(paths), **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=LONGEST,
        )
        return Outcome(process.returncode, process.stdout, process.stderr)

    def serve_example(self, name: str, *prefix: str, **more: str) -> Outcome:
        """Serve a request successfully with an example of the page."""
        outcome = self.serve(examples.example(name), *prefix, **more)
        self.assertEqual(0, outcome.status, outcome.error)
        return outcome

    def assert_lines(self, text: str) -> None:
        """Check that a text ends with the lines of the page."""
        self.assertEqual(self.lines, [masked(line) for line in text.splitlines()[-2:]])

    def assert_json(self, text: str) -> None:
        """Check that a text is the request line of the page in JSON."""
        message = json.loads(text)['message']
        self.assertEqual(self.lines[1].partition('] ')[2], masked(message))

    def change(self, configuration: str, *prefix: str, **more: Any) -> Outcome:
        """Send a request that changes an object, and a claim that is refused."""
        outcome = self.serve(configuration, *prefix, program=changing_requests, **more)
        self.assertEqual(0, outcome.status, outcome.error)
        return outcome

    def assert_trail(self, text: str, outcome: Outcome) -> None:
        """Check that a text has the lines of the change and of the refused claim."""
        lines = [line for line in text.splitlines() if is_of_trail(line)]
        start, _, _ = self.lines[0].partition('] ')
        change = start.replace('.handlers.allocation_candidate', '.changes')
        refusal = change.replace('.changes', '.claims').replace(' INFO ', ' WARNING ')
        self.assertEqual(
            [f'{change}] {CHANGE}', f'{refusal}] {REFUSAL}'], [masked(line) for line in lines]
        )
        for line, request_id in zip(lines, outcome.request_ids, strict=True):
            self.assertIn(f'[{one_request.GLOBAL_ID} {request_id} nova service ', line)


class DestinationsTest(TestCase):
    def test_standard_error(self) -> None:
        outcome = self.serve_example('log-to-stderr')
        self.assert_lines(outcome.error)
        self.assertEqual(outcome.request_id + '\n', outcome.output)
        for line in outcome.error.splitlines()[-2:]:
            self.assertIn(f'[{one_request.GLOBAL_ID} {outcome.request_id} ', line)

    def test_standard_output_is_the_default(self) -> None:
        outcome = self.serve('[DEFAULT]\n')
        self.assertEqual('', outcome.error)
        lines = outcome.output.splitlines()[:-1]
        self.assert_lines('\n'.join(lines))
        # Lines outside of a request
        self.assertRegex(lines[0], r' INFO alembic\.\S+ \[-\] ')

    def test_a_warning_without_authentication(self) -> None:
        lines = self.serve('[DEFAULT]\n').output.splitlines()
        warnings = [line for line in lines if ' WARNING ' in line]
        self.assertEqual(1, len(warnings), warnings)
        self.assertIn(' placement.wsgi [-] Every client chooses its own user ', warnings[0])

    def test_a_slow_request(self) -> None:
        outcome = self.serve('[DEFAULT]\n', OS_API__SLOW_REQUEST_SECONDS='0.000001')
        found = [one for one in outcome.output.splitlines() if 'Slow request' in one]
        prefix = self.lines[1].partition('] ')[0].replace(' INFO ', ' WARNING ')
        expected = f'{prefix}] {examples.example("slow-line").strip()}'
        self.assertEqual([masked(expected)], [masked(one) for one in found])

    def test_file(self) -> None:
        outcome = self.serve_example('log-to-file')
        self.assert_lines((self.directory / 'placement.log').read_text())
        self.assertEqual((outcome.request_id + '\n', ''), (outcome.output, outcome.error))

    def test_directory(self) -> None:
        self.serve_example('log-to-directory')
        self.assertEqual(['placement.log'], [path.name for path in self.directory.iterdir()])
        self.assert_lines((self.directory / 'placement.log').read_text())

    def test_a_file_that_cannot_be_opened(self) -> None:
        self.directory.rmdir()
        outcome = self.serve(examples.example('log-to-file'))
        self.assertEqual(1, outcome.status)
        self.assertIn('No such file or directory', outcome.error.splitlines()[-1])

    def test_json(self) -> None:
        outcome = self.serve_example('log-json')
        line = (self.directory / 'placement.log').read_text().splitlines()[-1]
        actual, shown = json.loads(line), json.loads(examples.example('json-line'))
        self.assertEqual(masked(shown['message']), masked(actual['message']))
        self.assertEqual(shown['args'][:-1], actual['args'][:-1])
        self.assertIsInstance(actual['args'][-1], float)
        for key in ('name', 'levelname', 'thread_name', 'traceback'):
            self.assertEqual(shown[key], actual[key], key)
        self.assertLessEqual(shown.keys(), actual.keys())

        context = actual['context']
        self.assertEqual(outcome.request_id, context['request_id'])
        changes = {'request_id': outcome.request_id}
        self.assertEqual(
            {**shown['context'], **changes}, {key: context[key] for key in shown['context']}
        )
        self.assertNotIn(one_request.TOKEN, line)

    def test_json_on_standard_error(self) -> None:
        outcome = self.serve(examples.example('log-to-stderr') + JSON)
        self.assert_json(outcome.error.splitlines()[-1])


class TrailTest(TestCase):
    """Lines of changes and of refused claims have the context of their request."""

    def test_file(self) -> None:
        outcome = self.change(examples.example('log-to-file'))
        self.assert_trail((self.directory / 'placement.log').read_text(), outcome)

    def test_without_changes(self) -> None:
        outcome = self.change('[DEFAULT]\n', OS_API__LOG_CHANGES='false')
        (line,) = filter(is_of_trail, outcome.output.splitlines())
        self.assertTrue(line.endswith(REFUSAL), line)

    def test_json(self) -> None:
        outcome = self.change(examples.example('log-json'))
        lines = (self.directory / 'placement.log').read_text().splitlines()
        records = [record for record in map(json.loads, lines) if record['name'] in _LEVELS]
        self.assertEqual([CHANGE, REFUSAL], [record['message'] for record in records])
        for record, request_id in zip(records, outcome.request_ids, strict=True):
            self.assertEqual(_LEVELS[record['name']], record['levelname'])
            context = record['context']
            actual = {key: context[key] for key in ('request_id', 'global_request_id', 'user')}
            self.assertEqual(
                {
                    'request_id': request_id,
                    'global_request_id': one_request.GLOBAL_ID,
                    'user': 'nova',
                },
                actual,
            )

    def test_journal(self) -> None:
        journal = self.folder / 'journal'
        outcome = self.change(
            examples.example('log-to-journal'), path=_BINDINGS, TEST_JOURNAL=str(journal)
        )
        entries = [json.loads(line) for line in journal.read_text().splitlines()]
        entries = [entry for entry in entries if entry.get('LOGGER_NAME') in _LEVELS]
        self.assert_trail('\n'.join(entry['MESSAGE'] for entry in entries), outcome)
        for entry, request_id in zip(entries, outcome.request_ids, strict=True):
            self.assertEqual(request_id, entry['REQUEST_ID'])
            self.assertEqual('service', entry['PROJECT_ID'])
            self.assertEqual(_LEVELS[entry['LOGGER_NAME']], entry['LOGGER_LEVEL'])


class LevelsTest(TestCase):
    def test_levels(self) -> None:
        outcome = self.serve_example('log-levels')
        self.assertNotIn(one_request.QUERY, outcome.output)
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
        start = f'Starting request: {one_request.ADDRESS} "GET {one_request.PATH}"'
        self.assertIn(start, outcome.output)
        self.assertRegex(outcome.output, r'DEBUG placement\.wsgi .* debug +=')


class ForgedIdentityTest(TestCase):
    """Requests without a token have no identity in the log, whatever headers the client sends."""

    def test_with_keystone(self) -> None:
        self.assert_anonymous(
            OS_API__AUTH_STRATEGY='keystone',
            OS_KEYSTONE_AUTHTOKEN__AUTH_TYPE='password',
            OS_KEYSTONE_AUTHTOKEN__AUTH_URL='http://127.0.0.1:1',
        )

    def test_with_noauth2(self) -> None:
        self.assert_anonymous(OS_API__AUTH_STRATEGY='noauth2')

    def assert_anonymous(self, **environment: str) -> None:
        outcome = self.serve(
            # The lines of successful health checks are at DEBUG.
            '[DEFAULT]\ndefault_log_levels = placement.requestlog=DEBUG\n',
            program=forged_identity,
            OS_METRICS__ENABLED='true',
            **environment,
        )
        self.assertEqual(0, outcome.status, outcome.error)
        lines = [line for line in outcome.output.splitlines() if ' status: ' in line]
        self.assertEqual(len(forged_identity.PATHS), len(lines), lines)
        for path, line in zip(forged_identity.PATHS, lines, strict=True):
            self.assertRegex(line, rf' req-[0-9a-f-]{{36}} - - - - - -\] - "GET {path}" status: ')
        self.assertNotIn(forged_identity.TEXT, outcome.output)


class ProxyTest(TestCase):
    def test_the_address_of_the_client(self) -> None:
        outcome = self.serve('[oslo_middleware]\nenable_proxy_headers_parsing = true\n')
        self.assertIn(f'] {one_request.FORWARDED_FOR} "GET ', outcome.output)
        self.assertNotIn(one_request.ADDRESS, outcome.output)


class JournalTest(TestCase):
    """With a stand-in for systemd-python."""

    def test_entries(self) -> None:
        journal = self.folder / 'journal'
        outcome = self.serve(
            examples.example('log-to-journal'), path=_BINDINGS, TEST_JOURNAL=str(journal)
        )
        self.assertEqual((0, ''), (outcome.status, outcome.error))
        entries = [json.loads(line) for line in journal.read_text().splitlines()[-2:]]
        self.assert_lines('\n'.join(entry['MESSAGE'] for entry in entries))
        for entry in entries:
            self.assertEqual('placement', entry['SYSLOG_IDENTIFIER'])
            self.assertEqual(outcome.request_id, entry['REQUEST_ID'])
            self.assertEqual('service', entry['PROJECT_ID'])
            self.assertEqual(6, entry['PRIORITY'])
            self.assertEqual('INFO', entry['LOGGER_LEVEL'])
        self.assertEqual('placement.requestlog', entries[-1]['LOGGER_NAME'])

    def test_json(self) -> None:
        journal = self.folder / 'journal'
        configuration = examples.example('log-to-journal') + JSON
        self.serve(configuration, path=_BINDINGS, TEST_JOURNAL=str(journal))
        entry = json.loads(journal.read_text().splitlines()[-1])
        self.assert_json(entry['MESSAGE'])

    def test_missing_bindings(self) -> None:
        without = self.folder / 'systemd'
        without.mkdir()
        (without / '__init__.py').touch()
        outcome = self.serve(examples.example('log-to-journal'), path=self.folder)
        self.assertEqual(1, outcome.status)
        error = 'RuntimeError: Systemd bindings do not exist'
        self.assertEqual(error, outcome.error.splitlines()[-1])
        self.assertIn(error, ' '.join(examples.PAGE.read_text().split()))


# Replaces the socket of syslog for one command, in a mount namespace.
_OTHER_SYSLOG = """
dev="$1"
shift
for device in null urandom; do
    touch "$dev/$device"
    mount --bind "/dev/$device" "$dev/$device"
done
if [ -d /dev/shm ]; then
    # The files of the test can be there.
    mkdir -p "$dev/shm"
    mount --bind /dev/shm "$dev/shm"
fi
mount --rbind "$dev" /dev
exec "$@"
"""


class SyslogTest(TestCase):
    """With a socket of the test in place of the one of the system."""

    def setUp(self) -> None:
        super().setUp()
        self.dev = self.folder / 'dev'
        self.dev.mkdir()
        namespace = ['unshare', '--mount']
        if os.getuid() != 0:
            namespace.append('--map-root-user')
        self.prefix = [*namespace, 'sh', '-ec', _OTHER_SYSLOG, 'sh', str(self.dev)]
        with contextlib.suppress(OSError):
            if subprocess.run([*self.prefix, 'true'], check=False, timeout=LONGEST).returncode == 0:
                return
        self.skipTest('this system does not permit mount namespaces')

    def test_syslog(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
            syslog.bind(str(self.dev / 'log'))
            syslog.settimeout(LONGEST)
            outcome = self.serve_example('log-to-syslog', *self.prefix)
            messages = []
            while len(messages) < 2:
                message = syslog.recv(65536).decode()
                if one_request.PATH in message or one_request.QUERY in message:
                    messages.append(message)
        # 134: the facility LOG_LOCAL0 and the level INFO
        header = re.compile(r'<134>\w{3} [ \d]\d \d\d:\d\d:\d\d placement: ')
        for message in messages:
            self.assertRegex(message, header)
        self.assert_lines('\n'.join(header.sub('', message) for message in messages))
        # Without another destination, the lines are also in standard output.
        self.assert_lines('\n'.join(outcome.output.splitlines()[:-1]))

    def test_trail(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
            syslog.bind(str(self.dev / 'log'))
            syslog.settimeout(LONGEST)
            outcome = self.change(examples.example('log-to-syslog'), *self.prefix)
            messages: list[str] = []
            while len(messages) < 2:
                message = syslog.recv(65536).decode()
                if is_of_trail(message):
                    messages.append(message)
        # The levels INFO and WARNING
        for level, message in zip((134, 132), messages, strict=True):
            self.assertTrue(message.startswith(f'<{level}>'), message)
        texts = [message.partition(' placement: ')[2] for message in messages]
        self.assert_trail('\n'.join(texts), outcome)

    def test_json(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as syslog:
            syslog.bind(str(self.dev / 'log'))
            syslog.settimeout(LONGEST)
            self.serve(examples.example('log-to-syslog') + JSON, *self.prefix)
            message = ''
            while one_request.PATH not in message:
                message = syslog.recv(65536).decode()
        self.assert_json(message.partition(' placement: ')[2].rstrip('\x00'))
