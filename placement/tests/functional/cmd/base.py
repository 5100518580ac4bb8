"""Execution of commands, in the process of the test or in a process of their own."""

from collections.abc import Mapping, Sequence
import contextlib
import logging
import os
import subprocess
import sys
import tempfile
from unittest import mock
import warnings

from placement.cmd import manage, status
from placement.db import engine
from placement.tests.functional import forked, programs
from placement.tests.functional.db import base

_MAINS = {
    'placement.cmd.manage': manage.main,
    'placement.cmd.status': status.main,
}
# If an interrupt arrives while `coverage` holds its lock, the command waits for the lock forever.
_NOT_MEASURED = {'COVERAGE_PROCESS_START': ''}


class TestCase(base.TestCase):
    """Executes a command on the database of the test."""

    module: str

    def run_command(
        self,
        *arguments: str,
        connection: bool = True,
        stdin: str = '',
        variables: Mapping[str, str] | None = None,
        **options: str,
    ) -> subprocess.CompletedProcess:
        """Execute the command in this process, on the database of the test.

        It writes no log and no warnings, because the log of this process is that of the test.

        :param connection: whether the database is configured
        :param stdin: the standard input of the command
        :param variables: other environment variables
        :param options: options of the group [placement]
        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        environment |= self._variables(connection, options) | (variables or {})
        disabled = logging.root.manager.disable
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile('w+')) for _ in range(3)]
            files[0].write(stdin)
            for patch in (
                mock.patch.dict(os.environ, environment, clear=True),
                mock.patch.multiple(sys, argv=[self.module, *arguments], stdin=files[0]),
                mock.patch.object(engine, 'configure', type(engine.configure)()),
                mock.patch.object(engine.placement_context_manager, 'configure'),
                mock.patch('placement.cmd.program._set_up_logging'),
                warnings.catch_warnings(action='ignore'),
                contextlib.redirect_stdout(files[1]),
                contextlib.redirect_stderr(files[2]),
            ):
                stack.enter_context(patch)
            files[0].seek(0)
            try:
                code = _MAINS[self.module]()
            except SystemExit as error:
                code = error.code
            finally:
                # Preflight disables the log.
                logging.disable(disabled)
            for file in files:
                file.seek(0)
            return subprocess.CompletedProcess(arguments, code, files[1].read(), files[2].read())

    def run_with_status(
        self, status: int, *arguments: str, stdin: str = ''
    ) -> subprocess.CompletedProcess:
        """Execute the command, and require its exit status and no traceback."""
        done = self.run_command(*arguments, stdin=stdin)
        self.assertEqual(status, done.returncode, done.stderr)
        self.assertNotIn('Traceback', done.stderr)
        return done

    def register_demo_cloud(self, *options: str) -> subprocess.CompletedProcess:
        """Execute tools/demo.py on the database of the test."""
        return self.run_program(*options, program=programs.DEMO)

    def run_program(
        self, *arguments: str, program: Sequence[str] = (), missing: Sequence[str] = ()
    ) -> subprocess.CompletedProcess:
        """Execute the command, or another program, in a process of its own.

        :param missing: the libraries that the program cannot import
        """
        program = program or ('-m', self.module)
        done = programs.shared().run(program, arguments, self._variables(), missing)
        return subprocess.CompletedProcess(arguments, done.status, done.stdout, done.stderr)

    def _variables(
        self, connection: bool = True, options: Mapping[str, str] | None = None
    ) -> dict[str, str]:
        named = {f'OS_PLACEMENT__{name.upper()}': value for name, value in (options or {}).items()}
        if connection:
            named['OS_PLACEMENT_DATABASE__CONNECTION'] = self.database.url
        return named

    def start(
        self, *arguments: str, interrupted: bool = True, **files: forked.File
    ) -> forked.Process:
        """Start the command.

        :param interrupted: whether the test interrupts the command
        :param files: its `stdin` and `stdout`
        """
        command = ('-m', self.module, *arguments)
        environment = self.environment(_NOT_MEASURED if interrupted else {})
        return programs.shared().start(command, environment, stderr=forked.PIPE, **files)

    def environment(self, *more: Mapping[str, str]) -> dict[str, str]:
        """Return the environment variables of a command on the database of the test."""
        environment = {**os.environ, **self._variables()}
        for variables in more:
            environment |= variables
        return environment
