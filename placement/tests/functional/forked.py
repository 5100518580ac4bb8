"""Processes that the server of `programs` forks.

This module imports only the standard library. Executed as a file with the socket of the server and
the arguments of Python, it starts a program in place of the Python interpreter::

    python -IS forked.py SOCKET -m placement.cmd.manage --help
"""

from collections.abc import Mapping, Sequence
import contextlib
import json
import os
from pathlib import Path
import select
import signal
import socket
import subprocess
import sys
from typing import IO, Any

# A program that runs longer than this number of seconds is killed.
LONGEST = 300
# A file that is a new pipe, whose other end is an attribute of the process.
PIPE = subprocess.PIPE
File = IO[Any] | int | None


class Process:
    """A running program, with the most important methods of `subprocess.Popen`.

    :ivar pid: the id of the process
    :ivar returncode: the exit status; None if it is not known yet
    :ivar stdin: the writable end of the pipe, if there is one; `stdout` and `stderr` are readable
    """

    def __init__(self, connection: socket.socket, ends: Sequence[IO[bytes] | None]) -> None:
        self._connection = connection
        self._lines = connection.makefile()
        self.pid = int(self._lines.readline())
        self.returncode: int | None = None
        self.stdin, self.stdout, self.stderr = ends

    def poll(self) -> int | None:
        """Return the exit status, or None if the program runs."""
        if self.returncode is None and select.select([self._connection], [], [], 0)[0]:
            self._read()
        return self.returncode

    def wait(self, timeout: float = LONGEST) -> int:
        """Wait for the end of the program and return its exit status.

        :raises subprocess.TimeoutExpired: the program still runs after some seconds
        """
        if self.returncode is None:
            if not select.select([self._connection], [], [], timeout)[0]:
                raise subprocess.TimeoutExpired(str(self.pid), timeout)
            self._read()
        assert self.returncode is not None
        return self.returncode

    def _read(self) -> None:
        self.returncode = int(self._lines.readline())
        self._lines.close()
        self._connection.close()

    def send_signal(self, number: int) -> None:
        """Send a signal, unless the program has ended."""
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def terminate(self) -> None:
        """Send SIGTERM."""
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """Send SIGKILL."""
        self.send_signal(signal.SIGKILL)


def start(
    address: str,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    files: Sequence[File],
    missing: Sequence[str] = (),
    new_session: bool = False,
) -> Process:
    """Start a program.

    :param address: the path of the socket of the server
    :param arguments: the arguments of Python: `-m` and a module, `-c` and a text, or a file
    :param environment: all environment variables
    :param files: the standard input, the standard output, and the standard error; None for no file
    :param missing: the libraries that the program cannot import
    """
    request = {
        'arguments': list(arguments),
        'environment': dict(environment),
        'folder': str(Path.cwd()),
        'missing': list(missing),
        'new_session': new_session,
    }
    connection = socket.socket(socket.AF_UNIX)
    connection.connect(address)
    ends: list[IO[bytes] | None] = [None] * len(files)
    with contextlib.ExitStack() as stack:
        numbers = []
        for index, file in enumerate(files):
            if file == PIPE:
                pipe = os.pipe()
                own, other = reversed(pipe) if index == 0 else pipe
                ends[index] = os.fdopen(own, 'wb' if index == 0 else 'rb')
            else:
                number = os.open(os.devnull, os.O_RDWR) if file is None else _number(file)
                other = number if file is None else os.dup(number)
            stack.callback(os.close, other)
            numbers.append(other)
        socket.send_fds(connection, [b'.'], numbers)
    connection.sendall(f'{json.dumps(request)}\n'.encode())
    return Process(connection, ends)


def _number(file: IO[Any] | int) -> int:
    return file if isinstance(file, int) else file.fileno()


if __name__ == '__main__':
    sys.exit(start(sys.argv[1], sys.argv[2:], os.environ, (0, 1, 2)).wait())
