"""What the start of a process needs of an engine, engine by engine."""

from collections.abc import Iterator
import contextlib

import sqlalchemy as sa


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
