"""Executes the commands in the process of the test, on the database of the test."""

from collections.abc import Callable, Mapping
import contextlib
import json
import logging
import os
import sys
import tempfile
from typing import Any
from unittest import mock
import warnings

from oslotest import base

from placement.cmd import manage
from placement.db import engine
from placement.tests.functional.programs import Result


def run(
    *arguments: str,
    main: Callable[[], int] = manage.main,
    url: str = 'sqlite://',
    stdin: str = '',
    variables: Mapping[str, str] | None = None,
    **options: str,
) -> Result:
    """Execute a command, and wait for its end.

    The command uses the database that the fixtures of the test have configured. It writes no log
    and no warnings, because the log of this process is that of the test.

    :param main: the function that executes the command
    :param url: the URL of the database, which a command displays, or whose file must exist; empty
        if the database is not configured
    :param variables: other environment variables
    :param options: options of the group [placement]
    """
    environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
    environment |= {f'OS_PLACEMENT__{name.upper()}': value for name, value in options.items()}
    environment |= {'OS_PLACEMENT_DATABASE__CONNECTION': url} if url else {}
    environment |= variables or {}
    disabled = logging.root.manager.disable
    with contextlib.ExitStack() as stack:
        # The commands write bytes to the buffer and to the file descriptor of standard output.
        files = [stack.enter_context(tempfile.TemporaryFile('w+')) for _ in range(3)]
        files[0].write(stdin)
        files[0].seek(0)
        for patch in (
            mock.patch.dict(os.environ, environment, clear=True),
            mock.patch.multiple(sys, argv=['placement', *arguments], stdin=files[0]),
            mock.patch.object(engine, 'configure', type(engine.configure)()),
            mock.patch.object(engine.placement_context_manager, 'configure'),
            mock.patch('placement.cmd.program._set_up_logging'),
            warnings.catch_warnings(action='ignore'),
            contextlib.redirect_stdout(files[1]),
            contextlib.redirect_stderr(files[2]),
        ):
            stack.enter_context(patch)
        try:
            code = main()
        except SystemExit as error:
            code = int(error.code or 0)
        finally:
            # Preflight disables the log.
            logging.disable(disabled)
        for file in files:
            file.seek(0)
        return Result(code, files[1].read(), files[2].read())


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
