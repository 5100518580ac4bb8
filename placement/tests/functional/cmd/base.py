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
