"""Starts Python programs many times, without importing their modules each time.

Executed as a module, it imports the service and the commands once, and listens on a Unix socket.
For each connection, it forks a process that executes one program. A program then starts in a tenth
of a second. Python would import it for more than a second.
"""

import atexit
from collections.abc import Mapping, Sequence
import contextlib
from dataclasses import dataclass
import functools
import gc
import importlib
import json
import os
from pathlib import Path
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from typing import Any, NoReturn
import warnings

import placement
from placement.tests.functional import forked
from placement.tests.functional.forked import PIPE as PIPE

ROOT = Path(placement.__file__).parents[1]
# The arguments of Python for each program.
MANAGE = ('-m', 'placement.cmd.manage')
STATUS = ('-m', 'placement.cmd.status')
SERVICE = ('-m', 'placement.wsgi.api')
DEMO = (str(ROOT / 'tools' / 'demo.py'),)
# The environment variable with the configuration of the package `coverage`.
_COVERAGE = 'COVERAGE_PROCESS_START'
START_ERROR = 'placement.wsgi.startup.StartError: '
# The directory of temporary files; during a test, it can be that of the test.
_PARENT = tempfile.gettempdir()
# The modules that every program imports. prometheus_client is not among them, because its import
# reads environment variables.
_IMPORTED = (
    *('placement.cmd.manage', 'placement.cmd.status', 'placement.wsgi.startup'),
    *('placement.deploy', 'placement.wsgi', 'requests', 'waitress', 'webob'),
)


@dataclass(frozen=True, slots=True)
class Result:
    """The exit status and the output of a program."""

    status: int
    stdout: str
    stderr: str


class Programs:
    """A process that forks programs.

    :ivar socket: the path of the socket on which it listens
    """

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix='placement-programs-', dir=_PARENT)
        self.socket = Path(self._folder.name, 'socket')
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.socket))
        listener.listen(100)
        environment = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        coverage = environment.pop(_COVERAGE, '')
        self._process = subprocess.Popen(
            [sys.executable, '-m', __name__, str(listener.fileno()), coverage],
            stdin=subprocess.PIPE,
            pass_fds=[listener.fileno()],
            env=environment,
        )
        listener.close()

    def start(
        self,
        arguments: Sequence[str],
        environment: Mapping[str, str],
        stdin: forked.File = None,
        stdout: forked.File = None,
        stderr: forked.File = None,
        missing_libraries: Sequence[str] = (),
        new_session: bool = False,
    ) -> forked.Process:
        """Start a program.

        :param arguments: the arguments of Python: `-m` and a module, `-c` and a text, or a file
        :param environment: all environment variables
        :param stdin: a file, `PIPE`, or None for no file
        :param missing_libraries: the libraries that the program cannot import
        """
        return forked.start(
            str(self.socket),
            arguments,
            environment,
            (stdin, stdout, stderr),
            missing_libraries,
            new_session,
        )

    def run(
        self,
        program: Sequence[str],
        arguments: Sequence[str],
        environment: Mapping[str, str],
        missing_libraries: Sequence[str] = (),
        stdin: str = '',
    ) -> Result:
        """Execute a program and wait for its end.

        :param environment: additional environment variables
        :param stdin: the standard input of the program
        """
        clean = {k: v for k, v in os.environ.items() if not k.startswith('OS_')}
        with contextlib.ExitStack() as stack:
            files = [stack.enter_context(tempfile.TemporaryFile('w+')) for _ in range(3)]
            files[0].write(stdin)
            files[0].seek(0)
            process = self.start(
                (*program, *arguments), {**clean, **environment}, *files, missing_libraries
            )
            status = process.wait()
            for file in files:
                file.seek(0)
            return Result(status, files[1].read(), files[2].read())

    def close(self) -> None:
        """End the process; programs that still run continue."""
        self._process.communicate()
        self._folder.cleanup()


@functools.cache
def shared() -> Programs:
    """Return the process that executes programs for all tests of this test process."""
    programs = Programs()
    atexit.register(programs.close)
    return programs


def _execute(arguments: Sequence[str]) -> int:
    """Execute a program as the interpreter does; return its exit status."""
    kind, *rest = arguments
    try:
        if kind == '-m':
            sys.argv = rest
            with warnings.catch_warnings():
                # The module is in sys.modules.
                warnings.filterwarnings('ignore', category=RuntimeWarning, module='runpy')
                runpy.run_module(rest[0], run_name='__main__', alter_sys=True)
        elif kind == '-c':
            sys.argv = ['-c', *rest[1:]]
            exec(rest[0], {'__name__': '__main__'})
        else:
            sys.argv = [kind, *rest]
            sys.path.insert(0, str(Path(kind).parent))
            runpy.run_path(kind, run_name='__main__')
    except SystemExit as error:
        if isinstance(error.code, str):
            print(error.code, file=sys.stderr)
            return 1
        return error.code or 0
    except BaseException:
        sys.excepthook(*sys.exc_info())
        return 1
    return 0


def _become(request: dict[str, Any], files: Sequence[int]) -> NoReturn:
    """Execute a program in this process, and end."""
    status = 99
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        if request['new_session']:
            os.setsid()
        else:
            signal.alarm(forked.LONGEST)
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        sys.stdin = os.fdopen(0)
        os.environ.clear()
        os.environ.update(request['environment'])
        if not os.environ.get(_COVERAGE):
            _measure_no_coverage()
        os.chdir(request['folder'])
        sys.path[:0] = [one for one in os.environ.get('PYTHONPATH', '').split(os.pathsep) if one]
        # Python does not import a module whose entry is None.
        sys.modules.update(dict.fromkeys(request['missing']))  # type: ignore[arg-type]
        status = _execute(request['arguments'])
        # The measurement of the test coverage writes its data at exit.
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except OSError:
            # The reader has closed the output, or the disk is full. A program that detects this
            # itself has another status than 0.
            status = status or 120
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _measure_coverage(configuration: str) -> None:
    """Start the measurement, after the imports: each program writes all that was measured."""
    if configuration:
        os.environ[_COVERAGE] = configuration
        importlib.import_module('coverage').process_startup()


def _measure_no_coverage() -> None:
    """End the measurement in this process."""
    if 'coverage' in sys.modules:
        current = sys.modules['coverage'].Coverage.current()
        if current is not None:
            current.stop()
            atexit.unregister(current._atexit)


class _Server:
    """Forks programs, and sends the exit status of each of them.

    :param listener: the socket to which the tests connect
    """

    def __init__(self, listener: socket.socket) -> None:
        self._listener = listener
        self._connections: dict[int, socket.socket] = {}
        self._ended, wakeup = socket.socketpair()
        wakeup.setblocking(False)
        self._wakeup = wakeup
        signal.set_wakeup_fd(wakeup.fileno())
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        """Serve until the standard input ends."""
        while True:
            ready, _, _ = select.select([self._listener, self._ended, sys.stdin], [], [])
            if self._ended in ready:
                self._ended.recv(1000)
                self._reap()
            if self._listener in ready:
                self._fork()
            if sys.stdin in ready:
                return

    def _fork(self) -> None:
        connection, _ = self._listener.accept()
        _, files, _, _ = socket.recv_fds(connection, 1, 3)
        with connection.makefile() as lines:
            request = json.loads(lines.readline())
        child = os.fork()
        if child == 0:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            for other in (self._listener, self._ended, self._wakeup, connection):
                other.close()
            for other in self._connections.values():
                other.close()
            _become(request, files)
        for file in files:
            os.close(file)
        self._connections[child] = connection
        self._send(connection, child)

    def _reap(self) -> None:
        """Send the exit statuses of the programs that have ended."""
        with contextlib.suppress(ChildProcessError):
            while (found := os.waitpid(-1, os.WNOHANG))[0]:
                connection = self._connections.pop(found[0])
                self._send(connection, os.waitstatus_to_exitcode(found[1]))
                connection.close()

    @staticmethod
    def _send(connection: socket.socket, number: int) -> None:
        # The test may have closed the connection.
        with contextlib.suppress(BrokenPipeError):
            connection.sendall(f'{number}\n'.encode())


def _main() -> None:
    for module in _IMPORTED:
        importlib.import_module(module)
    # A collection would write to all objects, and thus copy their memory.
    gc.collect()
    gc.freeze()
    _measure_coverage(sys.argv[2])
    _Server(socket.socket(fileno=int(sys.argv[1]))).serve()


if __name__ == '__main__':
    _main()
