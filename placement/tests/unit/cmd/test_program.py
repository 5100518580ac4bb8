"""The command line of the commands: help, version, and options."""

import contextlib
import errno
import io
import re
import signal
import subprocess
import sys
from typing import Any
from unittest import mock

import ddt
import fixtures
from oslo_config import cfg
from oslo_log import log as logging
from oslotest import base

from placement import version
from placement.cmd import manage, program, status
from placement.db import engine

DATABASE = 'OS_PLACEMENT_DATABASE__'
MAINS = {'placement-manage': manage.main, 'placement-status': status.main}


@ddt.ddt
class CommandLineTest(base.BaseTestCase):
    def run_main(self, name: str, *arguments: str) -> tuple[int, str, str]:
        """Return the exit status and the output of a command that does not need a database."""
        self.useFixture(fixtures.MonkeyPatch('sys.argv', [name, *arguments]))
        stdout, stderr = io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(stdout), contextlib.redirect_stderr(stderr):
            try:
                code = MAINS[name]()
            except SystemExit as error:
                code = error.code
        return code, stdout.getvalue(), stderr.getvalue()

    @ddt.data(*MAINS)
    def test_version(self, name):
        expected = (0, f'{version.version_string()}\n', '')
        self.assertEqual(expected, self.run_main(name, '--version'))

    @ddt.data(
        ('placement-manage', 'db sync', '  1  '),
        ('placement-manage', 'db version', '  2  '),
        ('placement-manage', 'db stamp', '--config-dir'),
        ('placement-manage', 'db online_data_migrations', 'OS_<GROUP>__<OPTION>'),
        ('placement-status', 'upgrade check', '  255  '),
        ('placement-status', 'upgrade check', 'OS_PLACEMENT_CONFIG_DIR'),
    )
    @ddt.unpack
    def test_help_starts_with_the_commands(self, name, command, detail):
        code, output, errors = self.run_main(name, '--help')
        self.assertEqual((0, ''), (code, errors))
        first_screen = output.splitlines()[:12]
        self.assertRegex('\n'.join(first_screen), rf'(?m)^  {command} +[A-Z].*\.$')
        self.assertIn(detail, output)
        self.assertLess(max(map(len, output.splitlines())), 100)

    def test_the_options_are_those_of_oslo_log(self):
        """A new option of oslo.log must have an entry in `_LOG_OPTIONS`."""
        config = cfg.ConfigOpts()
        logging.register_options(config)
        config([], default_config_files=[], default_config_dirs=[])
        text = io.StringIO()
        config.print_help(text)
        theirs = set(re.findall(r'--[a-z_-]+', text.getvalue()))
        ours = {flag for flags, _, _ in program._LOG_OPTIONS for flag in flags}
        ours |= {'--help', '--config-file', '--config-dir'}
        # Old releases of oslo.config have no completion. oslo.log can watch files before 8.0.
        others = {'--shell_completion', '--watch-log-file', '--nowatch-log-file'}
        self.assertEqual(set(), theirs - ours - others)
        self.assertEqual({'-d'}, ours - theirs)

    def test_usage_errors(self):
        """An incomplete command line does not succeed; shell completion is not available."""
        for line in (
            'placement-manage',
            'placement-manage nothing',
            'placement-manage db nothing',
            'placement-manage db stamp',
            'placement-manage --shell_completion bash',
            'placement-status',
            'placement-status upgrade',
            'placement-status upgrade nothing',
            'placement-status --shell_completion bash',
        ):
            code, output, errors = self.run_main(*line.split())
            self.assertEqual((2, ''), (code, output), line)
            self.assertIn('usage: ', errors)

    def test_an_incomplete_command_prints_help(self):
        code, output, errors = self.run_main('placement-manage', 'db')
        self.assertEqual((0, ''), (code, errors))
        self.assertTrue(output.startswith('usage: placement-manage db '), output)


def run_program(test: base.BaseTestCase, add_commands: Any) -> tuple[int, str]:
    """Execute the command `run`; return its exit status and its errors.

    The loggers of the process of the tests do not change.
    """
    test.useFixture(fixtures.MonkeyPatch('sys.argv', ['test', 'run']))
    test.useFixture(fixtures.MockPatchObject(program, '_set_up_logging'))
    test.useFixture(fixtures.EnvironmentVariable(f'{DATABASE}CONNECTION', 'sqlite://'))
    stderr = io.StringIO()
    definition = program.Program('test', 'Test.', '', 'command', add_commands, program.ERROR)
    with contextlib.redirect_stderr(stderr):
        return program.main(definition), stderr.getvalue()


class PatienceTest(base.BaseTestCase):
    """The time limits of a command that uses the database."""

    def configured(self, retries: str | None, **options: bool) -> tuple[bool, int]:
        """Return whether a command has no limits, and how often it tries to connect."""
        called: list[tuple[bool, int]] = []

        def configure(config: cfg.ConfigOpts, patient: bool) -> None:
            called.append((patient, config.placement_database.max_retries))

        def add_commands(commands):
            program.add_database_command(commands, 'run', lambda _: 0, 'Run.', **options)

        self.useFixture(fixtures.MockPatchObject(engine, 'configure', configure))
        self.useFixture(fixtures.EnvironmentVariable(f'{DATABASE}MAX_RETRIES', retries))
        self.assertEqual((0, ''), run_program(self, add_commands))
        return called[0]

    def test_a_command_waits_if_the_option_is_set(self):
        for retries, options, expected in (
            (None, {}, (True, 0)),
            ('7', {}, (True, 7)),
            ('-1', {}, (True, -1)),
            ('-1', {'patient': False}, (False, 0)),
        ):
            self.assertEqual(expected, self.configured(retries, **options))


class FailureTest(base.BaseTestCase):
    """A command that cannot be completed prints one sentence."""

    def fail_with(self, error: BaseException) -> tuple[int, str]:
        def fail(_config):
            raise error

        def add_commands(commands):
            command = commands.add_parser('run', description='Run.')
            command.set_defaults(action=fail, help_only=False, failed=program.CANNOT)

        return run_program(self, add_commands)

    def test_an_interrupt(self):
        with mock.patch.object(program, '_exit', side_effect=lambda status: status) as exit_:
            self.assertEqual(
                (program.CANNOT, 'Error: The command was interrupted.\n'),
                self.fail_with(KeyboardInterrupt()),
            )
        exit_.assert_called_once_with(program.CANNOT)

    def test_an_interrupt_of_the_imports(self):
        """The shell, which waits for the process, learns that a signal ended it."""
        code = 'import placement.cmd; raise KeyboardInterrupt'
        process = subprocess.run([sys.executable, '-c', code], capture_output=True, text=True)
        self.assertEqual('Error: The command was interrupted.\n', process.stderr)
        self.assertEqual(-signal.SIGINT, process.returncode)

    def test_a_full_disk(self):
        self.assertEqual(
            (program.CANNOT, 'Error: [Errno 28] No space left on device\n'),
            self.fail_with(OSError(errno.ENOSPC, 'No space left on device')),
        )
