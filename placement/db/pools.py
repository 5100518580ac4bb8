"""The connections of this process: some for reads, and some for write transactions.

The database server is usually on another machine, so each message to the server costs time. On a
connection for reads, each statement is a transaction of its own (AUTOCOMMIT), so a read takes a
single round trip. On a connection for writes, the first statement begins a transaction, and nothing
is sent after COMMIT. A connection keeps its mode, because changing it would cost round trips.

All threads share the single connection to an in-memory SQLite database.
"""

from collections.abc import Iterable, Mapping
import dataclasses
from dataclasses import dataclass
import gc
import itertools
import math
import os
import pathlib
import threading
import time
import traceback
from typing import Any

from oslo_db.sqlalchemy import exc_filters
import sqlalchemy as sa
from sqlalchemy import event
from sqlalchemy.engine import Compiled

from placement import exception
from placement.db import connections, failures

# A connection that was idle for this many seconds is replaced before its use. A firewall or a load
# balancer may have forgotten the connection without closing it. Its first statement would then wait
# for the time limit of responses.
IDLE_SECONDS = 30.0
# Keys in the `info` of a connection: when it was opened, and when it returned to the pool.
_OPENED, _RETURNED = 'placement_opened', 'placement_returned'
# The characters of all compiled statements of a process, and of the longest one. A statement
# occupies 16 to 66 bytes for each character (measured with tracemalloc, SQLAlchemy 2.1, Python
# 3.11).
STATEMENTS = 500_000
LONGEST_STATEMENT = 60_000
# The execution option with the statement that begins a transaction on SQLite.
_SQLITE_BEGIN = 'placement_begin'
# For the connections for reads. WITH CONSISTENT SNAPSHOT has no effect at READ COMMITTED. After a
# write transaction has locked a row, its next statement has to read the current data, so write
# transactions use READ COMMITTED.
_MYSQL_SNAPSHOTS = 'SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ'
_SQLALCHEMY = str(pathlib.Path(sa.__file__).parent)


@dataclass(frozen=True, slots=True)
class Options:
    """The options of `[placement_database]` for the pools; the defaults are those of SQLAlchemy.

    :ivar max_pool_size: the largest number of idle connections of a process; 0 means no limit
    :ivar max_overflow: how many more connections can be in use; -1 means no limit
    :ivar pool_timeout: the seconds that a thread waits for a connection
    :ivar connection_recycle_time: the largest age of a connection in seconds
    :ivar connection_trace: whether each statement contains a comment with the code that executes it
    """

    max_pool_size: int = 5
    max_overflow: int = 10
    pool_timeout: float = 30
    connection_recycle_time: int = 3600
    connection_trace: bool = False

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> 'Options':
        """Return the values of `[placement_database]`; unset options have their defaults."""
        names = (field.name for field in dataclasses.fields(cls))
        return cls(**{name: options[name] for name in names if options.get(name) is not None})


class StatementCache(dict[Any, Compiled]):
    """Compiled statements by cache key, for the option `compiled_cache` of an engine.

    The SQL text of many statements depends on the request; for example, each additional required
    trait changes the text. SQLAlchemy's own cache has no limit for the length of the statements. A
    statement that is too long is compiled again for each execution. A full cache is emptied: the
    statements of frequent requests are soon compiled again.
    """

    _length = 0

    def __setitem__(self, key: Any, compiled: Compiled) -> None:
        length = len(compiled.string or '')
        if length > LONGEST_STATEMENT:
            return
        if self._length + length > STATEMENTS:
            self.clear()
            self._length = 0
            # Compiled statements contain reference cycles, and the garbage collector rarely
            # examines its oldest generation.
            gc.collect()
        self._length += length
        super().__setitem__(key, compiled)


class SharedConnection:
    """Lends the single connection of an engine to one thread at a time."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._lock = threading.RLock()

    def take(self, _writes: bool, /) -> sa.Connection:
        """Wait until no other thread uses the connection, and return it."""
        self._lock.acquire()
        try:
            return self._engine.connect()
        except BaseException:
            self._lock.release()
            raise

    def give_back(self, _writes: bool, conn: sa.Connection, /) -> None:
        """Let another thread use the connection."""
        try:
            conn.close()
        finally:
            self._lock.release()

    def dispose(self) -> None:
        """Close the connection."""
        self._engine.dispose()


class Pool:
    """Lends connections of two engines, and keeps idle ones of both.

    The limits apply to both engines together. If all connections that may exist are open, and a
    thread needs one of the engine that has no idle one, an idle one of the other is closed. A pool
    of SQLAlchemy for each engine could not count the connections of the other.

    :param reader: the engine for reads, without a pool of its own
    :param writer: the engine for writes, without a pool of its own
    """

    def __init__(self, reader: sa.Engine, writer: sa.Engine, options: Options) -> None:
        self._engines = (reader, writer)
        self._options = options
        self._size = options.max_pool_size or math.inf
        self._limit = math.inf if options.max_overflow < 0 else self._size + options.max_overflow
        self._longest_idle = math.inf if reader.dialect.name == 'sqlite' else IDLE_SECONDS
        self._changed = threading.Condition()
        self._in_use = 0
        self._disposed = -math.inf
        # The idle connections of each engine; the last one was used most recently.
        self._idle: tuple[list[sa.Connection], list[sa.Connection]] = ([], [])

    def take(self, writes: bool, /) -> sa.Connection:
        """Return an idle connection or a new one; wait while all connections are in use.

        :param writes: whether the thread needs a connection of the engine for writes
        :raises sqlalchemy.exc.TimeoutError: all connections have been in use for too long
        """
        conn = None
        closed = []
        own, other = self._idle[writes], self._idle[not writes]
        with self._changed:
            if not self._changed.wait_for(self._is_free, self._options.pool_timeout):
                raise sa.exc.TimeoutError(
                    f'QueuePool limit of size {self._options.max_pool_size} overflow '
                    f'{self._options.max_overflow}'
                )
            self._in_use += 1
            if own:
                conn = own.pop()
            elif other and self._in_use + len(other) > self._limit:
                closed.append(other.pop(0))
        try:
            if conn is not None and self._is_too_old(conn):
                closed.append(conn)
                conn = None
            _close(closed)
            if conn is None:
                opened = time.monotonic()
                conn = self._engines[writes].connect()
                conn.info[_OPENED] = opened
        except BaseException:
            self._release()
            raise
        return conn

    def give_back(self, writes: bool, conn: sa.Connection, /) -> None:
        """Keep a connection for the next request, unless there are enough idle ones.

        :param conn: a connection without a transaction
        """
        own, other = self._idle[writes], self._idle[not writes]
        if conn.invalidated:
            # The others are probably lost, too.
            self.dispose()
            closed = [conn]
        else:
            conn.info[_RETURNED] = time.monotonic()
            with self._changed:
                own.append(conn)
                is_full = len(own) + len(other) > self._size
                closed = [max(own, other, key=len).pop(0)] if is_full else []
        _close(closed)
        self._release()

    def dispose(self) -> None:
        """Close the idle connections now, and those in use before their next use."""
        with self._changed:
            self._disposed = time.monotonic()
            closed = [*self._idle[0], *self._idle[1]]
            self._idle[0].clear()
            self._idle[1].clear()
        _close(closed)

    def _is_free(self) -> bool:
        return self._in_use < self._limit

    def _is_too_old(self, conn: sa.Connection) -> bool:
        opened, returned = (float(conn.info[key]) for key in (_OPENED, _RETURNED))
        now, longest = time.monotonic(), self._options.connection_recycle_time
        is_idle = now - returned >= self._longest_idle
        return opened <= self._disposed or is_idle or 0 <= longest < now - opened

    def _release(self) -> None:
        with self._changed:
            self._in_use -= 1
            self._changed.notify()


def _close(closed: Iterable[sa.Connection]) -> None:
    for conn in closed:
        conn.close()


@dataclass(frozen=True, slots=True)
class Pools:
    """The engines of a database, which all have the same URL.

    :ivar reader: for reads and for snapshots
    :ivar writer: for write transactions
    :ivar direct: for programs that use an engine directly, and begin transactions as usual
    :ivar pool: lends the connections of `reader` and `writer`
    :ivar snapshot: the statement that begins a snapshot; None if each transaction is one
    :ivar pid: the process that opened the connections
    """

    reader: sa.Engine
    writer: sa.Engine
    direct: sa.Engine
    pool: SharedConnection | Pool
    snapshot: str | None
    pid: int


def of(template: sa.Engine, options: Options) -> Pools:
    """Return the pools of a database.

    :param template: an engine, which opens all connections
    """
    # The engines share the cache, because their statements have different keys.
    template.update_execution_options(compiled_cache=StatementCache())
    if isinstance(template.pool, sa.StaticPool):
        shared = SharedConnection(template)
        return Pools(template, template, template, shared, None, os.getpid())
    name = template.dialect.name
    snapshot = 'BEGIN'
    if name == 'sqlite':
        direct = _derived(template, options)
        event.listen(direct, 'begin', _begin_on_sqlite)
        reader: sa.Engine = direct.execution_options(**{_SQLITE_BEGIN: None})
        writer: sa.Engine = begins_with_lock(direct)
    else:
        reader = _derived(
            template, options, isolation_level='AUTOCOMMIT', skip_autocommit_rollback=True
        )
        writer = direct = _derived(
            template, options, isolation_level='READ COMMITTED', pool_reset_on_return=None
        )
        snapshot = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'
    if name == 'mysql':
        event.listen(reader, 'connect', _use_snapshots)
        snapshot = 'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY'
    pool = Pool(reader, writer, options)
    return Pools(reader, writer, direct, pool, snapshot, os.getpid())


def begins_with_lock(engine: sa.Engine) -> sa.Engine:
    """Return an engine whose transactions on an SQLite file begin with the lock for writing.

    A transaction that first reads could not take the lock after another transaction has written.
    """
    return engine.execution_options(**{_SQLITE_BEGIN: 'BEGIN IMMEDIATE'})


def _derived(template: sa.Engine, options: Options, **more: Any) -> sa.Engine:
    """Return an engine without a pool, whose connections `template` opens."""

    def create() -> Any:
        proxied = _connect(template)
        connection = proxied.dbapi_connection
        proxied.detach()
        return connection

    engine = sa.create_engine(template.url, creator=create, poolclass=sa.NullPool, **more)
    engine.update_execution_options(**template.get_execution_options())
    event.listen(engine, 'handle_error', exc_filters.handler, retval=True)
    if options.connection_trace:
        event.listen(engine, 'before_cursor_execute', _traced, retval=True)
    return engine


def _connect(template: sa.Engine) -> sa.PoolProxiedConnection:
    try:
        return template.raw_connection()
    # PyMySQL converts all others to its own exceptions.
    except OSError as exc:
        text = f'the certificate of the CA in the URL cannot be used: {exc}'
        error = template.dialect.loaded_dbapi.OperationalError
        raise error(failures.MYSQL_TLS_FAILED, text) from exc
    except RuntimeError as exc:
        raise exception.UnsuitableDatabase(f'{exc}. {connections.LOGIN_REMEDY}.') from exc


def _begin_on_sqlite(conn: sa.Connection) -> None:
    statement = conn.get_execution_options().get(_SQLITE_BEGIN, 'BEGIN')
    if statement is None:
        return
    try:
        conn.exec_driver_sql(statement)
    except Exception:
        # After an exception in this event, the connection would begin no other transaction.
        conn.invalidate()
        raise


def _use_snapshots(dbapi_connection: Any, _record: Any) -> None:
    cursor = dbapi_connection.cursor()
    cursor.execute(_MYSQL_SNAPSHOTS)
    cursor.close()


def _traced(_conn: Any, _cursor: Any, statement: str, parameters: Any, *_: Any) -> tuple[str, Any]:
    """Return a statement with a comment that names the last callers of SQLAlchemy."""
    stack = traceback.extract_stack()
    callers = itertools.takewhile(lambda call: not call.filename.startswith(_SQLALCHEMY), stack)
    lines = (f'File: {call.filename} ({call.lineno}) {call.name}' for call in list(callers)[-3:])
    return f'{statement}  -- {"; ".join(lines)}', parameters
