"""The lock with which only one process at a time migrates the schema."""

from collections.abc import Iterator
import contextlib
import hashlib
import logging

import sqlalchemy as sa

from placement.db import timeouts

LOG = logging.getLogger(__name__)

# MySQL and MariaDB use different values for "no timeout", so this module waits repeatedly with a
# timeout.
_MYSQL_LOCK_SECONDS = 10
# The key of the PostgreSQL advisory lock; other programs in the same database must not use it.
_POSTGRESQL_LOCK = 0x706C6163656D656E


@contextlib.contextmanager
def exclusive_transaction(engine: sa.Engine) -> Iterator[sa.Connection]:
    """Yield a connection in a transaction that excludes other processes until the transaction ends.

    Other processes wait in this function. When a process dies, the server closes its connection and
    releases the lock. The nodes of a Galera cluster do not share locks, so on a cluster this
    function does not exclude other processes, and the caller has to handle conflicts (see
    `is_cluster`).
    """
    # No request uses this connection, which has other timeouts than those of the pool.
    with timeouts.connect_unlimited(engine) as conn:
        if conn.dialect.name == 'mysql':
            # A migration may have to wait for table locks longer than a request.
            conn.exec_driver_sql('SET SESSION lock_wait_timeout = @@GLOBAL.lock_wait_timeout')
            with _mysql_lock(conn), conn.begin():
                yield conn
            return
        # On SQLite, a write transaction excludes all other write transactions.
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
        # The lock would exclude only processes that are connected to the same node, and some
        # clusters reject GET_LOCK().
        yield
        return
    # Lock names are shared by all databases of a server, and limited to 64 characters.
    database = hashlib.sha256(str(conn.engine.url.database).encode()).hexdigest()
    name = f'placement.{database[:32]}'
    while conn.scalar(sa.select(sa.func.get_lock(name, _MYSQL_LOCK_SECONDS))) != 1:
        LOG.info('Waiting for another process to migrate the database.')
        conn.rollback()
    conn.commit()
    try:
        yield
    finally:
        # If the connection was lost, the server has already released the lock.
        if not conn.invalidated:
            conn.scalar(sa.select(sa.func.release_lock(name)))
            conn.commit()
