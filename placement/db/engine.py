"""Reads, snapshots and write transactions on the database engine of this process.

A request that only reads data passes a function to `read()`, or to `read_snapshot()` if several
statements have to read the same data. A request that changes data passes a function to `write()`,
which executes that function in a single transaction. `db/retry.py` decides whether a failed
transaction is retried, `db/failures.py` classifies the errors of database drivers,
`db/transactions.py` begins and ends transactions, and `db/connections.py` applies the session
settings of each connection.

A pooled connection may be dead, for example because the server was restarted, or lead to a former
primary server, which is now read-only. This costs a request only time: the read or the write
transaction is repeated on a new connection.
"""

from collections.abc import Callable, Iterator
import contextlib
import logging
import threading
import time
from typing import TypeVar

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
from sqlalchemy import pool

from placement import exception, telemetry
from placement.conf import database, database_url
from placement.db import (
    connections,
    failures,
    retry,
    statement_cache,
    timeouts,
    transactions,
)
from placement.db.transactions import Mode

LOG = logging.getLogger(__name__)

T = TypeVar('T')
Work = Callable[[sa.Connection], T]

placement_context_manager = enginefacade.transaction_context()

# Execution option that marks an engine as already prepared by `connections.prepare()`.
_PREPARED = 'placement_prepared'
_PREPARE_LOCK = threading.Lock()
# A read that fails later than this many seconds after its begin is not repeated.
_LATEST_REPETITION = 5.0
# All threads share the single connection to an in-memory SQLite database, so this lock serializes
# their transactions. Only tests use such databases, so one lock for all databases is enough.
_SHARED_CONNECTION_LOCK = threading.RLock()


class _Configurator:
    """Configures the database of this process once; after `reset()`, it can be configured again.

    :ivar wsrep_sync_wait: the value of `[placement_database] mysql_wsrep_sync_wait`
    :ivar urls: the URLs of the database and of its replica, with passwords
    :ivar connections: the maximum number of connections of this process; None if it has no limit
    :ivar limits: the time limits of connections
    :ivar max_retries: the value of `[placement_database] max_retries`
    :ivar retry_interval: the value of `[placement_database] retry_interval`
    """

    def __init__(self) -> None:
        self._done = False
        self.wsrep_sync_wait: int | None = None
        self.urls: tuple[str, ...] = ()
        self.connections: int | None = None
        self.limits = timeouts.Timeouts()
        self.max_retries = 0
        self.retry_interval = 0

    def __call__(self, conf: cfg.ConfigOpts, patient: bool = False) -> None:
        """Configure the database of this process with the options in `[placement_database]`.

        :param patient: whether to wait for responses of the database without a time limit, as the
            commands do
        """
        if self._done:
            LOG.warning('The placement database is already configured; this call has no effect.')
            return
        self._done = True
        options = dict(conf.placement_database)
        options.pop('sync_on_startup')
        # Fixtures of other projects configure a database without the options of the service.
        urls = (options.get('connection'), options.get('slave_connection'))
        parameters = options.get('connection_parameters') or ''
        self.urls = tuple(database_url.with_parameters(url, parameters) for url in urls if url)
        self.connections = database.connections_of_process(options)
        connect, read, write = (
            options.pop(f'{name}_timeout', 0) for name in ('connect', 'read', 'write')
        )
        self.limits = (
            timeouts.Timeouts(connect) if patient else timeouts.Timeouts(connect, read, write)
        )
        self.wsrep_sync_wait = options['mysql_wsrep_sync_wait']
        # With retries, oslo.db would connect before the engine has time limits.
        self.max_retries = options.get('max_retries', 0)
        self.retry_interval = options.get('retry_interval', 0)
        options['max_retries'] = 0
        # By default, oslo.db yields to other green threads whenever a connection returns to the
        # pool. This service does not use green threads, and on a busy machine the yield takes
        # longer than the SQL statements of a request.
        placement_context_manager.configure(thread_checkin=False, **options)

    def reset(self) -> None:
        """Allow the next call of this object to configure the database again."""
        self._done = False


configure = _Configurator()


def get_placement_engine() -> sa.Engine:
    """Return the engine of this process, prepared by `connections.prepare()`.

    The session settings are applied here rather than in `configure()`, because oslo.db test
    fixtures replace the engine later.
    """
    engine: sa.Engine = placement_context_manager.writer.get_engine()
    if _PREPARED not in engine.get_execution_options():
        with _PREPARE_LOCK:
            if _PREPARED not in engine.get_execution_options():
                timeouts.apply(engine, configure.limits)
                connections.prepare(engine, configure.wsrep_sync_wait)
                engine.update_execution_options(
                    compiled_cache=statement_cache.StatementCache(), **{_PREPARED: True}
                )
                connections.wait_for_server(engine, configure.max_retries, configure.retry_interval)
    return engine


def read(work: Work[T]) -> T:
    """Execute `work(connection)`; each statement of `work` is a transaction of its own.

    :param work: the function that reads the data; it is called again if the connection was dead
    :returns: the value that `work` returned
    :raises exception.DatabaseUnavailable: the database is unreachable or overloaded
    :raises exception.UnstorableValue: a statement has a parameter that its column cannot store
    :raises exception.RequestTooLarge: a statement exceeds a limit of the database system
    """

    def attempt() -> T:
        with _Connected(Mode.AUTOCOMMIT) as conn:
            return work(conn)

    return _repeated_if_dead(attempt)


def read_snapshot(work: Work[T]) -> T:
    """Execute `work(connection)`; all statements of `work` read the same snapshot.

    :param work: the function that reads the data; it is called again if the connection was dead
    :returns: the value that `work` returned
    :raises: the same exceptions as `read()`
    """

    def attempt() -> T:
        with _Connected(Mode.AUTOCOMMIT, snapshot=True) as conn:
            return work(conn)

    return _repeated_if_dead(attempt)


@contextlib.contextmanager
def snapshot() -> Iterator[sa.Connection]:
    """Yield a connection on which all statements read the same snapshot of the database.

    Commands use this function to read large amounts of data, and do not start again if the
    connection is lost. Requests use `read_snapshot()`.

    :raises: the same exceptions as `read()`
    """
    context = _Connected(Mode.AUTOCOMMIT, snapshot=True)
    conn = _repeated_if_dead(context.__enter__)
    try:
        with contextlib.ExitStack() as stack:
            stack.push(context)
            try:
                yield conn
            except KeyboardInterrupt:
                # If the result of a statement is incomplete, PyMySQL warns of it before ROLLBACK.
                conn.invalidate()
                raise
    except Exception as exc:
        failures.raise_translated(exc)


def write(work: Work[T], min_attempts: int = 1) -> T:
    """Execute `work(connection)` in a write transaction and commit that transaction.

    :param work: the function that reads and changes the data; each retry calls the function again
        in a new transaction, so it must not have side effects outside of the database
    :param min_attempts: after a conflict with a concurrent transaction, make at least this many
        attempts, even past `retry.DEADLINE`
    :returns: the value that `work` returned in the attempt that was committed
    :raises exception.ConcurrentChange: until the deadline, every attempt failed because a
        concurrent transaction had changed a row
    :raises exception.RepeatedKeyViolation: `retry.SAME_KEY_ATTEMPTS` consecutive attempts violated
        the same unique or foreign key constraint
    :raises exception.DatabaseUnavailable: the database is unreachable, overloaded or read-only
    :raises exception.OutcomeUnknown: the connection was lost during COMMIT
    :raises exception.UnstorableValue: a column cannot store the value of a parameter
    :raises exception.RequestTooLarge: a statement exceeds a limit of the database system
    """
    return retry.run(lambda: _attempt_on_primary(work), min_attempts)


class _Connected:
    """A context with a connection of the pool, or with a snapshot on such a connection.

    PERF: a class, because a context of a generator takes four times as long (2026-11).
    """

    __slots__ = ('_conn', '_locked', '_mode', '_snapshot')

    def __init__(self, mode: Mode, snapshot: bool = False) -> None:
        self._mode = mode
        self._snapshot = snapshot
        self._conn: sa.Connection | None = None

    def __enter__(self) -> sa.Connection:
        engine = get_placement_engine()
        self._locked = isinstance(engine.pool, pool.StaticPool)
        if self._locked:
            _SHARED_CONNECTION_LOCK.acquire()
        try:
            conn = self._conn = _connect(engine, self._mode)
            telemetry.connection_acquired()
            if self._snapshot:
                transactions.begin_snapshot(conn)
        except BaseException:
            self._close()
            raise
        return conn

    def __exit__(self, kind: type[BaseException] | None, *_exc_info: object) -> None:
        try:
            if kind is None and self._snapshot and self._conn is not None:
                self._conn.commit()
        except Exception as exc:
            # All data has been read, so a lost connection is not an error.
            if not failures.is_connection_lost(exc):
                raise
            LOG.debug('The connection was lost after the last read: %s', failures.summary(exc))
        finally:
            self._close()

    def _close(self) -> None:
        conn, self._conn = self._conn, None
        try:
            if conn is not None:
                telemetry.connection_released()
                conn.close()
        finally:
            if self._locked:
                self._locked = False
                _SHARED_CONNECTION_LOCK.release()


def _attempt_on_primary(work: Work[T]) -> T:
    try:
        return _attempt(work)
    except Exception as exc:
        if failures.is_read_only(exc):
            # All pooled connections may lead to this server.
            get_placement_engine().dispose()
        raise


def _attempt(work: Work[T]) -> T:
    with _Connected(Mode.TRANSACTION) as conn:
        result = work(conn)
        try:
            conn.commit()
        except Exception as exc:
            _end_transaction(conn)
            if failures.is_connection_lost(exc):
                LOG.warning(
                    'The connection was lost during COMMIT, so the outcome is unknown: %s',
                    failures.summary(exc),
                )
                raise exception.OutcomeUnknown() from exc
            raise
        return result


def _end_transaction(conn: sa.Connection) -> None:
    """Roll back a transaction whose COMMIT failed; if the rollback fails, close the connection.

    After a failed COMMIT, SQLAlchemy considers the transaction ended. But if the disk is full,
    SQLite keeps the transaction open. The pooled connection would then keep the write lock and
    block all other writers.
    """
    if conn.invalidated:
        return
    try:
        conn.dialect.do_rollback(conn.connection)
    except Exception as exc:
        LOG.info('Closing a connection because its rollback failed: %s', failures.summary(exc))
        conn.invalidate()


def _repeated_if_dead(attempt: Callable[[], T]) -> T:
    """Call a function that only reads; call it again if its connection turns out to be dead.

    After a time limit has expired, a second attempt would wait for just as long.
    """
    begin = time.monotonic()
    repeated = False
    while True:
        try:
            return attempt()
        except Exception as exc:
            late = repeated or time.monotonic() - begin > _LATEST_REPETITION
            if late or not failures.is_connection_lost(exc):
                failures.raise_translated(exc)
            LOG.debug('Repeating a read on a new connection: %s', failures.summary(exc))
            repeated = True


def _connect(engine: sa.Engine, mode: Mode) -> sa.Connection:
    """Return a connection in the given mode from the pool.

    A failed attempt to connect is never repeated, whether the database server is down or starting,
    the server has too many clients, or the pool is exhausted.
    """
    try:
        return transactions.connect(engine, mode)
    except (
        sa.exc.SQLAlchemyError,
        db_exc.DBError,
        engine.dialect.loaded_dbapi.Error,
        exception.UnsuitableDatabase,
    ) as exc:
        if failures.is_access_denied(exc):
            failures.log_denial(exc)
        else:
            LOG.warning('Failed to connect to the database: %s', failures.summary(exc))
        raise exception.DatabaseUnavailable() from exc
