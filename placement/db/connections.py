"""Session settings and time limits of database connections, for each database system.

SQLite uses WAL and a long busy timeout. A Galera node applies the writes of other nodes with a
delay, so this module makes the first statement of each transaction wait for these writes
(`wsrep_sync_wait`), and likewise on a node of a MySQL replication group with several primaries
(`group_replication_consistency`). Every wait for a lock has a time limit, because other programs,
such as backups, also lock rows.

A database server that hangs keeps its connections open and never responds. Without a time limit, a
request to Placement would wait for as long as the server hangs. A connection whose time limit
expires counts as lost. PyMySQL and mysqlclient have options for connecting, reading and writing;
the handshake of PyMySQL uses the limit for reading. libpq, the library of psycopg and psycopg2, has
an option for connecting only. The connections of psycopg 3 wait in Python code, where this module
limits the wait. Those of psycopg2 wait in libpq, so they have no limit while the machine of the
server responds.
"""

from collections.abc import Generator, Mapping
import dataclasses
from dataclasses import dataclass
import functools
import logging
import sqlite3
import time
from typing import Any

from oslo_db import exception as db_exc
import sqlalchemy as sa
from sqlalchemy import event

from placement import exception
from placement.db import failures

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
    "'group_replication_single_primary_mode', 'group_replication_consistency')"
)
# With these values of `group_replication_consistency`, reads do not wait for writes of other nodes.
_OUTDATED_READS = frozenset({'EVENTUAL', 'BEFORE_ON_PRIMARY_FAILOVER'})
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


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Time limits in seconds; 0 means no limit.

    :ivar connect: for the connection, the handshake and the login
    :ivar read: for a response of the server
    :ivar write: for sending a statement to the server
    """

    connect: int = 0
    read: int = 0
    write: int = 0


def prepare(engine: sa.Engine, wsrep_sync_wait: int | None = None) -> None:
    """Apply the session settings to each connection that `engine` opens from now on.

    :param wsrep_sync_wait: the value of `[placement_database] mysql_wsrep_sync_wait`, which oslo.db
        applies; if the value is None, each connection to a Galera node uses `SYNC_WAIT_BITS`
    """
    if engine.dialect.name == 'mysql':
        event.listen(engine, 'connect', functools.partial(_set_up_mysql, wsrep_sync_wait))
    elif engine.dialect.name == 'postgresql':
        event.listen(engine, 'connect', _set_up_postgresql)
    elif engine.dialect.name == 'sqlite':
        event.listen(engine, 'connect', _set_up_sqlite)


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


def _set_up_mysql(wsrep_sync_wait: int | None, dbapi_connection: Any, _record: Any) -> None:
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


# Time limits ------------------------------------------------------------------


def limit_waits(engine: sa.Engine, timeouts: Timeouts) -> None:
    """Limit each connection that `engine` opens from now on.

    A value in the URL of the database takes precedence over `timeouts`.
    """
    event.listen(engine, 'do_connect', functools.partial(_connect, timeouts))


def arguments(driver: str, timeouts: Timeouts) -> Mapping[str, int]:
    """Return the arguments with which a driver limits a connection."""
    limits = dataclasses.asdict(timeouts)
    named = {f'{name}_timeout': seconds for name, seconds in limits.items() if seconds}
    if driver == 'pymysql':
        return {'connect_timeout': _PYMYSQL_UNLIMITED, **named}
    if driver == 'mysqldb':
        return named
    if driver in ('psycopg', 'psycopg2'):
        return {'connect_timeout': timeouts.connect, **_TCP}
    return {}


def _connect(
    timeouts: Timeouts,
    dialect: sa.Dialect,
    _record: Any,
    positional: list[Any],
    named: dict[str, Any],
) -> Any:
    """Open a connection, or return None to let SQLAlchemy open it with the changed arguments."""
    for name, value in arguments(dialect.driver, timeouts).items():
        named.setdefault(name, value)
    if dialect.driver == 'psycopg' and timeouts.read:
        driver: Any = dialect.loaded_dbapi
        return _psycopg_class(driver, timeouts.read).connect(*positional, **named)
    return None


@functools.cache
def _psycopg_class(driver: Any, seconds: int) -> Any:
    """Return a connection class that is closed if the server does not respond in time."""

    class LimitedConnection(driver.Connection):  # type: ignore[misc] # optional import
        """A connection of psycopg 3."""

        def wait(self, gen: Generator[Any, Any, Any], *args: Any, **kwargs: Any) -> Any:
            """Wait for the responses that a generator of psycopg requires."""
            return super().wait(self._limited(gen), *args, **kwargs)

        def _limited(self, gen: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
            """Yield and receive the same values as `gen`, until nothing happens for too long."""
            last, ready = time.monotonic(), None
            while True:
                try:
                    state = gen.send(ready)
                except StopIteration as end:
                    return end.value
                # While nothing happens, psycopg resumes the generator every 0.1 seconds.
                ready = yield state
                if ready:
                    last = time.monotonic()
                elif time.monotonic() - last >= seconds:
                    break
            self.close()
            raise driver.OperationalError(f'the server did not respond within {seconds} seconds')

    return LimitedConnection
