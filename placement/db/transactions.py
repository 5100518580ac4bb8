"""Begin and end transactions with as few round trips to the database server as possible.

The database server is usually on another machine, so each message to the server costs time. A
connection is used in one of two modes:

* In the mode AUTOCOMMIT, each statement is a transaction of its own, and a snapshot is begun
  explicitly (see `begin_snapshot`). This mode serves the requests that only read.
* In the mode TRANSACTION, the first statement begins a transaction. This mode is the default.

On MySQL and MariaDB, the mode is a setting of the session, and changing it costs a round trip.
Therefore the pool prefers a connection that is in the required mode already (see `ModePool`). On
PostgreSQL, drivers would send BEGIN on its own. Therefore the connections of the drivers are always
in autocommit mode, and this module sends BEGIN together with the first statement.

COMMIT and ROLLBACK are sent only if a transaction is open. SQLAlchemy has no events that could
suppress them, so this module replaces methods of the dialect.
"""

from collections.abc import Callable
import contextvars
import enum
import functools
import logging
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, pool


class Mode(enum.Enum):
    """What the first statement on a connection begins."""

    AUTOCOMMIT = enum.auto()
    TRANSACTION = enum.auto()


# The mode in which `db/engine.py` requests a connection from the pool. None if a program, for
# example a migration or a test fixture, requests a connection directly from the engine.
_REQUESTED: contextvars.ContextVar[Mode | None] = contextvars.ContextVar('mode', default=None)

# Keys in the `info` of a pooled connection.
_MODE = 'placement_mode'
# The name of the variable of MySQL or MariaDB that contains the isolation level.
_ISOLATION = 'placement_isolation_variable'
# A transaction is open on the server.
_OPEN = 'placement_open'
# A transaction begins with the next statement on PostgreSQL, and BEGIN has not been sent yet.
_BEGIN_PENDING = 'placement_begin_pending'

# WITH CONSISTENT SNAPSHOT has no effect at READ COMMITTED. After a write transaction has locked a
# row, its next statement has to read the current data, so write transactions use READ COMMITTED.
_MYSQL_MODES = {
    Mode.AUTOCOMMIT: "SET SESSION autocommit = 1, SESSION {} = 'REPEATABLE-READ'",
    Mode.TRANSACTION: "SET SESSION autocommit = 0, SESSION {} = 'READ-COMMITTED'",
}
# The statement that begins a transaction on SQLite, by requested mode. A program that requests a
# connection directly from the engine may only read.
_SQLITE_BEGINS = {Mode.TRANSACTION: 'BEGIN IMMEDIATE', None: 'BEGIN'}
_SNAPSHOTS = {
    'sqlite': 'BEGIN',
    'mysql': 'START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY',
    'postgresql': 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY',
}


def connect(engine: sa.Engine, mode: Mode) -> sa.Connection:
    """Return a connection in the given mode from the pool of the engine."""
    token = _REQUESTED.set(mode)
    try:
        return engine.connect()
    finally:
        _REQUESTED.reset(token)


def requested() -> Mode | None:
    """Return the mode of the call of `connect()` in progress; None if there is no such call."""
    return _REQUESTED.get()


def is_in_requested_mode(info: dict[Any, Any]) -> bool:
    """Whether a pooled connection is in the requested mode, by default TRANSACTION.

    :param info: the `info` of the connection
    """
    return info.get(_MODE) is (_REQUESTED.get() or Mode.TRANSACTION)


# MySQL and MariaDB ----------------------------------------------------------------


class ModePool(pool.QueuePool):
    """A pool that prefers a connection in the requested mode.

    Each idle connection keeps the mode of its last use. If no idle connection is in the requested
    mode, the pool opens a new one until it has `pool_size` connections, and from then on changes
    the mode of an idle connection. So the connections of both modes together never exceed the
    limits of the pool. Two pools would have no common limit, and SQLAlchemy would set the isolation
    level for each use: 6 instead of 1 round trips for a read.
    """

    # The overridden method and the attributes that it uses are private, but there is no public
    # alternative.
    def _do_get(self) -> pool.ConnectionPoolEntry:
        idle: Any = self._pool
        with idle.mutex:
            for index, entry in enumerate(idle.queue):
                if is_in_requested_mode(entry.info):
                    del idle.queue[index]
                    return entry  # type: ignore[no-any-return] # the type of the queue is private
        if self._overflow >= 0 or not self._inc_overflow():
            return super()._do_get()
        try:
            return self._create_connection()
        except BaseException:
            self._dec_overflow()
            raise


# SQLAlchemy logs the events of a pool with the name of its class.
logging.getLogger(f'{__name__}.ModePool').setLevel(logging.WARNING)


def prepare_mysql(engine: sa.Engine) -> None:
    """Begin and end the transactions of this engine in the requested mode.

    The caller disposes of the connections of the pool, which then has another class. oslo.db has no
    option for this class.
    """
    if type(engine.pool) is pool.QueuePool:
        engine.pool.__class__ = ModePool
    dialect = engine.dialect
    # The server begins the transaction with the next statement.
    _replace_methods(dialect, _OPEN, dialect.do_commit, dialect.do_rollback)


def set_up_mysql(dbapi_connection: Any, info: dict[Any, Any], isolation_variable: str) -> None:
    """Set the requested mode on a new connection.

    :param isolation_variable: the name of the variable that contains the isolation level, which
        depends on the version of the server
    """
    info[_ISOLATION] = isolation_variable
    require_mysql_mode(dbapi_connection, info)


def require_mysql_mode(dbapi_connection: Any, info: dict[Any, Any]) -> None:
    """Change the mode of a connection, unless the connection is in the requested mode."""
    if is_in_requested_mode(info):
        return
    mode = _REQUESTED.get() or Mode.TRANSACTION
    cursor = dbapi_connection.cursor()
    cursor.execute(_MYSQL_MODES[mode].format(info[_ISOLATION]))
    cursor.close()
    info[_MODE] = mode


# PostgreSQL -----------------------------------------------------------------------


def prepare_postgresql(engine: sa.Engine) -> None:
    """Begin and end the transactions of this engine in the requested mode."""

    def check_out(_connection: Any, record: Any, _proxy: Any) -> None:
        record.info[_MODE] = _REQUESTED.get() or Mode.TRANSACTION

    event.listen(engine, 'checkout', check_out)
    event.listen(engine, 'do_execute', _execute)
    event.listen(engine, 'do_execute_no_params', _execute_without_parameters)
    event.listen(engine, 'do_executemany', _execute_many)
    _replace_methods(engine.dialect, _BEGIN_PENDING, _sender('COMMIT'), _sender('ROLLBACK'))


def _execute(cursor: Any, statement: str, parameters: Any, context: Any) -> bool:
    """Execute a statement; return False to let SQLAlchemy execute it."""
    if not _begins(context):
        return False
    if context.dialect.driver == 'psycopg2':
        cursor.execute(f'BEGIN; {statement}', parameters)
        return True
    if not _supports_pipelines(context.dialect.loaded_dbapi):
        cursor.execute('BEGIN')
        return False
    connection = cursor.connection
    # psycopg sends the statements of a pipeline together.
    with connection.pipeline():
        connection.execute('BEGIN')
        cursor.execute(statement, parameters)
    return True


@functools.cache
def _supports_pipelines(driver: Any) -> bool:
    """Whether psycopg 3 uses libpq 14 or newer."""
    return bool(driver.Pipeline.is_supported())


def _execute_without_parameters(cursor: Any, statement: str, context: Any) -> bool:
    return _execute(cursor, statement, None, context)


def _execute_many(cursor: Any, _statement: str, _parameters: Any, context: Any) -> bool:
    """Begin the transaction of a statement that has many rows of parameters."""
    if _begins(context):
        cursor.execute('BEGIN')
    return False


def _begins(context: Any) -> bool:
    """Whether a statement has to begin a transaction."""
    info = _info(context.root_connection)
    if info is None or not info.pop(_BEGIN_PENDING, False):
        return False
    info[_OPEN] = True
    return True


def _sender(statement: str) -> Callable[[Any], None]:
    def send(connection: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(statement)
        cursor.close()

    return send


# SQLite ---------------------------------------------------------------------------


def prepare_sqlite(engine: sa.Engine) -> None:
    """Begin the transactions of this engine in the requested mode."""

    def check_out(_connection: Any, record: Any, _proxy: Any) -> None:
        record.info[_MODE] = _REQUESTED.get()

    def begin(connection: Any) -> None:
        statement = _SQLITE_BEGINS.get((_info(connection) or {}).get(_MODE))
        # In tests, all threads share one connection, on which a transaction can be open.
        if statement is not None and not connection.in_transaction:
            connection.execute(statement)

    event.listen(engine, 'checkout', check_out)
    dialect: Any = engine.dialect
    dialect.do_begin = begin


# Snapshots, COMMIT and ROLLBACK ---------------------------------------------------


def begin_snapshot(conn: sa.Connection) -> None:
    """Begin a read-only transaction in which all statements use the same snapshot.

    :param conn: a connection in the mode AUTOCOMMIT
    """
    conn.exec_driver_sql(_SNAPSHOTS[conn.dialect.name])
    conn.info[_OPEN] = True


def _replace_methods(
    dialect: Any, begun: str, commit: Callable[[Any], None], rollback: Callable[[Any], None]
) -> None:
    """Let a dialect send COMMIT and ROLLBACK only if a transaction is open.

    When a connection returns to the pool, the pool calls `do_rollback()`, and MySQL drivers would
    send ROLLBACK even if no transaction is open.

    :param begun: the key that the begin of a transaction sets in the `info` of its connection
    """
    before = {'do_commit': dialect.do_commit, 'do_rollback': dialect.do_rollback}

    def replacement(name: str, send: Callable[[Any], None]) -> Callable[[Any], None]:
        def end(connection: Any) -> None:
            info = _info(connection)
            if info is None:
                before[name](connection)
            elif info.get(_OPEN):
                send(connection)
                del info[_OPEN]
            else:
                info.pop(_BEGIN_PENDING, None)

        return end

    def begin(connection: Any) -> None:
        info = _info(connection)
        if info is not None and info.get(_MODE) is Mode.TRANSACTION:
            info[begun] = True

    dialect.do_begin = begin
    dialect.do_commit = replacement('do_commit', commit)
    dialect.do_rollback = replacement('do_rollback', rollback)


def _info(connection: Any) -> dict[Any, Any] | None:
    """Return the `info` of a pooled connection; None for a connection that is not pooled.

    SQLAlchemy initializes a dialect with a connection that does not belong to a pool.
    """
    try:
        info = connection.info
    except (AttributeError, NotImplementedError):
        return None
    return info if isinstance(info, dict) else None
