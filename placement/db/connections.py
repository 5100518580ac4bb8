"""The settings of each connection, by engine.

MySQL, MariaDB and PostgreSQL use READ COMMITTED, so that a statement after a lock reads the current
state. SQLite uses WAL, a long busy timeout, and writers that take the write lock with their first
statement: a transaction that begins as a reader fails to become a writer if another transaction
writes in between. A Galera node applies writes of other nodes with a delay, so its reads are
causal. Each wait for a lock has a limit, because other programs, such as a backup, lock rows too.
"""

import functools
import logging
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, pool

from placement import exception

LOG = logging.getLogger(__name__)

# Execution options of a connection for a writing transaction.
WRITER = {'placement_writer': True}
# The limit of a statement's wait for a lock. By default, PostgreSQL waits without a limit, and
# MySQL waits for days for the lock of a table.
LOCK_SECONDS = 15
SQLITE_BUSY_MILLISECONDS = 30_000
# If this key is in the `info` of a connection, oslo.db emits no BEGIN.
_BEGUN = 'in_transaction'
# In the `info` of a connection from a successful COMMIT until the next transaction begins.
_COMMITTED = 'placement_committed'
# All settings on which statements of this service depend, because the server, the user,
# `init_connect` or `mysql_sql_mode` may have changed them. It is one statement, because it costs a
# round trip for each connection.
_MYSQL_SESSION = ', '.join(
    (
        # In a strict mode, a value that does not fit is an error; otherwise it is truncated.
        # MariaDB stores NULL instead of an empty text if EMPTY_STRING_IS_NULL is set.
        "SET SESSION sql_mode = CONCAT_WS(',', 'STRICT_ALL_TABLES', "
        "REPLACE(@@SESSION.sql_mode, 'EMPTY_STRING_IS_NULL', 'STRICT_ALL_TABLES'))",
        # With COMMIT AND CHAIN, the next transaction would inherit the isolation level.
        'SESSION completion_type = 0',
        # Results are truncated without an error.
        'SESSION sql_select_limit = 18446744073709551615',
        # MariaDB truncates JSON lists at this length; a provider may have thousands of traits.
        'SESSION group_concat_max_len = 16777216',
        # The server could reject a change without a key, or a SELECT of many rows.
        'SESSION sql_safe_updates = 0',
        'SESSION sql_big_selects = 1',
        # "id IS NULL" would select the last inserted row.
        'SESSION sql_auto_is_null = 0',
        # Concurrent inserts rely on unique and foreign keys.
        'SESSION unique_checks = 1',
        'SESSION foreign_key_checks = 1',
        # The first limit is for locks of rows, the second one for locks of tables. A shorter limit
        # of the server stays.
        'SESSION innodb_lock_wait_timeout = LEAST(@@SESSION.innodb_lock_wait_timeout, %s)',
        'SESSION lock_wait_timeout = LEAST(@@SESSION.lock_wait_timeout, %s)',
    )
)
# The same for PostgreSQL. `set_config()` has the effect of SET, and one SELECT can call it often.
_POSTGRESQL_SESSION = 'SELECT ' + ', '.join(
    (
        "set_config('default_transaction_isolation', 'read committed', false)",
        # Names may have any character.
        "set_config('client_encoding', 'UTF8', false)",
        # All digits of an allocation ratio.
        "set_config('extra_float_digits', '3', false)",
        # The planner overestimates the cost of candidate searches, because it cannot predict that
        # they stop early. Their JIT compilation takes longer than their execution.
        "set_config('jit', 'off', false)",
        # 0 means no limit; a limit that the operator configured stays.
        "CASE WHEN current_setting('lock_timeout') = '0' "
        "THEN set_config('lock_timeout', %s, false) END",
    )
)
_MYSQL_FACTS = "SHOW VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'wsrep_on')"


def prepare(engine: sa.Engine, wsrep_sync_wait: int | None = None) -> None:
    """Set up each connection that `engine` opens from now on.

    :param wsrep_sync_wait: `[placement_database] mysql_wsrep_sync_wait`, which oslo.db applies; if
        it is None, reads are causal if the server reports `wsrep_on`
    """
    if engine.dialect.name == 'mysql':
        skip_rollback_after_commit(engine)
        make_causal = wsrep_sync_wait is None
        event.listen(engine, 'connect', functools.partial(_set_up_mysql, make_causal))
    elif engine.dialect.name == 'postgresql':
        event.listen(engine, 'connect', _set_up_postgresql)
    elif engine.dialect.name == 'sqlite':
        _pool_connections(engine)
        event.listen(engine, 'connect', _set_up_sqlite)
        # oslo.db has registered a listener that emits a deferred BEGIN for each transaction.
        # Listeners run in the order of their registration, so it is removed.
        for listener in list(engine.dispatch.begin):
            event.remove(engine, 'begin', listener)
        event.listen(engine, 'begin', _begin_sqlite)
    if not isinstance(engine.pool, pool.StaticPool):
        # Close the connections that were opened without these settings.
        engine.dispose()


def begin_consistent(conn: sa.Connection) -> None:
    """Begin a read-only transaction in which all statements read one state.

    On SQLite, each transaction reads the state at its first statement anyway.
    """
    if conn.dialect.name != 'sqlite':
        conn.exec_driver_sql('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')


def _pool_connections(engine: sa.Engine) -> None:
    """Pool the connections to an SQLite file instead of opening one for each transaction.

    When the last connection closes, SQLite removes the WAL, and a process that opens the file at
    the same time gets the error "database is locked". oslo.db has no option for a pool.
    """
    unpooled = engine.pool
    if isinstance(unpooled, pool.NullPool):
        # The function that opens a connection is private, and `recreate()` keeps the class.
        creator = unpooled._creator  # noqa: SLF001 - oslo.db offers no other way
        engine.pool = pool.QueuePool(creator, dialect=engine.dialect, _dispatch=unpooled.dispatch)


def skip_rollback_after_commit(engine: sa.Engine) -> None:
    """Send no ROLLBACK if the last statement of a connection was a successful COMMIT.

    The pool rolls back each connection that is returned to it. Drivers of MySQL send the ROLLBACK
    even if no transaction is open, which costs a round trip for each writing request. SQLAlchemy
    has no event that replaces the statement, so two methods of the dialect are replaced.
    """
    dialect = engine.dialect
    commit, rollback = dialect.do_commit, dialect.do_rollback

    def begin(conn: sa.Connection) -> None:
        conn.info.pop(_COMMITTED, None)

    def do_commit(connection: Any) -> None:
        commit(connection)
        connection.info[_COMMITTED] = True

    def do_rollback(connection: Any) -> None:
        # A connection outside a pool has no `info`.
        if not getattr(connection, 'info', {}).get(_COMMITTED):
            rollback(connection)

    # SQLAlchemy emits this event before it sends the first statement of a transaction.
    event.listen(engine, 'begin', begin)
    dialect.do_commit = do_commit  # type: ignore[method-assign, assignment] # see the docstring
    dialect.do_rollback = do_rollback  # type: ignore[method-assign, assignment] # see the docstring


def _set_up_mysql(make_causal: bool, dbapi_connection: Any, _record: Any) -> None:
    cursor = dbapi_connection.cursor()
    # This statement is the first, because sql_select_limit also truncates the result of SHOW.
    cursor.execute(_MYSQL_SESSION, (LOCK_SECONDS, LOCK_SECONDS))
    cursor.execute(_MYSQL_FACTS)
    facts = {str(name).lower(): str(value).upper() for name, value in cursor.fetchall()}
    if facts.get('log_bin') == 'ON' and facts.get('binlog_format') == 'STATEMENT':
        raise exception.UnsuitableDatabase(
            'The database server writes its binary log with binlog_format=STATEMENT, which does '
            'not allow transactions at READ COMMITTED. Set binlog_format to ROW or MIXED.'
        )
    cursor.execute('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
    if make_causal and facts.get('wsrep_on') == 'ON':
        cursor.execute('SET SESSION wsrep_sync_wait = 1')
    cursor.close()


def _set_up_postgresql(dbapi_connection: Any, _record: Any) -> None:
    cursor = dbapi_connection.cursor()
    cursor.execute(_POSTGRESQL_SESSION, (f'{LOCK_SECONDS}s',))
    cursor.close()
    dbapi_connection.commit()
    # psycopg 3 detects the changed encoding; psycopg2 does not.
    if hasattr(dbapi_connection, 'set_client_encoding'):
        dbapi_connection.set_client_encoding('UTF8')


def _set_up_sqlite(dbapi_connection: Any, _record: Any) -> None:
    dbapi_connection.execute(f'PRAGMA busy_timeout = {SQLITE_BUSY_MILLISECONDS}')
    if dbapi_connection.execute('PRAGMA journal_mode').fetchone()[0] == 'delete':
        dbapi_connection.execute('PRAGMA journal_mode = WAL')


def _begin_sqlite(conn: sa.Connection) -> None:
    if _BEGUN in conn.info:
        return
    writes = conn.get_execution_options().get('placement_writer')
    conn.exec_driver_sql('BEGIN IMMEDIATE' if writes else 'BEGIN')
    conn.info[_BEGUN] = True
