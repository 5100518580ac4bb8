"""Starts the service and the commands many times, without importing them each time.

Executed as a module, it imports the programs once. For each line of its input, it forks a process
that executes one program, and prints the result as a line of JSON.
"""

import atexit
from collections.abc import Callable, Sequence
from dataclasses import dataclass
import importlib
import json
import os
import subprocess
import sys
import tempfile
import traceback
from typing import Any

MANAGE, STATUS, SERVICE = 'placement-manage', 'placement-status', 'service'
START_ERROR = 'placement.wsgi.startup.StartError: '


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
    ) -> Result:
        """Execute a program and wait for its end.

        :param missing_libraries: the libraries that the program cannot import
        """
        request = [program, arguments, environment, missing_libraries]
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(f'{json.dumps(request)}\n')
        self._process.stdin.flush()
        return Result(*json.loads(self._process.stdout.readline()))

    def close(self) -> None:
        """End the process."""
        self._process.communicate()


def _main(program: str) -> Callable[[], Any]:
    if program == SERVICE:
        return lambda: importlib.import_module('placement.wsgi.api')
    module = 'manage' if program == MANAGE else 'status'
    main: Callable[[], int] = importlib.import_module(f'placement.cmd.{module}').main
    return lambda: sys.exit(main())


def _execute(main: Callable[[], Any]) -> int:
    """Execute the program as the interpreter does; return its exit status."""
    try:
        main()
    except SystemExit as error:
        return int(error.code or 0)
    except Exception:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _fork(
    program: str, arguments: list[str], environment: dict[str, str], missing: list[str]
) -> tuple[int, str, str]:
    with tempfile.TemporaryFile('w+') as stdout, tempfile.TemporaryFile('w+') as stderr:
        child = os.fork()
        if child == 0:
            status = 99
            try:
                os.dup2(stdout.fileno(), 1)
                os.dup2(stderr.fileno(), 2)
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
