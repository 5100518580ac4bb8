"""Execution of commands in a process of their own."""

from collections.abc import Sequence
import functools
import os
import signal
import subprocess
import sys

from placement.tests.functional import programs
from placement.tests.functional.db import base

_PROGRAMS = {
    'placement.cmd.manage': programs.MANAGE,
    'placement.cmd.status': programs.STATUS,
}
# The argument `preexec_fn` of `Popen` for a command that a test interrupts. A shell that runs the
# tests in the background makes them, and the commands that they start, ignore SIGINT.
heed_interrupts = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
# If an interrupt arrives while `coverage` holds its lock, the command waits for the lock forever.
_NOT_MEASURED = {'COVERAGE_PROCESS_START': ''}


class TestCase(base.TestCase):
    """Executes a command on the database of the test."""

    module: str

    def run_command(
        self, *arguments: str, connection: bool = True, stdin: str = '', **options: str
    ) -> subprocess.CompletedProcess:
        """Execute the command and wait for its end.

        :param connection: whether the database is configured
        :param stdin: the standard input of the command
        :param options: options of the group [placement]
        """
        return self._execute(_PROGRAMS[self.module], arguments, connection, stdin, **options)

    def register_demo_cloud(self, *options: str) -> subprocess.CompletedProcess:
        """Execute tools/demo.py on the database of the test."""
        return self._execute(programs.DEMO, options)

    def _execute(
        self,
        program: str,
        arguments: Sequence[str],
        connection: bool = True,
        stdin: str = '',
        **options: str,
    ) -> subprocess.CompletedProcess:
        environment = {f'OS_PLACEMENT__{name.upper()}': value for name, value in options.items()}
        if connection:
            environment['OS_PLACEMENT_DATABASE__CONNECTION'] = self.database.url
        done = programs.shared().run(program, arguments, environment, stdin=stdin)
        return subprocess.CompletedProcess(arguments, done.status, done.stdout, done.stderr)

    def start(self, *arguments: str, **options) -> subprocess.Popen:
        """Start the command, so that the test can interrupt it.

        :param options: further arguments of `Popen`
        """
        connection = {'OS_PLACEMENT_DATABASE__CONNECTION': self.database.url}
        return subprocess.Popen(
            [sys.executable, '-m', self.module, *arguments],
            env=os.environ | connection | _NOT_MEASURED,
            stderr=subprocess.PIPE,
            preexec_fn=heed_interrupts,
            **options,
        )
