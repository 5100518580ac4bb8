"""Session settings of database connections, for each database system.

Write transactions on MySQL, MariaDB and PostgreSQL use READ COMMITTED: after a transaction has
locked a row, its next statement reads the current data. SQLite uses WAL and a long busy timeout.
Write transactions on SQLite start with BEGIN IMMEDIATE, because a transaction that first reads
cannot upgrade to a write lock after another transaction has written. A Galera node applies the
writes of other nodes with a delay, so this module makes the first statement of each transaction
wait for these writes (`wsrep_sync_wait`), and likewise on a node of a MySQL replication group with
several primaries (`group_replication_consistency`). Every wait for a lock has a time limit, because
other programs, such as backups, also lock rows.

A pooled connection is not checked before each use, because the check would cost a round trip. If
the connection is dead, its first statement fails, and `db/engine.py` repeats the read or the write
transaction on a new connection.
"""

from collections.abc import Iterator, Mapping
import contextlib
import functools
import logging
import sqlite3
import time
from typing import Any

from oslo_db import exception as db_exc
import sqlalchemy as sa
from sqlalchemy import event, pool

from placement import exception
from placement.db import failures, transactions

LOG = logging.getLogger(__name__)

# The maximum time that a statement waits for a lock. By default, PostgreSQL waits forever, and
# MySQL waits up to a year for a table lock.
LOCK_SECONDS = 15
SQLITE_BUSY_MILLISECONDS = 30_000
# The bits of `wsrep_sync_wait` for SELECT, for UPDATE and DELETE, and for INSERT. A node waits only
# before a statement outside of a transaction. Some write transactions begin with an INSERT or an
# UPDATE, so they need all of these bits.
SYNC_WAIT_BITS = 1 | 2 | 4
# The pause in seconds before another attempt to change the journal mode.
_WAL_PAUSE = 0.01
# This key in the `info` of a connection contains the time at which the connection returned to the
# pool.
_RETURNED = 'placement_returned'
# A connection that was idle for this many seconds is checked before its use. A firewall or a load
# balancer may have forgotten the connection without closing it. Its first statement would then wait
# for the time limit of responses, which is longer than that of the check.
IDLE_SECONDS = 30.0
# Sets every session variable that this service depends on, because the server configuration,
# `init_connect` or `mysql_sql_mode` may have changed its default. A single statement sets all
# variables, because each statement costs a round trip for every new connection.
_MYSQL_SESSION = ', '.join(
    (
        # In a strict mode, the server rejects a value that does not fit its column; otherwise the
        # server truncates the value. With EMPTY_STRING_IS_NULL, MariaDB stores NULL instead of an
        # empty string.
        "SET SESSION sql_mode = CONCAT_WS(',', 'STRICT_ALL_TABLES', "
        "REPLACE(@@SESSION.sql_mode, 'EMPTY_STRING_IS_NULL', 'STRICT_ALL_TABLES'))",
        # Any other value makes COMMIT start a new transaction or close the connection.
        'SESSION completion_type = 0',
        # A lower limit would silently truncate results.
        'SESSION sql_select_limit = 18446744073709551615',
        # MariaDB truncates JSON lists that are longer than this limit, and the list of the traits
        # of a provider can have thousands of elements.
        'SESSION group_concat_max_len = 16777216',
        # Otherwise the server could reject an UPDATE or DELETE whose WHERE uses no key, or a SELECT
        # that examines many rows.
        'SESSION sql_safe_updates = 0',
        'SESSION sql_big_selects = 1',
        # Otherwise the condition "id IS NULL" would select the last inserted row.
        'SESSION sql_auto_is_null = 0',
        # This service relies on unique and foreign keys to detect conflicting inserts.
        'SESSION unique_checks = 1',
        'SESSION foreign_key_checks = 1',
        # The first variable limits waits for row locks, the second one waits for table locks. If
        # the server is configured with a shorter limit, that limit stays in effect. MySQL accepts
        # only signed integers.
        'SESSION innodb_lock_wait_timeout = '
        'CAST(LEAST(@@SESSION.innodb_lock_wait_timeout, %s) AS SIGNED)',
        'SESSION lock_wait_timeout = CAST(LEAST(@@SESSION.lock_wait_timeout, %s) AS SIGNED)',
    )
)
# The equivalent for PostgreSQL. `set_config()` has the same effect as SET, and one SELECT can call
# it several times.
_POSTGRESQL_SESSION = 'SELECT ' + ', '.join(
    (
        "set_config('default_transaction_isolation', 'read committed', false)",
        # Names can contain any Unicode character.
        "set_config('client_encoding', 'UTF8', false)",
        # The server returns all digits of an allocation ratio.
        "set_config('extra_float_digits', '3', false)",
        # Candidate searches stop early. The planner cannot predict this, overestimates their cost,
        # and enables JIT compilation, which takes longer than the search itself.
        "set_config('jit', 'off', false)",
        # 0 means no limit. A limit that the operator has configured stays in effect.
        "CASE WHEN current_setting('lock_timeout') = '0' "
        "THEN set_config('lock_timeout', %s, false) END",
    )
)
_MYSQL_SERVER_SETTINGS = (
    "SHOW VARIABLES WHERE Variable_name IN ('log_bin', 'binlog_format', 'wsrep_on', "
    "'transaction_isolation', 'group_replication_single_primary_mode', "
    "'group_replication_consistency')"
)
# With these values of `group_replication_consistency`, reads do not wait for writes of other nodes.
_OUTDATED_READS = frozenset({'EVENTUAL', 'BEFORE_ON_PRIMARY_FAILOVER'})


def prepare(engine: sa.Engine, wsrep_sync_wait: int | None = None) -> None:
    """Apply the session settings to each connection that `engine` opens from now on.

    :param wsrep_sync_wait: the value of `[placement_database] mysql_wsrep_sync_wait`, which oslo.db
        applies; if the value is None, each connection to a Galera node uses `SYNC_WAIT_BITS`
    """
    if engine.dialect.name == 'mysql':
        transactions.prepare_mysql(engine)
        event.listen(engine, 'connect', functools.partial(_set_up_mysql, wsrep_sync_wait))
        _check_after_idle_time(engine)
        event.listen(engine, 'checkout', functools.partial(_require_mysql_mode, engine))
    elif engine.dialect.name == 'postgresql':
        event.listen(engine, 'connect', _set_up_postgresql)
        _check_after_idle_time(engine)
        transactions.prepare_postgresql(engine)
    elif engine.dialect.name == 'sqlite':
        _pool_connections(engine)
        event.listen(engine, 'connect', _set_up_sqlite)
        transactions.prepare_sqlite(engine)
    _remove_listeners(engine)
    if not isinstance(engine.pool, pool.StaticPool):
        # Close the connections that were opened without these settings.
        engine.dispose()


def wait_for_server(engine: sa.Engine, max_retries: int, interval: float) -> None:
    """Connect to the database; if the server is unreachable, try again.

    :param max_retries: the number of attempts; 0 means that this function does nothing, and -1
        means no limit
    :param interval: the seconds between two attempts
    :raises db_exc.DBConnectionError: the last attempt failed
    """
    attempt = 0
    while attempt != max_retries:
        attempt += 1
        try:
            engine.connect().close()
        except db_exc.DBConnectionError as exc:
            if attempt == max_retries:
                raise
            LOG.warning('Waiting for the database server: %s', failures.summary(exc))
            time.sleep(interval)
        else:
            return


def _remove_listeners(engine: sa.Engine) -> None:
    """Remove the listeners of oslo.db for transactions.

    On SQLite, they would send a deferred BEGIN for each transaction. The other ones store the
    reason of a rollback to a savepoint, which this service does not use.

    PERF: if an engine has a listener, SQLAlchemy looks for listeners seven times for each statement
    (9 to 16 % of a read of one provider, 2026-11).
    """
    for name in ('begin', 'commit', 'rollback', 'rollback_savepoint'):
        for listener in list(getattr(engine.dispatch, name)):
            event.remove(engine, name, listener)
    # SQLAlchemy never resets this attribute. The option `connection_trace` adds the other listener.
    engine._has_events = bool(engine.dispatch.before_cursor_execute)  # noqa: SLF001 - see above


def _pool_connections(engine: sa.Engine) -> None:
    """Pool the connections to an SQLite file, instead of opening a connection for each transaction.

    When the last connection to a file is closed, SQLite deletes the WAL. If another process opens
    the file at that moment, it receives the error "database is locked". oslo.db has no option that
    enables a pool for SQLite.
    """
    unpooled = engine.pool
    if isinstance(unpooled, pool.NullPool):
        # `_creator` is private, but there is no public alternative: `NullPool.recreate()` returns
        # another NullPool.
        creator = unpooled._creator  # noqa: SLF001 - see above
        engine.pool = pool.QueuePool(creator, dialect=engine.dialect, _dispatch=unpooled.dispatch)


def _check_after_idle_time(engine: sa.Engine) -> None:
    """Check a connection before its use only if it was idle for `IDLE_SECONDS`.

    Programs that request a connection directly from the engine do not repeat a statement. For them,
    each connection is checked.
    """
    # oslo.db lets the pool check each connection, and has no option that disables it.
    engine.pool._pre_ping = False  # noqa: SLF001 - see above

    def check_in(_connection: Any, record: Any) -> None:
        record.info[_RETURNED] = time.monotonic()

    def check_out(dbapi_connection: Any, record: Any, _proxy: Any) -> None:
        returned = record.info.get(_RETURNED)
        if returned is None:
            return  # the connection is new
        if transactions.requested() and time.monotonic() - returned < IDLE_SECONDS:
            return
        with _dead_connections_replaced(engine):
            engine.dialect.do_ping(dbapi_connection)

    event.listen(engine, 'checkin', check_in)
    event.listen(engine, 'checkout', check_out)


@contextlib.contextmanager
def _dead_connections_replaced(engine: sa.Engine) -> Iterator[None]:
    """Let the pool replace a connection, and all older ones, if the driver raises an error."""
    try:
        yield
    except engine.dialect.loaded_dbapi.Error as exc:
        raise sa.exc.InvalidatePoolError() from exc


def _require_mysql_mode(engine: sa.Engine, dbapi_connection: Any, record: Any, _proxy: Any) -> None:
    if transactions.is_in_requested_mode(record.info):
        return
    with _dead_connections_replaced(engine):
        transactions.require_mysql_mode(dbapi_connection, record.info)


def _set_up_mysql(wsrep_sync_wait: int | None, dbapi_connection: Any, record: Any) -> None:
    cursor = dbapi_connection.cursor()
    # This statement has to precede SHOW, because sql_select_limit also truncates the result of
    # SHOW.
    cursor.execute(_MYSQL_SESSION, (LOCK_SECONDS, LOCK_SECONDS))
    cursor.execute(_MYSQL_SERVER_SETTINGS)
    settings = {str(name).lower(): str(value).upper() for name, value in cursor.fetchall()}
    if settings.get('log_bin') == 'ON' and settings.get('binlog_format') == 'STATEMENT':
        raise exception.UnsuitableDatabase(
            'The database server writes its binary log with binlog_format=STATEMENT, which does '
            'not allow transactions at READ COMMITTED. Set binlog_format to ROW or MIXED.'
        )
    if settings.get('wsrep_on') == 'ON':
        # With this variable, an isolated node executes a SELECT, and no SELECT waits.
        statement = 'SET SESSION wsrep_dirty_reads = 0'
        if wsrep_sync_wait is None:
            statement += f', SESSION wsrep_sync_wait = {SYNC_WAIT_BITS}'
        else:
            _warn_of_outdated_decisions(wsrep_sync_wait)
        cursor.execute(statement)
    if (
        has_several_primaries(settings)
        and settings['group_replication_consistency'] in _OUTDATED_READS
    ):
        cursor.execute("SET SESSION group_replication_consistency = 'BEFORE'")
    cursor.close()
    # Only MySQL and recent releases of MariaDB have `transaction_isolation`.
    variable = 'transaction_isolation' if 'transaction_isolation' in settings else 'tx_isolation'
    transactions.set_up_mysql(dbapi_connection, record.info, variable)


@functools.cache  # one line for each process
def _warn_of_outdated_decisions(wsrep_sync_wait: int) -> None:
    if not is_sufficient(wsrep_sync_wait):
        LOG.warning(
            '[placement_database] mysql_wsrep_sync_wait is %s, so responses can contain outdated '
            'data of a Galera node. Remove the option, or set it to %s.',
            wsrep_sync_wait,
            wsrep_sync_wait | SYNC_WAIT_BITS,
        )


def is_sufficient(wsrep_sync_wait: int) -> bool:
    """Whether requests reflect all writes that other Galera nodes have acknowledged."""
    return wsrep_sync_wait & SYNC_WAIT_BITS == SYNC_WAIT_BITS


def has_several_primaries(settings: Mapping[str, str]) -> bool:
    """Whether a server is a node of a MySQL replication group that accepts writes on each node.

    :param settings: the values of the variables of the server in upper case
    """
    return settings.get('group_replication_single_primary_mode') == 'OFF'


def _set_up_postgresql(dbapi_connection: Any, _record: Any) -> None:
    cursor = dbapi_connection.cursor()
    cursor.execute(_POSTGRESQL_SESSION, (f'{LOCK_SECONDS}s',))
    cursor.close()
    dbapi_connection.commit()
    # `db/transactions.py` sends BEGIN.
    dbapi_connection.autocommit = True
    if hasattr(dbapi_connection, 'prepare_threshold'):
        # psycopg 3 would prepare each frequent statement, which costs a round trip, and again after
        # each ROLLBACK.
        dbapi_connection.prepare_threshold = None
    # psycopg 3 detects the changed encoding; psycopg2 does not.
    if hasattr(dbapi_connection, 'set_client_encoding'):
        dbapi_connection.set_client_encoding('UTF8')


def _set_up_sqlite(dbapi_connection: Any, _record: Any) -> None:
    dbapi_connection.execute(f'PRAGMA busy_timeout = {SQLITE_BUSY_MILLISECONDS}')
    deadline = time.monotonic() + SQLITE_BUSY_MILLISECONDS / 1000
    while dbapi_connection.execute('PRAGMA journal_mode').fetchone()[0] == 'delete':
        try:
            dbapi_connection.execute('PRAGMA journal_mode = WAL')
        except sqlite3.OperationalError as exc:
            # If another process changes the journal mode at the same time, SQLite does not wait.
            if 'locked' not in str(exc) or time.monotonic() >= deadline:
                raise
            time.sleep(_WAL_PAUSE)
