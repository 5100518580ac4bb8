"""Executes `placement-manage` in the process of the test, on the database of the test."""

import contextlib
from dataclasses import dataclass
import io
import json
import os
import sys
import tempfile
from typing import Any
from unittest import mock

from oslotest import base

from placement.cmd import manage


@dataclass(frozen=True, slots=True)
class Result:
    """The exit status and the output of a command."""

    status: int
    stdout: str
    stderr: str


def run(*arguments: str, url: str = 'sqlite://', stdin: str = '', **options: str) -> Result:
    """Execute a command, and wait for its end.

    The command uses the database that the fixtures of the test have configured, and does not
    change the log of the test process.

    :param url: the URL of the database, which a command displays, or whose file must exist
    :param options: options of the group [placement]
    """
    variables = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    variables['OS_PLACEMENT_DATABASE__CONNECTION'] = url
    variables |= {f'OS_PLACEMENT__{name.upper()}': value for name, value in options.items()}
    # The commands write bytes to the buffer and to the file descriptor of standard output.
    with tempfile.TemporaryFile('w+') as stdout, contextlib.ExitStack() as stack:
        errors = stack.enter_context(contextlib.redirect_stderr(io.StringIO()))
        stack.enter_context(contextlib.redirect_stdout(stdout))
        for patch in (
            mock.patch.dict(os.environ, variables, clear=True),
            mock.patch.object(sys, 'argv', ['placement-manage', *arguments]),
            mock.patch.object(sys, 'stdin', io.StringIO(stdin)),
            mock.patch('placement.db.engine.configure'),
            mock.patch('placement.cmd.program._set_up_logging'),
        ):
            stack.enter_context(patch)
        try:
            code = manage.main()
        except SystemExit as error:
            code = int(error.code or 0)
        stdout.seek(0)
        return Result(code, stdout.read(), errors.getvalue())


class Commands(base.BaseTestCase):
    """Executes `placement-manage`."""

    def manage(self, status: int, *arguments: str, stdin: str = '') -> Result:
        """Execute a command, and require its exit status; an error is one sentence."""
        done = run(*arguments, stdin=stdin)
        self.assertEqual(status, done.status, done.stderr)
        if status == 2:
            self.assertEqual(('', 1), (done.stdout, done.stderr.count('\n')), done.stderr)
        return done

    def document(self, status: int, *arguments: str, stdin: str = '') -> Any:
        """Return the JSON document that a command prints."""
        done = self.manage(status, *arguments, '--format', 'json', stdin=stdin)
        self.assertEqual('', done.stderr)
        return json.loads(done.stdout)

    def assertRefused(self, sentence: str, *arguments: str) -> None:
        """The command refuses its arguments with a sentence that contains this one."""
        self.assertIn(sentence, self.manage(2, *arguments).stderr)
