"""Execution of commands in a process of their own."""

import functools
import os
import signal
import subprocess
import sys

from placement.tests.functional.db import base

# The argument `preexec_fn` of `Popen` for a command that a test interrupts. A shell that runs the
# tests in the background makes them, and the commands that they start, ignore SIGINT.
heed_interrupts = functools.partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
# If an interrupt arrives while `coverage` holds its lock, the command waits for the lock forever.
_NOT_MEASURED = {'COVERAGE_PROCESS_START': ''}


class TestCase(base.TestCase):
    """Executes a command on the database of the test."""

    module: str

    def run_command(
        self, *arguments: str, connection: bool = True, stdin: str = ''
    ) -> subprocess.CompletedProcess:
        """Execute the command and wait for its end.

        :param connection: whether the database is configured
        :param stdin: the standard input of the command
        """
        environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_PLACEMENT_')}
        if connection:
            environment['OS_PLACEMENT_DATABASE__CONNECTION'] = self.database.url
        return subprocess.run(
            [sys.executable, '-m', self.module, *arguments],
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            timeout=120,
        )

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
