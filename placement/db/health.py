"""Check whether the database executes statements, on a connection of its own.

The check does not use the connection pool: if all pooled connections are in use, the database is
busy but not down.
"""

import functools
from urllib.parse import quote

import sqlalchemy as sa
from sqlalchemy import pool

from placement import exception
from placement.db import connections
from placement.db import engine as db_engine
from placement.db.sqlalchemy import migration

# The time limit of a check, in seconds.
SECONDS = 2

_QUERY = sa.select(sa.literal(1))
# SQLite does not read the database file to execute a statement without a table.
_SQLITE_QUERY = sa.select(sa.func.count()).select_from(sa.table('sqlite_master'))


def check() -> None:
    """Connect to the database and execute a statement.

    A read-only database, for example a PostgreSQL server in recovery, passes the check, because it
    serves the requests that only read.

    :raises Exception: the database is not available; the class depends on the driver
    """
    engine = db_engine.get_placement_engine()
    if isinstance(engine.pool, pool.StaticPool):
        # An in-memory database has a single connection.
        with db_engine.snapshot() as conn:
            conn.execute(_QUERY)
        return
    with _unpooled(engine.url).connect() as conn:
        if conn.dialect.name == 'sqlite':
            conn.execute(_SQLITE_QUERY)
            return
        conn.execute(_QUERY)
        _require_ready_node(conn)


def _require_ready_node(conn: sa.Connection) -> None:
    """Check that a node of a Galera cluster accepts statements.

    A node outside of the primary component executes a SELECT without a table. With
    `wsrep_dirty_reads`, it executes every SELECT, but no statement that writes.

    :raises exception.DatabaseUnavailable: the node is not ready
    """
    if not migration.is_cluster(conn):
        return
    row = conn.exec_driver_sql("SHOW STATUS LIKE 'wsrep_ready'").first()
    if row is None or str(row[1]).upper() != 'ON':
        raise exception.DatabaseUnavailable()


@functools.lru_cache(maxsize=1)
def _unpooled(url: sa.URL) -> sa.Engine:
    """Return an engine that opens a connection for each check and closes it afterwards."""
    if url.get_dialect().name == 'sqlite':
        return sa.create_engine(
            _existing_file(url), poolclass=pool.NullPool, connect_args={'timeout': SECONDS}
        )
    engine = sa.create_engine(url, poolclass=pool.NullPool, pool_reset_on_return=None)
    connections.limit_waits(engine, connections.Timeouts(SECONDS, SECONDS, SECONDS))
    return engine


def _existing_file(url: sa.URL) -> sa.URL:
    """Return the URL of a SQLite database with which SQLite does not create a missing file."""
    path = url.database or ''
    if path.startswith('file:'):
        return url
    return url.set(database=f'file:{quote(path)}').update_query_dict({'mode': 'rw', 'uri': 'true'})
