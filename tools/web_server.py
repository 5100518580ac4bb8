"""A web server in a process of its own, for as long as a tool has something to ask it."""

from collections.abc import Iterator, Sequence
import contextlib
from pathlib import Path
import subprocess
import tempfile
import time

import requests

PATIENCE = 90  # seconds that a service may take to start


@contextlib.contextmanager
def served(
    name: str,
    command: Sequence[str | Path],
    port: int,
    environment: dict[str, str],
    folder: str | Path,
    tells_failures: bool = False,
) -> Iterator[None]:
    """Run a command that serves HTTP on a port of loopback, from when it answers to the end.

    :param name: what it is called in messages
    :param folder: where it runs
    :param tells_failures: print what it wrote if there is a traceback in it
    :raises RuntimeError: it ended, or did not answer in time; with what it wrote
    """
    with tempfile.TemporaryFile() as log:
        process = subprocess.Popen(command, env=environment, cwd=folder, stdout=log, stderr=log)

        def text() -> str:
            log.seek(0)
            return log.read().decode()

        try:
            deadline = time.monotonic() + PATIENCE
            while not _answers(port):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f'{name} does not serve:\n{text()}')
                time.sleep(0.1)
            yield
        finally:
            process.terminate()
            process.wait()
            if tells_failures and 'Traceback' in text():
                print(f'{name} failed:\n{text()[-4000:]}')


def _answers(port: int) -> bool:
    try:
        requests.get(f'http://127.0.0.1:{port}/', timeout=PATIENCE)
    except requests.ConnectionError:
        return False
    return True
