"""Run the application in a worker process that does nothing but respond to WSGI requests.

The parent process generates the requests and checks the responses, so the memory of the worker is
the memory of the service. There is no web server: the worker receives the WSGI variables and the
body of each request.
"""

from collections.abc import Iterator
import concurrent.futures
import contextlib
import logging
import multiprocessing
import os
from pathlib import Path
import signal
import time
import traceback
from typing import NamedTuple

from placement.tests import wsgi_client
from placement.tests.waiting import LONGEST
from placement.tests.wsgi_client import Request, Response
from tools.perf.service import Service

# The status of a response that does not come in time.
NO_RESPONSE = 504


class Result(NamedTuple):
    """A response, its duration, and the errors that the service logged.

    :param seconds: the time from the call of the application until the last byte of the body
    :param errors: the errors that the service logged during the request
    """

    response: Response
    seconds: float
    errors: str


class Worker:
    """The interface of a worker process in the parent process."""

    def __init__(self, pool: concurrent.futures.Executor) -> None:
        self._pool = pool
        self.pid = pool.submit(os.getpid).result()

    def send(self, request: Request) -> Result:
        """Send a request and wait for its response."""
        future = self._pool.submit(_respond, request.variables(), request.body)
        try:
            return future.result(LONGEST)
        except TimeoutError:
            return Result(Response(NO_RESPONSE, {}, b'The worker does not respond'), LONGEST, '')

    def memory(self) -> tuple[float, float]:
        """Return the resident memory of the worker and the peak, both in MiB; only on Linux."""
        lines = Path(f'/proc/{self.pid}/status').read_text().splitlines()
        values = dict(line.split(':', 1) for line in lines)
        return _mebibytes(values['VmRSS']), _mebibytes(values['VmHWM'])


def _mebibytes(value: str) -> float:
    return int(value.split()[0]) / 1024


@contextlib.contextmanager
def started(url: str) -> Iterator[Worker]:
    """Run a worker process on a database while the context is active."""
    context = multiprocessing.get_context('spawn')
    with concurrent.futures.ProcessPoolExecutor(
        1, mp_context=context, initializer=_start, initargs=(url,)
    ) as pool:
        worker = Worker(pool)
        try:
            yield worker
        finally:
            os.kill(worker.pid, signal.SIGKILL)


class _ErrorLog(logging.Handler):
    """A log handler that formats every record like a log file, and collects the errors."""

    def __init__(self) -> None:
        super().__init__()
        self._formatter = logging.Formatter('%(asctime)s %(levelname)s [%(name)s] %(message)s')
        self._texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Format a record; an exception in the formatter counts as an error of the service, too."""
        try:
            text = self._formatter.format(record)
            text.encode()
        except Exception:
            self._texts.append(f'log record: {traceback.format_exc()}')
            return
        if record.levelno >= logging.ERROR:
            self._texts.append(text)

    def take(self) -> str:
        """Return the end of the text of all errors since the previous call."""
        text, self._texts = '\n'.join(self._texts), []
        return text[-4000:]


_errors = _ErrorLog()
_services: list[Service] = []


def _start(url: str) -> None:
    """Load the application of this process."""
    logging.basicConfig(level=logging.INFO, handlers=[_errors])
    _services.append(Service(url))
    _errors.take()


def _respond(variables: dict[str, str], body: bytes) -> Result:
    begin = time.perf_counter()
    try:
        response = wsgi_client.respond(_services[0].application, variables, body)
    except Exception:  # A web server would respond with status 500.
        response = Response(500, {}, traceback.format_exc().encode())
    return Result(response, time.perf_counter() - begin, _errors.take())
