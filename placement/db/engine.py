"""The database engine of this process, readers, and writing transactions.

A request that reads uses one `reader()`. A request that writes passes one function to `write()`,
which executes it in a single transaction. `db/retry.py` decides when a failed transaction is
retried, `db/failures.py` classifies the errors of drivers, and `db/connections.py` has the settings
of each connection.
"""

from collections.abc import Callable, Iterator
import contextlib
import logging
import threading
from typing import Any, TypeVar

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
from sqlalchemy import pool

from placement import exception
from placement.db import connections, failures, retry, statement_cache

LOG = logging.getLogger(__name__)

T = TypeVar('T')
Work = Callable[[sa.Connection], T]

placement_context_manager = enginefacade.transaction_context()

# The execution option of an engine whose connections have the session settings of this service.
_PREPARED = 'placement_prepared'
_PREPARE_LOCK = threading.Lock()
# An in-memory SQLite database is one connection for all threads, so its transactions are
# serialized. Only tests use such databases; one lock for all of them is enough.
_SINGLE_CONNECTION_LOCK = threading.RLock()


class _Configurator:
    """Configures the database of this process once; `reset()` allows another configuration.

    :ivar wsrep_sync_wait: `[placement_database] mysql_wsrep_sync_wait`
    """

    def __init__(self) -> None:
        self._done = False
        self.wsrep_sync_wait: int | None = None

    def __call__(self, conf: cfg.ConfigOpts) -> None:
        """Configure the database of this process from `[placement_database]` of `conf`."""
        if self._done:
            LOG.warning('The placement database is already configured; this call has no effect.')
            return
        self._done = True
        options = dict(conf.placement_database)
        options.pop('sync_on_startup')
        self.wsrep_sync_wait = options['mysql_wsrep_sync_wait']
        # By default oslo.db yields to green threads whenever a connection returns to the pool.
        # This service has none, and on a busy machine the yield costs more than the statements.
        placement_context_manager.configure(thread_checkin=False, **options)

    def reset(self) -> None:
        """Allow the next call to configure the database again."""
        self._done = False


configure = _Configurator()


def get_placement_engine() -> sa.Engine:
    """The engine of this process, whose connections have the settings of `db/connections.py`.

    The engine is prepared here and not when it is created: the fixtures of oslo.db replace it.
    """
    engine: sa.Engine = placement_context_manager.writer.get_engine()
    if _PREPARED not in engine.get_execution_options():
        with _PREPARE_LOCK:
            if _PREPARED not in engine.get_execution_options():
                connections.prepare(engine, configure.wsrep_sync_wait)
                engine.update_execution_options(
                    compiled_cache=statement_cache.StatementCache(), **{_PREPARED: True}
                )
    return engine


@contextlib.contextmanager
def reader(consistent: bool = False) -> Iterator[sa.Connection]:
    """A connection in a read-only transaction.

    :param consistent: all statements read one state of the database (REPEATABLE READ); otherwise
        each statement reads what is committed when it starts
    :raises exception.DatabaseUnavailable: the database is unreachable, overloaded or read-only
    :raises exception.UnstorableValue: a parameter has a value that no column can store
    :raises exception.RequestTooLarge: a statement exceeds a limit of the engine
    """
    try:
        with _connected() as conn:
            if consistent:
                connections.begin_consistent(conn)
            yield conn
    except exception.PlacementException:
        raise
    except Exception as exc:
        if (translated := failures.translate(exc)) is None:
            raise
        raise translated from exc


def write(work: Work[T], min_attempts: int = 1) -> T:
    """Execute `work(connection)` in one writing transaction and commit it.

    :param work: reads, decides and writes; each retry calls it again in a new transaction, so it
        must not change anything except the database
    :param min_attempts: the minimum number of attempts in case of conflicts with concurrent
        transactions, even if they exceed `retry.DEADLINE`
    :returns: the result of `work` in the committed attempt
    :raises exception.ConcurrentChange: a concurrent transaction changed a row in each attempt
        until the deadline
    :raises exception.RepeatedKeyViolation: one key rejected `retry.SAME_KEY_ATTEMPTS` attempts
    :raises exception.DatabaseUnavailable: the database is unreachable, overloaded or read-only
    :raises exception.OutcomeUnknown: the connection was lost during COMMIT
    :raises exception.UnstorableValue: a value does not fit its column
    :raises exception.RequestTooLarge: a statement exceeds a limit of the engine
    """
    return retry.run(lambda: _attempt(work), min_attempts)


def _attempt(work: Work[T]) -> T:
    with _connected(**connections.WRITER) as conn:
        result = work(conn)
        try:
            conn.commit()
        except Exception as exc:
            _end_transaction(conn)
            if failures.is_connection_lost(exc):
                raise exception.OutcomeUnknown() from exc
            raise
        return result


def _end_transaction(conn: sa.Connection) -> None:
    """Roll back a transaction whose COMMIT failed, or close its connection.

    SQLAlchemy regards such a transaction as ended. If the disk is full, SQLite keeps it open, and
    with it the write lock for which all writers wait, as long as the connection is in the pool.
    """
    if conn.invalidated:
        return
    try:
        conn.connection.rollback()
    except Exception as exc:
        LOG.info('Closing a connection that failed to roll back: %s', failures.summary(exc))
        conn.invalidate()


@contextlib.contextmanager
def _connected(**options: Any) -> Iterator[sa.Connection]:
    engine = get_placement_engine()
    with _exclusive_if_single(engine), _connect(engine) as conn:
        if options:
            conn = conn.execution_options(**options)
        yield conn


@contextlib.contextmanager
def _exclusive_if_single(engine: sa.Engine) -> Iterator[None]:
    """Exclude other threads if all threads share one connection."""
    if not isinstance(engine.pool, pool.StaticPool):
        yield
        return
    with _SINGLE_CONNECTION_LOCK:
        yield


def _connect(engine: sa.Engine) -> sa.Connection:
    """A connection of the pool.

    A request does not retry a failure to connect, whatever its cause: the server is down or
    starting, it has too many clients, or the pool is exhausted.
    """
    try:
        return engine.connect()
    except (sa.exc.SQLAlchemyError, db_exc.DBError, engine.dialect.loaded_dbapi.Error) as exc:
        LOG.warning('Failed to connect to the database: %s', failures.summary(exc))
        raise exception.DatabaseUnavailable() from exc
