"""Starts the service and the commands many times, without importing them each time.

Executed as a module, it imports the programs once. For each line of its input, it forks a process
that executes one program, and prints the result as a line of JSON. A command then starts in a tenth
of a second. Python would import the command for more than a second.
"""

import atexit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
import functools
import importlib
import json
import os
from pathlib import Path
import runpy
import signal
import subprocess
import sys
import tempfile
import traceback
from typing import Any

import placement

MANAGE, STATUS, SERVICE = 'placement-manage', 'placement-status', 'service'
DEMO = 'tools/demo.py'
START_ERROR = 'placement.wsgi.startup.StartError: '
# A program that runs longer than this number of seconds is killed.
_LONGEST = 300


@dataclass(frozen=True, slots=True)
class Result:
    """The exit status and the output of a program."""

    status: int
    stdout: str
    stderr: str


class Programs:
    """A process that executes programs one after the other."""

    def __init__(self) -> None:
        environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        self._process = subprocess.Popen(
            [sys.executable, '-m', __name__],
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def run(
        self,
        program: str,
        arguments: Sequence[str],
        environment: dict[str, str],
        missing_libraries: Sequence[str] = (),
        stdin: str = '',
    ) -> Result:
        """Execute a program and wait for its end.

        :param missing_libraries: the libraries that the program cannot import
        :param stdin: the standard input of the program
        """
        request = [program, arguments, environment, missing_libraries, stdin]
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f'{json.dumps(request)}\n')
        self._process.stdin.flush()
        return Result(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


@functools.cache
def shared() -> Programs:
    """Return the process that executes programs for all tests of this test process."""
    programs = Programs()
    atexit.register(programs.close)
    return programs


def _main(program: str) -> Callable[[], Any]:
    if program == SERVICE:
        return lambda: importlib.import_module('placement.wsgi.api')
    if program == DEMO:
        path = Path(placement.__file__).parents[1] / program
        sys.path.insert(0, str(path.parent))
        return lambda: runpy.run_path(str(path), run_name='__main__')
    module = 'manage' if program == MANAGE else 'status'
    main: Callable[[], int] = importlib.import_module(f'placement.cmd.{module}').main
    return lambda: sys.exit(main())


def _execute(main: Callable[[], Any]) -> int:
    """Execute the program as the interpreter does; return its exit status."""
    try:
        main()
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
            return 1
        return error.code or 0
    except Exception:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _fork(
    program: str, arguments: list[str], environment: dict[str, str], missing: list[str], text: str
) -> tuple[int, str, str]:
    with (
        tempfile.TemporaryFile('w+') as stdin,
        tempfile.TemporaryFile('w+') as stdout,
        tempfile.TemporaryFile('w+') as stderr,
    ):
        stdin.write(text)
        stdin.seek(0)
        child = os.fork()
        if child == 0:
            status = 99
            try:
                signal.alarm(_LONGEST)
                for number, file in enumerate((stdin, stdout, stderr)):
                    os.dup2(file.fileno(), number)
                sys.stdin = os.fdopen(0)
                os.environ.update(environment)
                for name in missing:
                    # Python does not import a module whose entry is None.
                    sys.modules[name] = None  # type: ignore[assignment]
                sys.argv = [program, *arguments]
                status = _execute(_main(program))
                # The measurement of the test coverage writes its data at exit.
                atexit._run_exitfuncs()
                sys.stdout.flush()
                sys.stderr.flush()
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        stdout.seek(0)
        stderr.seek(0)
        return status, stdout.read(), stderr.read()


def _serve() -> None:
    for module in ('placement.cmd.manage', 'placement.cmd.status', 'placement.wsgi.startup'):
        importlib.import_module(module)
    for line in sys.stdin:
        print(json.dumps(_fork(*json.loads(line))), flush=True)


if __name__ == '__main__':
    _serve()
