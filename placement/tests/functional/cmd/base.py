"""Execution of commands, in the process of the test or in a process of their own."""

from collections.abc import Mapping, Sequence
import os
from typing import Any

from placement.cmd import manage, status
from placement.tests.functional import forked, in_process, programs
from placement.tests.functional.db import base
from placement.tests.functional.programs import Result

_MAINS = {
    'placement.cmd.manage': manage.main,
    'placement.cmd.status': status.main,
}
# If an interrupt arrives while `coverage` holds its lock, the command waits for the lock forever.
_NOT_MEASURED = {'COVERAGE_PROCESS_START': ''}


class TestCase(base.TestCase):
    """Executes a command on the database of the test."""

    module: str

    def run_command(self, *arguments: str, connection: bool = True, **options: Any) -> Result:
        """Execute the command in this process.

        :param connection: whether the database is configured
        :param options: parameters of `in_process.run`
        """
        url = self.database.url if connection else ''
        return in_process.run(*arguments, main=_MAINS[self.module], url=url, **options)

    def run_with_status(self, status: int, *arguments: str, stdin: str = '') -> Result:
        """Execute the command, and require its exit status and no traceback."""
        done = self.run_command(*arguments, stdin=stdin)
        self.assertEqual(status, done.status, done.stderr)
        self.assertNotIn('Traceback', done.stderr)
        return done

    def register_demo_cloud(self, *options: str) -> Result:
        """Execute tools/demo.py on the database of the test."""
        return self.run_program(*options, program=programs.DEMO)

    def run_program(
        self, *arguments: str, program: Sequence[str] = (), missing: Sequence[str] = ()
    ) -> Result:
        """Execute the command, or another program, in a process of its own.

        :param missing: the libraries that the program cannot import
        """
        program = program or ('-m', self.module)
        return programs.shared().run(program, arguments, self._variables(), missing)

    def _variables(self) -> dict[str, str]:
        return {'OS_PLACEMENT_DATABASE__CONNECTION': self.database.url}

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
