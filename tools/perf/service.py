"""Run the service in this process, and count the SQL statements and rows of its requests."""

from collections.abc import Callable, Iterator
import contextlib
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson
from oslo_config import cfg
import sqlalchemy as sa
from sqlalchemy import event

from placement import conf, deploy, wsgi
from placement.db import engine
from placement.tests import statements, wsgi_client


class Request(NamedTuple):
    """A request with the roles admin and service.

    :param path: the path and the query string
    :param body: the request body, which is sent as JSON
    """

    method: str
    path: str
    body: Any = None


class RequestFailedError(Exception):
    """A request failed unexpectedly; the message contains the request and the response."""


@dataclass(slots=True)
class Cost:
    """The number of SQL statements, and the number of rows that the database returned."""

    statements: int = 0
    rows: int = 0


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

        :raises RequestFailedError: the status is not 2xx
        """
        response = wsgi_client.send(self.application, _wsgi_request(request))
        if not 200 <= response.status < 300:
            text = response.content.decode()
            raise RequestFailedError(f'{request.method} {request.path}: {response.status} {text}')
        return response.content

    @contextlib.contextmanager
    def metered(self) -> Iterator[Cost]:
        """Count the SQL statements and returned rows while the context is active.

        The number of statements is available after the end of the context.
        """
        cost = Cost()
        row_counter = _SqliteRows(cost) if self.engine.dialect.name == 'sqlite' else _Rows(cost)
        with statements.recorded(self.engine) as recorded, row_counter.listening(self.engine):
            yield cost
        cost.statements = len(recorded)


class _Rows:
    """Adds up the numbers of rows that the driver reports for each result."""

    def __init__(self, cost: Cost) -> None:
        self._cost = cost

    def _listeners(self) -> dict[str, Callable[..., None]]:
        return {'after_cursor_execute': self._count}

    @contextlib.contextmanager
    def listening(self, engine: sa.Engine) -> Iterator[None]:
        """Count the rows that an engine returns while the context is active."""
        listeners = self._listeners()
        for name, listener in listeners.items():
            event.listen(engine, name, listener)
        try:
            yield
        finally:
            for name, listener in listeners.items():
                event.remove(engine, name, listener)

    def _count(self, _conn: Any, cursor: Any, *_: Any) -> None:
        if cursor.description is not None and cursor.rowcount > 0:
            self._cost.rows += cursor.rowcount


class _SqliteRows(_Rows):
    """Counts each row when it is read, because SQLite does not report the number of rows."""

    def _listeners(self) -> dict[str, Callable[..., None]]:
        return {'checkout': self._start, 'checkin': self._stop}

    def _start(self, dbapi_connection: Any, *_: Any) -> None:
        dbapi_connection.row_factory = self._add

    def _stop(self, dbapi_connection: Any, *_: Any) -> None:
        dbapi_connection.row_factory = None

    def _add(self, _cursor: Any, row: Any) -> Any:
        self._cost.rows += 1
        return row


def _wsgi_request(request: Request) -> wsgi_client.Request:
    path, _, query = request.path.partition('?')
    body = b'' if request.body is None else orjson.dumps(request.body)
    environ: dict[str, str | None] = {'HTTP_ACCEPT': 'application/json'}
    if not body:
        environ |= {'CONTENT_TYPE': None, 'CONTENT_LENGTH': None}
    return wsgi_client.Request(request.method, path, query, body, environ=environ)
