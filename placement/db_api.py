"""The way to the database: engine, transactions, isolation, and running again.

A request that reads uses one `reader()`. A request that writes is one function given to
`write()`: a single transaction which is run again *as a whole* when nobody is at fault (a
deadlock, a duplicate key, a lost swap, a connection that broke before COMMIT was sent), and
ends in `exception.ServiceUnavailable` when the database cannot answer. What the engines say
when something breaks is told apart in `db/failures.py`.
"""

from collections.abc import Callable, Iterator
import contextlib
import logging
import random
import threading
import time
from typing import Any, TypeVar
import weakref

from oslo_config import cfg
from oslo_db import exception as db_exc
from oslo_db.sqlalchemy import enginefacade
import sqlalchemy as sa
from sqlalchemy import pool

from placement import exception
from placement.db import failures, sessions, statement_cache

LOG = logging.getLogger(__name__)

# How long a writing request is run again before it gives up, in seconds.
DEADLINE = 30.0
# How many attempts in a row may fail at the same key. A concurrent transaction that creates the
# row is found by the next attempt. If it also deletes the row, that attempt may fail again.
SAME_KEY_ATTEMPTS = 10
_LONGEST_PAUSE = 0.5
_FASTEST_GROWTH = 10  # doublings of the pause

placement_context_manager = enginefacade.transaction_context()

T = TypeVar('T')
Work = Callable[[sa.Connection], T]


class _Configurator:
    """Configures the process's database once; `reset()` makes it possible once more."""

    def __init__(self) -> None:
        self._done = False

    def __call__(self, conf: cfg.ConfigOpts) -> None:
        """Configure the database of this process from `[placement_database]` of `conf`."""
        if self._done:
            LOG.warning('The placement database is configured already; nothing was changed.')
            return
        self._done = True
        options = dict(conf.placement_database)
        options.pop('sync_on_startup')
        sessions.set_causality(options['mysql_wsrep_sync_wait'])
        # oslo.db would yield to green threads, which there are none of here, whenever a connection
        # is given back: on a busy machine that costs more than the statements.
        placement_context_manager.configure(thread_checkin=False, **options)

    def reset(self) -> None:
        self._done = False


configure = _Configurator()

_prepared: 'weakref.WeakSet[sa.Engine]' = weakref.WeakSet()
_prepare_lock = threading.Lock()
# A database in memory is one connection for all threads: they take turns.
_one_connection = threading.RLock()


def get_placement_engine() -> sa.Engine:
    """The engine of this process, with the session rules of this service on its connections."""
    engine = placement_context_manager.writer.get_engine()
    if engine not in _prepared:
        with _prepare_lock:
            if engine not in _prepared:
                sessions.prepare(engine)
                engine.update_execution_options(compiled_cache=statement_cache.StatementCache())
                _prepared.add(engine)
    return engine


@contextlib.contextmanager
def _turn(engine: sa.Engine) -> Iterator[None]:
    if not isinstance(engine.pool, pool.StaticPool):
        yield
        return
    with _one_connection:
        yield


@contextlib.contextmanager
def _connected(**options: Any) -> Iterator[sa.Connection]:
    engine = get_placement_engine()
    with _turn(engine), _connect(engine) as conn:
        if options:
            conn = conn.execution_options(**options)
        yield conn


def _connect(engine: sa.Engine) -> sa.Connection:
    """Take a connection from the pool.

    Whatever the reason why there is none (no server, too many clients, a server that is just
    starting, a full pool): it is not for the request to try again.
    """
    try:
        return engine.connect()
    except (sa.exc.SQLAlchemyError, db_exc.DBError, engine.dialect.loaded_dbapi.Error) as exc:
        LOG.warning('There is no connection to the database: %s', failures.summary(exc))
        raise exception.DatabaseUnavailable() from exc


@contextlib.contextmanager
def reader(consistent: bool = False) -> Iterator[sa.Connection]:
    """A connection in a transaction that only reads.

    :param consistent: let all statements see one state of the database (REPEATABLE READ);
        without it each statement sees what is committed when it starts
    :raises exception.DatabaseUnavailable: the database cannot answer
    :raises exception.UnstorableValue: a value that no row can hold was asked for
    """
    try:
        with _connected() as conn:
            if consistent:
                sessions.begin_consistent(conn)
            yield conn
    except exception.PlacementException:
        raise
    except Exception as exc:
        raise _translated(exc) from exc


def write(work: Work[T], least_attempts: int = 1) -> T:
    """Run `work(connection)` in one writing transaction and commit it.

    :param work: reads, decides and writes; it is called again from the start, on a fresh
        transaction, as long as nobody is at fault, so it must not change anything but the database
    :param least_attempts: how often it is tried at least against rivals that are faster,
        however long that takes
    :returns: what `work` returned in the attempt that was committed
    :raises exception.ConcurrentChange: rivals were faster until the deadline
    :raises exception.RepeatedKeyViolation: attempt after attempt fails at the same key
    :raises exception.DatabaseUnavailable: the database cannot answer
    :raises exception.OutcomeUnknown: the connection broke while COMMIT was under way
    :raises exception.UnstorableValue: a value does not fit its column
    """
    deadline = time.monotonic() + DEADLINE
    refusals = _Refusals()
    attempt = 0
    while True:
        attempt += 1
        try:
            return _attempt(work)
        except exception.ConcurrentChange as exc:
            if attempt >= least_attempts and time.monotonic() >= deadline:
                raise
            LOG.debug('Attempt %d of a transaction is made again: %s', attempt, exc)
        except exception.PlacementException:
            raise
        except Exception as exc:
            if not failures.is_transient(exc):
                raise _translated(exc) from exc
            if refusals.add(exc) >= max(SAME_KEY_ATTEMPTS, least_attempts):
                LOG.warning('A key refuses a row again and again: %s', failures.summary(exc))
                raise exception.RepeatedKeyViolation() from exc
            # A lock that is not given, or a server that is not there, may take long each time.
            least = least_attempts if failures.is_rivalry(exc) else 1
            if attempt >= least and time.monotonic() >= deadline:
                raise exception.DatabaseUnavailable() from exc
            LOG.debug(
                'Attempt %d of a transaction is made again: %s', attempt, failures.summary(exc)
            )
        time.sleep(_pause(attempt))


class _Refusals:
    """Counts how many attempts in a row failed at the same key."""

    def __init__(self) -> None:
        self._words = ''
        self._count = 0

    def add(self, exc: Exception) -> int:
        """Note the failure of an attempt, and return the count; 0 if no key was the reason."""
        if not failures.is_key_violation(exc):
            self._count = 0
            return 0
        words = failures.summary(exc)
        self._count = self._count + 1 if words == self._words else 1
        self._words = words
        return self._count


def _attempt(work: Work[T]) -> T:
    with _connected(**sessions.WRITER) as conn:
        result = work(conn)
        try:
            conn.commit()
        except Exception as exc:
            _abandon(conn)
            if failures.is_connection_lost(exc):
                raise exception.OutcomeUnknown() from exc
            raise
        return result


def _abandon(conn: sa.Connection) -> None:
    """Make sure that a transaction whose COMMIT failed is over.

    SQLAlchemy takes it for over. SQLite may keep it open when the disk is full, and with it the
    lock that all writers wait for, for as long as the connection stays in the pool.
    """
    if conn.invalidated:
        return
    try:
        conn.connection.rollback()
    except Exception as exc:
        LOG.info('A connection is dropped that cannot be rolled back: %s', failures.summary(exc))
        conn.invalidate()


def _pause(attempt: int) -> float:
    """Seconds to wait before the next attempt: random, so that rivals part."""
    return random.uniform(0, min(_LONGEST_PAUSE, 0.005 * 2 ** min(attempt, _FASTEST_GROWTH)))


def _translated(exc: Exception) -> Exception:
    if failures.is_too_large(exc):
        return exception.RequestTooLarge()
    if failures.is_bad_value(exc):
        return exception.UnstorableValue()
    if failures.is_unavailable(exc):
        LOG.warning('The database cannot answer: %s', failures.summary(exc))
        return exception.DatabaseUnavailable()
    return exc
