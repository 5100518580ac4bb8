"""Run the application in a worker process that does nothing but respond to WSGI requests.

The parent process generates the requests and checks the responses, so the memory of the worker is
the memory of the service. Instead of a web server, the worker uses a pipe, from which it reads the
WSGI variables and the body of each request.
"""

from collections.abc import Iterator
import contextlib
import logging
import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path
import time
import traceback
from typing import NamedTuple

from placement.tests import wsgi_client
from placement.tests.wsgi_client import Request, Response


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

    def __init__(self, connection: Connection, pid: int) -> None:
        self._connection = connection
        self._pid = pid

    def send(self, request: Request) -> Result:
        """Send a request and wait for its response."""
        self._connection.send((request.variables(), request.body))
        result: Result = self._connection.recv()
        return result

    def memory(self) -> tuple[float, float]:
        """Return the resident memory of the worker and the peak, both in MiB; only on Linux."""
        lines = Path(f'/proc/{self._pid}/status').read_text().splitlines()
        values = dict(line.split(':', 1) for line in lines)
        return _mebibytes(values['VmRSS']), _mebibytes(values['VmHWM'])


def _mebibytes(value: str) -> float:
    return int(value.split()[0]) / 1024


@contextlib.contextmanager
def started(url: str) -> Iterator[Worker]:
    """Run a worker process on a database while the context is active."""
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, url), daemon=True)
    process.start()
    theirs.close()
    try:
        ours.recv()  # The worker sends a message after it has loaded the application.
        assert process.pid is not None
        yield Worker(ours, process.pid)
    finally:
        ours.close()
        process.join(10)
        process.kill()


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


def _serve(connection: Connection, url: str) -> None:
    from tools.perf.service import Service

    errors = _ErrorLog()
    logging.basicConfig(level=logging.INFO, handlers=[errors])
    application = Service(url).application
    errors.take()
    connection.send('ready')
    with contextlib.suppress(EOFError):
        while True:
            variables, body = connection.recv()
            connection.send(_respond(application, variables, body, errors))


def _respond(
    application: wsgi_client.Application, variables: dict[str, str], body: bytes, errors: _ErrorLog
) -> Result:
    begin = time.perf_counter()
    try:
        response = wsgi_client.respond(application, variables, body)
    except Exception:  # A web server would respond with status 500.
        response = Response(500, {}, traceback.format_exc().encode())
    return Result(response, time.perf_counter() - begin, errors.take())
