"""What the start of a process needs from an engine: an exclusive lock, and rows with the key 0."""

from collections.abc import Iterator
import contextlib
import hashlib
import logging

import sqlalchemy as sa

from placement.db import connections

LOG = logging.getLogger(__name__)

# MySQL and MariaDB have different values for "no limit", so the wait is repeated.
_MYSQL_LOCK_SECONDS = 10
# A number that no other program in the same PostgreSQL database uses.
_POSTGRESQL_LOCK = 0x706C6163656D656E


@contextlib.contextmanager
def exclusive_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """A connection in a transaction that only one process has at a time; other processes wait.

    The lock ends with the connection, so a process that dies releases it. Nodes of a Galera cluster
    do not share locks: there the lock has no effect, and the caller has to expect conflicts (see
    `is_cluster`).
    """
    with engine.connect().execution_options(**connections.WRITER) as conn:
        if conn.dialect.name == 'mysql':
            # A migration, and the wait for the locks of its tables, may take long. The connection
            # is detached, so that it does not return to the pool with the longer limit.
            conn.detach()
            conn.exec_driver_sql('SET SESSION lock_wait_timeout = @@GLOBAL.lock_wait_timeout')
            with _mysql_lock(conn), conn.begin():
                yield conn
            return
        # On SQLite, the transaction of a writer excludes other writers.
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


@contextlib.contextmanager
def _mysql_lock(conn: sa.Connection) -> Iterator[None]:
    cluster = is_cluster(conn)
    conn.rollback()
    if cluster:
        # The lock would exclude processes on one node only, and some clusters reject it.
        yield
        return
    # All databases of a server share the names of locks, which may have 64 characters.
    database = hashlib.sha256(str(conn.engine.url.database).encode()).hexdigest()
    name = f'placement.{database[:32]}'
    while conn.scalar(sa.select(sa.func.get_lock(name, _MYSQL_LOCK_SECONDS))) != 1:
        LOG.info('Waiting for another process that migrates the database.')
        conn.rollback()
    conn.commit()
    try:
        yield
    finally:
        # The server releases the lock of a lost connection.
        if not conn.invalidated:
            conn.scalar(sa.select(sa.func.release_lock(name)))
            conn.commit()


@contextlib.contextmanager
def explicit_zero(conn: sa.Connection) -> Iterator[None]:
    """Allow rows whose auto-increment key is 0 to be inserted.

    By default, MySQL replaces the 0 by the next free number. The SQL mode is restored afterwards,
    because the connection returns to the pool.
    """
    if conn.dialect.name != 'mysql':
        yield
        return
    mode = conn.exec_driver_sql('SELECT @@SESSION.sql_mode').scalar_one()
    conn.exec_driver_sql(
        'SET SESSION sql_mode = %s', (f'{mode},NO_AUTO_VALUE_ON_ZERO'.lstrip(','),)
    )
    yield
    # After a failure the mode is not restored: the connection may be lost, and the mode changes
    # nothing but rows with the key 0, which no other statement of the service inserts.
    conn.exec_driver_sql('SET SESSION sql_mode = %s', (mode,))
