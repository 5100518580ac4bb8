"""A connection pool that prefers a connection in the requested mode.

`db/transactions.py` describes the modes. Each idle connection keeps the mode of its last use. If no
idle connection is in the requested mode, the pool opens a new one until it has `pool_size`
connections, and from then on changes the mode of an idle connection. So the connections of both
modes together never exceed the limits of the pool.
"""

import logging

import sqlalchemy as sa
from sqlalchemy import pool
from sqlalchemy.util import queue

from placement.db import transactions

# SQLAlchemy logs the events of a pool with the name of its class.
logging.getLogger(f'{__name__}.ModePool').setLevel(logging.WARNING)


class _ModeQueue(queue.Queue[pool.ConnectionPoolEntry]):
    """The idle connections of a pool."""

    def take_in_requested_mode(self) -> pool.ConnectionPoolEntry | None:
        """Remove and return an idle connection in the requested mode; None if there is none."""
        with self.mutex:
            for index, entry in enumerate(self.queue):
                if transactions.is_in_requested_mode(entry.info):
                    del self.queue[index]
                    return entry
        return None

    def _get(self) -> pool.ConnectionPoolEntry:
        return self.take_in_requested_mode() or super()._get()


class ModePool(pool.QueuePool):
    """A pool of connections in two modes."""

    # The methods and attributes of `QueuePool` that this class overrides or uses are private, but
    # there is no public alternative.
    _queue_class = _ModeQueue
    _pool: _ModeQueue

    def _do_get(self) -> pool.ConnectionPoolEntry:
        if entry := self._pool.take_in_requested_mode():
            return entry
        if self._overflow >= 0 or not self._inc_overflow():
            return super()._do_get()
        try:
            return self._create_connection()
        except BaseException:
            self._dec_overflow()
            raise


def install(engine: sa.Engine) -> None:
    """Replace the pool of an engine with a pool of connections in two modes that has equal limits.

    oslo.db has no option for the class of the pool.
    """
    old = engine.pool
    if not isinstance(old, pool.QueuePool):
        return
    engine.pool = ModePool(
        old._creator,  # noqa: SLF001 - see `ModePool`
        pool_size=old.size(),
        max_overflow=old._max_overflow,  # noqa: SLF001
        timeout=old.timeout(),
        recycle=old._recycle,  # noqa: SLF001
        dialect=engine.dialect,
        _dispatch=old.dispatch,
    )
