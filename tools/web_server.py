"""Run a web server in a separate process."""

from collections.abc import Iterator, Sequence
import contextlib
from pathlib import Path
import subprocess
import tempfile
import time

import requests

START_SECONDS = 300  # the maximum time that the start of a service may take, on a busy machine


@contextlib.contextmanager
def served(
    name: str,
    command: Sequence[str | Path],
    port: int,
    environment: dict[str, str],
    folder: str | Path,
    print_failures: bool = False,
) -> Iterator[None]:
    """Run a command that serves HTTP on a loopback port while the context is active.

    The body of the context starts after the server has responded to a request.

    :param name: the name of the service in messages
    :param folder: the working directory of the command
    :param print_failures: whether to print the end of the output if the output contains a traceback
    :raises RuntimeError: the command exits or does not respond in time; the message contains the
        output of the command
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)

        def output() -> str:
            log.seek(0)
            return log.read().decode()

        try:
            deadline = time.monotonic() + START_SECONDS
            while not _responds(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f'{name} does not respond to requests:\n{output()}')
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait()
            if print_failures and 'Traceback' in output():
                print(f'{name} failed:\n{output()[-4000:]}')


def _responds(port: int) -> bool:
    try:
        requests.get(f'http://127.0.0.1:{port}/', timeout=START_SECONDS)
    except requests.ConnectionError:
        return False
    return True
