"""A worker process that serves WSGI requests and does nothing else.

The caller generates requests and judges responses in its own process, so the memory of the worker
is that of the service. There is no web server: requests come through a pipe as WSGI variables.
"""

from collections.abc import Iterator
import contextlib
import io
import logging
import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path
import time
import traceback
from typing import Any, NamedTuple

from placement.tests.functional.spoil.generated import Request
from placement.tests.functional.spoil.judging import Answer


class Served(NamedTuple):
    """A response, and what it took.

    :param seconds: from the call of the application to the last byte of the body
    :param trouble: tracebacks that were logged or raised meanwhile
    """

    answer: Answer
    seconds: float
    trouble: str


class Worker:
    """The caller's end of a worker process."""

    def __init__(self, connection: Connection, pid: int):
        self._connection = connection
        self._pid = pid

    def send(self, request: Request) -> Served:
        """Send a request and wait for its response."""
        self._connection.send((environ(request), request.body))
        served: Served = self._connection.recv()
        return served

    def memory(self) -> tuple[float, float]:
        """The resident memory of the worker now, and its peak, in MiB. Linux only."""
        lines = Path(f'/proc/{self._pid}/status').read_text().splitlines()
        values = dict(line.split(':', 1) for line in lines)
        return _mebibytes(values['VmRSS']), _mebibytes(values['VmHWM'])


def _mebibytes(value: str) -> float:
    return int(value.split()[0]) / 1024


@contextlib.contextmanager
def started(url: str) -> Iterator[Worker]:
    """A worker process on a database, for the duration of the context."""
    context = multiprocessing.get_context('spawn')
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, url), daemon=True)
    process.start()
    theirs.close()
    try:
        ours.recv()  # the application is loaded
        assert process.pid is not None
        yield Worker(ours, process.pid)
    finally:
        ours.close()
        process.join(10)
        process.kill()


def environ(request: Request) -> dict[str, str]:
    """The WSGI variables of a request of an administrator that is a service too."""
    variables: dict[str, str | None] = {
        'REQUEST_METHOD': request.method,
        'SCRIPT_NAME': '',
        'PATH_INFO': request.path,
        'QUERY_STRING': request.query,
        'SERVER_NAME': 'localhost',
        'SERVER_PORT': '8778',
        'SERVER_PROTOCOL': 'HTTP/1.1',
        'REMOTE_ADDR': '127.0.0.1',
        'HTTP_HOST': 'localhost:8778',
        'CONTENT_TYPE': 'application/json',
        'CONTENT_LENGTH': str(len(request.body)),
        'HTTP_X_AUTH_TOKEN': 'admin',
        'HTTP_X_ROLES': 'admin,service',
        'HTTP_OPENSTACK_API_VERSION': f'placement {request.version}',
        **request.environ,
    }
    return {name: value for name, value in variables.items() if value is not None}


class _Trouble(logging.Handler):
    """Formats every record as a log file would, and keeps the tracebacks of the request."""

    def __init__(self) -> None:
        super().__init__()
        self._formatter = logging.Formatter('%(asctime)s %(levelname)s [%(name)s] %(message)s')
        self.texts: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = self._formatter.format(record)
            text.encode()
        except Exception:
            self.texts.append(f'log record: {traceback.format_exc()}')
            return
        if record.levelno >= logging.ERROR:
            self.texts.append(text)

    def take(self) -> str:
        """The text since the last call, shortened."""
        text, self.texts = '\n'.join(self.texts), []
        return text[-4000:]


def _serve(connection: Connection, url: str) -> None:
    from tools.perf.service import Service

    trouble = _Trouble()
    logging.basicConfig(level=logging.INFO, handlers=[trouble])
    application = Service(url).application
    trouble.take()
    connection.send('ready')
    with contextlib.suppress(EOFError):
        while True:
            variables, body = connection.recv()
            connection.send(_respond(application, variables, body, trouble))


def _respond(application: Any, variables: dict[str, Any], body: bytes, trouble: _Trouble) -> Served:
    variables |= {
        'wsgi.version': (1, 0),
        'wsgi.url_scheme': 'http',
        'wsgi.input': io.BytesIO(body),
        'wsgi.errors': io.StringIO(),
        'wsgi.multithread': False,
        'wsgi.multiprocess': False,
        'wsgi.run_once': False,
    }
    started: list[tuple[str, list[tuple[str, str]]]] = []
    begin = time.perf_counter()
    try:
        content = b''.join(application(variables, lambda *args: started.append(args[:2])))
        status, headers = started[-1]
        answer = Answer(int(status.split()[0]), {k.lower(): v for k, v in headers}, content)
    except Exception:  # a web server would answer 500
        answer = Answer(500, {}, traceback.format_exc().encode())
    return Served(answer, time.perf_counter() - begin, trouble.take())
