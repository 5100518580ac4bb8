"""The command line of the commands: help, version, and options."""

import argparse
import contextlib
import errno
import importlib
import io
import signal
import subprocess
import sys
from typing import Any
from unittest import mock

import ddt
import fixtures
from oslo_config import cfg
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
        ('placement-manage', 'rename-uuid', 'Give the data of a root provider'),
        ('placement-manage', 'db', 'OS_<GROUP>__<OPTION> sets an option'),
        ('placement-status', 'preflight', '255 a check could not run'),
        ('placement-status', 'upgrade', 'upgrade check'),
    )
    @ddt.unpack
    def test_help(self, name, command, detail):
        code, output, errors = self.run_main(name, '--help')
        self.assertEqual((0, ''), (code, errors))
        self.assertTrue(output.startswith(f'usage: {name} [options] COMMAND ...\n'), output)
        self.assertRegex(output, rf'(?m)^    {command} +[A-Z].*')
        self.assertIn(detail, ' '.join(output.split()))
        self.assertLess(max(map(len, output.splitlines())), 100)

    def test_the_help_has_the_first_sentence_of_each_command(self):
        for name, (module, text) in manage.COMMANDS.items():
            commands = argparse.ArgumentParser().add_subparsers()
            importlib.import_module(f'placement.cmd.{module}').add_commands(commands)
            described = f'{commands.choices[name].description} '
            self.assertEqual(text, f'{described.partition(". ")[0]}.')

    def test_help_imports_only_its_command(self):
        for arguments in ([], ['--config-file', 'placement.conf', 'audit']):
            code = (
                f'import sys; sys.argv[1:] = {[*arguments, "--help"]}\n'
                'from placement.cmd import manage\n'
                'try: manage.main()\n'
                'except SystemExit: print(*sys.modules, file=sys.stderr)\n'
            )
            run = [sys.executable, '-c', code]
            modules = subprocess.run(run, capture_output=True, text=True).stderr.split()
            self.assertIn('placement.cmd.program', modules)
            self.assertEqual(set(), {'alembic', 'oslo_db', 'placement.cmd.explain'} & {*modules})

    def test_usage_errors(self):
        """An incomplete command line does not succeed."""
        for line in (
            'placement-manage',
            'placement-manage nothing',
            'placement-manage db nothing',
            'placement-manage db stamp',
            'placement-manage audit --nothing',
            'placement-status',
            'placement-status upgrade',
            'placement-status upgrade nothing',
        ):
            code, output, errors = self.run_main(*line.split())
            self.assertEqual((2, ''), (code, output), line)
            self.assertIn('usage: ', errors)

    def test_an_incomplete_command_prints_help(self):
        self.useFixture(fixtures.MockPatchObject(program, '_set_up_logging'))
        self.useFixture(fixtures.EnvironmentVariable(f'{DATABASE}CONNECTION', 'sqlite://'))
        code, output, errors = self.run_main('placement-manage', 'db')
        self.assertEqual((0, ''), (code, errors))
        self.assertTrue(output.startswith('usage: placement-manage db '), output)

    def test_the_exit_status_if_the_configuration_is_not_valid(self):
        self.useFixture(fixtures.EnvironmentVariable('OS_PLACEMENT_CONFIG_DIR', '/nowhere'))
        for line, status_ in (
            ('placement-manage db sync', 1),
            ('placement-manage audit', 2),
            ('placement-manage drain db', 2),
            ('placement-status upgrade check', 255),
        ):
            code, output, errors = self.run_main(*line.split())
            self.assertEqual((status_, '', 1), (code, output, errors.count('\n')), errors)


def run_program(test: base.BaseTestCase, add_commands: Any) -> tuple[int, str]:
    """Execute the command `run`; return its exit status and its errors.

    The loggers of the process of the tests do not change.
    """
    test.useFixture(fixtures.MonkeyPatch('sys.argv', ['test', 'run']))
    test.useFixture(fixtures.MockPatchObject(program, '_set_up_logging'))
    test.useFixture(fixtures.EnvironmentVariable(f'{DATABASE}CONNECTION', 'sqlite://'))
    stderr = io.StringIO()
    with contextlib.redirect_stderr(stderr):
        status_ = program.main('test', 'command', program.CANNOT, add_commands, epilog='')
    return status_, stderr.getvalue()


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
            command.set_defaults(action=fail)

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
