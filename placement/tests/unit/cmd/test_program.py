"""The command line of the commands: help, version, and options."""

import contextlib
import errno
import io
import re
import signal
import subprocess
import sys
from unittest import mock

import ddt
import fixtures
from oslo_config import cfg
from oslo_log import log as logging
from oslotest import base

from placement import version
from placement.cmd import manage, program, status
from placement.db import engine

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

    @ddt.data(*MAINS)
    def test_shell_completion_is_not_available(self, name):
        code, output, errors = self.run_main(name, '--shell_completion', 'bash')
        self.assertEqual((2, ''), (code, output))
        self.assertIn('usage: ', errors)

    @ddt.data(
        ('placement-manage',),
        ('placement-manage', 'nothing'),
        ('placement-manage', 'db', 'nothing'),
        ('placement-manage', 'db', 'stamp'),
        ('placement-status',),
        ('placement-status', 'upgrade'),
        ('placement-status', 'upgrade', 'nothing'),
    )
    def test_usage_errors(self, words):
        code, output, errors = self.run_main(*words)
        self.assertEqual((2, ''), (code, output))
        self.assertIn('usage: ', errors)

    def test_an_incomplete_command_prints_help(self):
        code, output, errors = self.run_main('placement-manage', 'db')
        self.assertEqual((0, ''), (code, errors))
        self.assertTrue(output.startswith('usage: placement-manage db '), output)


class RetriesTest(base.BaseTestCase):
    def max_retries(self) -> int:
        config = cfg.ConfigOpts()
        definition = program.Program(
            name='x',
            description='',
            exit_statuses='',
            destination='command',
            add_commands=lambda commands: commands.add_parser('y'),
            failed=1,
        )
        self.useFixture(
            fixtures.EnvironmentVariable('OS_PLACEMENT_DATABASE__CONNECTION', 'sqlite://')
        )
        program._read(definition, config, ['y'])
        return config.placement_database.max_retries

    def test_a_command_does_not_wait_for_the_database(self):
        self.assertEqual(0, self.max_retries())

    def test_a_command_waits_if_the_option_is_set(self):
        variable = 'OS_PLACEMENT_DATABASE__MAX_RETRIES'
        self.useFixture(fixtures.EnvironmentVariable(variable, '7'))
        self.assertEqual(7, self.max_retries())


class WithoutLogSetup(fixtures.MockPatchObject):
    """A command does not change the loggers of the process of the tests."""

    def __init__(self) -> None:
        super().__init__(program, '_set_up_logging')


class PatienceTest(base.BaseTestCase):
    """The time limits of a command that uses the database."""

    def configured(self, **options: bool) -> tuple[bool, int]:
        """Return whether a command has no limits, and how often it tries to connect."""
        called: list[tuple[bool, int]] = []

        def configure(config: cfg.ConfigOpts, patient: bool) -> None:
            called.append((patient, config.placement_database.max_retries))

        def add_commands(commands):
            program.add_database_command(commands, 'run', lambda _: 0, 'Run.', **options)

        self.useFixture(fixtures.MockPatchObject(engine, 'configure', configure))
        self.useFixture(WithoutLogSetup())
        self.useFixture(fixtures.MonkeyPatch('sys.argv', ['test', 'run']))
        for name, value in (('CONNECTION', 'sqlite://'), ('MAX_RETRIES', '-1')):
            variable = f'OS_PLACEMENT_DATABASE__{name}'
            self.useFixture(fixtures.EnvironmentVariable(variable, value))
        definition = program.Program('test', 'Test.', '', 'command', add_commands, program.ERROR)
        self.assertEqual(0, program.main(definition))
        return called[0]

    def test_a_command_waits_as_long_as_necessary(self):
        self.assertEqual((True, -1), self.configured())

    def test_a_command_that_serves_requests_does_not_wait(self):
        self.assertEqual((False, 0), self.configured(patient=False))


class FailureTest(base.BaseTestCase):
    """A command that cannot be completed prints one sentence."""

    def fail_with(self, error: BaseException) -> tuple[int, str]:
        def fail(_config):
            raise error

        def add_commands(commands):
            command = commands.add_parser('run', description='Run.')
            command.set_defaults(action=fail, help_only=False, failed=program.CANNOT)

        self.useFixture(fixtures.MonkeyPatch('sys.argv', ['test', 'run']))
        self.useFixture(
            fixtures.EnvironmentVariable('OS_PLACEMENT_DATABASE__CONNECTION', 'sqlite://')
        )
        self.useFixture(WithoutLogSetup())
        stderr = io.StringIO()
        with contextlib.redirect_stderr(stderr):
            status_ = program.main(
                program.Program('test', 'Test.', '', 'command', add_commands, program.ERROR)
            )
        return status_, stderr.getvalue()

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
