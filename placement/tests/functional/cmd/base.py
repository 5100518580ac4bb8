"""Execution of commands in a process of their own."""

from collections.abc import Mapping, Sequence
import os
import subprocess

from placement.tests.functional import forked, programs
from placement.tests.functional.db import base

_PROGRAMS = {
    'placement.cmd.manage': programs.MANAGE,
    'placement.cmd.status': programs.STATUS,
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
        missing: Sequence[str] = (),
        **options: str,
    ) -> subprocess.CompletedProcess:
        """Execute the command and wait for its end.

        :param connection: whether the database is configured
        :param stdin: the standard input of the command
        :param missing: the libraries that the command cannot import
        :param options: options of the group [placement]
        """
        program = _PROGRAMS[self.module]
        return self._execute(program, arguments, connection, stdin, missing, **options)

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
        return self._execute(programs.DEMO, options)

    def _execute(
        self,
        program: Sequence[str],
        arguments: Sequence[str],
        connection: bool = True,
        stdin: str = '',
        missing: Sequence[str] = (),
        **options: str,
    ) -> subprocess.CompletedProcess:
        environment = {f'OS_PLACEMENT__{name.upper()}': value for name, value in options.items()}
        if connection:
            environment['OS_PLACEMENT_DATABASE__CONNECTION'] = self.database.url
        done = programs.shared().run(program, arguments, environment, missing, stdin)
        return subprocess.CompletedProcess(arguments, done.status, done.stdout, done.stderr)

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
        environment = {**os.environ, 'OS_PLACEMENT_DATABASE__CONNECTION': self.database.url}
        for variables in more:
            environment |= variables
        return environment
