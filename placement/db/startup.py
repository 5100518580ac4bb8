"""What the start of a process needs of an engine, engine by engine."""

from collections.abc import Iterator
import contextlib
import hashlib
import logging

import sqlalchemy as sa

from placement.db import sessions

LOG = logging.getLogger(__name__)

# Servers disagree on how to say "for ever", so the waiting is repeated.
_MYSQL_LOCK_SECONDS = 10
# Any number that no other program in the same PostgreSQL database uses.
_POSTGRESQL_LOCK = 0x706C6163656D656E


@contextlib.contextmanager
def alone(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Give a connection in a transaction that no other process has at the same time.

    Who comes second waits. The lock goes with the connection, so that a process that dies
    leaves nothing behind. The nodes of a Galera cluster do not share locks: there this keeps
    nobody out, and the caller has to cope with rivals (`is_cluster`).
    """
    with engine.connect().execution_options(**sessions.WRITER) as conn:
        if conn.dialect.name == 'mysql':
            # A migration may take long, and so may the wait for its locks. The connection is
            # closed afterwards instead of going back to the pool like that.
            conn.detach()
            conn.exec_driver_sql('SET SESSION lock_wait_timeout = @@GLOBAL.lock_wait_timeout')
            with _mysql_lock(conn), conn.begin():
                yield conn
            return
        # On SQLite the transaction of a writer is the lock.
        with conn.begin():
            if conn.dialect.name == 'postgresql':
                conn.exec_driver_sql('SET LOCAL lock_timeout = 0')
                conn.execute(sa.select(sa.func.pg_advisory_xact_lock(_POSTGRESQL_LOCK)))
            yield conn


def is_cluster(conn: sa.Connection) -> bool:
    """Whether the server is a node of a Galera cluster."""
    if conn.dialect.name != 'mysql':
        return False
    row = conn.exec_driver_sql("SHOW VARIABLES LIKE 'wsrep_on'").first()
    return row is not None and str(row[1]).upper() == 'ON'


def _take_postgresql_lock(conn: sa.Connection) -> None:
    """Wait for the lock as long as it takes; the other locks keep their patience."""
    patience = conn.scalar(sa.select(sa.func.current_setting('lock_timeout')))
    conn.execute(sa.select(sa.func.set_config('lock_timeout', '0', True)))
    conn.execute(sa.select(sa.func.pg_advisory_xact_lock(_POSTGRESQL_LOCK)))
    conn.execute(sa.select(sa.func.set_config('lock_timeout', patience, True)))


@contextlib.contextmanager
def _mysql_lock(conn: sa.Connection) -> Iterator[None]:
    cluster = is_cluster(conn)
    conn.rollback()
    if cluster:
        # The lock would hold on one node only, and some clusters refuse it.
        yield
        return
    # The name is shared by all databases of the server and may have 64 characters.
    database = hashlib.sha256(str(conn.engine.url.database).encode()).hexdigest()
    name = f'placement.{database[:32]}'
    while conn.scalar(sa.select(sa.func.get_lock(name, _MYSQL_LOCK_SECONDS))) != 1:
        LOG.info('Waiting for another process that migrates the database.')
        conn.rollback()
    conn.commit()
    try:
        yield
    finally:
        # If the connection is gone, so is the lock.
        if not conn.invalidated:
            conn.scalar(sa.select(sa.func.release_lock(name)))
            conn.commit()


@contextlib.contextmanager
def explicit_zero(conn: sa.Connection) -> Iterator[None]:
    """Let a row with the key 0 be inserted.

    MySQL takes a 0 in an auto-increment column for "the next number" unless the session
    says otherwise. Its mode is put back, because the connection returns to a pool.
    """
    if conn.dialect.name != 'mysql':
        yield
        return
    mode = conn.exec_driver_sql('SELECT @@SESSION.sql_mode').scalar_one()
    conn.exec_driver_sql(
        'SET SESSION sql_mode = %s', (f'{mode},NO_AUTO_VALUE_ON_ZERO'.lstrip(','),)
    )
    yield
    # After a failure the connection is rolled back and may be gone; the mode only matters to
    # rows with the key 0, and no other statement of the service inserts one.
    conn.exec_driver_sql('SET SESSION sql_mode = %s', (mode,))
