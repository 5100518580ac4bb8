"""Run the service, its servers and its commands, and measure what they need."""

from collections.abc import Callable
import concurrent.futures
import contextlib
from dataclasses import dataclass
import multiprocessing
import os
from pathlib import Path
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import orjson
from oslo_config import cfg

from placement import conf, deploy, wsgi
from placement.db import engine
from placement.tests import wsgi_client
from tools import with_database

ENGINES = ('sqlite', *with_database.ENGINES)
# As in production, the servers write durably and have enough memory for the largest world.
_MARIADB_OPTIONS = (
    '--innodb-flush-log-at-trx-commit=1',
    '--innodb-doublewrite=1',
    '--innodb-buffer-pool-size=4G',
)
_OPTIONS = {
    'mariadb': _MARIADB_OPTIONS,
    'mariadb-mysqlclient': _MARIADB_OPTIONS,
    'mysql': (*_MARIADB_OPTIONS, '--innodb-flush-method=fsync'),
    'postgresql': (
        *('-c', 'fsync=on'),
        *('-c', 'synchronous_commit=on'),
        *('-c', 'full_page_writes=on'),
        *('-c', 'shared_buffers=1GB'),
    ),
}
# Seconds between two readings of the memory peak of a command.
_INTERVAL = 0.05


class Request(NamedTuple):
    """A request with the roles admin and service.

    :param path: the path and the query string
    :param body: the request body, which is sent as JSON
    """

    method: str
    path: str
    body: Any = None


class FailedError(Exception):
    """A request or a command failed unexpectedly; the message contains the output."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What a process needed: elapsed seconds, processor seconds, and its memory peak in MiB."""

    seconds: float
    cpu_seconds: float
    peak_mib: float


class Service:
    """The application, on a database that becomes the database of this process.

    :param url: the URL of an existing database; missing tables are created
    """

    def __init__(self, url: str) -> None:
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.set_override('connection', url, group='placement_database')
        config.set_override('sync_on_startup', True, group='placement_database')
        config.set_override('auth_strategy', 'noauth2', group='api')
        config([], project='placement', default_config_files=[], default_config_dirs=[])
        engine.configure(config)
        self.application = deploy.loadapp(config)
        self.engine = engine.get_placement_engine()
        wsgi.tune_garbage_collector()

    def send(self, request: Request) -> bytes:
        """Send a request and return the body of the response.

        :raises FailedError: the status is not 2xx
        """
        path, _, query = request.path.partition('?')
        body = b'' if request.body is None else orjson.dumps(request.body)
        environ: dict[str, str | None] = {'HTTP_ACCEPT': 'application/json'}
        if not body:
            environ |= {'CONTENT_TYPE': None, 'CONTENT_LENGTH': None}
        sent = wsgi_client.Request(request.method, path, query, body, environ=environ)
        response = wsgi_client.send(self.application, sent)
        if not 200 <= response.status < 300:
            text = response.content.decode()
            raise FailedError(f'{request.method} {request.path}: {response.status} {text}')
        return response.content


def databases(engine: str) -> contextlib.AbstractContextManager[Callable[[str], str]]:
    """Run a database system while the context is active; it writes durably.

    :returns: a function that creates an empty database with a name, and returns its URL
    """
    # Convert the signal to an exception, so that the context manager stops the server.
    signal.signal(signal.SIGTERM, with_database.exit_on_signal)
    return with_database.databases(engine, _OPTIONS.get(engine, ()))


# Processes --------------------------------------------------------------------


def in_new_process(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new process, which has its own memory peak, and return its result."""
    context = multiprocessing.get_context('spawn')
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        return pool.submit(function, *arguments).result()


def reset_peak() -> None:
    """Reset the memory peak of this process to its current memory; works only on Linux."""
    with contextlib.suppress(OSError):
        Path('/proc/self/clear_refs').write_text('5')


def peak_mib(pid: int | None = None) -> float:
    """Return the peak of the resident memory of a process in MiB; 0 after its end."""
    with contextlib.suppress(OSError):
        for line in Path(f'/proc/{pid or "self"}/status').read_text().splitlines():
            if line.startswith('VmHWM:'):
                return int(line.split()[1]) / 1024
    return 0.0


def manage(url: str, *arguments: str, highest: int = 0, **options: Any) -> Cost:
    """Execute a command of placement-manage and return its cost.

    :param highest: the highest exit status of a successful command
    :raises FailedError: the command fails
    """
    settings = os.environ | {
        'OS_PLACEMENT_DATABASE__CONNECTION': url,
        'PYTHONPATH': str(Path.cwd()),
    }
    with tempfile.TemporaryFile() as errors:
        started, peak = time.perf_counter(), 0.0
        command = (sys.executable, '-m', 'placement.cmd.manage', *arguments)
        process = subprocess.Popen(
            command, env=settings, stdout=subprocess.DEVNULL, stderr=errors, **options
        )
        # `ru_maxrss` would include the memory of this process, from which the command was started.
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            peak = max(peak, peak_mib(process.pid))
            time.sleep(_INTERVAL)
        seconds = time.perf_counter() - started
        process.returncode = os.waitstatus_to_exitcode(ended[1])
        errors.seek(0)
        if not 0 <= process.returncode <= highest:
            text = errors.read().decode()
            raise FailedError(f'placement-manage {" ".join(arguments)}: {text}')
    return Cost(seconds, ended[2].ru_utime + ended[2].ru_stime, peak)
