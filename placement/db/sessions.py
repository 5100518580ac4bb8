"""What every connection of this service is set to, engine by engine.

MySQL, MariaDB and PostgreSQL: READ COMMITTED, so that a fact that is read after a lock is the
newest. SQLite: WAL, a long busy timeout, and writers that hold the write lock from their first
statement (a transaction that begins as a reader cannot become a writer under rivals). Galera:
causal reads, because a node runs behind its peers. Nobody waits for a lock for ever: what holds
it may be a stranger, such as a backup.
"""

import logging
from typing import Any

import sqlalchemy as sa
from sqlalchemy import event, pool

from placement import exception

LOG = logging.getLogger(__name__)

# Execution options of a connection that is going to write.
WRITER = {'placement_writer': True}
# How long a statement waits for a lock. Servers wait for days or for ever if nobody tells them.
LOCK_SECONDS = 15
SQLITE_BUSY_MILLISECONDS = 30_000
# oslo.db leaves BEGIN to whoever finds this key on the connection.
_BEGUN = 'in_transaction'
# Noted on a connection from COMMIT to the next transaction.
_COMMITTED = 'placement_committed'
# All that the statements of this service depend on, whatever the server, the user, `init_connect`
# or `mysql_sql_mode` set. One statement, because it costs a round trip for each connection.
_MYSQL_SESSION = ', '.join(
    (
        # If the mode is strict, a value that does not fit is an error, and not cut. MariaDB stores
        # NULL in place of empty text if EMPTY_STRING_IS_NULL is set.
        "SET SESSION sql_mode = CONCAT_WS(',', 'STRICT_ALL_TABLES', "
        "REPLACE(@@SESSION.sql_mode, 'EMPTY_STRING_IS_NULL', 'STRICT_ALL_TABLES'))",
        # COMMIT AND CHAIN would pass the isolation level on to the next transaction.
        'SESSION completion_type = 0',
        # Results are cut off without an error.
        'SESSION sql_select_limit = 18446744073709551615',
        # MariaDB cuts JSON lists off there, in the middle; a provider may have many of everything.
        'SESSION group_concat_max_len = 16777216',
        # The server could reject a change without a key, and a SELECT of many rows.
        'SESSION sql_safe_updates = 0',
        'SESSION sql_big_selects = 1',
        # "id IS NULL" would find the last row that was inserted.
        'SESSION sql_auto_is_null = 0',
        # Concurrent inserts rely on unique and foreign keys.
        'SESSION unique_checks = 1',
        'SESSION foreign_key_checks = 1',
        # The first is about rows, the second about whole tables. A server that waits less stays so.
        'SESSION innodb_lock_wait_timeout = LEAST(@@SESSION.innodb_lock_wait_timeout, %s)',
        'SESSION lock_wait_timeout = LEAST(@@SESSION.lock_wait_timeout, %s)',
    )
)
# The same for PostgreSQL, where a function can set what SET can.
_POSTGRESQL_SESSION = 'SELECT ' + ', '.join(
    (
        "set_config('default_transaction_isolation', 'read committed', false)",
        # Names may have any character.
        "set_config('client_encoding', 'UTF8', false)",
        # All digits of an allocation ratio.
        "set_config('extra_float_digits', '3', false)",
        # The planner overestimates searches for candidates: it cannot foresee that they stop early.
        # Compiling them takes longer than executing them.
        "set_config('jit', 'off', false)",
        # 0 means for ever; a value that the operator chose stays.
        "CASE WHEN current_setting('lock_timeout') = '0' "
        "THEN set_config('lock_timeout', %s, false) END",
    )
)
_MYSQL_FACTS = "SHOW VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'wsrep_on')"

_causality: dict[str, int | None] = {'wsrep_sync_wait': None}


def set_causality(wsrep_sync_wait: int | None) -> None:
    """Remember `mysql_wsrep_sync_wait`; None makes reads causal where the server says wsrep_on."""
    _causality['wsrep_sync_wait'] = wsrep_sync_wait


def prepare(engine: sa.Engine) -> None:
    """Set up all connections that `engine` makes from now on."""
    if engine.dialect.name == 'mysql':
        spare_rollbacks(engine)
        event.listen(engine, 'connect', _set_up_mysql)
    elif engine.dialect.name == 'postgresql':
        event.listen(engine, 'connect', _set_up_postgresql)
    elif engine.dialect.name == 'sqlite':
        _keep_connections(engine)
        event.listen(engine, 'connect', _set_up_sqlite)
        # Listeners of this event run in the order of their making, and oslo.db's was first.
        for listener in list(engine.dispatch.begin):
            event.remove(engine, 'begin', listener)
        event.listen(engine, 'begin', _begin_sqlite)
    if not isinstance(engine.pool, pool.StaticPool):
        # Connections that were made before know nothing of this.
        engine.dispose()


def begin_consistent(conn: sa.Connection) -> None:
    """Begin a reading transaction whose statements all see one state.

    A reader of SQLite sees one state by itself: that of its first statement.
    """
    if conn.dialect.name != 'sqlite':
        conn.exec_driver_sql('SET TRANSACTION ISOLATION LEVEL REPEATABLE READ')


def _keep_connections(engine: sa.Engine) -> None:
    """Pool the connections to a file instead of opening one for each transaction.

    The last connection that closes empties and removes the WAL, and whoever opens the file
    meanwhile is told that it is locked. oslo.db offers no pool for SQLite.
    """
    unpooled = engine.pool
    if isinstance(unpooled, pool.NullPool):
        engine.pool = pool.QueuePool(
            unpooled._creator, dialect=engine.dialect, _dispatch=unpooled.dispatch
        )


def spare_rollbacks(engine: sa.Engine) -> None:
    """Send no ROLLBACK where the last word was a COMMIT that succeeded.

    The pool rolls back whatever comes back to it. The drivers of MySQL ask the server to do that
    even if no transaction is open: a round trip for each request that writes.
    """
    dialect = engine.dialect
    commit, rollback = dialect.do_commit, dialect.do_rollback

    def begin(conn: sa.Connection) -> None:
        conn.info.pop(_COMMITTED, None)

    def do_commit(connection: Any) -> None:
        commit(connection)
        connection.info[_COMMITTED] = True

    def do_rollback(connection: Any) -> None:
        # What did not come from a pool has no such notes.
        if not getattr(connection, 'info', {}).get(_COMMITTED):
            rollback(connection)

    # SQLAlchemy says that a transaction begins before its first statement is sent.
    event.listen(engine, 'begin', begin)
    dialect.do_commit = do_commit  # type: ignore[method-assign, assignment]
    dialect.do_rollback = do_rollback  # type: ignore[method-assign, assignment]


def _set_up_mysql(dbapi_connection: Any, record: Any) -> None:
    cursor = dbapi_connection.cursor()
    # First, because sql_select_limit cuts off what SHOW returns, too.
    cursor.execute(_MYSQL_SESSION, (LOCK_SECONDS, LOCK_SECONDS))
    cursor.execute(_MYSQL_FACTS)
    facts = {str(name).lower(): str(value).upper() for name, value in cursor.fetchall()}
    if facts.get('log_bin') == 'ON' and facts.get('binlog_format') == 'STATEMENT':
        raise exception.UnsuitableDatabase(
            'The database server writes its binary log with binlog_format=STATEMENT, which does '
            'not allow transactions at READ COMMITTED. Set binlog_format to ROW or MIXED.'
        )
    cursor.execute('SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED')
    if facts.get('wsrep_on') == 'ON' and _causality['wsrep_sync_wait'] is None:
        cursor.execute('SET SESSION wsrep_sync_wait = 1')
    cursor.close()


def _set_up_postgresql(dbapi_connection: Any, record: Any) -> None:
    cursor = dbapi_connection.cursor()
    cursor.execute(_POSTGRESQL_SESSION, (f'{LOCK_SECONDS}s',))
    cursor.close()
    dbapi_connection.commit()
    # psycopg2 does not notice that the encoding changed; psycopg 3 does.
    if hasattr(dbapi_connection, 'set_client_encoding'):
        dbapi_connection.set_client_encoding('UTF8')


def _set_up_sqlite(dbapi_connection: Any, record: Any) -> None:
    dbapi_connection.execute(f'PRAGMA busy_timeout = {SQLITE_BUSY_MILLISECONDS}')
    if dbapi_connection.execute('PRAGMA journal_mode').fetchone()[0] == 'delete':
        dbapi_connection.execute('PRAGMA journal_mode = WAL')


def _begin_sqlite(conn: sa.Connection) -> None:
    if _BEGUN in conn.info:
        return
    writes = conn.get_execution_options().get('placement_writer')
    conn.exec_driver_sql('BEGIN IMMEDIATE' if writes else 'BEGIN')
    conn.info[_BEGUN] = True
