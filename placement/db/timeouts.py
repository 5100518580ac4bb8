"""Time limits for connecting to the database and for waiting for its responses.

A database server that hangs keeps its connections open and never responds. Without a time limit, a
request to Placement would wait for as long as the server hangs. A connection whose time limit
expires counts as lost. Each driver has different options for time limits:

* PyMySQL and mysqlclient have options for all three limits. The handshake of PyMySQL would use the
  limit for reading, so this module makes it use the limit for connecting.
* libpq, the library of psycopg and psycopg2, has an option for the limit for connecting only. The
  connections of psycopg 3 wait in Python code, where this module limits the wait. Those of psycopg2
  wait in libpq, so they have no limit while the machine of the server responds.
* SQLite has a busy timeout (see `db/connections.py`) and does not need other limits.
"""

from collections.abc import Callable, Generator, Iterator, Mapping
import contextlib
import contextvars
from dataclasses import dataclass, replace
import functools
import time
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, pool

from placement import exception
from placement.db import failures, transactions
from placement.db.transactions import Mode


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds; 0 means no limit.

    :ivar connect: for the connection, the handshake and the login, and for the check of a pooled
        connection before its use
    :ivar read: for a response of the server
    :ivar write: for sending a statement to the server
    """

    connect: int = 0
    read: int = 0
    write: int = 0


# PyMySQL requires a limit for connecting. This is the largest value that it accepts.
_PYMYSQL_UNLIMITED = 31_536_000
# A connection to a machine that no longer responds is lost after 25 seconds.
_TCP = {
    'keepalives': 1,
    'keepalives_idle': 10,
    'keepalives_interval': 5,
    'keepalives_count': 3,
    'tcp_user_timeout': 25_000,
}
# PyMySQL raises a RuntimeError if it needs the package cryptography for caching_sha2_password, the
# default of MySQL, because the connection does not use TLS.
LOGIN_REMEDY = 'Use TLS, or install the extra mysql of openstack-placement'
# The attribute of a connection that limits the wait for each response, by driver.
_READ_LIMITS = {'pymysql': '_read_timeout', 'psycopg': 'read_limit'}
_UNLIMITED: contextvars.ContextVar[bool] = contextvars.ContextVar('unlimited', default=False)


def apply(engine: sa.Engine, timeouts: Timeouts) -> None:
    """Limit each connection that `engine` opens from now on.

    A value in the URL of the database takes precedence over `timeouts`.
    """
    limit = functools.partial(_connect, timeouts)
    event.listen(engine, 'do_connect', limit)
    attribute = _READ_LIMITS.get(engine.dialect.driver)
    if attribute is not None and timeouts.connect:
        _limit_ping(engine.dialect, attribute, timeouts.connect)


@contextlib.contextmanager
def connect_unlimited(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a new connection whose statements may take any time; it does not return to the pool.

    The schema migrations use such a connection, because an ALTER TABLE can take many minutes.
    """
    if isinstance(engine.pool, pool.StaticPool) or engine.dialect.name == 'sqlite':
        with transactions.connect(engine, Mode.TRANSACTION) as conn:
            yield conn
        return
    token = _UNLIMITED.set(True)
    try:
        # The pool may contain only connections with limits.
        engine.dispose()
        conn = engine.connect()
    finally:
        _UNLIMITED.reset(token)
    with conn:
        conn.detach()
        yield conn


def arguments(driver: str, timeouts: Timeouts) -> Mapping[str, int]:
    """Return the arguments with which a driver limits a connection."""
    if driver == 'pymysql':
        return {
            'connect_timeout': timeouts.connect or _PYMYSQL_UNLIMITED,
            **_if_limited(read_timeout=timeouts.read, write_timeout=timeouts.write),
        }
    if driver == 'mysqldb':
        return _if_limited(
            connect_timeout=timeouts.connect,
            read_timeout=timeouts.read,
            write_timeout=timeouts.write,
        )
    if driver in ('psycopg', 'psycopg2'):
        return {**_if_limited(connect_timeout=timeouts.connect), **_TCP}
    return {}


def _if_limited(**limits: int) -> dict[str, int]:
    return {name: seconds for name, seconds in limits.items() if seconds}


def _connect(
    timeouts: Timeouts,
    dialect: sa.Dialect,
    _record: Any,
    positional: list[Any],
    named: dict[str, Any],
) -> Any:
    """Open a connection, or return None to let SQLAlchemy open it with the changed arguments."""
    if _UNLIMITED.get():
        timeouts = replace(timeouts, read=0, write=0)
    for name, value in arguments(dialect.driver, timeouts).items():
        named.setdefault(name, value)
    driver: Any = dialect.loaded_dbapi
    if dialect.driver == 'pymysql':
        return _connect_pymysql(driver, positional, named)
    if dialect.driver == 'psycopg':
        connection = _psycopg_class(driver).connect(*positional, **named)
        connection.read_limit = timeouts.read
        return connection
    return None


def _connect_pymysql(driver: Any, positional: list[Any], named: dict[str, Any]) -> Any:
    """Open a connection; its handshake and login use the limit for connecting."""
    limit, read = named['connect_timeout'], named.get('read_timeout')
    try:
        connection = driver.connect(
            *positional, **{**named, 'read_timeout': min(read or limit, limit)}
        )
    # PyMySQL converts all others to its own exceptions.
    except OSError as exc:
        text = f'the certificate of the CA in the URL cannot be used: {exc}'
        raise driver.OperationalError(failures.MYSQL_TLS_FAILED, text) from exc
    except RuntimeError as exc:
        raise exception.UnsuitableDatabase(f'{exc}. {LOGIN_REMEDY}.') from exc
    setattr(connection, _READ_LIMITS['pymysql'], read)
    return connection


@functools.cache
def _psycopg_class(driver: Any) -> Any:
    """Return a connection class that is closed if the server does not respond in time."""

    class LimitedConnection(driver.Connection):  # type: ignore[misc] # optional import
        """A connection of psycopg 3."""

        read_limit: float = 0

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
            """Wait for the responses that a generator of psycopg requires."""
            if not self.read_limit:
                return super().wait(gen, *args, **kwargs)
            return super().wait(self._limited(gen), *args, **kwargs)

        def _limited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            """Yield and receive the same values as `gen`, until nothing happens for too long."""
            last = time.monotonic()
            try:
                state = next(gen)
                while True:
                    # While nothing happens, psycopg resumes the generator every 0.1 seconds.
                    ready = yield state
                    if ready:
                        last = time.monotonic()
                    elif time.monotonic() - last >= self.read_limit:
                        break
                    state = gen.send(ready)
            except StopIteration as end:
                return end.value
            self.close()
            raise driver.OperationalError(
                f'the server did not respond within {self.read_limit} seconds'
            )

    return LimitedConnection


def _limit_ping(dialect: sa.Dialect, attribute: str, seconds: int) -> None:
    """Limit the statement with which the pool checks a connection before its use."""
    ping: Callable[[Any], bool] = dialect.do_ping

    def do_ping(connection: Any) -> bool:
        limit = getattr(connection, attribute)
        setattr(connection, attribute, min(limit or seconds, seconds))
        try:
            return ping(connection)
        finally:
            setattr(connection, attribute, limit)

    dialect.do_ping = do_ping  # type: ignore[method-assign, assignment] # SQLAlchemy has no event for it
