"""Reads, snapshots and write transactions on the database of this process.

A request that only reads data passes a function to `read()`, or to `read_snapshot()` if several
statements have to read the same data. A request that changes data passes a function to `write()`,
which executes that function in a single transaction. `db/retry.py` decides whether a failed
transaction is retried, `db/failures.py` classifies the errors of database drivers, `db/pools.py`
has the pools of connections, and `db/connections.py` applies the session settings of each
connection.

A pooled connection is not checked before each use, because the check would cost a round trip. It
may be dead, for example because the server was restarted, or lead to a former primary server, which
is now read-only. This costs a request only time: the read or the write
transaction is repeated on a new connection.
"""

from collections.abc import Callable, Iterator
import contextlib
import logging
import os
import threading
import time
from typing import TypeVar

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa

from placement import exception, telemetry
from placement.conf import database, database_url
from placement.db import connections, failures, pools, retry

LOG = logging.getLogger(__name__)

T = TypeVar('T')
Work = Callable[[sa.Connection], T]

placement_context_manager = enginefacade.transaction_context()

# The execution option of the engine of oslo.db with its `pools.Pools`.
_POOLS = 'placement_pools'
_PREPARE_LOCK = threading.Lock()
# The pools of a parent process.
_INHERITED: list[pools.Pools] = []
# A read that fails later than this many seconds after its begin is not repeated.
_LATEST_REPETITION = 5.0


class _Configurator:
    """Configures the database of this process once; after `reset()`, it can be configured again.

    :ivar wsrep_sync_wait: the value of `[placement_database] mysql_wsrep_sync_wait`
    :ivar urls: the URLs of the database and of its replica, with passwords
    :ivar connections: the maximum number of connections of this process; None if it has no limit
    :ivar limits: the time limits of connections
    :ivar pools: the options of the pools
    :ivar max_retries: the value of `[placement_database] max_retries`
    :ivar retry_interval: the value of `[placement_database] retry_interval`
    """

    def __init__(self) -> None:
        self._done = False
        self.wsrep_sync_wait: int | None = None
        self.urls: tuple[str, ...] = ()
        self.connections: int | None = None
        self.limits = connections.Timeouts()
        self.pools = pools.Options()
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
            connections.Timeouts(connect) if patient else connections.Timeouts(connect, read, write)
        )
        self.pools = pools.Options.of(options)
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
    """Return the engine of this process for programs that execute statements of their own."""
    return get_pools().direct


def get_pools() -> pools.Pools:
    """Return the pools of the database of this process.

    They are created here rather than in `configure()`, because oslo.db test fixtures replace the
    engine later. A child process opens its own connections.
    """
    template: sa.Engine = placement_context_manager.writer.get_engine()
    found: pools.Pools | None = template.get_execution_options().get(_POOLS)
    if found is not None and found.pid == os.getpid():
        return found
    with _PREPARE_LOCK:
        again: pools.Pools | None = template.get_execution_options().get(_POOLS)
        if again is not None and again is not found:
            return again  # another thread has created them
        if found is not None:
            # Closing the connections would end the sessions of the parent process.
            _INHERITED.append(found)
        else:
            connections.limit_waits(template, configure.limits)
            connections.prepare(template, configure.wsrep_sync_wait)
            if not isinstance(template.pool, sa.StaticPool):
                # Close the connections that were opened without these settings.
                template.dispose()
        created = pools.of(template, configure.pools)
        template.update_execution_options(**{_POOLS: created})
        connections.wait_for_server(created.direct, configure.max_retries, configure.retry_interval)
    return created


def read(work: Work[T]) -> T:
    """Execute `work(connection)`; each statement of `work` is a transaction of its own.

    :param work: the function that reads the data; it is called again if the connection was dead
    :returns: the value that `work` returned
    :raises exception.DatabaseUnavailable: the database is unreachable or overloaded
    :raises exception.UnstorableValue: a statement has a parameter that its column cannot store
    :raises exception.RequestTooLarge: a statement exceeds a limit of the database system
    """

    def attempt() -> T:
        with _Connected() as conn:
            return work(conn)

    return _repeated_if_dead(attempt)


def read_snapshot(work: Work[T]) -> T:
    """Execute `work(connection)`; all statements of `work` read the same snapshot.

    :param work: the function that reads the data; it is called again if the connection was dead
    :returns: the value that `work` returned
    :raises: the same exceptions as `read()`
    """

    def attempt() -> T:
        with _Connected(snapshot=True) as conn:
            return work(conn)

    return _repeated_if_dead(attempt)


@contextlib.contextmanager
def snapshot() -> Iterator[sa.Connection]:
    """Yield a connection on which all statements read the same snapshot of the database.

    Commands use this function to read large amounts of data, and do not start again if the
    connection is lost. Requests use `read_snapshot()`.

    :raises: the same exceptions as `read()`
    """
    context = _Connected(snapshot=True)
    conn = _repeated_if_dead(context.__enter__)
    try:
        with contextlib.ExitStack() as stack:
            stack.push(context)
            yield conn
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
    """A context with a connection for reads, for a snapshot, or for a write transaction.

    PERF: a class, because a context of a generator takes four times as long (2026-11).
    """

    __slots__ = ('_conn', '_pools', '_snapshot', '_writes')

    def __init__(self, snapshot: bool = False, writes: bool = False) -> None:
        self._snapshot = snapshot
        self._writes = writes
        self._conn: sa.Connection | None = None

    def __enter__(self) -> sa.Connection:
        own = self._pools = get_pools()
        conn = self._conn = _connect(own, self._writes)
        telemetry.CONNECTIONS_IN_USE.add(1)
        try:
            if self._snapshot and own.snapshot:
                conn.exec_driver_sql(own.snapshot)
        except BaseException:
            conn.invalidate()  # a snapshot can be open
            self._close()
            raise
        return conn

    def __exit__(self, kind: type[BaseException] | None, *_exc_info: object) -> None:
        try:
            if self._snapshot and self._pools.snapshot and self._conn is not None:
                _end_snapshot(self._conn, kind)
        finally:
            self._close()

    def _close(self) -> None:
        conn, self._conn = self._conn, None
        if conn is None:
            return
        telemetry.CONNECTIONS_IN_USE.add(-1)
        try:
            conn.rollback()
        except BaseException:
            conn.invalidate()
            raise
        finally:
            self._pools.pool.give_back(self._writes, conn)


def _end_snapshot(conn: sa.Connection, kind: type[BaseException] | None) -> None:
    """End a snapshot; if that fails, close the connection, because the next read must not use it.

    All data has been read, so a failure is not an error.
    """
    if conn.invalidated:
        return
    if kind is not None and not issubclass(kind, Exception):
        # If the result of a statement is incomplete, PyMySQL warns of it before ROLLBACK.
        conn.invalidate()
        return
    try:
        conn.exec_driver_sql('ROLLBACK')
    except Exception as exc:
        LOG.debug('Closing a connection after the last read: %s', failures.summary(exc))
        conn.invalidate()


def _attempt_on_primary(work: Work[T]) -> T:
    try:
        return _attempt(work)
    except Exception as exc:
        if failures.is_read_only(exc):
            # All pooled connections may lead to this server.
            get_pools().pool.dispose()
        raise


def _attempt(work: Work[T]) -> T:
    with _Connected(writes=True) as conn:
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
        conn.connection.rollback()
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


def _connect(own: pools.Pools, writes: bool) -> sa.Connection:
    """Return a connection from one of the pools.

    A failed attempt to connect is never repeated, whether the database server is down or starting,
    the server has too many clients, or the pool is exhausted.
    """
    try:
        return own.pool.take(writes)
    except (
        sa.exc.SQLAlchemyError,
        db_exc.DBError,
        own.direct.dialect.loaded_dbapi.Error,
        exception.UnsuitableDatabase,
    ) as exc:
        if failures.is_access_denied(exc):
            failures.log_denial(exc)
        else:
            LOG.warning('Failed to connect to the database: %s', failures.summary(exc))
        raise exception.DatabaseUnavailable() from exc
