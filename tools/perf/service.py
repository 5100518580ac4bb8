"""The service inside this process, and a meter at its database."""

from collections.abc import Iterator
import contextlib
from dataclasses import dataclass, field
import io
from typing import Any, NamedTuple

import orjson
from oslo_config import cfg
from sqlalchemy import event

from placement import conf, db_api, deploy, wsgi

_COUNTED = ('SELECT', 'INSERT', 'UPDATE', 'DELETE', 'WITH')


class Request(NamedTuple):
    """A request of an admin who is a service too."""

    method: str
    path: str
    body: Any = None


class Refused(Exception):
    """A request that has to succeed did not; the text tells which, and what it was told."""


@dataclass(slots=True)
class Cost:
    """What a meter has seen."""

    statements: int = 0
    rows: int = 0
    texts: list[str] = field(default_factory=list)


class Service:
    """The application on a database, the only one of this process.

    :param url: of the database, which exists; its tables are made if need be
    """

    def __init__(self, url: str):
        config = cfg.ConfigOpts()
        conf.register_opts(config)
        config.set_override('connection', url, group='placement_database')
        config.set_override('sync_on_startup', True, group='placement_database')
        config.set_override('auth_strategy', 'noauth2', group='api')
        config([], project='placement', default_config_files=[], default_config_dirs=[])
        db_api.configure(config)
        self.application = deploy.loadapp(config)
        self.engine = db_api.get_placement_engine()
        wsgi.tune_garbage_collector()

    def ask(self, request: Request) -> bytes:
        """Send a request, and give the body of the answer.

        :raises Refused: the status is not one of success
        """
        status: list[str] = []
        chunks = self.application(_environ(request), lambda line, headers: status.append(line))
        body = b''.join(chunks)
        if not status[0].startswith('2'):
            raise Refused(f'{request.method} {request.path}: {status[0]} {body.decode()}')
        return body

    @contextlib.contextmanager
    def metered(self) -> Iterator[Cost]:
        """Count statements, and the rows that they bring, while the context lasts."""
        cost = Cost()

        def count(
            conn: Any, cursor: Any, statement: str, parameters: Any, context: Any, many: bool
        ) -> None:
            if not statement.lstrip('( \n').upper().startswith(_COUNTED):
                return
            cost.statements += 1
            cost.texts.append(statement)
            if cursor.description is not None and cursor.rowcount > 0:
                cost.rows += cursor.rowcount

        def see(cursor: Any, row: Any) -> Any:
            cost.rows += 1
            return row

        # SQLite's driver cannot tell how many rows there are before it has read them.
        def watch(dbapi_connection: Any, record: Any, proxy: Any) -> None:
            dbapi_connection.row_factory = see

        def forget(dbapi_connection: Any, record: Any) -> None:
            dbapi_connection.row_factory = None

        listeners: list[tuple[str, Any]] = [('after_cursor_execute', count)]
        if self.engine.dialect.name == 'sqlite':
            listeners += [('checkout', watch), ('checkin', forget)]
        for name, function in listeners:
            event.listen(self.engine, name, function)
        try:
            yield cost
        finally:
            for name, function in listeners:
                event.remove(self.engine, name, function)


def _environ(request: Request) -> dict[str, Any]:
    path, _, query = request.path.partition('?')
    body = b'' if request.body is None else orjson.dumps(request.body)
    environ = {
        'REQUEST_METHOD': request.method,
        'SCRIPT_NAME': '',
        'PATH_INFO': path,
        'QUERY_STRING': query,
        'SERVER_NAME': 'localhost',
        'SERVER_PORT': '8778',
        'SERVER_PROTOCOL': 'HTTP/1.1',
        'REMOTE_ADDR': '127.0.0.1',
        'HTTP_HOST': 'localhost:8778',
        'HTTP_ACCEPT': 'application/json',
        'HTTP_X_AUTH_TOKEN': 'admin',
        'HTTP_X_ROLES': 'admin,service',
        'HTTP_OPENSTACK_API_VERSION': 'placement 1.39',
        'wsgi.version': (1, 0),
        'wsgi.url_scheme': 'http',
        'wsgi.input': io.BytesIO(body),
        'wsgi.errors': io.StringIO(),
        'wsgi.multithread': False,
        'wsgi.multiprocess': False,
        'wsgi.run_once': False,
    }
    if body:
        environ |= {'CONTENT_TYPE': 'application/json', 'CONTENT_LENGTH': str(len(body))}
    return environ
